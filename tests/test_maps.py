"""Maps: the differences of a comparison over two axes, in the page and in the figures of papers."""

from __future__ import annotations

import polars as pl
import pytest

from anabranch.experiments import contrast
from anabranch.experiments.contrast_spec import Contrast, Margin
from anabranch.experiments.plan import Figure
from anabranch.report import charts, page, paper
from anabranch.report.document import MapChart, Report, Section

SEEDS = range(1, 9)


@pytest.fixture
def chart() -> MapChart:
    """Where `ecf` stalls less than `min-rtt`: by 4 s at one place, by -1 s or by chance elsewhere."""
    shift = {("0.5", 50): 0.0, ("1", 50): -4.0, ("0.5", 300): 1.0, ("1", 300): 0.3}
    rows = []
    for (load, rtt), by in shift.items():
        for seed in SEEDS:
            common = 5.0 + seed % 3
            noise = (-1) ** seed * (2.0 if (load, rtt) == ("1", 300) else 0.01)
            for scheduler, stall in (("min-rtt", common), ("ecf", common + by + noise)):
                rows.append({"load": load, "rtt": rtt, "s": scheduler, "seed": seed, "stall_s": stall, "error": None})
    table = pl.DataFrame(rows).with_columns(pl.col("error").cast(pl.String))
    of = Contrast("stall_s", False, ("s",), reference={"s": "min-rtt"}, margin=Margin(0.1, relative=False))
    found = contrast.compare(table, of, ("load", "rtt", "s"))
    (made,) = charts.maps(Figure("stall_s", "load", rows="rtt"), found, "figure-1")
    return made


def test_a_map_has_the_differences_at_their_places(chart: MapChart) -> None:
    assert chart.title == "ecf: difference of stall time (s) from min-rtt"
    assert (chart.rows, chart.columns) == (["50", "300"], ["0.5", "1"])
    assert [[tile.tone for tile in row] for row in chart.tiles] == [["same", "good"], ["bad", "open"]]
    assert [[tile.text for tile in row] for row in chart.tiles] == [["0", "-4.00"], ["+1.00", "+0.30"]]
    strengths = [[tile.strength for tile in row] for row in chart.tiles]
    assert strengths[0] == [0.0, 1.0], "what is not certain has no colour"
    assert strengths[1] == [pytest.approx(0.5), 0.0], "a quarter of the difference"
    assert "undecided" in chart.tiles[1][1].note


def test_a_page_shows_a_map_as_a_table(chart: MapChart) -> None:
    text = page.render(Report("maps", "When?", sections=[Section("Figures", [chart])]))
    assert '<td class="tone-good level-4"' in text
    assert '<td class="tone-bad level-2"' in text
    assert "+0.30 ?</td>" in text, "colour alone tells nothing to some readers"
    assert '<th scope="row">300</th>' in text


def test_a_paper_has_maps_in_a_row(chart: MapChart) -> None:
    figure = paper.maps([chart, chart, chart], columns=2)
    assert len(figure.axes) == 3
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["0", "-4.00", "+1.00", "+0.30?"]
    colours = [float(patch.get_alpha() or patch.get_facecolor()[-1]) for patch in figure.axes[0].patches]
    assert colours[1] > colours[2] > colours[0] == 0.0
    assert len(paper.draw(chart).axes) == 1
