"""The figures of papers: those that their plans name, as files, with captions, and as data for reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anabranch.experiments import summary
from anabranch.experiments.contrast import Comparison
from anabranch.experiments.paper import PaperPlan
from anabranch.experiments.plan import Figure
from anabranch.experiments.reproduction import Reproduction
from anabranch.report import charts
from anabranch.report.document import Line, LineChart, MapChart, Tile
from anabranch.system import outputs
from anabranch.wording import quantities

_COLUMNS = 2


@dataclass(frozen=True)
class Drawing:
    """A figure of a paper, which is a file.

    Attributes:
        name: What the file is called, without its ending.
        panels: What it shows.
        alternative: Its text for who cannot see it.
        caption: What it shows, in sentences.
    """

    name: str
    panels: Sequence[LineChart] | Sequence[MapChart]
    alternative: str
    caption: str

    @property
    def markdown(self) -> str:
        """The figure in a text in whose folder it is."""
        return f"![{self.alternative}]({self.name}.png)\n\n*{self.caption}*"


def of_plan(found: Reproduction, plan: PaperPlan) -> Iterator[Drawing]:
    """The figures of a plan: a file for all maps of one, and a file for each panel of others."""
    drawn: list[Drawing] = []
    name = f"{found.paper.name}-{plan.plan.name}"
    for figure in plan.plan.figures:
        own = f"{name}-{len(drawn) + 1}" if drawn else name
        if figure.rows is not None:
            drawn += _of_maps(figure, found.study.comparisons(plan.plan.name), own)
        else:
            drawn += _of_lines(figure, found, plan, name, len(drawn))
    yield from drawn


def _of_maps(figure: Figure, comparisons: Sequence[Comparison], name: str) -> Iterator[Drawing]:
    panels = list(charts.maps(figure, comparisons, name))
    if panels:
        own = [each for each in comparisons if each.contrast.metric == figure.y]
        quantity = quantities.of_metric(figure.y)
        yield Drawing(name, panels, f"{quantity.name} over two axes", _caption(own))


def _caption(comparisons: Sequence[Comparison]) -> str:
    """What the colours of maps mean, and how many pairs, places and tests there are."""
    first = comparisons[0]
    quantity = quantities.of_metric(first.contrast.metric)
    better = "higher" if first.contrast.higher_is_better else "lower"
    return (
        f"Difference of {quantity.labelled} from {summary.named(first.reference.labels)}, where {better} is better: "
        f"mean of {first.pairs} paired seeds at {len(comparisons)} places. Green: certainly better; brown: certainly "
        f"worse (p < 0.05 after Holm's correction for {first.tests} tests); ?: undecided; the rest is the same."
    )


def _of_lines(figure: Figure, found: Reproduction, plan: PaperPlan, name: str, before: int) -> Iterator[Drawing]:
    sessions = found.study.table(plan.plan.name)
    panels = charts.of_figure(figure, sessions, list(plan.plan.policies), name)
    for number, panel in enumerate(panels, start=before + 1):
        own = f"{name}-{number}" if number > 1 else name
        yield Drawing(own, [panel], panel.title, f"{panel.title}{f'; {panel.note}' if panel.note else ''}.")


def write(found: Reproduction, folder: Path) -> list[Path]:
    """Draws the figures that the text of a paper shows into a folder; returns the files.

    Raises:
        OSError: One cannot be written.
    """
    drawings = [each for plan in found.paper.plans for each in of_plan(found, plan)]
    if not drawings:
        return []
    # Most papers have no figure, and matplotlib takes a second.
    from anabranch.figures import style
    from anabranch.report import paper

    files = []
    for drawing in drawings:
        file = folder / f"{drawing.name}.png"
        with outputs.writing(file):
            style.save(paper.panels(drawing.panels, columns=_COLUMNS), file)
        files.append(file)
    return files


def for_programs(found: Reproduction) -> list[dict[str, Any]]:
    """The panels of all figures as ``report.json`` has them: the fields of their charts, and their kind."""
    return [
        {"kind": "map" if isinstance(panel, MapChart) else "lines", **asdict(panel)}
        for plan in found.paper.plans
        for drawing in of_plan(found, plan)
        for panel in drawing.panels
    ]


def of_program(read: Mapping[str, Any]) -> LineChart | MapChart:
    """A chart of what `for_programs` gave.

    Raises:
        KeyError, TypeError: It is something else.
    """
    fields = {key: value for key, value in read.items() if key != "kind"}
    if read["kind"] == "map":
        return MapChart(**{**fields, "tiles": [[Tile(**tile) for tile in row] for row in fields["tiles"]]})
    return LineChart(**{**fields, "lines": [Line(**line) for line in fields["lines"]]})
