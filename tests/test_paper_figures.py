"""Figures of papers: in the text, as files in its folder, and in reports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from anabranch import InputError
from anabranch.experiments import paper, paper_new, plan, reproduction
from anabranch.experiments.executor import Threads
from anabranch.experiments.store import Store
from anabranch.report import paper_figures, paper_text, reproduced
from anabranch.report.document import Block, LineChart, MapChart, Section
from anabranch.system import provenance
from conftest import Run
from test_paper import Counted

PAGE = Path(__file__).parent.parent / "docs" / "validation" / "maps.md"
_FIGURES = """
[choose.losses]
"none" = { link.wifi.loss = "0 %" }
"some" = { link.wifi.loss = "2 %" }

[choose.rates]
"1 Mb/s" = { link.lte.rate = "1 Mb/s" }
"3 Mb/s" = { link.lte.rate = "3 Mb/s" }

[[compare]]
metric = "reorder_delay_s.mean"
better = "lower"
between = "transport.scheduler"
reference = "min-rtt"

[[figures]]
kind = "map"
y = "reorder_delay_s.mean"
x = "losses"
rows = "rates"

[[figures]]
y = "stall_s"
x = "losses"
"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A paper with a map, and a chart of means for each rate."""
    folder = tmp_path_factory.mktemp("figures") / "mine"
    paper_new.write(folder)
    plan, text = folder / "sessions.toml", folder / "text.md"
    short = plan.read_text("utf-8").replace('"20 s"', '"4 s"').replace('"60 s"', '"10 s"')
    plan.write_text(short + _FIGURES, "utf-8")
    # The claim reads conditions by the scheduler alone.
    criteria = folder / "criteria.py"
    labels = '{"transport.scheduler": name}'
    given = criteria.read_text("utf-8")
    assert labels in given
    criteria.write_text(
        given.replace(labels, '{"transport.scheduler": name, "losses": "none", "rates": "1 Mb/s"}'), "utf-8"
    )
    text.write_text("# Figures\n\n{{figure sessions}}\n", "utf-8")
    return folder


def found_of(folder: Path) -> reproduction.Reproduction:
    with Store(folder.parent / "store", provenance.build()) as store:
        (found,) = reproduction.reproduce(
            [paper.load(folder)], store, seeds=3, sensitivity=False, execute=Threads(2), progress=Counted()
        )
    return found


def charts_of(sections: Sequence[Section]) -> Iterator[Block]:
    for section in sections:
        yield from (block for block in section.blocks if isinstance(block, LineChart | MapChart))
        yield from charts_of(section.parts)


def test_a_text_names_the_files_that_are_drawn(drawn: Path, anabranch: Run, tmp_path: Path) -> None:
    store = drawn.parent / "store"
    done = anabranch(
        "reproduce", drawn, "--seeds", "3", "--pages", tmp_path / "pages", "--out", tmp_path / "out", "--store", store
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "pages" / "claims-mine.md").read_text("utf-8")
    names = ["mine-sessions.png", "mine-sessions-2.png", "mine-sessions-3.png"]
    assert [line.partition("](")[2].rstrip(")") for line in text.splitlines() if line.startswith("![")] == names
    for folder in ("pages", "out"):
        assert sorted(file.name for file in (tmp_path / folder).glob("*.png")) == sorted(names)
    assert "mean of 3 paired seeds at 4 places" in text
    assert "Stall time by losses, mean with 95 % interval; rates = 3 Mb/s." in text
    read = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert [figure["kind"] for figure in read["papers"][0]["figures"]] == ["map", "lines", "lines"]
    shown = list(charts_of(reproduced.of_folder(tmp_path / "out").sections))
    assert (
        reproduced.of_document({**read, "rows": []}).lead == "Figures and tables of conditions with up to 3 seeds each."
    )
    found = found_of(drawn)
    made = [panel for each in paper_figures.of_plan(found, found.paper.plans[0]) for panel in each.panels]
    assert [type(chart) for chart in shown] == [MapChart, LineChart, LineChart]
    assert json.dumps(shown, default=vars) == json.dumps(made, default=vars), "nothing is lost in report.json"


def test_a_map_has_the_differences_of_the_study(drawn: Path) -> None:
    study = found_of(drawn).study
    places = {(each.facet["rates"], each.facet["losses"]): each for each in study.comparisons("sessions")}
    assert set(places) == {(rate, loss) for rate in ("1 Mb/s", "3 Mb/s") for loss in ("none", "some")}
    table = study.table("sessions")
    for (rate, loss), comparison in places.items():
        means = {
            scheduler: table.filter(rates=rate, losses=loss, **{"transport.scheduler": scheduler})[
                "reorder_delay_s.mean"
            ].to_numpy()
            for scheduler in ("min-rtt", "blest")
        }
        (entry,) = (each for each in comparison.entries if each.difference is not None)
        assert entry.difference is not None
        assert entry.difference.mean.estimate == pytest.approx((means["blest"] - means["min-rtt"]).mean())
    with pytest.raises(InputError, match=r"the paper has no plan `session`, did you mean `sessions`|`session`"):
        study.comparisons("session")


def test_an_unknown_figure_has_its_place(drawn: Path) -> None:
    text = drawn / "text.md"
    given = text.read_text("utf-8")
    text.write_text(given.replace("figure sessions", "figure session"), "utf-8")
    try:
        with pytest.raises(
            InputError, match=r"text\.md:3: session: there is no plan of that name with \[\[figures\]\]"
        ):
            paper_text.text(found_of(drawn))
    finally:
        text.write_text(given, "utf-8")


def test_the_maps_are_those_of_the_shipped_plans() -> None:
    read = paper.load("maps")
    shipped = {name: plan.shipped()[name] for name in ("stickiness", "pud")}
    assert {each.plan.name: each.plan.document.path for each in read.plans} == shipped


@pytest.mark.slow
def test_the_page_of_maps_is_what_the_paper_makes(anabranch: Run, tmp_path: Path) -> None:
    done = anabranch("reproduce", "maps", "--pages", tmp_path, "--store", tmp_path / "store")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / PAGE.name).read_text("utf-8") == PAGE.read_text("utf-8")
    assert {file.name for file in tmp_path.glob("*.png")} == {"maps-stickiness.png", "maps-pud.png"}
