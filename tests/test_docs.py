"""The documentation: its links resolve, its figures are those of its tables, its commands and options exist."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import anabranch
from anabranch import InputError
from anabranch.cli import app
from anabranch.experiments import paper
from conftest import load_script

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
page_samples = load_script("page-samples")
page_numbers = load_script("page-numbers")
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
# Files that may name a page of the documentation.
SOURCES = ("crates", "python", "tests", "scripts", "scenarios", "examples", "benches", "fuzz", "Makefile")

_FENCE = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return _FENCE.sub("", text)


def written(text: str) -> str:
    """A page without what a program writes between markers."""
    return re.sub(r"<!-- begin .*?<!-- end .*?-->", "", text, flags=re.DOTALL)


# What is read in a quarter of an hour; tables and samples of output are looked up.
MOST_WORDS = 2500


def narrative(page: Path) -> list[str]:
    """The words of a page without tables, samples, and what is generated."""
    papers = {read.page: read.text for read in map(paper.load, paper.shipped())}
    text = written(papers.get(page.name, page.read_text("utf-8")))
    return [word for line in prose(text).splitlines() if not line.startswith(("|", "    ")) for word in line.split()]


def test_no_page_is_longer_than_what_is_read_at_once() -> None:
    lengths = {page.name: len(narrative(page)) for page in DOCS.rglob("*.md")}
    assert {name: words for name, words in lengths.items() if words > MOST_WORDS} == {}
    # It counts what papers have written, too.
    assert lengths["one-pipe.md"] > MOST_WORDS / 2


def slug(heading: str) -> str:
    """The anchor of a heading as GitHub makes it."""
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """The anchors that a link to a page can name. Repeated headings are numbered."""
    found: Counter[str] = Counter()
    names = set()
    for heading in _HEADING.findall(prose(page.read_text("utf-8"))):
        name = slug(heading)
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


def broken_links(page: Path) -> Iterator[str]:
    """The links of a page whose file or anchor does not exist, with the reason."""
    for target in _LINK.findall(_CODE.sub("", prose(page.read_text("utf-8")))):
        parts = urlsplit(target)
        if parts.scheme:
            continue
        file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not file.exists():
            yield f"{target}: no such file"
        elif page.is_relative_to(DOCS) and not file.is_relative_to(DOCS):
            yield f"{target}: outside of docs/, where a documentation site has nothing"
        elif parts.fragment and parts.fragment not in anchors(file):
            yield f"{target}: no such heading"


def links(page: Path) -> set[Path]:
    """The pages that a page links to."""
    targets = _LINK.findall(_CODE.sub("", prose(page.read_text("utf-8"))))
    return {(page.parent / urlsplit(target).path).resolve() for target in targets if not urlsplit(target).scheme}


WIDTH = 160
"""The most characters of a line of text."""

# Programs write these pages, with a line for each sentence of their source. Texts of papers are looked at themselves.
_WRITTEN = {"scenario.md", *(paper.load(name).page for name in paper.shipped())}
_TEXTS = [
    *(page for page in PAGES if page.name not in _WRITTEN),
    *sorted((ROOT / "python" / "anabranch" / "papers").glob("*/text.md")),
]


@pytest.mark.parametrize("page", _TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_text_are_wrapped(page: Path) -> None:
    """Rows of tables, headings and words that cannot be divided may be longer."""
    lines = prose(written(page.read_text("utf-8"))).splitlines()
    long = [line for line in lines if len(line) > WIDTH and not line.lstrip().startswith(("|", "#", "!["))]
    assert not [line for line in long if " " in line[:WIDTH].strip()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_resolves(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A `b` c: d\n\n```sh\n# No heading\n```\n\n## Twice\n\n## Twice\n", "utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#a-b-c-d) [c](there.md#twice-1) [d](#here) [e](https://example.org/no)\n"
        "`[in code](nowhere.md)` ![f](absent.png) [g](there.md#no-heading) [h](there.md#twice-2)\n\n# Here\n",
        "utf-8",
    )
    assert list(broken_links(page)) == [
        "absent.png: no such file",
        "there.md#no-heading: no such heading",
        "there.md#twice-2: no such heading",
    ]


def test_every_page_is_reachable_from_the_start() -> None:
    reached, waiting = set[Path](), {DOCS / "index.md"}
    while waiting:
        page = waiting.pop()
        reached.add(page)
        waiting |= {link for link in links(page) if link.suffix == ".md"} - reached
    assert {page for page in PAGES if page.is_relative_to(DOCS)} - reached == set()


def test_pages_that_the_sources_name_exist() -> None:
    files = [
        file for name in SOURCES for file in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))
    ]
    texts = [file for file in files if file.suffix in (".rs", ".py", ".toml", ".sh", ".js", "") and file.is_file()]
    absent = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in texts
        if "__pycache__" not in file.parts
        for name in re.findall(r"\bdocs/[\w./-]+\.md\b", file.read_text("utf-8", errors="replace"))
        if not (ROOT / name).is_file()
    }
    assert absent == set()


def test_numbers_of_texts_are_those_of_the_tables_that_they_quote() -> None:
    for page in page_numbers.PAGES:
        text = page.read_text("utf-8")
        assert page_numbers.filled(text) == text, f"{page.name}: scripts/page-numbers.py fills them in again"
        assert page_numbers.QUOTED.search(text), page.name


def test_a_quoted_number_is_filled_in() -> None:
    checks = page_numbers.numbers()["laws checks"]
    assert page_numbers.filled("12<!-- laws checks -->, 3.4") == f"{checks}<!-- laws checks -->, 3.4"
    with pytest.raises(InputError, match="there is no such number; did you mean `laws checks`"):
        page_numbers.filled("12<!-- laws check -->")


def test_the_figure_of_agreement_is_drawn(tmp_path: Path) -> None:
    figure = tmp_path / "figure.png"
    command = [sys.executable, str(ROOT / "scripts" / "kernel-figure.py"), "--out", str(figure)]
    subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert figure.stat().st_size > 10_000


def commands(command: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    """Every command below a command, with the long names of its options."""
    children: dict[str, Any] = getattr(command, "commands", {})
    for child, below in children.items():
        yield from commands(below, f"{name} {child}")
    if not children:
        # Former names of options are hidden.
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        yield name, [option for parameter in shown for option in parameter.opts if option.startswith("--")]


def test_the_reference_of_the_command_line_is_complete() -> None:
    """Each command has a section, and the section names the options that the command has and no others."""
    page = (DOCS / "reference" / "cli.md").read_text("utf-8")
    sections = dict(re.findall(r"^## `(anabranch [\w ]+)`\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    existing = dict(commands(typer.main.get_command(app), "anabranch"))
    assert sorted(sections) == sorted(existing)
    for name, options in existing.items():
        listed = re.findall(r"^\| `(--[\w-]+)", sections[name], re.MULTILINE)
        assert sorted(listed) == sorted(set(options) - {"--help"}), name


def test_the_tutorial_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are written, its commands and its program run, and they print what the page shows."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "tutorial" / "first-steps.md").read_text("utf-8")
    printed, shown, ran = "", 0, 0
    for match in re.finditer(r"(?:`([\w.-]+)`:\n\n)?^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        file, language, content = match.groups()
        if language == "toml":
            Path(file).write_text(content, "utf-8")
        elif language == "sh":
            for line in content.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "anabranch"
                done = CliRunner().invoke(app, arguments)
                assert done.exit_code == 0, f"{line}: {done.output}"
                printed, ran = done.stdout, ran + 1
        elif language == "python":
            exec(content, {})
        else:
            assert content in printed
            shown += 1
    assert (ran, shown) == (8, 3)


def test_what_the_tutorial_says_about_its_outage_is_so() -> None:
    page = " ".join((DOCS / "tutorial" / "first-steps.md").read_text("utf-8").split())
    (scenario,) = re.findall(r"```toml\n(.*?)```", (DOCS / "tutorial" / "first-steps.md").read_text("utf-8"), re.DOTALL)

    def of(seconds: int, key: str = "link") -> anabranch.Run:
        given = tomllib.loads(scenario.replace('\nlink = "wifi"', f'\n{key} = "wifi"'))
        return anabranch.run(given, set={"event.1.at": f"{30 + seconds} s"}, events=True)

    def stalls(run: anabranch.Run) -> tuple[int | None, float | None]:
        session = run.metrics["sessions"][0]
        return session["stalls"], session["stall_s"]

    forty = of(40)
    fired = forty.events.filter((pl.col("event") == "timeout-fired") & (pl.col("subflow") == 0))["time_s"]
    *times, last = [f"{time:.0f}" for time in fired if time > 30.0]
    assert f"at {', '.join(times)} and {last} s" in page
    assert stalls(forty) == stalls(of(50)) == stalls(of(59))
    assert stalls(of(40, "path")) == (0, 0.0)


def test_the_readme_shows_what_the_demo_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "README.md").read_text("utf-8")
    printed = ""
    for arguments in page_samples.demo_commands():
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{arguments}: {done.output}"
        printed += done.stdout
    assert (tmp_path / "demo" / "comparison.png").stat().st_size > 10_000
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    blocks = [content for language, content in fences if not language]
    # The table, the summary, and what ten seeds give, which the slow test below measures.
    assert [block in printed for block in blocks] == [True, True, False]


def test_the_readme_shows_the_times_of_chunks_that_its_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "README.md").read_text("utf-8")
    (command,) = page_samples.COMMAND_OF_CHUNKS.findall(page)
    assert page_samples.CHUNKS.findall(page) == [page_samples.chunks(command)]


@pytest.mark.slow
def test_the_program_of_the_readme_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    found = re.search(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found
    exec(found[1], {})
    printed = capsys.readouterr().out
    assert printed == found[2]
    alone, both, redundant = (float(number) for number in re.findall(r"([\d.]+) s frozen", printed))
    assert alone > 10 * both > 10 * redundant, "the demo shows a difference"


def test_the_algorithm_of_the_readme_is_that_of_the_guide() -> None:
    """The guide's snippets are run by tests/test_own_algorithms.py."""
    (algorithm,) = re.findall(r"^```py\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert f"```python\n{algorithm}```" in (DOCS / "how-to" / "own-algorithm.md").read_text("utf-8")


def test_the_plan_of_the_guide_is_the_shipped_one() -> None:
    from anabranch.experiments import plan

    page = (DOCS / "how-to" / "sweeps.md").read_text("utf-8")
    shown, recorded, both_engines = (
        tomllib.loads(text) for text in re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    )
    shipped = tomllib.loads(plan.shipped()["schedulers"].read_text("utf-8"))
    ours = ("question", "metrics")
    assert {k: v for k, v in shown.items() if k not in ours} == {k: v for k, v in shipped.items() if k not in ours}
    assert set(recorded) == {"set", "traces"}
    assert both_engines == tomllib.loads(plan.shipped()["kernel"].read_text("utf-8"))


def test_the_examples_of_the_reference_of_plans_are_plans(tmp_path: Path) -> None:
    from anabranch.experiments import plan

    for name in ("a_wifi", "a_lte"):
        (tmp_path / "pairs").mkdir(exist_ok=True)
        (tmp_path / "pairs" / f"{name}.csv").write_text("t,rate\n0,1000000\n1,2000000\n", "utf-8")
    head = 'schema = 1\nquestion = "?"\nscenario = "mobile/wifi-lte"\nseeds = 2\n'
    page = (DOCS / "reference" / "plan.md").read_text("utf-8")
    (examples,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    tables = re.split(r"\n\n(?=\[)", examples)
    assert len(tables) == 5
    for table in tables:
        (tmp_path / "plan.toml").write_text(head + table, "utf-8")
        assert plan.load(tmp_path / "plan.toml").conditions > 0, table


def test_the_reference_of_plans_has_every_key() -> None:
    from anabranch.experiments import plan

    page = (DOCS / "reference" / "plan.md").read_text("utf-8")
    for keys in (plan.KEYS, plan.COMPARE_KEYS, plan.FIGURE_KEYS):
        table = "\n".join(f"| `{key}` | {meaning.replace('|', chr(92) + '|')} |" for key, meaning in keys.items())
        assert f"| key | meaning |\n|---|---|\n{table}\n" in page


def test_the_guide_to_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "how-to" / "python.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 8
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "python.md", "exec"), names)
    assert (tmp_path / "walk.png").stat().st_size > 10_000
    assert (tmp_path / "captured" / "client.pcapng").stat().st_size > 100_000
