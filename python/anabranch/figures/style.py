"""How figures look: one place for colours, sizes and fonts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import LogFormatter, MaxNLocator

from anabranch.figures import fonts

# Of a PNG, out of 9. Less time than the usual 6 takes, and a file a few percent larger.
_COMPRESSION = 3
# Renderers put letters on whole pixels, which makes lines up to so much longer.
_HINTING = 1.04


@dataclass(frozen=True)
class PathStyle:
    """How the lines of a path are drawn.

    Attributes:
        colour: Of its lines, bars and names.
        dashes: Lengths of dashes and gaps in line widths, for prints without colour; empty for a solid line.
    """

    colour: str
    dashes: tuple[float, ...]

    @property
    def line(self) -> dict[str, Any]:
        """The style as matplotlib's keywords of a line."""
        return {"color": self.colour, "linestyle": (0, self.dashes) if self.dashes else "-"}


# Okabe and Ito's palette, which people with the common colour-vision deficiencies can tell apart, in an order in which
# neighbours differ most. Yellow is left out (too faint on white), black is the text's.
PATHS = (
    PathStyle("#0072B2", ()),
    PathStyle("#D55E00", (4.5, 1.5)),
    PathStyle("#009E73", (1.4, 1.1)),
    PathStyle("#CC79A7", (6.0, 1.2, 1.2, 1.2)),
    PathStyle("#E69F00", (2.6, 1.0)),
    PathStyle("#56B4E9", (8.0, 1.6)),
)
# The place in the palette of the names that paths usually have: of the first path of that name and of the second.
_KNOWN_PATHS = {
    "wifi": (0, 5),
    "wlan": (0, 5),
    "lte": (1, 4),
    "4g": (1, 4),
    "cellular": (1, 4),
    "mobile": (1, 4),
    "5g": (4, 1),
    "wired": (2, 3),
    "ethernet": (2, 3),
    "dsl": (2, 3),
    "satellite": (3, 2),
}
INK = "#222222"
MUTED = "#6b6b6b"
GRID = "#e6e6e6"
STALL = "#9a9a9a"
BUFFER = "#4a4a4a"
COUNTS = "#4a4a4a"

# From pale to strong, one hue: more pixels, more ink. None is a path's colour.
_SHADES = ("#efedf5", "#dadaeb", "#bcbddc", "#9e9ac8", "#807dba", "#6a51a3")
# From how many pixels on each of the shades but the first: 480x360, 854x480, 960x540, 1280x720, 1920x1080.
_SHADE_FROM = (172_800, 409_920, 518_400, 921_600, 2_073_600)
# Of letters, out of 255: a contrast with white of about 5 to 1 (WCAG asks for 4.5).
_MOST_LUMINANCE = 105.0

_SETTINGS: dict[str, Any] = {
    "font.size": 9.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#b0b0b0",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 5.0,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.major.width": 0.8,
    "ytick.major.size": 0.0,
    "lines.linewidth": 1.3,
    "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "savefig.dpi": 200.0,
    "savefig.facecolor": "white",
    # A name with dollar signs is a name.
    "text.parse_math": False,
    # Letters stay letters in an SVG, and the same figure gets the same identifiers in every run.
    "svg.fonttype": "none",
    "svg.hashsalt": "anabranch",
    # Publishers refuse fonts of type 3, which are the default.
    "pdf.fonttype": 42,
}
# What matplotlib calls the date of a file in each format that has one.
_DATES = {".svg": "Date", ".pdf": "CreationDate"}


def few_ticks(axes: Axes, most: int) -> None:
    """Puts at most so many intervals of round numbers on the vertical axis."""
    axes.yaxis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))


class PlainLogarithms(LogFormatter):
    """Labels of a logarithmic axis as people write numbers: those of matplotlib are powers, in mathematical text."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label, empty where matplotlib would have none."""
        return f"{x:g}" if super().__call__(x, pos) else ""


def title(axes: Axes, text: str, pad_points: float) -> None:
    """Puts a title above a panel, so far from it.

    Its height is given, since matplotlib would look for it among all that a panel has: a third of the time of drawing.
    """
    axes.set_title(text, pad=pad_points, y=1.0)


def time_axis(axes: Axes, *, shown: bool) -> None:
    """Shows the ticks of time, or draws none, which saves their time as well."""
    if shown:
        axes.tick_params(axis="x", length=3.0)
    else:
        axes.xaxis.set_visible(False)


def save(figure: Figure, path: Path) -> None:
    """Writes a figure in the format of the file's suffix; the same figure gives the same bytes."""
    with applied(), fonts.one_notice():
        if dated := _DATES.get(path.suffix):
            # The date is the only thing in such a file that the data does not determine.
            figure.savefig(path, metadata={dated: None})
        else:
            figure.savefig(path, pil_kwargs={"compress_level": _COMPRESSION})


