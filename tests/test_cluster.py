"""Sweeps on a Dask cluster: the same tables as on one machine, whatever happens to its workers."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anabranch import InputError
from anabranch.experiments import cluster, parcels, plan, sweep
from anabranch.experiments.executor import Executor, Finished, Threads
from anabranch.experiments.store import Store
from anabranch.system import provenance
from conftest import Run

distributed = pytest.importorskip("distributed") if not os.environ.get("CI") else __import__("distributed")

# Dask's own warnings are about its own code, and about a process that is left at the end of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")

PLAN = """\
schema = 1
question = "Does ecf carry more than min-rtt, on recorded rates?"
scenario = "base.toml"
seeds = 12
[vary]
transport.scheduler = ["min-rtt", "ecf", "redundant"]
[traces]
"link.wifi.rate" = { glob = "rates/*.csv", offset = "random" }
[compare]
metric = "goodput_bps"
better = "higher"
between = "transport.scheduler"
"""

BASE = """\
schema = 1
duration = "2 s"
[link.wifi]
rtt = "20 ms"
rate = "4 Mb/s"
loss = "1 %"
[link.lte]
rtt = "60 ms"
rate = "2 Mb/s"
[[session]]
video = { kind = "bulk" }
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A plan of 72 runs on two recordings."""
    (tmp_path / "rates").mkdir()
    for name, rates in {"walk": (3e6, 1e6, 5e6), "bus": (1e6, 4e6, 2e6)}.items():
        rows = "".join(f"{second},{rate:.0f}\n" for second, rate in enumerate(rates))
        (tmp_path / "rates" / f"{name}.csv").write_text(f"time_s,rate_bps\n{rows}", encoding="utf-8")
    (tmp_path / "base.toml").write_text(BASE, encoding="utf-8")
    file = tmp_path / "recorded.toml"
    file.write_text(PLAN, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """A cluster of two processes on this machine."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
    ) as local:
        yield local


OWN = """\
import anabranch
import neighbour


class Mine(anabranch.Scheduler):
    def decide(self, view, trigger):
        return view.candidates[min(neighbour.POSITION, len(view.candidates) - 1)]
"""


