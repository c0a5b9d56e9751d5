"""The causes of an account of link time, in words."""

from __future__ import annotations

import re

CAUSES = {
    "request": "the request was on its way to the server",
    "start-up": "the window was still growing for the first time",
    "window": "the congestion control kept its window or pace below what the link carries",
    "pacing": "the server limited the pace of its response",
    "loss-random": "random losses, their repair, and the smaller window after them",
    "loss-queue": "losses at a full queue, their repair, and the smaller window after them",
    "loss-outage": "losses while the link was down, and the time until the path worked again",
    "reordering": "reordered or late packets that the sender took for lost",
    "idle-decay": "the window had decayed while the connection was idle",
    "player": "the player read no more for now",
    "reader": "the client's program read nothing, although data was there",
    "application": "the server's program had the request, and wrote nothing",
    "receive-window": "the receive window was full",
    "send-buffer": "the send buffer was full",
    "policy": "the path policy kept data off the path",
    "backup": "the path is a backup",
    "scheduler": "the scheduler kept the data for another path",
    "not-joined": "no subflow was established on the path",
    "shared": "packets of another connection",
    "link-down": "the link or the client's interface was down",
    "link-slow": "the link was slower than usual",
    "copies": "copies of bytes that were on their way already",
    "last-bytes": "everything was sent, and the last bytes were on their way",
    "unexplained": "unexplained",
}
"""What each cause says, by its key. ``useful`` is none."""

OF_CAPTURES = {
    "request": "their round trips took much of the time",
    "application": "everything sent had arrived, and the application had written nothing more",
    "link-down": "nothing arrived on it for long",
    "slower-or-shared": "it was slower than at its best: a lower rate, or packets of other connections",
    "scheduler-or-policy": "the scheduler or the path policy sent nothing on it",
    "held-back": "a segment that was not full was held back (TCP_CORK, as nginx's tcp_nopush, or Nagle)",
    "window": "the window was smaller than what the path carries",
}
"""What a capture says, where that differs: packets do not tell some causes from each other."""

SHORT = {
    "useful": "new data",
    "request": "request on its way",
    "start-up": "start-up",
    "window": "window",
    "pacing": "pace of the response",
    "loss-random": "random loss",
    "loss-queue": "loss at a full queue",
    "loss-outage": "loss in an outage",
    "reordering": "reordering",
    "idle-decay": "decay while idle",
    "player": "player paused",
    "reader": "client reads nothing",
    "application": "server writes nothing",
    "receive-window": "receive window",
    "send-buffer": "send buffer",
    "policy": "path policy",
    "backup": "backup",
    "scheduler": "scheduler",
    "not-joined": "not joined",
    "shared": "other connections",
    "link-down": "link down",
    "link-slow": "slower than usual",
    "copies": "copies",
    "last-bytes": "last bytes",
    "unexplained": "unexplained",
}
"""The same in two or three words, for legends and tables."""


def phrase(cause: str, by: str | None) -> str:
    """A cause with who is behind it, such as `packets of another connection (cross 0)`."""
    return CAUSES[cause] + ("" if by is None else f" ({by})")


COLUMN = re.compile(r"link_time\.(\w+)_share")
"""The columns of the reducer ``link_time``, by cause."""


def of_column(column: str) -> str | None:
    """The key of the cause, or ``useful``, whose share a column of the reducer ``link_time`` has; none of others."""
    found = COLUMN.fullmatch(column)
    return None if found is None else found[1].replace("_", "-")


def of_capture(cause: str, by: str | None) -> str:
    """A cause that a capture tells, with the path behind it."""
    return (OF_CAPTURES.get(cause) or CAUSES[cause]) + ("" if by is None else f" ({by})")