@contextmanager
def applied() -> Iterator[None]:
    """The project's look, for as long as the context lasts."""
    settings = {"font.family": fonts.families(), **_SETTINGS}
    with mpl.rc_context(cast(Any, settings)):  # The stubs want each key as a literal.
        yield


def path_styles(paths: Sequence[str]) -> dict[str, PathStyle]:
    """Colour and dashes of each path: the same in every figure of every scenario.

    A usual name (``wifi``, ``lte2``) has a place of its own in the palette, and a name that ends in a number
    (``path3``) the place of its number. Any other name takes the first place that no other name of the list has: with
    the paths of the whole scenario as the list, that follows from the scenario alone. Places repeat where there are
    more than six paths.

    Args:
        paths: The names, in the order of the scenario.
    """
    places = {path: _place(path) for path in paths}
    taken = {place for place in places.values() if place is not None}
    for position, path in enumerate(paths):
        if places[path] is None:
            free = [place for place in range(len(PATHS)) if place not in taken]
            places[path] = free[0] if free else position % len(PATHS)
            taken.add(places[path] or 0)
    return {path: PATHS[place or 0] for path, place in places.items()}


def _place(path: str) -> int | None:
    """The place of a path in the palette that follows from its name alone, if one does."""
    found = re.fullmatch(r"(.*?)[-_ ]?(\d*)", path.lower().replace("wi-fi", "wifi"))
    assert found, "every name is letters and digits"
    stem, digits = found.groups()
    if known := _KNOWN_PATHS.get(path.lower()) or _KNOWN_PATHS.get(stem):
        return known[0 if path.lower() in _KNOWN_PATHS or int(digits or 1) <= 1 else 1]
    return (int(digits) - 1) % len(PATHS) if digits else None


@lru_cache(maxsize=4096)
def text_width_in(text: str, size: float, *, bold: bool = False) -> float:
    """How wide a line of text is in inches, with letters of a size in points."""
    font = FontProperties(family=fonts.families(), size=size, weight="bold" if bold else "normal")
    with fonts.quiet():
        width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / 72.0 * _HINTING


def wrapped(text: str, width_in: float, size: float, *, bold: bool = False) -> list[str]:
    """The text in lines of at most this width; a longer word has a line of its own."""
    lines: list[str] = []
    # A number stays with its unit.
    for word in re.sub(r"(?<=\d) (?=[A-Za-z%])", "\u00a0", text).split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width_in(longer, size, bold=bold) <= width_in:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def resolution_shade(resolution: str) -> str:
    """A shade for a resolution such as ``1280x720``, the same in every figure: the darker, the more pixels."""
    width, _, height = resolution.partition("x")
    pixels = int(width) * int(height) if height else 0
    return _SHADES[sum(pixels >= least for least in _SHADE_FROM)]


def darker(colour: str) -> str:
    """The same hue, dark enough for letters on white."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    scale = min(1.0, _MOST_LUMINANCE / (0.2126 * red + 0.7152 * green + 0.0722 * blue))
    return "#" + "".join(f"{round(part * scale):02x}" for part in (red, green, blue))


def place_end_labels(axes: Axes, labels: Sequence[tuple[float, str, str]], size: float = 8.5) -> None:
    """Writes a name at the end of each line, moved apart where lines end at nearly the same height.

    Args:
        axes: Where the lines are; its limits must be final.
        labels: Height in data units, text and colour of each line.
        size: Font size in points.
    """
    if not labels:
        return
    bottom, top = axes.get_ylim()
    height_points = axes.get_window_extent().height / axes.figure.dpi * 72.0
    step = 1.25 * size / height_points
    order = sorted(range(len(labels)), key=lambda i: labels[i][0])
    wanted = [min(max((labels[i][0] - bottom) / (top - bottom), 0.0), 1.0) for i in order]
    for position, i in zip(_spread(wanted, step), order, strict=True):
        _, text, colour = labels[i]
        axes.text(1.008, position, text, transform=axes.transAxes, color=colour, va="center", ha="left", fontsize=size)


def _spread(wanted: Sequence[float], step: float) -> list[float]:
    """The nearest heights to the wanted (ascending) ones that are at least a step apart.

    Heights that crowd become one block around their mean, and blocks that touch merge, until none touch.
    """
    blocks: list[list[float]] = []  # Each: sum of what its members want for its first member, and how many they are.
    for height in wanted:
        blocks.append([height, 1.0])
        while len(blocks) > 1:
            (sum_a, count_a), (sum_b, count_b) = blocks[-2:]
            start_a = sum_a / count_a
            if start_a + count_a * step <= sum_b / count_b:
                break
            blocks[-2:] = [[sum_a + sum_b - count_a * count_b * step, count_a + count_b]]
    return [total / count + k * step for total, count in blocks for k in range(int(count))]
