"""The compiled part of Anabranch. The rest of the package is its only user: what it offers changes without notice."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Devices",
    "InputError",
    "LiveError",
    "Outcome",
    "Scenario",
    "Serving",
    "Stop",
    "Testbed",
    "Viewed",
    "__version__",
    "check_metrics",
    "check_serving",
    "kernel_attach",
    "kernel_checks",
    "kernel_controls",
    "kernel_detach",
    "kernel_status",
    "kernel_supported",
    "kernel_use_paths",
    "live_missing",
    "load",
    "load_dictionary",
    "measure",
    "metrics_outline",
    "metrics_schema",
    "nearest",
    "rate_bps",
    "registry",
    "run",
    "scenario_schema",
    "serve_defaults",
    "shipped",
    "time_s",
    "toml_lines",
    "trace_convert",
    "trace_info",
    "trace_synthesize",
    "validate",
    "validation_browses",
    "validation_parts",
    "value_text",
    "viewer_report",
]

__version__: str

class InputError(ValueError):
    """A scenario, a key, a value or a name is wrong.

    The message names the place, what was expected and, where there is one, the nearest valid name.
    """

class LiveError(RuntimeError):
    """A live run cannot work on this machine, or failed.

    The message says what is missing and how to get it, or what went wrong.
    """

@final
class Scenario:
    """A checked scenario."""

    @property
    def name(self) -> str: ...
    @property
    def resolved(self) -> str:
        """The scenario as TOML with every default written out."""
    @property
    def warnings(self) -> list[tuple[str, str]]:
        """What is legal in it and probably not meant: the word for its kind, and a sentence with its place."""
    def portable(self) -> tuple[str, list[tuple[str, bytes]]]:
        """The resolved scenario, which names its files relative to itself, and these files."""
    def videos(self) -> list[dict[str, Any]]:
        """What each session watches.

        ``kind`` (progressive, dash or bulk) and, where it has them, ``bytes``, ``duration_s``, ``rate_bps`` and ``fps``
        (numerator and denominator), or ``segment_s`` and ``representations``: pairs of a rate in bit/s and, where it is
        known, width and height.
        """

class _Path(TypedDict):
    path: str
    throughput_bps: NDArray[np.float32]
    capacity_bps: NDArray[np.float32]
    cwnd_packets: NDArray[np.float32]
    srtt_s: NDArray[np.float32]
    disabled: NDArray[np.float64]  # Beginning and end, two columns.

class _Session(TypedDict):
    name: str
    time_s: NDArray[np.float64]
    buffer_s: NDArray[np.float32]
    discards: NDArray[np.uint32]
    path_switches: NDArray[np.uint32]
    stalls: NDArray[np.float64]
    shown: NDArray[np.float64]  # Beginning, end, bitrate, width, height: five columns.
    underflows: NDArray[np.float64]
    paths: list[_Path]

# What stands for a value that an event does not have is the last item; a text's values are positions in
# its words, -1 for none.
_Column = (
    tuple[Literal["integer"], NDArray[np.int64], int]
    | tuple[Literal["float"], NDArray[np.float64], float]
    | tuple[Literal["flag"], NDArray[np.int8], int]
    | tuple[Literal["text"], NDArray[np.int64], list[str]]
)

@final
class Outcome:
    """Everything that a run gives."""

    @property
    def metrics_json(self) -> str: ...
    @property
    def has_events(self) -> bool: ...
    def sessions(self) -> list[_Session]:
        """The sampled columns of each recorded session."""
    def marks(self) -> list[tuple[float, str]]:
        """What the scenario had happen: when, in seconds, and what."""
    def events(self) -> dict[str, _Column] | None:
        """The table of events, column by column; ``None`` if none were recorded."""

def check_metrics(text: str) -> None:
    """Refuses a text that is not the metrics of a run in JSON: all of them, of the right types, and no others.

    Raises:
        InputError: It is not; the message names the key.
    """

def metrics_schema() -> str:
    """The JSON Schema of the metrics of a run, as text. What is not required is null or absent."""

def live_missing() -> list[str]:
    """What live runs need and this machine lacks, one sentence each with the remedy. Linux only."""

@final
class Testbed:
    """A scenario in real time on this machine (Linux only): namespaces, links, a server, and the players that are ours.

    Time runs from the moment it is made. As a context manager it is taken down whatever happens.
    """

    def __new__(
        cls,
        scenario: Scenario,
        *,
        seed: int,
        server: str,
        client: str,
        record_events: bool,
        capture_dir: str | PathLike[str] | None = None,
        content_root: str | PathLike[str] | None = None,
    ) -> Self:
        """Builds and starts everything; with the client ``"program"`` all but what watches in the first session."""
    @property
    def namespace(self) -> str:
        """The network namespace of the first session's client, as ``ip netns exec`` wants it."""
    @property
    def url(self) -> str:
        """Where its server is: ``/bytes/N`` below it is N bytes, the rest are the files of the content's root."""
    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
    def poll(self) -> str | None:
        """Why the run is over (``finished``, ``duration``, ``stuck``), or ``None``; raises what went wrong."""
    def finish(
        self,
        ended: str,
        *,
        client: str | None = None,
        viewed: Viewed | None = None,
        counters: Mapping[str, int] | None = None,
        received_bytes: Mapping[str, int] | None = None,
        notes: Sequence[str],
    ) -> Outcome:
        """Takes everything down and gives what was observed; ``ended`` is why the run ended.

        The rest is what the caller knows of the first session's client: its name, what its viewer saw, what its kernel
        counted of Multipath TCP, bytes that each of its devices received, and what should be known of the run.
        """
    def close(self) -> None:
        """Takes everything down, if that was not done."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

def load(
    text: str, *, name: str, directory: str | PathLike[str] | None, overrides: Sequence[tuple[str, str]]
) -> Scenario:
    """Reads and checks a scenario's text; trace files are looked up in the directory."""

