"""The compiled part of Anabranch. The rest of the package is its only user: what it offers changes without notice."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Ack",
    "AlgorithmError",
    "Context",
    "Decision",
    "Devices",
    "Download",
    "Duplicate",
    "InFlight",
    "InputError",
    "Ladder",
    "LiveError",
    "Math",
    "Outcome",
    "PlayerEvent",
    "PlayerView",
    "Progress",
    "Rng",
    "Scenario",
    "SchedulerView",
    "Send",
    "SentPacket",
    "Serving",
    "Siblings",
    "Stop",
    "Subflow",
    "Testbed",
    "Viewed",
    "Wait",
    "Window",
    "__version__",
    "check_contract",
    "check_metrics",
    "check_serving",
    "header_room",
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

class AlgorithmError(RuntimeError):
    """An own algorithm ended the run.

    It raised an exception, which is the cause of this one, or made a decision that is not allowed. The message names
    the algorithm and the simulated time.
    """

@final
class Rng:
    """Random numbers of one algorithm object, from the seed of the run: the same seed gives the same numbers."""

    def random(self) -> float:
        """A number from 0, included, to 1, excluded."""
    def uniform(self, low: float, high: float) -> float:
        """A number from ``low`` to ``high``."""
    def integer(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
    def normal(self, mean: float, deviation: float) -> float:
        """A number of the normal distribution."""

@final
class Math:
    """The engine's functions: the same bits on every machine, and those of the built-in algorithms.

    Python's ``math.sqrt`` and the four operations are as exact; its other functions are the system's.
    """

    @staticmethod
    def exp(x: float) -> float: ...
    @staticmethod
    def expm1(x: float) -> float: ...
    @staticmethod
    def log(x: float) -> float:
        """The natural logarithm; NaN below 0."""
    @staticmethod
    def log1p(x: float) -> float: ...
    @staticmethod
    def log2(x: float) -> float: ...
    @staticmethod
    def log10(x: float) -> float: ...
    @staticmethod
    def sqrt(x: float) -> float: ...
    @staticmethod
    def cbrt(x: float) -> float: ...
    @staticmethod
    def sin(x: float) -> float: ...
    @staticmethod
    def cos(x: float) -> float: ...
    @staticmethod
    def tanh(x: float) -> float: ...
    @staticmethod
    def pow(x: float, y: float) -> float: ...

@final
class Context:
    """The engine as an algorithm sees it: ``self.ctx``."""

    @property
    def now(self) -> float:
        """The time of this call, in seconds since the start of the run."""
    @property
    def rng(self) -> Rng:
        """Random numbers of this object, from the seed of the run.

        ``random()`` from 0, included, to 1, excluded; ``uniform(low, high)``; ``integer(low, high)``, both included;
        ``normal(mean, deviation)``.
        """
    @property
    def math(self) -> Math:
        """Functions that give the same bits on every machine.

        They are ``exp``, ``expm1``, ``log``, ``log1p``, ``log2``, ``log10``, ``sqrt``, ``cbrt``, ``sin``, ``cos``,
        ``tanh`` and ``pow``, as the built-in algorithms use them.
        """
    def after(self, delay: float) -> float:
        """The time ``delay`` seconds from now, rounded as the engine rounds times: `now` can equal it."""
    def emit(self, name: str, value: float | None = None, /, *, subflow: int | None = None, **values: float) -> None:
        """Writes numbers into the table of events: rows with the event ``noted``.

        Args:
            name: The name of the number, in the column ``detail``.
            value: The number, in the column ``value``, in a unit of your choice.
            subflow: The ``id`` of the subflow that it is about. Where absent, the subflow of a congestion control, and
                none otherwise.
            values: More numbers: that of ``emit("rate", wifi=3.1)`` has the name ``rate.wifi``.
        """

@final
class Subflow:
    """One subflow of a connection. Read-only, and valid during the call."""

    @property
    def position(self) -> int:
        """Its position in ``view.subflows``; it changes when an older one closes."""
    @property
    def id(self) -> int:
        """Unique in the connection, and never used again."""
    @property
    def path(self) -> int:
        """The position of its path in the scenario, from 0."""
    @property
    def established(self) -> bool:
        """Whether the handshake is complete, so that data may be sent."""
    @property
    def backup(self) -> bool:
        """Whether it carries data only while no other subflow works."""
    @property
    def metered(self) -> bool:
        """Whether bytes cost money on its path: ``metered = true`` in the scenario."""
    @property
    def potentially_failed(self) -> bool:
        """Whether it has timed out and nothing was acknowledged since, or it is stale."""
    @property
    def allowed(self) -> bool:
        """Whether the path policy lets it carry new data."""
    @property
    def phase(self) -> Literal["open", "disorder", "recovery", "loss"]:
        """The state of loss recovery."""
    @property
    def mss(self) -> int:
        """Bytes of payload of a full segment."""
    @property
    def cwnd(self) -> float:
        """Congestion window, packets."""
    @property
    def ssthresh(self) -> float:
        """Slow-start threshold, packets; infinite before the first loss."""
    @property
    def in_flight(self) -> int:
        """Packets in flight, as loss recovery estimates them."""
    @property
    def unrepaired(self) -> int:
        """Packets that are deemed lost and were not retransmitted yet."""
    @property
    def oldest_sent(self) -> float | None:
        """When the first unacknowledged packet was last sent, seconds; ``None`` if everything is acknowledged."""
    @property
    def last_ack_at(self) -> float:
        """When the last acknowledgment arrived, seconds."""
    @property
    def queued(self) -> int:
        """Bytes that were assigned to the subflow and not sent yet."""
    @property
    def outstanding(self) -> int:
        """Bytes that were sent and are not acknowledged on the subflow."""
    @property
    def memory(self) -> int:
        """Memory that queued and outstanding bytes take in Linux's send buffer, bytes."""
    @property
    def send_buffer(self) -> int:
        """With ``commit = "into-buffer"``: the subflow takes more data while `memory` is below this, bytes."""
    @property
    def srtt(self) -> float:
        """Smoothed round trip, seconds; 0 before the first sample."""
    @property
    def rttvar(self) -> float:
        """Mean deviation of the round trip, seconds; 0 before the first sample."""
    @property
    def latest_rtt(self) -> float:
        """Latest round trip, seconds; 0 before the first sample."""
    @property
    def min_rtt(self) -> float:
        """Smallest round trip, seconds; 0 before the first sample."""
    @property
    def seeks_min_rtt(self) -> bool:
        """Whether the congestion control has few packets in flight, to measure the least round trip (ProbeRtt)."""
    @property
    def acked_since_loss(self) -> int:
        """Bytes acknowledged since the last loss."""
    @property
    def acked_between_losses(self) -> int:
        """Bytes acknowledged between the last two losses."""
    @property
    def room(self) -> int:
        """Free packets of the congestion window; queued segments count as sent."""
    @property
    def rate(self) -> float:
        """Window over smoothed round trip, bytes per second; 0 without a sample."""
    @property
    def delivery_rate(self) -> float | None:
        """The measured delivery rate, bytes per second; ``None`` before the first sample.

        Each packet counts as a full one, as in Linux's ``tcpi_delivery_rate``.
        """
    @property
    def arrival_rate(self) -> float | None:
        """The rate at which data arrived, bytes per second; ``None`` before the first sample.

        Only while there was data to send. Packets count by what they carry. The first round trip after a pause is left
        out.
        """
    @property
    def pacing_rate(self) -> float:
        """The pacing rate, by Linux's rule, bit/s; infinite before the first sample of the round trip."""
    @property
    def usable(self) -> bool:
        """Whether it may carry new data as far as its window allows."""
    @property
    def works(self) -> bool:
        """Whether it would be usable without the path policy."""
    @property
    def in_slow_start(self) -> bool:
        """The window is below its threshold."""
    @property
    def settled_window(self) -> float:
        """The window that coupled controls sum up, packets: in recovery the window at its end."""

