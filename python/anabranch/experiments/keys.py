"""The content address of a run: what has the same key is the same run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from anabranch import _core
from anabranch.algorithms import sources
from anabranch.system import provenance

# A change of what the key is made of, or of what is kept under it.
_SCHEMA = 1

KEY_BYTES = hashlib.sha256().digest_size
"""The length of a key."""


def of_scenario(scenario: _core.Scenario) -> str:
    """The digest of a resolved scenario with its files, wherever these are, and the sources of its own algorithms."""
    text, files = scenario.portable()
    digest = hashlib.sha256(text.encode())
    for name, content in files:
        digest.update(f"\0{name}\0{hashlib.sha256(content).hexdigest()}".encode())
    for name, content in sources.of_scenario(scenario):
        digest.update(f"\0{name}\0{hashlib.sha256(content).hexdigest()}".encode())
    return digest.hexdigest()


def of_run(
    scenario: str,
    seed: int,
    *,
    engine: str = "sim",
    live_run: int | None = None,
    reducers: Sequence[str] = (),
    segments: bool = True,
) -> bytes:
    """The key of a run.

    Args:
        scenario: The digest of the scenario.
        seed: The seed.
        engine: What makes the run; in real time with the kernel's release.
        live_run: Which of several runs of the same seed in real time; ``None`` in simulation, which has no such.
        reducers: What is computed of it in addition to the metrics.
        segments: Whether the lists of media segments are kept.
    """
    parts = [_SCHEMA, scenario, seed, engine, provenance.library_sha256(), sorted(reducers), segments]
    if live_run is not None:
        parts.append(live_run)
    return hashlib.sha256(json.dumps(parts).encode()).digest()
