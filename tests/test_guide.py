"""The guide: a page per algorithm, a reference with every name, a navigation with every page, and commands that run."""

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import anabranch
from anabranch import algorithms
from anabranch.cli import app
from conftest import Run, load_script

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
# What a page says to type: blocks of code, indented or between fences of `sh`.
_INDENTED = re.compile(r"^ {4}(anabranch .*)$", re.MULTILINE)
_FENCED = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Two spaces or more before what explains a command.
_REMARK = re.compile(r"\s{2,}[(#].*$|\s+# .*$")


def typed(page: Path) -> Iterator[str]:
    """The commands of this program that a page says to type."""
    # A command may go on in the next line.
    text = re.sub(r" *\\\n\s*", " ", page.read_text("utf-8"))
    lines = _INDENTED.findall(text) + [line for block in _FENCED.findall(text) for line in block.splitlines()]
    for line in lines:
        command = _REMARK.sub("", line)
        if command.startswith("anabranch "):
            yield command


# --- Algorithms -----------------------------------------------------------------------------------------------------


def test_every_algorithm_has_a_page_with_what_the_registry_knows() -> None:
    pages = load_script("algorithm-pages")
    for page, text in pages.written().items():
        assert page.read_text("utf-8") == text, f"{page.name}: `make docs` writes it again"


def test_an_algorithm_without_a_page_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = load_script("algorithm-pages")
    shutil.copytree(pages.PAGES, tmp_path / "algorithms")
    monkeypatch.setattr(pages, "PAGES", tmp_path / "algorithms")
    (tmp_path / "algorithms" / "schedulers" / "ecf.md").unlink()
    with pytest.raises(SystemExit, match="no page with <!-- begin schedulers/ecf -->"):
        pages.written()


def test_the_options_of_algorithms_are_found_out() -> None:
    """By their messages: names, defaults and what is valid."""
    pages = load_script("algorithm-pages")
    schedulers, controls, policies, pacings, rules = pages.kinds()
    option = pages.Option
    assert pages.options(schedulers, "min-rtt") == []
    assert pages.options(schedulers, "round-robin") == [
        option("num_segments", "`1`", "1 to 255"),
        option("cwnd_limited", "`true`", "`true`, `false`"),
    ]
    assert pages.options(controls, "mcc") == [option("gamma_unit", "`rtt-round`", "`rtt-round`, `ack`")]
    assert option("rho", "`0.6`", "0 to 1") in pages.options(policies, "pud")
    assert option("target_s", "`18`", "0.1 to 3600") in pages.options(pacings, "sammy")
    assert [each.name for each in pages.options(rules, "rate")] == ["samples", "safety"]


def test_every_option_of_an_algorithm_is_explained() -> None:
    pages = load_script("algorithm-pages")
    where = pages.pages()
    for kind in pages.kinds():
        for name in kind.entries:
            page = where[f"{kind.name}/{name}"].read_text("utf-8")
            prose = page.rpartition("<!-- end ")[2]
            named = {option.name for option in pages.options(kind, name)}
            assert {each for each in named if f"`{each}" not in prose} == set(), name
            assert f"images/algorithms/{name}.png" in page


def test_there_is_a_figure_for_every_name_and_no_other() -> None:
    drawn = {f"{name}.png" for name in load_script("guide-figures").figures()}
    kept = {file.relative_to(DOCS / "images").as_posix() for file in (DOCS / "images").glob("*/*.png")}
    assert kept == drawn
    assert sum((DOCS / "images" / name).stat().st_size for name in kept) < 2_000_000


# A number in a text: not a part of a name, a version, or a link.
_NUMBER = re.compile(r"(?<![\w.\-/])\d+(?:\.\d+)?(?![\w.]*\w)")
_CITED = re.compile(r"\[[^\]]*\]\(([^)#]*validation/[\w-]+\.md)(?:#([\w-]+))?\)")


def section(page: Path, anchor: str | None) -> str:
    """A section of a page with those below it; the page without an anchor."""
    lines, level = page.read_text("utf-8").splitlines(), 0
    if anchor is None:
        return "\n".join(lines)
    found: list[str] = []
    for line in lines:
        if heading := re.match(r"(#+) (.*)", line):
            if level and len(heading[1]) <= level:
                break
            if re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-") == anchor:
                level = len(heading[1])
        found += [line] if level else []
    assert found, f"{page.name} has no section {anchor}"
    return "\n".join(found)


def unfounded(page: Path, text: str) -> tuple[list[str], int]:
    """The numbers of sentences that the pages cited there do not have, nor round to; how many they do have."""
    wrong, right = [], 0
    for sentence in re.split(r"(?<=[.])\s+(?=[A-Z`\[])", re.sub(r"\s+", " ", text)):
        cited = [section((page.parent / path).resolve(), anchor or None) for path, anchor in _CITED.findall(sentence)]
        there = [number for each in cited for number in _NUMBER.findall(each)]
        prose = re.sub(r"`[^`]*`|rows? \d+( and \d+)?|[A-Z]\w+ (19|20)\d\d", "", _CITED.sub("", sentence))
        for number in _NUMBER.findall(prose) if cited else ():
            digits = len(number.partition(".")[2])
            if any(f"{float(each):.{digits}f}" == number for each in there):
                right += 1
            else:
                wrong.append(number)
    return wrong, right