@final
class InFlight:
    """A packet in flight."""

    @property
    def subflow(self) -> int:
        """The position of its subflow in ``view.subflows``."""
    @property
    def offset(self) -> int:
        """Stream offset of its first byte."""
    @property
    def bytes(self) -> int:
        """Its length."""
    @property
    def sent_at(self) -> float:
        """When it was last sent, seconds."""
    @property
    def lost(self) -> bool:
        """Whether loss recovery deems it lost and has not retransmitted it."""

@final
class SchedulerView:
    """The connection as a scheduler sees it. Offsets count bytes of the send stream from 0."""

    @property
    def now(self) -> float:
        """The time, seconds."""
    @property
    def subflows(self) -> tuple[Subflow, ...]:
        """Every open subflow, oldest first."""
    @property
    def candidates(self) -> tuple[Subflow, ...]:
        """The subflows that can take data now, oldest first; at least one."""
    @property
    def contenders(self) -> tuple[Subflow, ...]:
        """The subflows that may carry new data once they have room, oldest first."""
    @property
    def fastest_candidate(self) -> Subflow | None:
        """The candidate with the lowest smoothed round trip, the older one on a tie."""
    @property
    def fastest_contender(self) -> Subflow | None:
        """The contender with the lowest smoothed round trip, with room or without."""
    @property
    def flight(self) -> tuple[InFlight, ...]:
        """Packets in flight, if the scheduler ``watches_flight`` and no new data can be sent; otherwise empty."""
    @property
    def unacked(self) -> int:
        """The first byte that the peer has not acknowledged."""
    @property
    def next(self) -> int:
        """The first byte that is not assigned to a subflow yet."""
    @property
    def unsent(self) -> int:
        """Bytes that the application wrote and that are not assigned to a subflow yet."""
    @property
    def window_end(self) -> int:
        """One past the last byte that the peer's shared window allows."""
    @property
    def window_space(self) -> int:
        """Free bytes of the peer's shared window."""
    @property
    def new_bytes(self) -> int:
        """Bytes never sent before that the peer's window allows to send now."""
    @property
    def opportunistic_retransmissions(self) -> int:
        """How often the first unacknowledged data was retransmitted because the shared window was full."""
    @property
    def consumption_rate(self) -> float | None:
        """The rate at which the application consumes the data, bit/s; ``None`` if unknown."""
    @property
    def buffer(self) -> float | None:
        """Playing time that the viewer has buffered, seconds, by an estimate of the server.

        ``None`` if it is not estimated: with ``server.response_pacing = "off"``, and for what is no media of DASH.
        """
    @property
    def message_end(self) -> int | None:
        """The offset at which the current message ends; ``None`` if unknown."""

