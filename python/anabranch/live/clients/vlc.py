"""The real VLC, which plays a progressive video."""

from __future__ import annotations

import contextlib
import pwd
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from anabranch import _core
from anabranch.system.programs import ToolError, find

USER = "nobody"
"""Who runs VLC, which refuses to be run by root."""

_STOP_TIMEOUT_S = 10.0
_ASK_EVERY_S = 0.5

# Messages of VLC 3 (src/input/es_out.c, src/input/input.c, src/video_output/video_output.c).
_BUFFERED = re.compile(r"Stream buffering done")
_LATE = re.compile(r"PCR\s+is called too late \(pts_delay increased to (\d+) ms\)")
_IGNORED = re.compile(r"PCR\s+is called too late, jitter of (\d+) ms ignored")
_DISCARDED = re.compile(r"picture is too late to be displayed")
# That everything was read ("EOF reached") comes before everything was shown.
_ENDED = re.compile(r"main playlist: end of playlist|main playlist debug: dead input")
_FAILED = re.compile(r"VLC is unable to open|[Yy]our input can't be opened|no suitable decoder|could not decode")
_STATISTIC = re.compile(r"\|\s*(video decoded|frames displayed|frames lost)\s*:\s*(\d+)")


class VlcError(ToolError):
    """VLC did not play."""


@dataclass
class Log:
    """What VLC reported; times in seconds since it was started.

    Attributes:
        events: Time, kind and numbers, as ``_core.viewer_report`` takes them.
        statistics: VLC's own counters when it was asked last: ``video decoded``, ``frames displayed``, ``frames lost``.
        over: Whether the video was played to its end.
        end_s: When VLC ended.
        began: When VLC was started, by ``time.monotonic``.
    """

    events: list[tuple[float, str, list[float]]] = field(default_factory=list)
    statistics: dict[str, int] = field(default_factory=dict)
    over: bool = False
    end_s: float = 0.0
    began: float = 0.0


class Reader:
    """Turns VLC's messages into events.

    VLC notices that its clock reference comes late (a buffer underflow), throws away what is buffered, and fills its
    buffer anew: from the one message to the other the picture stands still.

    Attributes:
        log: What was read.
        failure: What VLC complained about.
        cut: Whether VLC was ordered to end: then its end is not that of the video.
    """

    def __init__(self) -> None:
        self.log = Log()
        self.failure: str | None = None
        self.cut = False
        self._started = False
        self._stalled = False
        self._delay_ms: float | None = None

    def line(self, at_s: float, text: str) -> None:
        """Takes in a line that came at a time."""
        if found := _STATISTIC.search(text):
            self.log.statistics[found[1]] = int(found[2])
        elif _BUFFERED.search(text):
            self._moves(at_s)
        elif found := _LATE.search(text):
            self._late(at_s, float(found[1]))
        elif found := _IGNORED.search(text):
            self._say(at_s, "underflow", float(found[1]) / 1000)
        elif _DISCARDED.search(text):
            self._say(at_s, "discarded", float(self.log.statistics.get("video decoded", 0)))
        elif _ENDED.search(text) and self._started and not self.cut and not self.log.over:
            self._say(at_s, "ended")
            self.log.over = True
        elif _FAILED.search(text):
            self.failure = text

    def _moves(self, at_s: float) -> None:
        if not self._started:
            self._say(at_s, "started")
        elif self._stalled:
            self._say(at_s, "stall-ended")
        self._started, self._stalled = True, False

    def _late(self, at_s: float, delay_ms: float) -> None:
        # The message has the new reserve, not by how much the reference was late.
        by_ms = 0.0 if self._delay_ms is None else max(0.0, delay_ms - self._delay_ms)
        self._delay_ms = delay_ms
        self._say(at_s, "underflow", by_ms / 1000)
        if self._started and not self._stalled:
            self._say(at_s, "stall-began")
            self._stalled = True

    def _say(self, at_s: float, kind: str, *numbers: float) -> None:
        self.log.events.append((at_s, kind, list(numbers)))