def load_dictionary(table: Mapping[str, Any], *, name: str, overrides: Sequence[tuple[str, str]]) -> Scenario:
    """The same for a scenario given as a dictionary; its mistakes name keys, such as ``session[0].video``."""

def value_text(value: object, key: str) -> str:
    """One value as the right side of an override; the key is for messages."""

def shipped(name: str) -> str | None:
    """The text of a shipped scenario."""

def scenario_schema() -> str:
    """The JSON Schema of scenarios (draft 2020-12), as text."""

def registry() -> list[tuple[str, str, str, str]]:
    """Everything that can be named: kind, name, one sentence, source (possibly empty)."""

def nearest(word: str, candidates: Sequence[str]) -> str | None:
    """The candidate that was probably meant, if any is near."""

def rate_bps(text: str) -> int:
    """A rate with its unit, such as ``2 Mb/s``, in bit/s."""

def time_s(text: str) -> float:
    """A time with its unit, such as ``60 s``, in seconds."""

def trace_info(
    content: bytes, *, name: str, file_format: str | None, unit: str | None, column: int | None
) -> tuple[str, NDArray[np.float64]]:
    """What characterises a trace file, as JSON, and the mean rate of each of its seconds in bits per second."""

def trace_convert(
    content: bytes,
    *,
    name: str,
    file_format: str | None,
    unit: str | None,
    column: int | None,
    scale: float,
    offset: str,
    duration: str | None,
    target: str,
    target_format: str | None,
    step: str,
) -> str:
    """A trace, or a part of it, as the text of another file; the target's name says the format if nothing else."""

def trace_synthesize(
    kind: str, *, mean: str, duration: str, seed: int, target: str, target_format: str | None, step: str
) -> str:
    """A synthetic trace of a kind of network, as the text of a file."""

def run(
    scenario: Scenario,
    *,
    seed: int,
    record_events: bool,
    progress: Callable[[float], object] | None,
    capture_dir: str | PathLike[str] | None = None,
) -> Outcome:
    """Simulates a scenario without holding the interpreter's lock.

    The callback gets the fraction of the scenario's time that has passed, now and then; what it raises ends the run, as
    does Ctrl-C. Into a directory for captures it writes ``client.pcapng`` and ``server.pcapng``.
    """

@final
class Stop:
    """Ends runs on other threads early."""

    def __new__(cls) -> Self: ...
    def set(self) -> None:
        """From now on every run that knows of this ends at once."""

