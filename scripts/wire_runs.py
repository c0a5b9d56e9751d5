"""The same run on the wire and in simulation; scripts that compare the two import it."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

from anabranch import _core
from anabranch.experiments.realtime import TRIES

Overrides = Mapping[str, str]
Metrics = Mapping[str, Any]
Job = TypeVar("Job")

# What stands for the kernel's server in simulation.
UPSTREAM = {"transport.kernel": "upstream", "transport.scheduler": "linux"}


def on_the_wire(
    scenario: str,
    overrides: Overrides,
    seed: int,
    *,
    server: str,
    client: str = "model",
    content: Path | None = None,
) -> Metrics:
    """The metrics of a run in real time, in a process of its own, so that several can be made at once.

    A run whose links were late is made again. The last try is returned in any case; it may be invalid.
    """
    command = [sys.executable, "-m", "anabranch", "run", scenario, "--live", "--json"]
    command += ["--server", server, "--client", client, "--seed", str(seed)]
    command += ["--content", str(content)] if content else []
    for key, value in overrides.items():
        command += ["--set", f"{key}={value}"]
    for _ in range(TRIES):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"error: {' '.join(command)}: {done.stderr.strip()}")
        metrics: Metrics = json.loads(done.stdout)
        if not metrics["live"]["void"]:
            break
    return metrics


def in_simulation(scenario: str, overrides: Overrides, seed: int) -> Metrics:
    """The metrics of a simulated run of a scenario, which is shipped or a file."""
    text = _core.shipped(scenario) or Path(scenario).read_text("utf-8")
    checked = _core.load(text, name=scenario, directory=None, overrides=tuple(overrides.items()))
    metrics: Metrics = json.loads(_core.measure(checked, seed=seed, stop=_core.Stop()))["metrics"]
    return metrics


def load_kept(file: Path | None) -> dict[str, Any]:
    """Kept runs and the kernel that they were made with; none yet where there is no file."""
    if file and file.exists():
        kept: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return kept
    return {"kernel": platform.release(), "runs": []}


def complete(
    kept: dict[str, Any],
    missing: Sequence[Job],
    make: Callable[[Job], dict[str, Any]],
    *,
    at_once: int,
    order: Callable[[dict[str, Any]], Any],
    file: Path | None,
) -> None:
    """Makes missing runs, several at once, and writes all of them into the file, if there is one, as each ends."""
    if missing and kept["kernel"] != platform.release():
        raise SystemExit(
            f"error: {file}: these runs were made with Linux {kept['kernel']}, and this machine has "
            f"{platform.release()}; keep its runs in another file"
        )
    with ThreadPoolExecutor(at_once) as pool:
        for made in as_completed([pool.submit(make, job) for job in missing]):
            kept["runs"].append(made.result())
            kept["runs"].sort(key=order)
            if file:
                file.write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")


def chunk_times_ms(session: Metrics) -> list[float]:
    """The times of the chunks of a session that arrived, from the request to the last byte."""
    whole = [chunk for chunk in session["downloads"] if None not in (chunk["requested_s"], chunk["finished_s"])]
    return [round(1000 * (chunk["finished_s"] - chunk["requested_s"]), 2) for chunk in whole]
