"""`anabranch validate`: what it says of wrong input, and the quick cells where the machine can run them."""

import json
from pathlib import Path

from conftest import Run, require_live

# (d) plays for two minutes; everything else of the quick cells goes on beside it.
_QUICK_LIMIT_S = 600


def test_an_unknown_part_is_named_with_those_that_exist(anabranch: Run) -> None:
    done = anabranch("validate", "--only", "z")
    assert done.returncode == 2
    assert "part `z`: expected one of a, b, c, d, e, f" in done.stderr


def test_a_document_without_markers_is_refused_before_anything_runs(anabranch: Run, tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("# Nothing to fill in\n", encoding="utf-8")
    done = anabranch("validate", "--write", document)
    assert done.returncode == 2
    assert "<!-- begin judge -->" in done.stderr
    assert str(document) in done.stderr
    assert document.read_text(encoding="utf-8") == "# Nothing to fill in\n"


def test_the_quick_cells_do_not_contradict_the_kernel(anabranch: Run) -> None:
    require_live()
    done = anabranch("validate", "--quick", "--json", timeout=_QUICK_LIMIT_S)
    report = json.loads(done.stdout)
    rows = [row for part in report["parts"] for row in part["rows"]]
    assert {part["letter"] for part in report["parts"]} == set("abcdef")
    # Two runs of a cell tell little, so most of what is not equivalent is inconclusive; what differs in spite of that
    # differs. How many packets a full queue drops is known to (docs/deviations.md).
    differing = [row for row in rows if row["verdict"] == "differs" and row["quantity"] != "retransmissions"]
    assert not differing, differing
    assert any(row["verdict"] == "equivalent" for row in rows)
    assert (done.returncode == 0) == (report["verdict"] != "differs")
