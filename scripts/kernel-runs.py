"""Keeps the live runs of a campaign, so that anybody can compare them with the simulator as it is, without root.

    anabranch validate --json > report.json                       makes the campaign (root, an hour)
    .venv/bin/python scripts/kernel-runs.py report.json           keeps the runs: docs/validation/kernel-runs.json
    .venv/bin/python scripts/kernel-runs.py KEPT part.json        replaces the test cases of a part of the campaign
    anabranch validate --again docs/validation/kernel-runs.json   compares them again

Those of part (g), which need controls that are attached, are in a file of their own:
`--to docs/validation/kernel-controls-runs.json`.

Verdicts and simulated runs are left out, because they are made anew. Tests in `tests/test_validate.py` compare the
results with the tables of `docs/validation/kernel.md` and `docs/validation/kernel-controls.md`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

KEPT = Path(__file__).resolve().parent.parent / "docs" / "validation" / "kernel-runs.json"


def main() -> None:
    """Writes the file: a line per test case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(",")[0])
    parser.add_argument(
        "report",
        type=Path,
        nargs="+",
        help="what `anabranch validate --json` printed, or the kept file; later test cases replace earlier ones",
    )
    parser.add_argument("--to", metavar="FILE", type=Path, default=KEPT, help=f"where to keep them ({KEPT.name})")
    options = parser.parse_args()
    reports = [json.loads(path.read_text("utf-8")) for path in options.report]
    report = reports[0]
    if any(other["kernel"] != report["kernel"] for other in reports):
        raise SystemExit("error: these runs were made with different kernels; keep those of one campaign")
    kept = {
        (case["cell"]["part"], case["cell"]["name"]): {
            "cell": {key: case["cell"][key] for key in ("part", "name")},
            **{key: case[key] for key in ("void", "errors", "lateness", "live")},
        }
        for one in reports
        for case in one["cells"]
    }
    cases = list(kept.values())
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    options.to.write_text(f'{{"kernel":{json.dumps(report["kernel"])},"cells":[\n{lines}\n]}}\n', "utf-8")
    print(f"{options.to}: {len(cases)} test cases, {sum(len(case['live']) for case in cases)} live runs")


if __name__ == "__main__":
    main()