@final
class Send:
    """Decision to assign at most so many new bytes to a subflow; the scheduler is called again.

    With ``commit = "at-window"`` one segment goes at a time, which is short if ``bytes`` is less than a full one.
    """

    def __new__(cls, subflow: Subflow, bytes: int) -> Self: ...
    @property
    def subflow(self) -> Subflow: ...
    @property
    def bytes(self) -> int: ...

@final
class Duplicate:
    """Decision to send bytes again that another subflow was assigned before; the scheduler is called again."""

    def __new__(cls, subflow: Subflow, offset: int, bytes: int) -> Self: ...
    @property
    def subflow(self) -> Subflow: ...
    @property
    def offset(self) -> int: ...
    @property
    def bytes(self) -> int: ...

@final
class Wait:
    """Decision to send nothing now; the scheduler is called again at ``until``, in seconds since the start, or earlier.

    It is called earlier when something changes.
    """

    def __new__(cls, until: float | None = None) -> Self: ...
    @property
    def until(self) -> float | None: ...

@final
class SentPacket:
    """A packet with data that leaves now."""

    @property
    def at(self) -> float:
        """The time, seconds."""
    @property
    def offset(self) -> int:
        """Stream offset of its first byte."""
    @property
    def bytes(self) -> int:
        """Its length."""
    @property
    def kind(self) -> Literal["new", "retransmission", "tail-loss-probe", "reinjection", "duplicate"]:
        """The reason for sending its data."""

@final
class Window:
    """The window that a congestion control sets, in packets."""

    cwnd: float
    """The congestion window, packets."""
    ssthresh: float
    """The slow-start threshold, packets; infinite before the first loss."""
    pacing_rate: float | None
    """The rate at which packets are paced, bit/s; ``None`` if the control sets none."""
    @property
    def in_slow_start(self) -> bool:
        """Whether the window is below its threshold."""
    def slow_start(self, acked: int) -> float:
        """Increases the window by one packet per acknowledged packet, up to the threshold.

        Returns the number of acknowledged packets that are left.
        """
    def grow_per_window(self, acked: float) -> None:
        """Increases the window by one packet per window of acknowledged packets, in whole packets as in Linux."""
    def grow(self, increment: float) -> None:
        """Increases the window by so many packets; a negative number decreases it, to one packet at the least."""
    def reduce_to(self, packets: float) -> None:
        """Sets the threshold after a loss, to at least 2 packets."""