def test_numbers_on_pages_of_algorithms_stand_on_the_pages_that_they_cite() -> None:
    """Tables there are made by scripts: when one changes, a sentence that quotes it is found here."""
    checked = 0
    for page in sorted((DOCS / "algorithms").glob("*/*.md")):
        wrong, right = unfounded(page, page.read_text("utf-8").partition("## Where it wins and loses")[2])
        assert wrong == [], f"{page.name}: these numbers are not on the page that their sentence cites"
        checked += right
    assert checked > 40, "the sentences are read"


def test_a_number_that_the_cited_page_does_not_have_is_found() -> None:
    page = DOCS / "algorithms" / "schedulers" / "blest.md"
    text = page.read_text("utf-8")
    assert unfounded(page, text.replace("531 ms", "532 ms"))[0] == ["532"]


# --- Reference ------------------------------------------------------------------------------------------------------


def test_the_reference_of_the_package_has_every_name() -> None:
    page = (DOCS / "reference" / "python.md").read_text("utf-8")
    listed = re.findall(r"^::: (?:anabranch|anabranch\.algorithms)\.(\w+)$", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == (set(anabranch.__all__) | set(algorithms.__all__)) - {"__version__", "overrides"}


def test_docstrings_have_no_roles_of_another_markup() -> None:
    """The site and editors read docstrings as Markdown."""
    sources = sorted((ROOT / "python" / "anabranch").rglob("*.py*"))
    roles = {
        source.name: re.findall(r":(?:class|meth|func|attr|mod|data|exc):`", source.read_text("utf-8"))
        for source in sources
        if source.suffix in (".py", ".pyi")
    }
    assert {name: found for name, found in roles.items() if found} == {}


# --- Navigation and commands ----------------------------------------------------------------------------------------


def test_the_navigation_of_the_site_has_every_page_once() -> None:
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    named = re.findall(r"^ +- (?:[^:\n]+: )?([\w./-]+\.md)$", config.partition("\nnav:\n")[2], re.MULTILINE)
    notebooks = {f"notebooks/{file.stem}.md" for file in (DOCS / "notebooks").glob("*.py")}
    existing = {file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md")}
    assert sorted(named) == sorted(existing | notebooks)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_exist_with_their_options(page: Path) -> None:
    for command in typed(page):
        _, *words = shlex.split(command)
        found: Any = typer.main.get_command(app)
        while (children := getattr(found, "commands", None)) is not None:
            assert words, command
            assert words[0] in children, command
            found = children[words.pop(0)]
        options = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= options | {"--help"}, command


def run_page(page: Path, anabranch: Run, folder: Path) -> tuple[int, int]:
    """Writes the files of a page, runs its commands and programs in their order; how many of both."""
    text = page.read_text("utf-8")
    commands = programs = 0
    printed = ""
    names: dict[str, Any] = {}
    for match in re.finditer(r"(?:`([\w.-]+)`:\n\n)?^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        file, language, content = match.groups()
        if file:
            (folder / file).write_text(content, "utf-8")
        elif language == "sh":
            for line in content.splitlines():
                done = anabranch(*shlex.split(_REMARK.sub("", line))[1:])
                assert done.returncode == 0, f"{line}: {done.stderr}"
                printed += done.stdout
                commands += 1
        elif not language:
            assert content in printed
        elif language == "python":
            exec(compile(content, page.name, "exec"), names)
            programs += 1
    return commands, programs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "ran", "written"),
    [
        ("tutorial/start.md", (5, 1), ("demo/comparison.png", "comparison.png", "walk.png")),
        ("tutorial/it-froze.md", (8, 0), ("stall.png", "comparison.png")),
        ("tutorial/own-question.md", (6, 1), ("once/session.png", "which-paper/comparison-1-chart.pdf", "which.png")),
    ],
)
def test_a_tutorial_works(
    page: str,
    ran: tuple[int, int],
    written: tuple[str, ...],
    anabranch: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(DOCS / page, anabranch, tmp_path) == ran
    for file in written:
        assert (tmp_path / file).stat().st_size > 10_000, file


@pytest.mark.slow
def test_the_commands_about_traces_work(anabranch: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a recording's file stands for is synthesised first, or written here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drive.csv").write_text("t_s,att_mbps,verizon_mbps\n0,20,5\n1,22,6\n", "utf-8")
    (tmp_path / "log.txt").write_text("20\n22\n18\n", "utf-8")
    commands = list(typed(DOCS / "how-to" / "traces.md"))
    made = [
        f'anabranch trace synthesize {file.partition(".")[0]} {file} --mean "2 Mb/s"'
        for file in ("lte.down", "wifi.csv")
    ]
    assert len(commands) >= 4
    for command in (*made, *commands):
        done = anabranch(*shlex.split(command)[1:])
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_the_figures_are_drawn_by_their_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = load_script("guide-figures")
    monkeypatch.setattr(sys, "argv", ["guide-figures.py", "ecf", "--out", str(tmp_path)])
    figures.main()
    (drawn,) = tmp_path.rglob("*.png")
    assert drawn == tmp_path / "algorithms" / "ecf.png"
    # Of the same run on the same machine: the same picture.
    assert drawn.read_bytes() == (DOCS / "images" / "algorithms" / "ecf.png").read_bytes()