def measure(scenario: Scenario, *, seed: int, stop: Stop, reducers: Sequence[str] = ..., segments: bool = True) -> str:
    """Simulates a scenario without holding the interpreter's lock: a JSON object on one line.

    It has the ``metrics``, and, if there are reducers, ``reduced``: their numbers by column, session by session.

    Args:
        scenario: The scenario.
        seed: The seed.
        stop: Ends it early.
        reducers: What is computed beside the metrics.
        segments: Whether the lists of media segments are wanted; else they are empty.

    Raises:
        KeyboardInterrupt: It was stopped.
        InputError: There is no reducer of a name.
    """

def metrics_outline(scenario: Scenario, *, reducers: Sequence[str] = ...) -> str:
    """What :func:`measure` gives of a run that is stopped at its first sample: the keys that this scenario has."""

def toml_lines(text: str, *, name: str) -> list[tuple[list[str], int]]:
    """Where the keys, and the items of lists, of a TOML text stand: the way to each, and its line.

    Raises:
        InputError: It is no TOML; the message has the line.
    """

def viewer_report(
    events: Sequence[tuple[float, str, Sequence[float]]],
    *,
    end_s: float,
    mpd: tuple[str, str] | None,
    scenario: Scenario | None,
) -> Viewed:
    """Folds the events of a real player into the metrics that ``run --json`` has of a simulated one.

    Each event has a time in seconds since the session began, a kind, and that kind's numbers (times in seconds):
    ``requested`` request, media segment, representation; ``first-byte`` request; ``complete`` request, bytes;
    ``abandoned`` request, media segment, bytes received, representation instead; ``appended`` media segment,
    representation, buffered; ``shown`` media segment, representation; ``started``; ``stall-began``; ``stall-ended``;
    ``ended``; ``discarded`` picture; ``underflow`` by how much. An MPD, given as its name and its text, says which
    representations a DASH video has. The scenario gives the statistics' window and weights.
    """

@final
class Viewed:
    """What the viewer of a real player saw."""

    @property
    def metrics_json(self) -> str:
        """Its part of a session's metrics."""

class _ServeDefaults(TypedDict):
    max_connections: int
    max_per_address: int
    max_half_open: int
    memory: int
    send_memory: int
    idle_seconds: float
    send_timeout_seconds: float
    grace_seconds: float
    scheduler: str
    congestion_control: str
    path_policy: str

def serve_defaults() -> _ServeDefaults:
    """What a server uses when it is told nothing else. Linux only."""

class _KernelCheck(TypedDict):
    name: str
    found: str
    remedy: str | None

class _KernelSubflow(TypedDict):
    connection: int
    number: int
    namespace: int
    local: str
    remote: str
    window_packets: float
    rtt_s: float
    mss: int
    in_flight: int
    losses: int
    timeouts: int

class _KernelAttachment(TypedDict):
    control: str
    kernel_name: str
    cgroup: Path | None
    port: int | None
    claimed: int
    released: int
    degraded: int
    subflows: list[_KernelSubflow]

class _KernelStatus(TypedDict):
    attachments: list[_KernelAttachment]
    draining_subflows: list[int]

def kernel_supported() -> bool:
    """Whether this build has the BPF programs. Linux only, as all of these functions."""

def kernel_controls() -> list[str]:
    """The names of the congestion controls that the programs implement."""

def kernel_checks() -> list[_KernelCheck]:
    """What the machine must provide; a check without remedy is met."""

def kernel_attach(
    control: str,
    *,
    cgroup: str | PathLike[str] | None = None,
    port: int | None = None,
    max_subflows: int | None = None,
    file_system: str | PathLike[str] | None = None,
) -> None:
    """Attaches a control to the connections of a cgroup, of a port, or of both.

    Raises:
        InputError: There is no such control or cgroup, or it is attached already.
        LiveError: The machine lacks something, or this build has no programs.
    """

def kernel_detach(control: str | None = None, *, file_system: str | PathLike[str] | None = None) -> list[str]:
    """Detaches a control, or all; returns those that were attached."""

