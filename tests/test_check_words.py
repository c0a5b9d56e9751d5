"""scripts/check-words.py finds denied words, and lets its exceptions pass."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conftest import load_script

SCRIPT = Path(__file__).parents[1] / "scripts" / "check-words.py"

LIST = """\
[[deny]]
words = ["head of the line"]
use = "first unacknowledged data"
[[deny]]
words = ["cell", "cells"]
use = "test case"
note = "of a campaign"
[[deny]]
words = ["made-up"]
use = "synthetic"

[[allow]]
reason = "the standard library's"
words = ["cell"]
near = 'cell::'
[[allow]]
reason = "a page about tables"
words = ["cells"]
files = ["pages/tables*.md"]
"""


check_words = load_script("check-words")


def _findings(text: str, path: str = "src/a.rs") -> list[str]:
    return [str(finding) for finding in check_words.Rules(tomllib.loads(LIST)).findings(path, text)]


def test_a_finding_names_file_line_and_the_standard_term() -> None:
    assert _findings("fn main() {}\n// Made-up rates.\n") == ["src/a.rs:2: `Made-up`: use synthetic"]
    assert _findings("the cells") == ["src/a.rs:1: `cells`: use test case (of a campaign)"]


@pytest.mark.parametrize("text", ["a CELL", "cell_of(x)", "the_cell", "one-cell", "`cell`s", "cell1", "x = cell"])
def test_identifiers_are_taken_apart_into_words(text: str) -> None:
    assert len(_findings(text)) == 1


@pytest.mark.parametrize("text", ["RefCell", "cellular", "excellent", "it is made up of links", "head of line", ""])
def test_other_words_that_contain_a_denied_one_pass(text: str) -> None:
    assert _findings(text) == []


@pytest.mark.parametrize("margin", ["//! ", "    /// ", "// ", "# ", "> ", ""])
def test_a_phrase_is_found_across_wrapped_lines(margin: str) -> None:
    found = _findings(f"{margin}It is at the head\n{margin}of the line, and waits.\n")
    assert found == [f"src/a.rs:1: `{' '.join(f'head {margin}of the line'.split())}`: use first unacknowledged data"]


def test_an_exception_near_the_word_covers_only_that_word() -> None:
    assert _findings("use std::cell::RefCell;") == []
    assert len(_findings("use std::cell::RefCell; // A cell of the campaign.")) == 1
    assert len(_findings("a cell\nuse std::cell::RefCell;")) == 1


def test_an_exception_for_a_file_holds_in_that_file_and_for_its_words() -> None:
    assert _findings("cells", "pages/tables-1.md") == []
    assert len(_findings("cells, made-up", "pages/tables-1.md")) == 1
    assert len(_findings("cells", "pages/other.md")) == 1


@pytest.mark.parametrize(
    ("exception", "complaint"),
    [
        ('reason = "r"\nwords = ["cell"]', "everywhere"),
        ('reason = "r"\nwords = ["sell"]\nnear = "x"', "are not denied"),
    ],
)
def test_an_exception_without_bounds_or_for_nothing_is_refused(exception: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        check_words.Rules(tomllib.loads(f"{LIST}[[allow]]\n{exception}\n"))


def test_an_exception_that_is_not_needed_is_known() -> None:
    rules = check_words.Rules(tomllib.loads(LIST))
    assert list(rules.findings("pages/tables.md", "cells")) == []
    assert [one.reason for n, one in enumerate(rules.allowed) if n not in rules.used] == ["the standard library's"]


def test_the_project_s_own_list_can_be_read_and_finds_something() -> None:
    rules = check_words.Rules(tomllib.loads(check_words.LIST.read_text(encoding="utf-8")))
    found = {finding.denied.word for finding in rules.findings("src/a.rs", "its patience, in the laboratory\n")}
    assert found == {"patience", "laboratory"}


def test_the_script_ends_with_1_if_there_is_a_finding(tmp_path: Path) -> None:
    root = tmp_path / "scripts"
    root.mkdir()
    for name in ("check-words.py", "words.toml"):
        (root / name).write_text((SCRIPT.parent / name).read_text(encoding="utf-8"), encoding="utf-8")
    (root / "words.toml").write_text('[[deny]]\nwords = ["patience"]\nuse = "timeout"\n', encoding="utf-8")
    page = tmp_path / "page.md"
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for text, code, printed in (
        ("A timeout.\n", 0, ""),
        ("A timeout\nand patience.\n", 1, "page.md:2: `patience`: use timeout\n"),
    ):
        page.write_text(text, encoding="utf-8")
        subprocess.run(["git", "add", "page.md"], cwd=tmp_path, check=True)
        done = subprocess.run([sys.executable, root / "check-words.py"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.startswith(printed), bool(done.stdout)) == (code, True, bool(printed))
