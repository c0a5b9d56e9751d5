"""Names in Chinese, Japanese and Korean: their letters in figures, and their columns in tables."""

import logging
import tomllib
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import anabranch
from anabranch import figures
from anabranch.figures import fonts, style
from anabranch.report import document, paper
from conftest import SCENARIO, Run

NAMED = SCENARIO.replace("wifi", '"無線"').replace("lte", '"移动网络"').replace('""', '"')

# A letter that matplotlib's own sans-serif font lacks, and its serif font has.
LETTER = "\u1d2f"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Sets which fallbacks there are, for a process that has told nothing yet."""

    def only(*names: str) -> None:
        fonts._installed.cache_clear()
        monkeypatch.setattr(fonts, "_FALLBACKS", names)
        monkeypatch.setattr(fonts, "_FILES", ())
        monkeypatch.setattr(fonts, "_told", set())

    yield only
    fonts._installed.cache_clear()


def test_names_without_a_font_are_one_sentence_that_names_the_package(
    installed: Callable[..., None], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    installed()
    run = anabranch.run(tomllib.loads(NAMED))
    with caplog.at_level(logging.WARNING, "anabranch"), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = figures.draw_run(run.recording, run.metrics, tomllib.loads(run.scenario), run.seed, None)
        for name in ("a.png", "b.svg"):
            style.save(figure, tmp_path / name)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "fonts-noto-cjk" in said
    assert set("無線移") <= set(said)
    assert "3 more letters" in said


def test_the_command_line_draws_such_names_as_errors_of_warnings_demand(anabranch: Run, tmp_path: Path) -> None:
    (tmp_path / "試験.toml").write_text(NAMED, "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = anabranch("run", "試験.toml", "--out", "走")
    assert done.returncode == 0, done.stderr
    assert "UserWarning" not in done.stderr
    assert (tmp_path / "走" / "session.png").is_file()


def test_letters_are_looked_for_in_the_fallbacks_that_are_installed(installed: Callable[..., None]) -> None:
    def missing() -> list[str]:
        style.text_width_in.cache_clear()
        with style.applied(), fonts.quiet() as found:
            figure = Figure()
            figure.text(0.5, 0.5, LETTER)
            figure.draw_without_rendering()
        return list(found)

    installed("No Such Font")
    assert missing() == [LETTER]
    installed("No Such Font", "DejaVu Serif")
    assert fonts.families() == [fonts.FAMILY, "DejaVu Serif"]
    assert missing() == []


def test_a_name_with_dollar_signs_is_drawn_as_it_is(anabranch: Run, tmp_path: Path) -> None:
    (tmp_path / "a$b$.toml").write_text(SCENARIO.replace("wifi", '"$\\\\frac$"').replace('""', '"'), "utf-8")
    done = anabranch("run", "a$b$.toml", "--out", "r")
    assert done.returncode == 0, done.stderr
    assert "$\\frac$" in (tmp_path / "r" / "session.svg").read_text("utf-8")
    assert "a$b$.toml" in (tmp_path / "r" / "session.svg").read_text("utf-8")


def test_labels_of_logarithms_are_plain_numbers() -> None:
    line = document.Line("a", [0.02, 0.3, 40.0], [0.0, 0.5, 1.0])
    figure = paper.draw(document.LineChart("t", "x", "y", [line], logarithmic=True))
    figure.draw_without_rendering()
    written = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert {"0.1", "1", "10"} <= set(written)
    assert not any("$" in label for label in written)


def test_other_warnings_are_passed_on() -> None:
    with pytest.warns(UserWarning, match="something else"), fonts.quiet() as missing:
        warnings.warn("something else", stacklevel=1)
    assert not missing


def test_tables_stay_aligned_by_the_width_of_their_letters(anabranch: Run, tmp_path: Path) -> None:
    (tmp_path / "試験.toml").write_text(NAMED, "utf-8")
    assert anabranch("run", "試験.toml", "--out", "走").returncode == 0
    assert anabranch("run", "試験.toml", "--out", "a", "--set", "transport.scheduler=redundant").returncode == 0
    summary = anabranch("run", "試験.toml", "--no-figure").stdout.splitlines()
    rows = [line for line in summary if line.startswith(("path", "無線", "移动网络"))]
    assert len(rows) == 3
    assert len({_width(row) for row in rows}) == 1
    compared = anabranch("compare", "走", "a").stdout.splitlines()
    rows = [line for line in compared if line.startswith(("stalls", "無線", "移动网络"))]
    assert len(rows) == 5
    ends = {tuple(_width(row[: place + 1]) for place in _ends(row))[-2:] for row in rows}
    assert len(ends) == 1


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _ends(row: str) -> list[int]:
    """Where the words of a row end."""
    return [place for place, letter in enumerate(row) if letter != " " and row[place + 1 : place + 2] in ("", " ")]
