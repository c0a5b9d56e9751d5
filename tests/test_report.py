"""Reports: what the page says, that it is whole and loads nothing, and that it works in a browser."""

import base64
import csv
import hashlib
import json
import re
import shlex
import shutil
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from anabranch import InputError, report
from anabranch.experiments import plan, sweep
from anabranch.report import charts, document, exports, folders, paper, selection, stored
from anabranch.results import metrics
from conftest import Run, require
from test_sweep import BASE, swept

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ASSETS = Path(report.__file__).parent / "assets"

PLAN = """\
schema = 1
question = "Does ecf carry more than min-rtt, <b>and</b> is </script> or <!--<script> only a text?"
scenario = "base.toml"
seeds = 8
metrics = ["path_switches"]
[vary]
transport.scheduler = ["min-rtt", "ecf", "redundant"]
link.wifi.rtt = { from = 10, to = 30, steps = 2, unit = "ms" }
[compare]
metric = "goodput_bps"
better = "higher"
between = "transport.scheduler"
reference = "min-rtt"
equivalent = "1 %"
"""


@pytest.fixture(scope="session")
def swept_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a plan of 48 runs, with its store `s`; tests only read it."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / "base.toml").write_text(BASE, "utf-8")
    (folder / "small.toml").write_text(PLAN, "utf-8")
    swept(folder / "small.toml", folder / "s")
    return folder


@pytest.fixture
def copied(swept_store: Path, tmp_path: Path) -> Path:
    """A copy of the plan and its store, in the test's own folder."""
    for name in ("base.toml", "small.toml"):
        (tmp_path / name).write_bytes((swept_store / name).read_bytes())
    swept(tmp_path / "small.toml", tmp_path / "s")
    return tmp_path