@final
class Ack:
    """The contents of one acknowledgment of new data."""

    @property
    def now(self) -> float:
        """The time of its arrival, seconds."""
    @property
    def delivered(self) -> int:
        """Packets that it newly acknowledged."""
    @property
    def total_delivered(self) -> int:
        """Packets delivered so far, these included."""
    @property
    def rtt(self) -> float | None:
        """The round trip that it measured, seconds; ``None`` if it acknowledges only retransmitted packets."""
    @property
    def may_grow(self) -> bool:
        """Whether the window may grow: it limited the sender, and no loss recovery is in progress."""
    @property
    def prior_in_flight(self) -> int:
        """Packets in flight before it."""
    @property
    def in_flight(self) -> int:
        """Packets in flight after it."""
    @property
    def lost(self) -> int:
        """Packets that it showed to be lost."""
    @property
    def acked_offset(self) -> int:
        """The subflow's first unacknowledged byte."""
    @property
    def sent_offset(self) -> int:
        """The subflow's next byte to send."""
    @property
    def rate_delivered(self) -> int:
        """Packets of the sample of the delivery rate; 0 if there is none."""
    @property
    def rate_interval(self) -> float:
        """The time in which they were delivered, seconds."""
    @property
    def rate_prior_delivered(self) -> int:
        """Packets that had been delivered when the acknowledged one was sent. It identifies the round trip."""
    @property
    def rate_app_limited(self) -> bool:
        """Whether the sender had no data to send, so that the path may be faster than the sample."""

@final
class Siblings:
    """The subflows of the connection, as the congestion control of one of them sees them."""

    @property
    def own(self) -> Subflow | None:
        """The subflow of this control."""
    @property
    def all(self) -> tuple[Subflow, ...]:
        """All open subflows, oldest first."""
    @property
    def coupled(self) -> tuple[Subflow, ...]:
        """The subflows that count in a coupled sum, always with the own one.

        The others are established, have a sample of the round trip, and are not disabled.
        """

@final
class Ladder:
    """The representations of a video, in ascending order of their rates."""

    @property
    def bitrates(self) -> tuple[int, ...]:
        """Nominal rates, bit/s."""
    @property
    def segment_duration(self) -> float:
        """Playing time of a media segment, seconds."""
    @property
    def segments(self) -> int:
        """Number of media segments."""
    @property
    def live(self) -> bool:
        """Whether this is a live stream."""
    def __len__(self) -> int: ...
    def bps(self, representation: int) -> float:
        """The nominal rate of a representation, bit/s."""
    def segment_bytes(self, representation: int, index: int) -> int:
        """Bytes of a media segment: from the video's table, or from the nominal rate."""
    def highest_within(self, bps: float, top: int) -> int:
        """The rank of the highest representation up to ``top`` with at most this rate; 0 if there is none."""

@final
class Download:
    """A finished request for a media segment: complete or aborted."""

    @property
    def index(self) -> int:
        """Number of the media segment, from 0."""
    @property
    def representation(self) -> int:
        """Rank of the representation."""
    @property
    def requested_at(self) -> float:
        """When the request was placed, seconds."""
    @property
    def first_byte_at(self) -> float:
        """When the first byte of the response became readable, seconds."""
    @property
    def finished_at(self) -> float:
        """When the last byte became readable, or the request was aborted, seconds."""
    @property
    def bytes(self) -> int:
        """Bytes of the body that arrived."""
    @property
    def throughput_bps(self) -> float:
        """The rate from the request to the last byte, bit/s."""

@final
class Progress:
    """A running request for a media segment."""

    @property
    def index(self) -> int:
        """Number of the media segment, from 0."""
    @property
    def representation(self) -> int:
        """Rank of the representation."""
    @property
    def requested_at(self) -> float:
        """When the request was placed, seconds."""
    @property
    def bytes(self) -> int:
        """Bytes of the body so far."""
    @property
    def total(self) -> int:
        """Bytes of the whole body."""

