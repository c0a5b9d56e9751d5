"""The comparison with the kernel, made again by simulations from the live runs that are kept with the pages."""

import json
from pathlib import Path

import pytest

from conftest import Run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "runs", "parts", "least"),
    # The video of part (d) depends on an encoder.
    [("kernel.md", "kernel-runs.json", "abcef", 150), ("kernel-controls.md", "kernel-controls-runs.json", "g", 39)],
)
def test_the_tables_of_the_page_follow_from_the_kept_live_runs(
    launch: Run, page: str, runs: str, parts: str, least: int
) -> None:
    """The simulator agrees with the kernel as well as the page says."""
    folder = Path(__file__).parent.parent / "docs" / "validation"
    chosen = [argument for part in parts for argument in ("--only", part)]
    done = launch("validate", "--again", folder / runs, *chosen, "--json", timeout=1800)
    shown = (folder / page).read_text(encoding="utf-8")
    words = {"equivalent": "pass", "differs": "differs", "inconclusive": "inconclusive"}
    compared = 0
    for part in json.loads(done.stdout)["parts"]:
        for row in part["rows"]:
            values = [row[key] for key in ("cell", "quantity", "simulated", "live", "ratio", "tolerance")]
            line = f"| {' | '.join([*values, words[row['verdict']]])} |"
            assert line in shown
            compared += 1
    assert compared > least