def test_modules_next_to_the_plan_travel_with_their_runs(
    workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, elsewhere = tmp_path / "study", tmp_path / "elsewhere"
    study.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (study / "own_of_the_study.py").write_text(OWN, "utf-8")
    (study / "neighbour.py").write_text("POSITION = 1\n", "utf-8")
    (study / "base.toml").write_text(BASE, "utf-8")
    file = study / "plan.toml"
    file.write_text(
        'schema = 1\nquestion = "?"\nscenario = "base.toml"\nseeds = 3\n'
        '[vary]\n"transport.scheduler" = ["min-rtt", "own_of_the_study:Mine"]\n',
        "utf-8",
    )
    local = swept(file, tmp_path / "local", Threads(1))
    # Workers on another machine have no such folder.
    parcel = pickle.loads(pickle.dumps(_parcel(file)))
    for module in ("own_of_the_study", "neighbour"):
        sys.modules.pop(module, None)
    study.rename(tmp_path / "away")
    with distributed.Client(workers, set_as_default=False) as client:
        made = client.submit(parcels.make, parcel, pure=False).result(timeout=120)
    assert [error for _, error in made] == [None] * 6
    assert local.failed == 0


def _parcel(file: Path) -> parcels.Parcel:
    experiment = sweep.Experiment.of(plan.load(file))
    return parcels.Parcel.of(list(experiment.runs((1, 2, 3))))


class Watching:
    """Does something once so many runs are over."""

    def __init__(self, after: int = -1, then: Callable[[], object] = lambda: None) -> None:
        self._after = after
        self._then = then
        self.done = 0

    def begin(self, runs: int, *, kept: int) -> None: ...

    def advance(self, finished: Finished) -> None:
        assert finished.error is None
        self.done += 1
        if self.done == self._after:
            self._then()


def swept(file: Path, folder: Path, execute: Executor, watching: Watching | None = None) -> sweep.Result:
    with Store(folder, provenance.build()) as opened:
        experiment = sweep.Experiment.of(plan.load(file))
        return sweep.sweep(experiment, opened, execute=execute, progress=watching or Watching())


def tables(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.parquet"))}


def test_a_cluster_gives_the_tables_of_one_machine(
    recorded: Path, workers: Any, anabranch: Run, tmp_path: Path
) -> None:
    local = swept(recorded, tmp_path / "local", Threads(2))
    done = anabranch("sweep", recorded, "--store", "remote", "--cluster", workers.scheduler_address)
    assert done.returncode == 0, done.stderr
    assert "72 runs made, 0 were there" in done.stdout
    assert tables(tmp_path / "remote") == tables(tmp_path / "local")
    assert local.failed == 0
    assert local.sessions["goodput_bps"].n_unique() > 30, "recordings and seeds matter"


def test_a_worker_that_is_killed_loses_nothing(
    recorded: Path, workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that most runs are still to be made when it is killed.
    monkeypatch.setattr(cluster, "_RUNS_PER_PARCEL", 2)
    swept(recorded, tmp_path / "local", Threads(2))
    # The nanny's, which starts another process in its place.
    process = next(iter(workers.workers.values())).process.pid

    with cluster.connect(workers.scheduler_address) as execute:
        watching = Watching(after=10, then=lambda: os.kill(process, signal.SIGKILL))
        found = swept(recorded, tmp_path / "remote", execute, watching)
    assert (found.made, watching.done) == (72, 72), "each is made, and none twice"
    assert tables(tmp_path / "remote") == tables(tmp_path / "local")


def test_a_second_start_on_a_cluster_continues(
    recorded: Path, workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_RUNS_PER_PARCEL", 2)
    interrupting = Watching(after=20, then=lambda: signal.raise_signal(signal.SIGINT))
    with cluster.connect(workers.scheduler_address) as execute:
        with pytest.raises(KeyboardInterrupt):
            swept(recorded, tmp_path / "s", execute, interrupting)
        kept = len(Store(tmp_path / "s", provenance.build()))
        assert 20 <= kept < 72
        again = swept(recorded, tmp_path / "s", execute)
    assert (again.kept, again.made) == (kept, 72 - kept)


def _other_build() -> None:
    """On a worker: as if its compiled part were another one."""
    found = {**provenance.build(), "library_sha256": "0" * 64}
    provenance.build = lambda: found


def _own_build() -> None:
    import importlib

    importlib.reload(provenance)


def test_a_worker_of_another_build_is_refused(recorded: Path, workers: Any, anabranch: Run, tmp_path: Path) -> None:
    with distributed.Client(workers, set_as_default=False) as client:
        worker = sorted(client.nthreads())[-1]
        client.run(_other_build, workers=[worker])
        try:
            done = anabranch("sweep", recorded, "--store", "s", "--cluster", workers.scheduler_address)
        finally:
            client.run(_own_build, workers=[worker])
    assert (done.returncode, done.stdout) == (2, "")
    assert worker in done.stderr
    assert "another build" in done.stderr
    assert "000000000000" in done.stderr
    assert not (tmp_path / "s").exists()


def test_a_worker_that_comes_later_with_another_build_is_refused(recorded: Path, workers: Any, tmp_path: Path) -> None:
    with cluster.connect(workers.scheduler_address) as execute, distributed.Client(workers) as client:
        client.run(_other_build)
        try:
            with pytest.raises(InputError, match="another build"):
                swept(recorded, tmp_path / "s", execute)
        finally:
            client.run(_own_build)
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
def test_a_run_that_ends_every_worker_is_named_and_the_rest_is_kept(
    recorded: Path, workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parcels, "make", _deadly)
    # One more attempt after the first, because a new process takes seconds.
    monkeypatch.setattr(workers.scheduler, "allowed_failures", 1)
    with (
        cluster.connect(workers.scheduler_address) as execute,
        pytest.raises(cluster.ClusterError, match=r"every worker .* died.*--seed 5"),
    ):
        swept(recorded, tmp_path / "s", execute)
    assert len(Store(tmp_path / "s", provenance.build())) > 0


_make = parcels.make


def _deadly(parcel: parcels.Parcel) -> parcels.Made | dict[str, str]:
    """Ends the process that makes seed 5 with the last scheduler."""
    if any(task.seed == 5 and '"redundant"' in parcel.scenarios[task.scenario].text for task in parcel.tasks):
        os.kill(os.getpid(), signal.SIGKILL)
    return _make(parcel)


def test_what_fails_on_a_worker_is_a_row_with_its_error() -> None:
    parcel = parcels.Parcel(
        provenance.build(),
        (parcels.Portable("base", "0" * 64, BASE, ()),),
        (parcels.Task(0, 1, (), True),),
    )
    made = parcels.make(parcel)
    assert isinstance(made, list)
    ((content, error),) = made
    assert error is not None
    assert "its digest is" in error
    assert b"its digest is" in content


@pytest.mark.parametrize(
    ("arguments", "culprits"),
    [
        (["--cluster", "tcp://127.0.0.1:1"], ["tcp://127.0.0.1:1", "dask scheduler"]),
        (["--cluster", "nonsense://x"], ["nonsense", "dask scheduler"]),
        (["--cluster", "tcp://127.0.0.1:1", "--jobs", "2"], ["--jobs"]),
    ],
)
def test_wrong_clusters_are_refused(
    recorded: Path,
    anabranch: Run,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    culprits: list[str],
) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_S", 1)
    done = anabranch("sweep", recorded, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(culprit in done.stderr for culprit in culprits), done.stderr
    assert "Traceback" not in done.stderr
    assert not (recorded.parent / "runs").exists()


def test_without_dask_the_message_says_how_to_get_it(
    recorded: Path, anabranch: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    done = anabranch("sweep", recorded, "--cluster", "tcp://127.0.0.1:1")
    assert done.returncode == 2
    assert "anabranch[cluster]" in done.stderr
    assert anabranch("sweep", recorded).returncode == 0, "nothing else needs it"