@final
class PlayerEvent:
    """An event between two decisions."""

    @property
    def kind(
        self,
    ) -> Literal[
        "segment-finished",
        "segment-aborted",
        "init-finished",
        "buffer-measured",
        "buffer-empty",
        "buffer-loaded",
        "seeked",
        "shown",
    ]:
        """The kind of the event."""
    @property
    def download(self) -> Download | None:
        """The request, of ``segment-finished`` and ``segment-aborted``."""
    @property
    def shown_before(self) -> int | None:
        """The representation that was on screen before, of ``shown``."""
    @property
    def shown_now(self) -> int | None:
        """The representation that is on screen now, of ``shown``."""

@final
class Decision:
    """A representation, a pause before its request in seconds, and a reason for the table of events."""

    def __new__(cls, representation: int, *, wait: float = 0.0, reason: str = ...) -> Self: ...
    @property
    def representation(self) -> int: ...
    @property
    def wait(self) -> float: ...
    @property
    def reason(self) -> str: ...

@final
class PlayerView:
    """The player as a bitrate rule sees it."""

    @property
    def ladder(self) -> Ladder:
        """The representations to choose from."""
    @property
    def downloads(self) -> list[Download]:
        """Completed downloads of media segments, oldest first. Do not change the list."""
    @property
    def now(self) -> float:
        """The time, seconds."""
    @property
    def buffer(self) -> float:
        """The buffered playing time, as the player last measured it, seconds."""
    @property
    def buffer_state(self) -> Literal["empty", "loaded"] | None:
        """Whether the buffer is enough to play; ``None`` before the first measurement."""
    @property
    def buffer_target(self) -> float:
        """The level at which the player pauses its requests, seconds."""
    @property
    def playback(self) -> Literal["startup", "steady"]:
        """``startup`` before the first picture, ``steady`` from then on, stalls included."""
    @property
    def current(self) -> int:
        """The rank of the representation that was chosen last."""
    @property
    def top(self) -> int:
        """The rank of the highest representation that is allowed."""
    @property
    def next(self) -> int:
        """The number of the media segment to decide for, from 0."""
    @property
    def pictures_total(self) -> int:
        """Pictures that were due so far."""
    @property
    def pictures_dropped(self) -> int:
        """Pictures of these that were dropped."""

def check_contract(kind: str, name: str, *, directory: str | PathLike[str] | None, cases: int) -> str | None:
    """Tries an algorithm on arbitrary inputs, always the same ones; what it broke, or ``None``."""

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
    @property
    def own_algorithms(self) -> list[tuple[str, str]]:
        """The algorithms that are not built in: kind, as in ``scheduler``, and name."""
    @property
    def module_folders(self) -> list[Path]:
        """The folders in which their modules are looked for before the current directory."""
    def portable(self) -> tuple[str, list[tuple[str, bytes]]]:
        """The resolved scenario, which names its files relative to itself, and these files."""
    def videos(self) -> list[dict[str, Any]]:
        """What each session watches.

        ``kind`` (progressive, dash or bulk) and, where it has them, ``bytes``, ``duration_s``, ``rate_bps`` and ``fps``
        (numerator and denominator), or ``segments`` (their number), ``segment_s`` and ``representations``: pairs of a
        rate in bit/s and, where it is known, width and height.
        """

class _Path(TypedDict):
    path: str
    throughput_bps: NDArray[np.float32]
    capacity_bps: NDArray[np.float32]
    cwnd_packets: NDArray[np.float32]
    srtt_s: NDArray[np.float32]
    disabled: NDArray[np.float64]  # Beginning and end, two columns.
    opened: NDArray[np.float64]  # When each subflow was opened, and its window then, two columns.

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
    # What algorithms emitted: name, path if it is about one, instants, numbers.
    notes: list[tuple[str, str | None, NDArray[np.float64], NDArray[np.float64]]]

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
    def account(self) -> dict[str, _Column] | None:
        """Where the link time of each session went, column by column; ``None`` if the run kept no account."""

def check_metrics(text: str) -> None:
    """Refuses a text that is not the metrics of a run in JSON: all of them, of the right types, and no others.

    Raises:
        InputError: It is not; the message names the key.
    """

def metrics_schema() -> str:
    """The JSON Schema of the metrics of a run, as text. What is not required is null or absent."""

