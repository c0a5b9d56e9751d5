"""Makes runs on the workers of a Dask cluster, and keeps them here.

Runs travel in parcels (`anabranch.experiments.parcels`). Dask gives the parcels of a worker that died to another
one. Dask counts a death against everything that the worker had, so a parcel that it gives up may be innocent. Its runs
are sent again one at a time, with nothing else under way: then the run that ends every process is known.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from anabranch.errors import InputError
from anabranch.experiments import parcels
from anabranch.experiments.conditions import Run
from anabranch.experiments.executor import Finished, Interruption
from anabranch.experiments.parcels import Made, Parcel
from anabranch.experiments.store import Store
from anabranch.system import provenance

if TYPE_CHECKING:
    from distributed import Client, Future

# A connection within a data centre takes milliseconds, the start of a job's workers much longer.
_CONNECT_S = 10
_WORKER_S = 60
_POLL_S = 0.2
# Each thread of the cluster works on a parcel while another one is on its way.
_PARCELS_PER_THREAD = 2
# A message costs about a millisecond, and a worker that dies loses what it has not returned: about one second.
_RUNS_PER_PARCEL = 16


class ClusterError(Exception):
    """A cluster, or the connection to it, failed; the message says what to do."""


@contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """Connects to a cluster, and checks that every worker has this build.

    Args:
        address: That of the scheduler, or the file that ``dask scheduler --scheduler-file`` writes.

    Raises:
        InputError: No scheduler answers there, a worker has another build, or Dask is not installed here.
    """
    client = _client(address)
    # What it says of lost connections, with tracebacks, is said in a sentence by what is raised here.
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        _check_workers(client, address)
        yield Cluster(client)
    finally:
        client.close()
        logger.setLevel(level)


def _client(address: str) -> Client:
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise InputError(
            f"--cluster {address}: this needs Dask ({error.name} is missing); pip install 'anabranch[cluster]'"
        ) from error
    where = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    try:
        return Client(**where, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError, KeyError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"--cluster {address}: no scheduler of Dask answers there ({said}); expected the address that "
            "`dask scheduler` prints, such as tcp://node1:8786, or its --scheduler-file"
        ) from error


def _check_workers(client: Client, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_WORKER_S)
    except TimeoutError as error:
        raise InputError(
            f"--cluster {address}: no worker came within {_WORKER_S} s; start some with `dask worker {address}`"
        ) from error
    found = client.run(provenance.build, on_error="return")
    for worker, build in sorted(found.items()):
        _check_build(worker, build)


def _check_build(worker: str, found: Any) -> None:
    """Refuses a worker with another build, or with none.

    Raises:
        InputError: It is one.
    """
    own = provenance.build()
    if isinstance(found, BaseException):
        raise InputError(
            f"the worker {worker} has no anabranch that this one can use ({type(found).__name__}: {found}); "
            f"install version {own['version']} where it runs, from the same wheel"
        )
    for key, value in own.items():
        if found.get(key) != value:
            raise InputError(
                f"the worker {worker} has another build of anabranch ({key} {str(found.get(key))[:12]}, this one has "
                f"{value[:12]}), and results of two builds are never mixed; install the same wheel on all machines"
            )


class Cluster:
    """Makes runs on a cluster: an `anabranch.experiments.executor.Executor`."""

    def __init__(self, client: Client) -> None:
        """Uses a connection; `connect` makes one."""
        self._client = client

    def __call__(
        self,
        runs: Iterable[Run],
        store: Store,
        *,
        finished: Callable[[Finished], object],
        wanted: Callable[[], bool],
    ) -> None:
        """Makes runs.

        Raises:
            ClusterError: The connection was lost, or a run ended every worker that had it.
            InputError: A worker that came meanwhile has another build.
            KeyboardInterrupt: The user interrupted. What was finished is kept.
            OSError: A result could not be kept.
        """
        under_way = _UnderWay(self._client, runs)
        with Interruption(under_way.close) as interruption:
            try:
                while under_way.fill():
                    if not wanted():
                        under_way.close()
                    for run, content, error in under_way.results(_POLL_S):
                        store.put(run.key, content)
                        finished(Finished(run, error))
                    if interruption.asked:
                        _keep_rest(under_way, store)
                        break
            finally:
                under_way.cancel()
        interruption.raise_if_any()


_Result = tuple[Run, bytes, str | None]


def _keep_rest(under_way: _UnderWay, store: Store) -> None:
    """Keeps what came while an interruption was under way."""
    while under_way.has_results:
        for run, content, _ in under_way.results(0):
            store.put(run.key, content)


class _UnderWay:
    """The parcels that workers have, and the runs that none of them has yet."""

    def __init__(self, client: Client, runs: Iterable[Run]) -> None:
        self._client = client
        self._runs = iter(runs)
        self._suspects: deque[Run] = deque()
        self._alone: Future | None = None
        self._parcels: dict[Future, Sequence[Run]] = {}
        self._over: SimpleQueue[Future] = SimpleQueue()
        self._closed = False

    def close(self) -> None:
        """Sends no more."""
        self._closed = True

    def fill(self) -> bool:
        """Sends so many that every thread has something to do; whether anything is under way."""
        if self._suspects:
            if not (self._closed or self._parcels):
                self._alone = self._send([self._suspects.popleft()])
            return bool(self._parcels)
        threads = max(1, sum(self._client.nthreads().values()))
        while (
            not self._closed
            and len(self._parcels) < _PARCELS_PER_THREAD * threads
            and (runs := list(itertools.islice(self._runs, _RUNS_PER_PARCEL)))
        ):
            self._send(runs)
        return bool(self._parcels)

    def _send(self, runs: Sequence[Run]) -> Future:
        # The same runs may be sent twice, after a worker died, which is no reason to give the first failure again.
        future = self._client.submit(parcels.make, Parcel.of(runs), pure=False)
        self._parcels[future] = runs
        future.add_done_callback(self._over.put)
        return future

    @property
    def has_results(self) -> bool:
        """Whether some parcel is over."""
        return not self._over.empty()

    def results(self, wait_s: float) -> Iterator[_Result]:
        """The results of the next parcel that is over, if there is one in time."""
        try:
            future = self._over.get(timeout=wait_s)
        except Empty:
            return
        runs = self._parcels.pop(future)
        made = self._made(future, runs)
        future.release()
        for run, (content, error) in zip(runs if made else (), made, strict=True):
            yield run, content, error

    def _made(self, future: Future, runs: Sequence[Run]) -> Made:
        """What a parcel gave; nothing if its runs are to be sent again."""
        from distributed import KilledWorker

        if future.cancelled():
            raise ClusterError("the scheduler is gone, or was restarted")
        try:
            made = future.result()
        except KilledWorker as error:
            if future is not self._alone:
                self._suspects.extend(runs)
                return []
            command = " ".join(runs[0].command)
            raise ClusterError(
                f"every worker that was given this run died, maybe of too little memory: {command}"
            ) from error
        except Exception as error:
            raise ClusterError(f"a worker could not make runs: {type(error).__name__}: {error}") from error
        if isinstance(made, dict):
            _check_build("that came last", made)
        return made  # type: ignore[no-any-return]

    def cancel(self) -> None:
        """Takes back what is not over."""
        if self._parcels and self._client.status == "running":
            self._client.cancel(list(self._parcels))