def data_of(page: str) -> Any:
    """The data that the page's program reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


# --- What the page says ---------------------------------------------------------------------------------------------


def test_the_page_has_findings_figures_sessions_and_provenance(copied: Path, anabranch: Run) -> None:
    done = anabranch("report", "s")
    assert (done.returncode, done.stdout.strip()) == (0, "report: s/small.html")
    assert "48 sessions, 48 of them with a timeline" in done.stderr
    page = (copied / "s" / "small.html").read_text("utf-8")
    assert "min-rtt is the reference of goodput, " in page
    assert "48 simulated runs: 6 conditions \N{MULTIPLICATION SIGN} 8 seeds." in page
    assert '<p class="caption">8 pairs from 8 seeds</p>' in page
    data = data_of(page)
    kinds = [chart["kind"] for chart in data["charts"]]
    # Two values of the round trip: differences and distributions for each, and the means over it.
    assert kinds == ["intervals", "intervals", "lines", "lines", "lines"]
    assert len(data["timelines"]) == len(data["sessions"]["commands"]) == 48
    assert "is &lt;/script&gt; or &lt;!--&lt;script&gt; only a text?" in page
    assert page.count("</script>") == 9, "no text ends a script"
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    assert "<" not in found[1], "none begins a comment in it, in which its end would not count"


def test_a_report_is_the_same_to_the_last_byte(swept_store: Path) -> None:
    first, second = (report.render(stored.of_store(swept_store / "s", timelines=5)) for _ in range(2))
    assert first == second


def test_the_page_names_nothing_to_load(swept_store: Path) -> None:
    page = report.render(stored.of_store(swept_store / "s", timelines=1))
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    assert "default-src 'none'" in page


def test_a_timeline_is_that_of_its_run(copied: Path) -> None:
    import anabranch

    found = stored.of_store(copied / "s", timelines=48)
    assert found.sessions is not None
    schedulers, rtts, seeds = (values for _, values in found.sessions.labels)
    row = next(r for r in range(48) if (schedulers[r], rtts[r], seeds[r]) == ("ecf", "30 ms", 4))
    place = found.sessions.timelines[row]
    assert place is not None
    run = anabranch.run(copied / "base.toml", seed=4, set={"transport.scheduler": "ecf", "link.wifi.rtt": "30 ms"})
    data = found.timelines[place].data
    carried = {
        graph["path"]: line["values"]
        for graph in data["graphs"]
        for line in graph["lines"]
        if (graph["kind"], line["role"]) == ("throughput", "path")
    }
    for path in run.recording.sessions[0].paths:
        shown = [value for value in carried[path.path] if value is not None]
        mean = path.throughput_bps[path.throughput_bps == path.throughput_bps].mean() / 1e6
        assert sum(shown) / len(shown) == pytest.approx(mean, rel=0.1)


def test_the_command_of_a_row_repeats_it(copied: Path, anabranch: Run) -> None:
    found = stored.of_store(copied / "s", timelines=0)
    table = pl.read_parquet(copied / "s" / "small.parquet")
    assert found.sessions is not None
    for row in (0, 21, 47):
        command = shlex.split(" ".join(found.sessions.commands[row]))
        assert command[:3] == ["anabranch", "run", "base.toml"], "as seen from the plan's folder"
        again = json.loads(anabranch(*command[1:], "--json").stdout)
        assert again["sessions"][0]["goodput_bps"] == table["goodput_bps"][row]


def test_a_failed_run_is_a_row_with_its_error(swept_store: Path, tmp_path: Path) -> None:
    from anabranch.experiments.executor import simulate

    def failing(run: Any, stop: Any) -> bytes:
        if run.seed == 3:
            raise RuntimeError("link wifi lost count of packets")
        return simulate(run, stop)

    swept(swept_store / "small.toml", tmp_path / "s", work=failing)
    found = stored.of_store(tmp_path / "s", timelines=100)
    assert found.sessions is not None
    assert sum(error is not None for error in found.sessions.errors) == 6
    assert len(found.timelines) == 42
    assert "6 runs failed." in found.lead
    assert "lost count of packets" in report.render(found)


# --- Which sessions have timelines ----------------------------------------------------------------------------------


def rows(conditions: int, seeds: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "c": [c for c in range(conditions) for _ in range(seeds)],
            "m": [float((s * 8) % seeds) for _ in range(conditions) for s in range(seeds)],
            "error": pl.Series([None] * (conditions * seeds), dtype=pl.String),
            selection.KNOWN: [True] * (conditions * seeds),
        }
    )


def test_all_sessions_have_timelines_where_there_are_few() -> None:
    assert selection.choose(rows(3, 4), ["c"], "m", 12) == list(range(12))


def test_of_many_sessions_each_condition_gives_the_median_and_the_ends() -> None:
    table = rows(5, 21)
    chosen = selection.choose(table, ["c"], "m", 15)
    assert sorted(zip(table["c"][chosen], table["m"][chosen], strict=True)) == [
        (c, m) for c in range(5) for m in (0.0, 10.0, 20.0)
    ]


def test_the_note_says_which_sessions_have_timelines() -> None:
    said = selection.note(15, 105, ["scheduler"], "stall time")
    assert said.startswith(
        "15 of 105 sessions open their timeline. For each value of scheduler they are the session with the"
    )
    assert "and so on" not in said
    said = selection.note(15, 105, ["scheduler", "control", "loss"], "stall time")
    assert "For each combination of scheduler, control and loss they are the session" in said
    assert selection.note(15, 105, [], None) == (
        "15 of 105 sessions open their timeline. The command in any other row makes the timeline of its session."
    )


@pytest.mark.parametrize(
    ("conditions", "seeds", "most"), [(100, 1, 60), (7, 13, 60), (1, 500, 60), (60, 2, 61), (3, 9, 0)]
)
def test_never_more_are_chosen_than_wanted(conditions: int, seeds: int, most: int) -> None:
    chosen = selection.choose(rows(conditions, seeds), ["c"], "m", most)
    assert len(set(chosen)) == len(chosen) <= most
    assert len(chosen) >= min(most, conditions) // 2


# --- What is refused ------------------------------------------------------------------------------------------------


def test_a_store_of_another_build_is_refused(copied: Path, anabranch: Run) -> None:
    about = copied / "s" / "store.json"
    about.write_text(about.read_text("utf-8").replace('"library_sha256": "', '"library_sha256": "0'), "utf-8")
    done = anabranch("report", "s", "--out", "page.html", "--export", "paper")
    assert done.returncode == 2
    assert "another build of anabranch" in done.stderr
    assert "choose another --store" in done.stderr
    assert not (copied / "page.html").exists()
    assert not (copied / "paper").exists()


def test_an_empty_store_is_refused(copied: Path, anabranch: Run) -> None:
    for file in (copied / "s").glob("*.parquet"):
        file.unlink()
    done = anabranch("report", "s")
    assert done.returncode == 2
    assert "s: this store has no table yet; `anabranch sweep PLAN --store s` writes it" in done.stderr
    assert not list((copied / "s").glob("*.html"))


def test_what_is_no_run_is_refused(anabranch: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = anabranch("report", "empty")
    assert done.returncode == 2
    assert "expected a folder that `anabranch run` wrote, or a store that `anabranch sweep` wrote" in done.stderr
    assert "no such folder" in anabranch("report", "nowhere").stderr
    assert "nowhere.parquet: there is no such table" in anabranch("report", "nowhere.parquet").stderr
    assert not list(tmp_path.rglob("*.html"))


def test_a_store_whose_scenario_changed_is_refused(copied: Path, anabranch: Run) -> None:
    (copied / "base.toml").write_text(BASE.replace("4 Mb/s", "5 Mb/s"), "utf-8")
    done = anabranch("report", "s")
    assert done.returncode == 2
    assert "is another one than that of this table" in done.stderr
    assert "anabranch sweep" in done.stderr


def test_a_table_that_was_changed_is_refused(copied: Path, anabranch: Run) -> None:
    from anabranch.experiments import table

    read, about = table.read(copied / "s" / "small.parquet")
    changed = read.with_columns(pl.col("goodput_bps") + 1)
    table.write(changed, copied / "s" / "small.parquet", about)
    done = anabranch("report", "s")
    assert done.returncode == 2
    assert "`goodput_bps` of a row is not what its run gives" in done.stderr


def test_several_tables_need_a_choice(copied: Path, anabranch: Run) -> None:
    other = (copied / "small.toml").read_text("utf-8").replace("seeds = 8", "seeds = 2")
    (copied / "other.toml").write_text(other, "utf-8")
    swept(copied / "other.toml", copied / "s")
    assert "several tables; expected one of s/other.parquet, s/small.parquet" in anabranch("report", "s").stderr
    assert anabranch("report", "s/other.parquet").stdout == "report: s/other.html\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[figures]]\nx = "transport.scheduler"', "[[figures]] lacks `y`"),
        ('[[figures]]\ny = "goodput"', "no run of this plan has a metric `goodput`"),
        ('[[figures]]\ny = "stall_s"\nx = "transport.schedular"', "did you mean `transport.scheduler`?"),
        ('[[figures]]\ny = "goodput_bps"\nz = 1', "unknown key `z`"),
        ('[[figures]]\ny = "goodput_bps"\nx = "link.wifi.rtt"\nby = "link.wifi.rtt"', "is the axis `x` already"),
    ],
)
def test_a_mistake_in_a_figure_has_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "base.toml").write_text(BASE, "utf-8")
    file = tmp_path / "small.toml"
    file.write_text(f"{PLAN}{text}\n", "utf-8")
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        sweep.Experiment.of(plan.load(file))
    assert re.match(rf"{re.escape(str(file))}:1[5-9]: ", str(caught.value))


# --- Figures and tables ---------------------------------------------------------------------------------------------


def test_figures_of_a_plan_are_drawn_as_it_says(copied: Path) -> None:
    file = copied / "small.toml"
    file.write_text(f'{PLAN}[[figures]]\ny = "path_switches"\nx = "link.wifi.rtt"\nby = []\n', "utf-8")
    swept(file, copied / "s")
    found = stored.of_store(copied / "s", timelines=0)
    (section,) = (section for section in found.sections if section.title == "Figures")
    charts = [chart for chart in section.blocks if isinstance(chart, document.LineChart)]
    assert [chart.note for chart in charts] == [f"scheduler = {name}" for name in ("min-rtt", "ecf", "redundant")]
    table = pl.read_parquet(copied / "s" / "small.parquet")
    means = table.filter(pl.col("transport.scheduler") == "ecf").group_by("link.wifi.rtt", maintain_order=True)
    assert charts[1].lines[0].y == pytest.approx(means.agg(pl.col("path_switches").mean())["path_switches"].to_list())
    assert charts[1].categories == ["10 ms", "30 ms"]


def test_long_tails_of_a_distribution_are_not_shown_at_first() -> None:
    figure = plan.Figure("qoe_linear")

    def drawn(lowest: float) -> document.LineChart:
        values = [lowest, *(float(i) for i in range(99))]
        table = pl.DataFrame({"qoe_linear": values, "error": [None] * 100}, schema_overrides={"error": pl.String})
        (chart,) = charts.of_figure(figure, table, (), "f")
        return chart

    tailed = drawn(-1000.0)
    assert tailed.view is not None
    assert -10 < tailed.view[0] < 5 < 95 < tailed.view[1] < 105
    assert tailed.lines[0].x[1] == -1000.0, "the tail is a zoom away"
    assert tailed.outside == 0.02
    assert tailed.note == "2 of 100 sessions are outside of what is shown at first"
    assert tailed.x_label == "linear QoE (kb/s)"
    assert (drawn(-1.0).view, drawn(-1.0).note) == (None, "")


def test_a_distribution_over_decades_has_a_logarithmic_axis() -> None:
    table = pl.DataFrame({"bytes": [10.0**i for i in range(6)], "error": pl.Series([None] * 6, dtype=pl.String)})
    (chart,) = charts.of_figure(plan.Figure("bytes"), table, (), "f")
    assert chart.logarithmic
    assert min(chart.lines[0].x) > 0
    figure = paper.draw(chart)
    assert figure.axes[0].get_xscale() == "log"
    (linear,) = charts.of_figure(plan.Figure("bytes"), table.with_columns(pl.col("bytes") - 1), (), "f")
    assert not linear.logarithmic, "zero has no place on it"


def test_points_of_categories_are_not_joined() -> None:
    lines = [document.Line(name, [0, 1], [1.0, 2.0], [0.5, 1.5], [1.5, 2.5]) for name in ("a", "b")]
    figure = paper.draw(document.LineChart("t", "x", "y", lines, categories=["p", "q"]))
    drawn = {line.get_label(): line for line in figure.axes[0].lines}
    assert [drawn[name].get_linestyle() for name in ("a", "b")] == ["None", "None"]
    assert [drawn[name].get_marker() for name in ("a", "b")] == ["o", "s"], "for prints without colour"
    joined = paper.draw(document.LineChart("t", "x", "y", lines))
    styles = {line.get_label(): line.get_linestyle() for line in joined.axes[0].lines}
    assert (styles["a"], styles["b"]) == ("-", "--")


def test_tables_and_figures_are_written_for_papers(copied: Path, anabranch: Run) -> None:
    done = anabranch("report", "s", "--export", "paper")
    assert done.returncode == 0, done.stderr
    names = sorted(file.name for file in (copied / "paper").iterdir())
    assert {"comparison-1.csv", "comparison-1.tex", "comparison-1-chart.svg", "sessions.csv"} <= set(names)
    latex = (copied / "paper" / "comparison-1.tex").read_text("utf-8")
    assert r"\toprule" in latex
    assert r"$\pm$" in latex
    assert latex.count(r"\\") == 4, "a head and three conditions"
    svg = (copied / "paper" / "comparison-1-chart.svg").read_text("utf-8")
    width = re.search(r'width="([\d.]+)pt"', svg)
    assert width
    assert float(width[1]) == pytest.approx(3.4 * 72)
    pdf = (copied / "paper" / "comparison-1-chart.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"/Type3" not in pdf, "publishers refuse such fonts"
    assert b"CreationDate" not in pdf, "the same figure has the same bytes"
    with (copied / "paper" / "sessions.csv").open(encoding="utf-8") as file:
        assert len(list(csv.reader(file))) == 49


def test_the_label_of_intervals_fits_into_a_column() -> None:
    label = "paired difference of qoe_linear_per_segment (kb/s); better is right"
    item = document.Item("redundant + cubic", -21.0, -75.0, 33.0, "equivalent", "same", "")
    figure = paper.draw(document.IntervalChart("t", label, "difference", [item]))
    figure.draw_without_rendering()
    drawn = figure.axes[0].xaxis.label.get_window_extent()
    assert drawn.x1 <= figure.bbox.x1


def test_long_labels_of_axes_are_wrapped() -> None:
    label = "paired difference of linear QoE per media segment (kb/s) from redundant + lia; better is right"
    item = document.Item("redundant + cubic", -21.0, -75.0, 33.0, "equivalent", "same", "")
    line = document.Line("a", [0.0, 1.0], [0.0, 1.0])
    for figure in (
        paper.draw(document.IntervalChart("t", label, "difference", [item])),
        paper.draw(document.LineChart("t", label, "mean linear QoE per media segment (kb/s)", [line])),
    ):
        figure.draw_without_rendering()
        written = [axis.label for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis) if axis.label.get_text()]
        for drawn in (text.get_window_extent() for text in written):
            assert figure.bbox.x0 <= drawn.x0 <= drawn.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= drawn.y0 <= drawn.y1 <= figure.bbox.y1


@pytest.mark.parametrize(("share", "corner"), [([0.1, 0.2, 1.0], "left"), ([0.8, 0.9, 1.0], "right")])
def test_what_is_outside_stands_where_a_distribution_is_not(share: list[float], corner: str) -> None:
    lines = [document.Line("a", [0.0, 4.0, 10.0], share)]
    chart = document.LineChart("t", "x", "share", lines, stepped=True, view=(0.0, 10.0), outside=0.02)
    (text,) = paper.draw(chart).axes[0].texts
    assert text.get_horizontalalignment() == corner


def test_latex_escapes_what_it_would_read() -> None:
    column = document.Column("a_b", "%")
    grid = document.Grid([column, document.Column("n", number=True)], [["x & y", "-1.5"]], caption="c")
    assert r"a\_b (\%) & n \\" in exports.latex(grid)
    assert r"x \& y & $-$1.5 \\" in exports.latex(grid)


UNFINISHED = """\
schema = 1
question = "?"
scenario = "video.toml"
seeds = 2
[vary]
link.a.rate = ["1 Mb/s", "6 Mb/s"]
[compare]
metric = "stall_s"
better = "lower"
between = "link.a.rate"
"""
VIDEO = """\
schema = 1
duration = "8 s"
[link.a]
rtt = "20 ms"
rate = "1 Mb/s"
[[session]]
start_spread = "1 s"
video = { kind = "progressive", size = "2.5 MB", rate = "4 Mb/s", fps = 25 }
"""


def test_means_of_conditions_are_those_of_the_comparison(tmp_path: Path) -> None:
    (tmp_path / "video.toml").write_text(VIDEO, "utf-8")
    (tmp_path / "slow.toml").write_text(UNFINISHED, "utf-8")
    swept(tmp_path / "slow.toml", tmp_path / "s")
    blocks = [b for s in stored.of_store(tmp_path / "s", timelines=0).sections for b in exports._blocks([s])]
    compared, conditions = (
        next(b for b in blocks if isinstance(b, document.Grid) and b.name == name)
        for name in ("comparison-1", "conditions")
    )
    means = {str(row[0]): row[1] for row in compared.rows}
    assert "cut off" in str(blocks), "the slow link does not bring the video"
    assert {str(row[0]): row[1] for row in conditions.rows} == means


# --- Run folders ----------------------------------------------------------------------------------------------------


def test_run_folders_have_summary_comparison_and_timelines(scenario: Path, anabranch: Run, tmp_path: Path) -> None:
    for seed, scheduler in ((1, "min-rtt"), (1, "redundant")):
        set_ = f"transport.scheduler={scheduler}"
        done = anabranch("run", scenario, "--seed", seed, "--set", set_, "--out", tmp_path / "runs" / scheduler)
        assert done.returncode == 0, done.stderr
    one = anabranch("report", "runs/min-rtt")
    assert one.stdout == "report: runs/min-rtt/report.html\n"
    page = (tmp_path / "runs" / "min-rtt" / "report.html").read_text("utf-8")
    assert "Does a short session over two paths come through a cut?" in page
    assert len(data_of(page)["timelines"]) == 1
    two = anabranch("report", "runs/min-rtt", "runs/redundant", "--out", "both.html")
    assert two.returncode == 0, two.stderr
    both = (tmp_path / "both.html").read_text("utf-8")
    assert "scheduler=redundant" in both
    data = data_of(both)
    assert len(data["timelines"]) == 2
    parts = [data["sessions"]["parts"][part] for part in data["sessions"]["commands"][1]]
    again = anabranch(*shlex.split(" ".join(parts))[1:], "--json")
    metrics = json.loads((tmp_path / "runs" / "redundant" / "metrics.json").read_text("utf-8"))
    assert json.loads(again.stdout)["sessions"] == metrics["sessions"]


def test_a_report_of_verdicts_is_made_of_plain_data(tmp_path: Path) -> None:
    """What other parts of the package do with it."""
    items = [
        document.Statement("reproduced", "ECF carries more.", "good", "measured 1.2 ± 0.1, paper 1.3"),
        document.Statement("undecided", "BLEST stalls less.", "open"),
    ]
    made = report.Report("mine", "Do the claims hold?", sections=[report.Section("Claims", [report.Statements(items)])])
    page = report.write(made, tmp_path / "new" / "page.html").read_text("utf-8")
    assert "measured 1.2\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.1, paper 1.3" in page
    assert "sessions" not in data_of(page)


def test_the_charting_library_is_the_one_that_was_chosen() -> None:
    listed = re.findall(r"^\| `(\S+)` \| `([0-9a-f]{64})` \|$", (ASSETS / "README.md").read_text("utf-8"), re.MULTILINE)
    assert len(listed) == 2
    for name, digest in listed:
        assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest
    assert "Permission is hereby granted" in (ASSETS / "uPlot.LICENSE").read_text("utf-8")


# --- In a browser ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """The system's Chromium: nothing is downloaded for the tests."""
    require("chromium")
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    with sync_playwright() as playwright:
        # Its sandbox refuses to run as root, as CI does.
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def page_file(swept_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the store, with timelines for a part of its sessions."""
    file = tmp_path_factory.mktemp("page") / "page.html"
    return report.write(stored.of_store(swept_store / "s", timelines=12), file)


Open = Callable[..., "Page"]

# Keeps the sizes of all letters that are drawn, in pixels of the screen.
_NOTES_FONTS = """
window.sizes = [];
const fill = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (...all) {
  window.sizes.push(parseFloat(/([\\d.]+)px/.exec(this.font)[1]));
  return fill.apply(this, all);
};
"""


@pytest.fixture
def opened(browser: "Browser", page_file: Path) -> Iterator[Open]:
    """Opens the page; at the end it has written nothing to the console, and asked for nothing but itself."""
    contexts = []
    said: list[str] = []
    wanted: list[str] = []
    files: set[str] = set()

    def call(width: int = 1280, scheme: Any = "light", file: Path = page_file, pixels: int = 1) -> "Page":
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, device_scale_factor=pixels
        )
        context.add_init_script(_NOTES_FONTS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: wanted.append(request.url))
        files.add(file.as_uri())
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")
        return page

    yield call
    for context in contexts:
        context.close()
    assert said == []
    assert {url for url in wanted if not url.startswith("data:")} <= files


def column(page: "Page", number: int) -> list[str]:
    """The texts of a column of the table of sessions."""
    return page.locator(f"tr[data-row] td:nth-child({number})").all_inner_texts()


def numbers(texts: list[str]) -> list[float]:
    return [float(text.replace("\N{MINUS SIGN}", "-")) for text in texts]


def test_charts_are_drawn_and_show_values(opened: Open) -> None:
    page = opened()
    chart = page.locator("figure.intervals").first
    chart.scroll_into_view_if_needed()
    over = chart.locator(".u-over")
    over.wait_for()
    pixels = "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size"
    assert chart.locator("canvas").evaluate(pixels) > 20, "more than one colour"
    over.hover(position={"x": 100, "y": 40})
    assert re.search(r"ecf|min-rtt|redundant", chart.locator(".readout").inner_text())
    lines = page.locator("figure.lines").first
    lines.scroll_into_view_if_needed()
    lines.locator(".u-over").hover(position={"x": 200, "y": 60})
    values = lines.locator(".legend .value").all_inner_texts()
    assert len(values) == 3
    assert all(0 <= value <= 1 for value in numbers(values))


def ticks(page: "Page") -> str:
    """What a chart shows, as bytes of its picture."""
    return str(page.locator("figure.intervals canvas").first.evaluate("canvas => canvas.toDataURL()"))


def test_charts_zoom_by_buttons_keys_and_mouse(opened: Open) -> None:
    page = opened()
    chart = page.locator("figure.intervals").first
    chart.scroll_into_view_if_needed()
    chart.locator(".u-over").wait_for()
    page.wait_for_timeout(100)
    whole = ticks(page)

    def changes(act: Callable[[], object]) -> bool:
        before = ticks(page)
        act()
        page.wait_for_timeout(100)
        return ticks(page) != before

    frame = chart.locator(".frame")
    box = chart.locator(".u-over").bounding_box()
    assert box

    def drag() -> None:
        page.mouse.move(box["x"] + 60, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 160, box["y"] + 40, steps=4)
        page.mouse.up()

    assert changes(lambda: chart.get_by_role("button", name="Zoom in").click())
    assert changes(lambda: chart.get_by_role("button", name="Show all").click())
    assert ticks(page) == whole
    assert changes(lambda: frame.press("+"))
    assert changes(lambda: frame.press("0"))
    assert changes(drag)
    assert changes(lambda: frame.press("Escape"))
    assert ticks(page) == whole


def test_the_table_sorts_in_both_directions(opened: Open) -> None:
    page = opened()
    assert page.locator("tr[data-row]").count() == 48
    head = page.locator(".sessions thead th").nth(4)
    assert "goodput" in head.inner_text()
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    values = numbers(column(page, 5))
    assert values == sorted(values)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert numbers(column(page, 5)) == sorted(values, reverse=True)
    # Numbers sort as numbers, not as texts: 10 comes after 9.
    page.locator(".sessions thead th").nth(3).get_by_role("button").click()
    assert numbers(column(page, 4)) == sorted(numbers(column(page, 4)))


def test_the_table_filters_by_words_conditions_and_choices(opened: Open) -> None:
    page = opened()
    box = page.get_by_label("Filter")
    box.fill("ecf seed<=3")
    assert page.locator("tr[data-row]").count() == 6
    assert set(column(page, 2)) == {"ecf"}
    assert "1 to 6 of 6 (of 48)" in page.get_by_role("status").inner_text()
    box.fill("goodput_bps>1e9")
    assert "No session matches." in page.locator(".sessions").inner_text()
    box.fill("")
    page.get_by_label("scheduler", exact=True).select_option(label="redundant")
    page.get_by_label("round trip of wifi", exact=True).select_option(label="30 ms")
    assert page.locator("tr[data-row]").count() == 8
    page.get_by_label("with timeline").check()
    assert 0 < page.locator("tr[data-row]").count() < 8
    assert page.locator("tr[data-row] .open.has").count() == page.locator("tr[data-row]").count()


def test_a_filter_says_which_column_it_does_not_know(opened: Open) -> None:
    page = opened()
    box, problem = page.get_by_label("Filter"), page.get_by_role("alert")
    assert problem.is_hidden()
    box.fill("goodputt>4")
    assert problem.inner_text() == "No column is called “goodputt”; did you mean “goodput”?"
    assert page.locator("tr[data-row]").count() == 48, "a term that means nothing filters nothing"
    box.fill("path_swiches > 4")
    assert "did you mean “path switches”?" in problem.inner_text()
    box.fill("goodput > fast")
    assert problem.inner_text() == "“goodput > fast” needs a number."
    shown = {}
    for name in ("path switches > 4", "path_switches>4", "Path Switches > 4", "path switches>4 ecf"):
        box.fill(name)
        assert problem.is_hidden(), name
        shown[name] = page.locator("tr[data-row]").count()
    assert len({shown[name] for name in list(shown)[:3]}) == 1
    assert shown["path switches>4 ecf"] < shown["path switches > 4"]
    box.fill("rtt>=20")
    assert set(column(page, 3)) == {"30 ms"}


def test_heads_have_words_and_units_and_the_key_as_a_tooltip(opened: Open) -> None:
    page = opened()
    head = page.locator(".sessions thead th").nth(4)
    assert head.inner_text().replace("\n", " ").split() == ["goodput", "Mb/s"]
    assert head.get_attribute("title") == "goodput_bps"
    assert page.locator("th[title='transport.scheduler']").first.inner_text() == "scheduler"
    text = page.locator("main").inner_text()
    assert "goodput_bps" not in text.split("Plan")[0]
    for section in page.locator("section section").all():
        captions = [each.inner_text() for each in section.locator("figcaption").all()]
        assert captions == [""], "the heading says it already"


def chosen(page: "Page") -> int:
    """How many sessions the table shows."""
    found = re.search(r"of ([\d,]+)", page.locator(".pages [role=status]").inner_text())
    assert found
    return int(found[1].replace(",", ""))


def test_a_row_of_a_chart_chooses_its_sessions(opened: Open) -> None:
    page = opened()
    figure = page.locator("figure.intervals").first
    figure.scroll_into_view_if_needed()
    figure.locator(".frame").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    name = figure.locator(".readout").inner_text().split(":")[0]
    page.keyboard.press("Enter")
    assert chosen(page) == 8
    assert set(column(page, 2)) == {name}
    assert len(set(column(page, 3))) == 1
    assert "8 of 48 sessions chosen" in page.locator(".chosen").inner_text()
    figure.locator(".u-over").click(position={"x": 200, "y": 60})
    assert chosen(page) == 16, "a second condition is added"
    page.locator(".chips button").first.click()
    assert chosen(page) == 8
    page.locator(".chosen").get_by_role("button", name="Clear").click()
    assert chosen(page) == 48
    assert page.locator(".chosen").is_hidden()


def test_a_range_of_a_distribution_chooses_its_sessions(opened: Open) -> None:
    page = opened()
    figure = page.locator("figure.lines").first
    figure.scroll_into_view_if_needed()
    box = figure.locator(".u-over").bounding_box()
    assert box
    figure.get_by_role("button", name="Select sessions").click()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 40, steps=4)
    page.mouse.up()
    found = re.search(r"([\d.]+) ≤ goodput \(Mb/s\) ≤ ([\d.]+)", page.locator(".chips").inner_text())
    assert found
    low, high = float(found[1]), float(found[2])
    assert 0 < chosen(page) < 24
    assert all(low * 0.99 <= value <= high * 1.01 for value in numbers(column(page, 5)))
    assert len(set(column(page, 3))) == 1, "a chart of one round trip chooses no other"


def test_charts_follow_the_filter(opened: Open) -> None:
    page = opened()
    figure = page.locator("figure.lines").first
    figure.scroll_into_view_if_needed()
    figure.locator(".u-over").wait_for()
    page.wait_for_timeout(100)

    def picture() -> str:
        return str(figure.locator("canvas").evaluate("canvas => canvas.toDataURL()"))

    whole = picture()
    page.get_by_label("scheduler", exact=True).select_option(label="ecf")
    figure.scroll_into_view_if_needed()
    page.wait_for_timeout(200)
    assert picture() != whole, "the others are pale, and the sessions' values are marked"
    page.get_by_label("scheduler", exact=True).select_option(label="all")
    figure.scroll_into_view_if_needed()
    page.wait_for_timeout(200)
    assert picture() == whole


def saved(page: "Page", place: Any, kind: str) -> tuple[str, bytes]:
    """The name and the bytes of what a button saves."""
    with page.expect_download() as download:
        place.get_by_role("button", name=f"Save as {kind}").click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_charts_are_saved_by_a_click(opened: Open) -> None:
    page = opened(scheme="dark")
    for kind, name in (("intervals", "comparison-1"), ("lines", "figure-1-1")):
        figure = page.locator(f"figure.{kind}").first
        figure.scroll_into_view_if_needed()
        figure.locator(".u-over").wait_for()
        file, svg = saved(page, figure, "SVG")
        assert file == f"{name}.svg"
        root = ElementTree.fromstring(svg)
        texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
        assert any("goodput" in text for text in texts)
        assert {"ecf", "min-rtt", "redundant"} <= set(texts)
        colours = {path.get("stroke") for path in root.iter("{http://www.w3.org/2000/svg}path")}
        assert "#161716" not in svg.decode(), "in the colours for paper"
        assert len(colours) > 2, "what is drawn, and not only its grid"
        file, png = saved(page, figure, "PNG")
        assert (file, png[:8]) == (f"{name}.png", b"\x89PNG\r\n\x1a\n")
        assert int.from_bytes(png[16:20], "big") == 720 * 3
    _, text = saved(page, page.locator("figure.intervals").first, "CSV")
    rows = list(csv.reader(text.decode().splitlines()))
    assert rows[0][:2] == ["condition", "paired difference of goodput (Mb/s) from min-rtt; better is right"]
    items = data_of(page.content())["charts"][0]["items"]
    assert [(row[0], float(row[1])) for row in rows[1:]] == [(item["label"], item["at"]) for item in items]
    assert page.evaluate("document.documentElement.dataset.theme") is None, "the page keeps its own colours"


def test_a_timeline_is_saved_by_a_click(opened: Open) -> None:
    page = opened()
    page.locator(".open.has").first.click()
    place = page.locator(".timeline")
    place.locator(".u-over").first.wait_for()
    own = place.locator("> .save")
    titles = place.locator(".panel-title b").all_inner_texts()
    _, svg = saved(page, own, "SVG")
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert all(any(text.startswith(title) for text in texts) for title in titles)
    assert {"wifi", "lte"} <= set(texts), "the legend names the paths"
    _, text = saved(page, own, "CSV")
    assert {row[0] for row in csv.reader(text.decode().splitlines())} == {"panel", *titles}


@pytest.mark.parametrize(("paper", "width"), [("A4", 595), ("Letter", 612)])
def test_a_print_has_whole_charts(opened: Open, paper: str, width: int) -> None:
    page = opened(width=1280, scheme="dark")
    page.locator(".open.has").first.click()
    page.locator(".timeline .u-over").first.wait_for()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    # The printable part of the paper, in pixels of CSS: margins of 14 mm.
    page.set_viewport_size({"width": round(width / 72 * 96 - 2 * 14 / 25.4 * 96), "height": 900})
    counts = page.locator("figure.chart:not(.map)").count(), page.locator(".panel").count()
    assert page.locator("figure .printed > svg").count() == counts[0]
    assert page.locator(".panel .printed > svg").count() == counts[1]
    room = page.evaluate("document.documentElement.clientWidth")
    for box in (each.bounding_box() for each in page.locator(".printed > svg").all()):
        assert box is not None
        assert box["width"] > 200
        assert 0 <= box["x"] < box["x"] + box["width"] <= room + 1
    assert page.locator("canvas:visible").count() == 0, "a canvas has the width of the screen"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".printed").count() == 0
    page.emulate_media(media="screen")
    pdf = page.pdf(format=paper)
    assert pdf.startswith(b"%PDF")


def test_letters_of_charts_are_as_large_on_a_screen_of_two_pixels(opened: Open) -> None:
    page = opened(width=390, pixels=2)
    figure = page.locator("figure.lines").first
    figure.scroll_into_view_if_needed()
    figure.locator(".u-over").wait_for()
    page.wait_for_timeout(100)
    assert min(page.evaluate("window.sizes")) >= 2 * 5, "rows of intervals may shrink"
    page = opened(width=1280, pixels=2)
    page.locator("figure.lines").first.scroll_into_view_if_needed()
    page.locator("figure.lines .u-over").first.wait_for()
    page.wait_for_timeout(100)
    assert min(page.evaluate("window.sizes")) == 2 * 11


def test_a_print_right_after_the_start_shows_what_the_screen_does(opened: Open, tmp_path: Path) -> None:
    x = [-1000.0, *map(float, range(100))]
    line = document.Line("a", x, [i / 100 for i in range(101)], labels={})
    chart = document.LineChart("t", "x", "share", [line], stepped=True, view=(-2.0, 101.0), outside=0.01)
    above = [document.Text(["Charts far below wait until they are near."])] * 100
    made = document.Report("r", "A report", "l", sections=[document.Section("S", [*above, chart])])
    report.write(made, tmp_path / "r.html")
    page = opened(file=tmp_path / "r.html")
    assert page.locator("figure[data-drawn]").count() == 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    texts = page.locator(".printed text").all_text_contents()
    assert "100" in texts
    assert not any(text.startswith("\N{MINUS SIGN}") and len(text) > 3 for text in texts), texts


def test_the_first_columns_stay_on_a_phone(opened: Open, tmp_path: Path) -> None:
    sessions = document.Sessions(
        labels=[(document.Column("scheduler"), ["min-rtt", "redundant"])],
        numbers=[(document.Column(f"metric {i}", "s", number=True), [1.25, 2.5]) for i in range(9)],
        timelines=[None] * 2,
        errors=[None] * 2,
    )
    file = report.write(report.Report("wide", "How wide?", sessions=sessions), tmp_path / "wide.html")
    page = opened(width=390, file=file)
    label = page.locator("tr[data-row] td:nth-child(2)").first
    label.scroll_into_view_if_needed()
    before = label.bounding_box()
    scroll = page.locator(".scroll:has(.sessions)")
    scroll.evaluate("each => each.scrollLeft = 300")
    page.wait_for_timeout(50)
    after = label.bounding_box()
    assert before
    assert after
    assert scroll.evaluate("each => each.scrollLeft") > 50
    assert abs(after["x"] - before["x"]) < 40
    assert after["x"] >= 0


@pytest.mark.parametrize(("second", "stays"), [("lia", 2), ("a_control_with_a_very_long_name_of_its_own", 1)])
def test_what_a_row_is_stays_next_to_its_numbers_on_a_phone(
    opened: Open, tmp_path: Path, second: str, stays: int
) -> None:
    heads = [document.Column("scheduler"), document.Column("congestion control")]
    heads += [document.Column(f"metric {i}", "kb/s", number=True) for i in range(7)]
    rows: list[list[str | document.Mark]] = [
        [first, second, *["3021 ± 781"] * 7, document.Mark("undecided, +5625 networks", "open")]
        for first in ("min-rtt", "redundant")
    ]
    grid = document.Grid([*heads, document.Column("verdict")], rows, "Means")
    made = report.Report("wide", "How wide?", sections=[document.Section("Conditions", [grid])])
    page = opened(width=390, file=report.write(made, tmp_path / "wide.html"))
    box = page.locator(".scroll")
    assert box.get_attribute("data-stay") == str(stays)
    lefts = "box => [...box.querySelector('tbody tr').children].map(each => each.getBoundingClientRect().left)"
    before = box.evaluate(lefts)
    box.evaluate("each => each.scrollLeft = 10000")
    page.wait_for_timeout(50)
    after, room = box.evaluate(lefts), box.bounding_box()
    assert room
    assert after[:stays] == pytest.approx(before[:stays], abs=1)
    # The next column went below those that stay, and at least half of the box is left for what scrolls.
    assert after[stays] < before[stays] - 100
    assert before[stays] <= room["x"] + room["width"] / 2 + 1
    verdict = page.locator("tbody td:last-child .mark").first.bounding_box()
    assert verdict
    assert verdict["x"] + verdict["width"] <= room["x"] + room["width"] + 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_name_without_a_blank_makes_no_page_scroll_sideways(opened: Open, tmp_path: Path, width: int) -> None:
    name = "module:" + "a_scheduler_with_a_very_long_name_" * 4
    found = document.Statements([document.Statement("undecided", f"{name} is undecided.", "open", f"{name} +1")])
    chart = document.LineChart("Stall time", "s", "share", [document.Line(name, [0.0, 1.0], [0.0, 1.0])], stepped=True)
    grid = document.Grid([document.Column("scheduler"), document.Column(name, "s", number=True)], [[name, "1"]])
    sessions = document.Sessions(
        labels=[(document.Column("scheduler"), [name, "min-rtt"])],
        numbers=[(document.Column("stall time", "s", number=True), [1.0, 2.0])],
        timelines=[None] * 2,
        errors=[None] * 2,
    )
    section = document.Section("Findings", [found, chart, grid, document.Text([name])])
    made = report.Report("long", f"{name}?", sections=[section], sessions=sessions)
    page = opened(width=width, file=report.write(made, tmp_path / "long.html"))
    page.locator("figure").scroll_into_view_if_needed()
    page.locator(".legend button").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator(".scroll").first
    assert box.evaluate("each => each.querySelector('td').offsetWidth") <= width / 2


def test_a_row_opens_its_timeline_and_its_command(opened: Open) -> None:
    page = opened()
    button = page.locator(".open.has").first
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    page.wait_for_selector(".timeline .panel:nth-of-type(4)")
    titles = page.locator(".panel-title b").all_inner_texts()
    assert {"Throughput of wifi", "Throughput of lte", "Congestion window", "Path switches"} <= set(titles)
    assert page.locator(".command code").inner_text().startswith("anabranch run base.toml --seed ")
    page.locator(".timeline .u-over").first.hover(position={"x": 200, "y": 30})
    page.wait_for_timeout(100)
    shown = page.locator(".timeline .value").all_inner_texts()
    assert sum(bool(text) for text in shown) >= len(titles), "the cursor is in all panels"
    button.click()
    assert page.locator(".timeline").count() == 0


def test_a_run_with_plots_has_panels_of_packets_that_zoom(
    opened: Open, scenario: Path, anabranch: Run, tmp_path: Path
) -> None:
    assert anabranch("run", scenario, "--plots", "sequence,rtt", "--no-figure", "--out", "plotted").returncode == 0
    page = opened(file=report.write(folders.of_folders([tmp_path / "plotted"]), tmp_path / "plotted.html"))
    page.wait_for_selector(".panel canvas")
    titles = page.locator(".panel-title b").all_inner_texts()
    kinds = (
        "Sequence numbers of wifi",
        "Sequence numbers of lte",
        "Sequence numbers of the data",
        "Round trips of wifi",
    )
    assert set(kinds) <= set(titles)
    place = titles.index(kinds[0])
    shown = page.locator(".panel").nth(place)
    assert "retransmission" in shown.inner_text()
    before = shown.screenshot()
    page.get_by_label("Zoom in").first.click()
    page.wait_for_timeout(200)
    assert shown.screenshot() != before
    timeline = page.locator(".timeline")
    _, svg = saved(page, timeline.locator("> .save"), "SVG")
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    legend = ("acknowledged", "window", "retransmission", "wifi", "lte")
    assert [texts.count(name) for name in legend] == [1] * len(legend), "the legend names bars and lines once"
    _, text = saved(page, timeline.locator("> .save"), "CSV")
    rows = list(csv.DictReader(text.decode().splitlines()))
    segments = [row for row in rows if (row["panel"], row["line"]) == (kinds[0], "segment")]
    sent = metrics.read(tmp_path / "plotted" / "metrics.json")["sessions"][0]["subflows"][0]
    assert len(segments) >= sent["segments_sent"] - (sent["retransmissions"] or 0) - (sent["reinjections"] or 0) > 100
    assert all(float(row["value"]) < float(row["value at the end of the bar"]) for row in segments)
    assert {row["value at the end of the bar"] for row in rows if row["panel"] == "Congestion window"} == {""}


def unpacked(timeline: Any) -> Any:
    """The data of a timeline."""
    return json.loads(zlib.decompress(base64.b64decode(timeline["packed"])))


def test_a_session_says_why_it_stalled_as_explain_does(opened: Open, anabranch: Run, tmp_path: Path) -> None:
    made = ("run", "mobile/walk", "--seed", "2", "--set", "duration=30 s", "--no-figure", "--out", "walked")
    assert anabranch(*made).returncode == 0
    assert anabranch("report", "walked").returncode == 0
    file = tmp_path / "walked" / "report.html"
    (timeline,) = data_of(file.read_text("utf-8"))["timelines"]
    why = unpacked(timeline)["why"]
    whole, first, *_ = why["rows"]
    for row, question in ((whole, ()), (first, ("--stall", "1"))):
        told = json.loads(anabranch("explain", "walked", *question, "--json").stdout)
        assert row["label"] == told["question"]
        assert row["span"] == [round(told["begin_s"], 3), round(told["end_s"], 3)]
        shares: dict[str, float] = {}
        for cause, share, _ in row["parts"]:
            shares[why["causes"][cause][0]] = shares.get(why["causes"][cause][0], 0.0) + share
        assert shares.pop("new data") == pytest.approx(told["useful_share"], abs=1e-4)
        assert sum(shares.values()) == pytest.approx(sum(told["causes"].values()), abs=1e-3)
    page = opened(width=390, file=file)
    page.locator(".why .stacked").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    rows = page.locator(".shares-row")
    assert rows.count() == len(why["rows"])
    items = rows.nth(1).locator("li").all_inner_texts()
    assert items[0].endswith("new data")
    assert f"{100 * first['parts'][0][1]:.1f}" in items[0]
    rows.nth(1).locator("button").click()
    begin, end = first["span"]
    ticks = page.evaluate("[...charts.drawn].map(({ plot }) => [plot.scales.x.min, plot.scales.x.max])")
    assert all(low <= begin < end <= high < end + (end - begin) for low, high in ticks), "all panels show the stall"
    _, text = saved(page, page.locator(".why"), "CSV")
    assert list(csv.reader(text.decode().splitlines()))[1][:2] == ["the whole session", "new data"]
    name, svg = saved(page, page.locator(".why"), "SVG")
    assert name == "mobile-walk-causes.svg"
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {cause[0] for cause in why["causes"]} <= set(texts), "the legend names all causes"


def test_a_run_that_cannot_be_made_again_says_so(scenario: Path, anabranch: Run, tmp_path: Path) -> None:
    assert anabranch("run", scenario, "--no-figure", "--out", "made").returncode == 0
    file = tmp_path / "made" / "metrics.json"
    found = json.loads(file.read_text("utf-8"))
    found["sessions"][0]["goodput_bps"] += 1.0
    file.write_text(json.dumps(found), "utf-8")
    done = anabranch("report", "made")
    assert done.returncode == 0, done.stderr
    (timeline,) = data_of((tmp_path / "made" / "report.html").read_text("utf-8"))["timelines"]
    why = unpacked(timeline)["why"]
    assert why["rows"] == []
    assert "This session is not explained: made: this version of the program gives other metrics" in why["note"]


def test_a_sweep_says_what_the_link_time_of_each_condition_went_to(
    opened: Open, swept_store: Path, anabranch: Run, tmp_path: Path
) -> None:
    (tmp_path / "base.toml").write_text(BASE, "utf-8")
    plan_text = PLAN.replace("seeds = 8", 'seeds = 2\nreducers = ["link_time"]')
    (tmp_path / "small.toml").write_text(plan_text, "utf-8")
    swept(tmp_path / "small.toml", tmp_path / "s")
    table = pl.read_parquet(tmp_path / "s" / "small.parquet")
    without = pl.read_parquet(swept_store / "s" / "small.parquet").filter(pl.col("seed") <= 2)
    metrics_alone = [name for name in without.columns if name != "run"]
    assert table.select(metrics_alone).equals(without.select(metrics_alone)), "the metrics are the same"
    row = table.row(0, named=True)
    own = [
        "--set",
        f"transport.scheduler={row['transport.scheduler']}",
        "--set",
        f"link.wifi.rtt={row['link.wifi.rtt']}",
    ]
    told = json.loads(anabranch("explain", "base.toml", "--seed", row["seed"], *own, "--json").stdout)
    assert row["link_time.useful_share"] == pytest.approx(told["useful_share"])
    for cause, share in told["causes"].items():
        assert row[f"link_time.{cause.replace('-', '_')}_share"] == pytest.approx(share)
    made = stored.of_store(tmp_path / "s", timelines=0)
    (section,) = (each for each in made.sections if each.title == "Link time")
    chart = section.blocks[0]
    assert isinstance(chart, document.ShareChart)
    assert len(chart.bars) == 6
    assert all(sum(piece.share for piece in bar.pieces) == pytest.approx(1.0) for bar in chart.bars)
    condition = (pl.col("transport.scheduler") == "ecf") & (pl.col("link.wifi.rtt") == "30 ms")
    mean = table.filter(condition)["link_time.useful_share"].mean()
    assert {bar.label: bar.pieces[0].share for bar in chart.bars}["ecf + 30 ms"] == pytest.approx(mean)
    assert not any(each.title == "Link time" for each in stored.of_store(swept_store / "s", timelines=0).sections)
    page = opened(width=390, file=report.write(made, tmp_path / "page.html"))
    figure = page.locator("figure.shares")
    figure.scroll_into_view_if_needed()
    figure.locator(".stacked").first.wait_for()
    assert figure.locator(".stacked").count() == 6
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    name, text = saved(page, figure, "CSV")
    assert name == "link-time.csv"
    assert len({row[0] for row in csv.reader(text.decode().splitlines()[1:])}) == 6


def test_a_timeline_of_a_store_says_where_link_time_went(swept_store: Path) -> None:
    made = stored.of_store(swept_store / "s", timelines=1).timelines[0].data["why"]
    assert made["rows"][0]["label"] == "the whole session"
    assert sum(share for _, share, _ in made["rows"][0]["parts"]) == pytest.approx(1.0, abs=1e-3)


def test_the_page_is_usable_by_keyboard(opened: Open) -> None:
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.locator("figure.intervals .frame").first.focus()
    page.keyboard.press("ArrowDown")
    first = page.locator("figure.intervals .readout").first
    said = first.inner_text()
    assert said
    page.keyboard.press("ArrowDown")
    assert first.inner_text() != said
    page.locator(".open.has").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".timeline .frame")
    page.locator(".timeline .frame").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".timeline .at").inner_text().endswith(" s")
    page.locator(".sessions thead button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".sessions th[aria-sort=ascending]").count() == 1


def test_a_telephone_is_wide_enough(opened: Open) -> None:
    page = opened(width=390)
    page.locator(".open.has").first.click()
    page.wait_for_selector(".timeline .u-over")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = page.locator(".timeline .u-over").first.bounding_box()
    assert box
    assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    assert box["width"] > 250


def test_a_distribution_with_long_tails_begins_without_them(opened: Open, tmp_path: Path) -> None:
    line = document.Line("a", [-1000.0, 0.0, 50.0, 100.0], [0.0, 0.01, 0.5, 1.0])
    chart = document.LineChart("Distribution of x", "x", "share", [line], stepped=True, view=(0.0, 100.0), name="d")
    file = report.write(
        report.Report("d", "Why?", sections=[document.Section("Figures", [chart])]), tmp_path / "d.html"
    )
    page = opened(file=file)
    plot = page.locator("figure .u-over")

    def leftmost() -> float:
        plot.hover(position={"x": 0, "y": 50})
        said = re.search(r"x: ([−\d.]+)", page.locator("figure .readout").inner_text())
        assert said
        return float(said[1].replace("−", "-"))

    assert leftmost() == pytest.approx(0, abs=1)
    page.get_by_role("button", name="Show all").click()
    assert leftmost() < -1000


def background(page: "Page") -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_light_and_dark_follow_the_system_and_the_button(opened: Open) -> None:
    light, dark = opened(), opened(scheme="dark")
    assert background(light) == "rgb(253, 253, 251)"
    assert background(dark) == "rgb(22, 23, 22)"
    dark.get_by_role("button", name="Change between light and dark").click()
    assert background(dark) == background(light)
    light.emulate_media(media="print")
    assert background(light) == "rgb(255, 255, 255)"


def test_a_table_of_thousands_of_sessions_is_shown_in_pages(opened: Open, tmp_path: Path) -> None:
    count = 4500
    sessions = document.Sessions(
        labels=[(document.Column("scheduler"), [f"s{i % 3}" for i in range(count)])],
        numbers=[(document.Column("stall_s", "s", number=True), [float(i) for i in range(count)])],
        commands=[["anabranch run base.toml", f"--seed {i}"] for i in range(count)],
        timelines=[None] * count,
        errors=[None] * count,
    )
    file = report.write(report.Report("many", "How many?", sessions=sessions), tmp_path / "many.html")
    assert file.stat().st_size < 500_000
    page = opened(file=file)
    assert page.locator("tr[data-row]").count() == 50
    page.get_by_role("button", name="Next").click()
    assert page.get_by_role("status").inner_text() == "51 to 100 of 4,500"
    page.get_by_label("Filter").fill("s1 stall_s>4490")
    assert column(page, 3) == ["4492", "4495", "4498"]