def kernel_status(*, file_system: str | PathLike[str] | None = None) -> _KernelStatus:
    """What is attached, and how its subflows are doing."""

def kernel_use_paths(
    policy: str,
    changed: Callable[[int, str, str, bool], object],
    *,
    file_system: str | PathLike[str] | None = None,
) -> None:
    """Decides on path use until a signal is raised, and then lets every subflow carry data again.

    Args:
        policy: The name of a path policy.
        changed: Gets a connection's token, the local end, the remote end, and whether the subflow is used now.
        file_system: Where the programs are kept.

    Raises:
        InputError: There is no such policy.
        LiveError: The namespace's path manager is not that of user space.
    """

class _PathFacts(TypedDict):
    device: str
    sent_bytes: int
    received_bytes: int
    segments: int
    retransmitted_segments: int
    subflows: int

class _Facts(TypedDict):
    uptime: float
    accepted: int
    refused: int
    open: int
    half_open: int
    send_queue: int
    paths: list[_PathFacts]

def check_serving(**options: Any) -> None:
    """Checks the options of a server, without opening anything but its directory. Linux only.

    Raises:
        InputError: An option is wrong.
        OSError: The directory cannot be read.
    """

@final
class Devices:
    """The open TUN devices of a server, and the list of its open subflows, which outlive its process. Linux only.

    Raises:
        OSError: A device cannot be opened; the message says how.
    """

    def __new__(cls, listen: Sequence[tuple[str, str]]) -> Self: ...
    def changed(self, listen: Sequence[tuple[str, str]]) -> Devices:
        """Those of other paths, with the same list; devices of both stay open."""

@final
class Serving:
    """A server at work on threads of its own. Linux only.

    The options are those of `anabranch serve`, with sizes in bytes.

    Raises:
        InputError: An argument is wrong in itself.
        OSError: The machine does not allow it; the message says what and how to get it.
    """

    def __new__(cls, devices: Devices | None, **options: Any) -> Self: ...
    def reload(self, **options: Any) -> None:
        """Goes on with other options, and opens the access log again.

        Raises:
            InputError: An option is wrong, or a running server cannot change it.
            OSError: The directory or the access log cannot be opened.
        """
    def stop(self) -> None:
        """Orders it to stop: the first time what is under way is completed, the second time it is broken off."""
    def wait(self, seconds: float) -> bool:
        """Waits until it has ended, but not longer than that; tells whether it has."""
    def status(self) -> _Facts:
        """How it was doing a moment ago."""
    def metrics(self) -> str | None:
        """Where the metrics are shown, if they are."""
    def finish(self) -> int:
        """Waits until it has ended; tells how many connections it has accepted."""

def validation_parts() -> list[tuple[str, str]]:
    """The parts of `anabranch validate`: letter and title. Linux only."""

def validation_browses(parts: Sequence[str], *, quick: bool, only_cases: str | None) -> bool:
    """Whether some of the test cases that :func:`validate` would take are for a browser. Linux only.

    Raises:
        InputError: There is no such part or test case.
    """

def validate(
    parts: Sequence[str],
    *,
    quick: bool,
    only_cases: str | None,
    at_once: int,
    browser: tuple[str | PathLike[str], Callable[[str, str, int, Callable[[], bool]], Outcome]] | None,
    earlier: str | None,
    progress: Callable[[int, int, str], object] | None,
) -> tuple[str, str]:
    """Runs test cases in simulation and with the kernel; returns the report as JSON and as Markdown. Linux only.

    The browser is the folder with the video, ``manifest.mpd``, and who plays: it gets the scenario, ``kernel`` or
    ``anabranch`` as its server, the seed, and a function that says whether the run is still wanted, and returns the
    outcome of the run. Without a browser its test cases are left out. The other callback gets the number of live runs
    that are over, that of all, and the test case of the last one; what it raises ends the campaign, as does Ctrl-C.
    With the JSON of an earlier report its live runs are compared with new simulations, and none are made.
    ``only_cases`` is a part of the names of the test cases that are wanted.

    Raises:
        InputError: There is no such part or test case, or the earlier report is none.
        LiveError: This machine cannot run it; the message says what is missing.
    """