def header_room() -> int:
    """Bytes that the running kernel reserves for headers in front of each packet (``transport.header_room``). Linux.

    Raises:
        LiveError: It is that of no known build.
    """

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
        """Why the run is over (``finished``, ``duration``, ``stuck``), or ``None``; raises what went wrong.

        Raises:
            AlgorithmError: An algorithm in Python raised an exception, or decided what none may.
            LiveError: A part of the testbed failed.
        """
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
    text: str,
    *,
    name: str,
    directory: str | PathLike[str] | None,
    overrides: Sequence[tuple[str, str]],
    modules: str | PathLike[str] | None = None,
) -> Scenario:
    """Reads and checks a scenario's text; files are looked up in the directory, modules there, then in ``modules``."""

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

class _ReadAs(TypedDict):
    """What is known about a trace's file; what is None is recognised."""

    format: str | None
    unit: str | None
    rate_column: str | None
    time_column: str | None
    time_unit: str | None
    interval: str | None
    gap: str | None

def trace_info(content: bytes, *, name: str, read_as: _ReadAs) -> tuple[str, NDArray[np.float64]]:
    """What characterises a trace file, as JSON, and the mean rate of each of its seconds in bits per second."""

def trace_convert(
    content: bytes,
    *,
    name: str,
    read_as: _ReadAs,
    scale: float,
    offset: str,
    duration: str | None,
    target: str,
    target_format: str | None,
    step: str,
) -> tuple[str, str]:
    """A trace, or a part of it, as the text of another file; the target's name says the format if nothing else.

    Also returns what was understood of the file, as JSON.
    """

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
    account: bool = False,
) -> Outcome:
    """Simulates a scenario without holding the interpreter's lock.

    The callback gets the fraction of the scenario's time that has passed, now and then; what it raises ends the run, as
    does Ctrl-C. Into a directory for captures it writes ``client.pcapng`` and ``server.pcapng``. If asked to, it keeps
    account of link time.
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
        reducers: What is computed in addition to the metrics.
        segments: Whether the lists of media segments are wanted; else they are empty.

    Raises:
        KeyboardInterrupt: It was stopped.
        InputError: There is no reducer of a name.
    """

def metrics_outline(scenario: Scenario, *, reducers: Sequence[str] = ...) -> str:
    """What `measure` gives of a run that is stopped at its first sample: the keys that this scenario has."""

def toml_lines(text: str, *, name: str) -> list[tuple[list[str], int]]:
    """Where the keys, and the items of lists, of a TOML text stand: the way to each, and its line.

    Raises:
        InputError: It is no TOML; the message has the line.
    """

def viewer_report(
    events: Sequence[tuple[float, str, Sequence[float]]],
    *,
    end_s: float,
    mpd: tuple[str, bytes] | None,
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
    response_pacing: str

def serve_defaults() -> _ServeDefaults:
    """The defaults of a server. Linux only."""

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
    ready: Callable[[], object],
    changed: Callable[[int, str, str, bool], object],
    *,
    file_system: str | PathLike[str] | None = None,
) -> None:
    """Decides on path use until a signal is raised, and then lets every subflow carry data again.

    Args:
        policy: The name of a path policy.
        ready: Is called once, when the policy is in force and new subflows can join.
        changed: Gets a connection's token, the local end, the remote end, and whether the subflow is used now.
        file_system: Where the programs are kept.

    Raises:
        InputError: There is no such policy.
        LiveError: The namespace's path manager is not that of user space.
    """

class _PathFacts(TypedDict):
    device: str
    gone: bool
    sent_bytes: int
    received_bytes: int
    segments: int
    retransmitted_segments: int
    subflows: int
    mtu_reported: int
    mtu_black_holes: int
    mtu: int
    false_acknowledgments: int

class _Facts(TypedDict):
    uptime: float
    accepted: int
    refused: int
    unmade: int
    failed: int
    open: int
    half_open: int
    send_queue: int
    paths: list[_PathFacts]

def check_serving(**options: Any) -> None:
    """Checks the options of a server, without opening anything but its directory. Linux only.

    Own algorithms are imported.

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

    def __new__(cls, listen: Sequence[tuple[str, str, bool]]) -> Self: ...
    def changed(self, listen: Sequence[tuple[str, str, bool]]) -> Devices:
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
    def take_failures(self) -> list[tuple[str | None, str]]:
        """The failures of own algorithms that were not reported yet, the first one of each place.

        Each is the author's traceback, if it was an exception, and a message.
        """
    def finish(self) -> int:
        """Waits until it has ended; tells how many connections it has accepted."""