def play(
    url: str,
    *,
    before: Sequence[str],
    folder: Path,
    limit_s: float,
    caching_s: float | None = None,
    progress: Callable[[float], object] = lambda _fraction: None,
) -> Log:
    """Plays a progressive video.

    Args:
        url: The file's address.
        before: The command that runs VLC where it should run, such as ``ip netns exec NAME mptcpize run``.
        folder: Where VLC's messages are kept (``vlc.log``).
        limit_s: The session is cut off after this time.
        caching_s: Playing time that VLC reads ahead; its own default, one second, where absent.
        progress: Called now and then with the fraction of ``limit_s`` that has passed.

    Raises:
        ToolError: A program is missing.
        VlcError: VLC did not show a single picture.
    """
    options = ["-vv", "--no-color", "-I", "oldrc", "--rc-fake-tty", "--no-audio", "--vout", "dummy", "--play-and-exit"]
    if caching_s is not None:
        options += ["--network-caching", str(round(caching_s * 1000))]
    vlc = find("cvlc", "vlc-bin vlc-plugin-base")
    with _home() as home:
        # The profile goes to a folder of its own: nobody has none.
        unprivileged = [find("setpriv", "util-linux"), f"--reuid={USER}", f"--regid={pwd.getpwnam(USER).pw_gid}"]
        command = [*before, *unprivileged, "--clear-groups", "env", f"HOME={home}", vlc, *options, url]
        reader = Reader()
        with (folder / "vlc.log").open("w", encoding="utf-8") as kept:
            _run(command, reader, kept, limit_s, progress)
    if not reader.log.events:
        lines = (folder / "vlc.log").read_text(encoding="utf-8").strip().splitlines()
        reason = reader.failure or (lines[-1] if lines else "without a message")
        raise VlcError(f"VLC did not play {url}: {reason}")
    return reader.log


def viewed(log: Log, scenario: _core.Scenario | None = None) -> _core.Viewed:
    """What the viewer saw, as metrics of a session.

    ``pictures_flushed`` stays zero: VLC does not say how many pictures it throws away when it fills its buffer anew.
    """
    return _core.viewer_report(log.events, end_s=log.end_s, mpd=None, scenario=scenario)


@contextlib.contextmanager
def _home() -> Iterator[Path]:
    """A home for the user who runs VLC."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        raise ToolError(f"there is no user {USER}, who could run VLC; root must not") from None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        shutil.chown(home, USER)
        yield Path(home)


def _run(
    command: Sequence[str], reader: Reader, kept: IO[str], limit_s: float, progress: Callable[[float], object]
) -> None:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    began = time.monotonic()
    lines: queue.SimpleQueue[tuple[float, str] | None] = queue.SimpleQueue()
    assert process.stdin is not None
    assert process.stdout is not None
    thread = threading.Thread(target=_collect, args=(process.stdout, began, lines), daemon=True)
    thread.start()
    try:
        while _take(lines, reader, kept):
            passed = time.monotonic() - began
            progress(min(passed / limit_s, 1.0))
            reader.cut = passed >= limit_s
            order = "quit" if reader.cut else "stats"
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(order + "\n")
                process.stdin.flush()
            if passed > limit_s + _STOP_TIMEOUT_S:
                break
    finally:
        process.kill()
        process.wait()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        thread.join()
        process.stdout.close()
    reader.log.end_s = min(time.monotonic() - began, limit_s)
    reader.log.began = began


def _collect(stream: IO[str], began: float, lines: queue.SimpleQueue[tuple[float, str] | None]) -> None:
    """Notes the time of every line, and at last that there are no more."""
    for line in stream:
        lines.put((time.monotonic() - began, line.rstrip("\n")))
    lines.put(None)


def _take(lines: queue.SimpleQueue[tuple[float, str] | None], reader: Reader, kept: IO[str]) -> bool:
    """Reads what comes within a while; returns whether more may come."""
    until = time.monotonic() + _ASK_EVERY_S
    while (rest := until - time.monotonic()) > 0:
        try:
            got = lines.get(timeout=rest)
        except queue.Empty:
            break
        if got is None:
            return False
        reader.line(*got)
        kept.write(f"{got[0]:9.3f} {got[1]}\n")
    return True
