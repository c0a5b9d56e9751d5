"""What a few packets say of paths and data: rules of explanations of captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from anabranch.results import evidence
from anabranch.results.capture import MOST_BLOCKS, Packets
from anabranch.results.connections import Session, Stream
from anabranch.results.evidence import DataEvidence, PathEvidence
from anabranch.runs.captureaccount import account

SEGMENT = 1000


# --- Rates ----------------------------------------------------------------------------------------------------------


def path(sent_s: Sequence[float], known_s: Sequence[float]) -> PathEvidence:
    """A path with segments of which none was lost."""
    sent, known = np.array(sent_s), np.array(known_s)
    return PathEvidence(
        name="wifi",
        opened_s=0.0,
        backups=np.empty((0, 2)),
        sent_s=sent,
        sizes=np.full(len(sent), float(SEGMENT)),
        data_begins=np.arange(len(sent)) * SEGMENT,
        copies=np.zeros(len(sent), np.bool_),
        known_s=known,
        repaired_s=np.full(len(sent), np.inf),
        doubled=np.zeros(len(sent), np.bool_),
        closed_s=np.full(len(sent), np.inf),
        rtts_s=np.stack([known, known - sent], axis=1),
    )


def test_a_train_is_measured_between_the_last_segments_of_acknowledgments() -> None:
    sent, known = [], []
    for burst in range(20):
        begin = float(burst)
        # Every second segment is acknowledged as it arrives, and the last one of an odd number when a timer ends.
        for segment in range(5):
            sent.append(begin)
            known.append(begin + 0.1 + (0.001 * (segment // 2 * 2 + 2) if segment < 4 else 0.045))
    # A segment each millisecond, although a pair arrives at once, and 41 ms are between the last two.
    assert path(sent, known).rate == pytest.approx(SEGMENT / 0.001)


def test_where_segments_are_missing_single_acknowledgments_tell_the_rate() -> None:
    sent, known = [], []
    for burst in range(20):
        begin = float(burst)
        sent += [begin] * 3
        # The first one arrives long after the others: these are acknowledged at once, by SACK blocks.
        known += [begin + 0.4, begin + 0.102, begin + 0.104]
        # Pairs with time between them, so that acknowledgments of single segments are few.
        for pair in range(4):
            sent += [begin + 0.5 + 0.05 * pair] * 2
            known += [begin + 0.7 + 0.05 * pair] * 2
    assert path(sent, known).rate == pytest.approx(SEGMENT / 0.002)


# --- Windows of the receiver ----------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A packet of a subflow."""

    time_s: float
    is_sent: bool
    of: int
    values: dict[str, int]


SCALE = 2


def row(time_s: float, *, sent: bool = False, of: int = 0, **values: int) -> Row:
    """A packet of a subflow: the values are attributes of `Packets`."""
    return Row(time_s, sent, of, values)


def packets(*rows: Row, multipath: bool = False) -> tuple[Packets, Session]:
    """The packets of a session, each subflow on a path of its own, after their handshakes."""
    handshakes = [row(0.0, of=of, is_syn=1, scale=SCALE) for of in sorted({each.of for each in rows})]
    every = [*handshakes, *rows]
    names = tuple(f"path{of}" for of in range(len(handshakes)))
    of = np.array([each.of for each in every], np.int64)
    absent = dict.fromkeys(("scale", "data_acknowledged", "data_sequence"), -1)

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([each.values.get(name, absent.get(name, 0)) for each in every], np.int64)

    streams = tuple(Stream(name, 0.0, True, np.empty((0, 2))) for name in names)
    requests = [each.time_s for each in rows if each.values.get("payload") and not each.is_sent]
    return (
        Packets(
            paths=names,
            time_s=np.array([each.time_s for each in every]),
            path=of,
            is_sent=np.array([each.is_sent for each in every]),
            client=np.zeros(len(every), np.int64),
            port=column("port"),
            sequence=column("sequence"),
            acknowledged=column("acknowledged"),
            has_ack=column("is_syn") == 0,
            is_syn=column("is_syn") == 1,
            begins_connection=(column("is_syn") == 1) & (of == 0),
            window=column("window") >> SCALE,
            scale=column("scale"),
            payload=column("payload"),
            sacked=np.full((len(every), MOST_BLOCKS, 2), -1),
            data_acknowledged=column("data_acknowledged"),
            data_sequence=column("data_sequence"),
        ),
        Session("server to client", 1, streams, multipath, 0, np.array(requests)),
    )


def data(found: Packets, session: Session) -> DataEvidence:
    """What packets say of the data of a session."""
    return evidence.of_data(found, session, evidence.of_paths(found, session))


BUFFER = 64 * SEGMENT


def response(begin_s: float, first: int, segments: int, unread: int, buffer: int = BUFFER) -> list[Row]:
    """A request, a segment each 10 ms, and its acknowledgment 20 ms later; the client leaves the last ones unread."""
    rows = [row(begin_s, payload=100, sequence=first, acknowledged=first, window=buffer)]
    for number in range(segments):
        sequence, time = first + SEGMENT * number, begin_s + 0.01 * (number + 1)
        rows.append(row(time, sent=True, sequence=sequence, payload=SEGMENT))
        left = max(number + 1 - (segments - unread), 0) * SEGMENT
        rows.append(row(time + 0.02, acknowledged=sequence + SEGMENT, window=buffer - left))
    return sorted(rows, key=lambda each: each.time_s)


@pytest.mark.parametrize(
    ("unread", "read_s"),
    [
        # The last segments have only just arrived when they are acknowledged.
        (0, 1.42),
        (12, 1.42),
        (30, 5.0),
    ],
)
def test_a_response_is_due_until_a_client_that_reads_nothing_opens_its_window(unread: int, read_s: float) -> None:
    later = response(5.0, 40 * SEGMENT, 40, 0)
    found = data(*packets(*response(1.0, 0, 40, unread), *later))
    assert found.done_s == pytest.approx([1.42, 5.42])
    assert found.read_s == pytest.approx([read_s, 5.42])
    # Without a later request, nothing waits for it.
    opened = row(5.0, acknowledged=40 * SEGMENT, window=BUFFER)
    assert data(*packets(*response(1.0, 0, 40, unread), opened)).read_s == pytest.approx([1.42])


def test_a_window_that_is_smaller_as_its_receiver_adjusts_it_tells_of_no_program() -> None:
    first = response(1.0, 0, 40, 30)
    # It opens less far than it was before.
    later = response(5.0, 40 * SEGMENT, 40, 0, buffer=BUFFER - SEGMENT)
    assert data(*packets(*first, *later)).read_s == pytest.approx([1.42, 5.42])


def test_a_subflow_that_repeats_the_end_of_a_window_tells_of_no_program() -> None:
    # The first subflow advertises an end that the second one, which has a smaller window of its own, repeats.
    rows = [row(1.0, payload=100), row(1.02, data_acknowledged=0, window=BUFFER)]
    for number in range(40):
        time, begin = 1.0 + 0.01 * (number + 1), SEGMENT * number
        rows.append(row(time, sent=True, of=1, sequence=begin, payload=SEGMENT, data_sequence=begin))
        end = begin + SEGMENT
        rows.append(row(time + 0.02, of=1, acknowledged=end, data_acknowledged=end, window=BUFFER - end))
    rows.append(row(5.0, payload=100, sequence=100, data_acknowledged=40 * SEGMENT, window=BUFFER))
    rows.append(row(5.1, sent=True, payload=SEGMENT, data_sequence=40 * SEGMENT))
    rows.append(row(5.2, acknowledged=SEGMENT, data_acknowledged=41 * SEGMENT, window=BUFFER))
    found = data(*packets(*sorted(rows, key=lambda each: each.time_s), multipath=True))
    assert found.read_s == pytest.approx([1.42, 5.2])


def test_a_client_with_a_closed_window_reads_nothing_before_it_gives_up() -> None:
    first = response(1.0, 0, 10, 10, buffer=10 * SEGMENT)
    # Its next connection begins with a request.
    again = [row(4.0, of=1, payload=100, window=BUFFER)]
    again += [row(4.1, of=1, sent=True, payload=SEGMENT), row(4.2, of=1, acknowledged=SEGMENT, window=BUFFER)]
    assert data(*packets(*first, *again)).read_s == pytest.approx([4.0, 4.2])


def test_an_acknowledgment_that_was_overtaken_does_not_move_the_end_of_the_window() -> None:
    rows = [
        row(0.1, payload=100, data_acknowledged=0, window=4 * SEGMENT),
        *(row(0.2, sent=True, of=of, payload=SEGMENT, data_sequence=of * SEGMENT) for of in range(2)),
        row(0.3, acknowledged=SEGMENT, data_acknowledged=2 * SEGMENT, window=2 * SEGMENT),
        # It was sent before, over a slower path.
        row(0.4, of=1, acknowledged=SEGMENT, data_acknowledged=SEGMENT, window=3 * SEGMENT),
    ]
    found = data(*packets(*rows, multipath=True))
    assert found.acknowledged[:, 1].tolist() == [2 * SEGMENT, 2 * SEGMENT]
    assert found.window_ends[:, 1].tolist() == [4 * SEGMENT, 4 * SEGMENT]


# --- Windows of the sender ------------------------------------------------------------------------------------------


def rounds(begin_s: float, first: int, sizes: Sequence[int]) -> list[Row]:
    """A response in round trips of 100 ms with so many segments each, over a path that carries one per millisecond."""
    rows = [row(begin_s, payload=100, sequence=first, acknowledged=first * SEGMENT, window=10 * BUFFER)]
    for trip, size in enumerate(sizes):
        for number in range(size):
            time = begin_s + 0.1 * trip + 0.001 * (number + 1)
            rows.append(row(time, sent=True, sequence=first * SEGMENT, payload=SEGMENT))
            first += 1
            rows.append(row(time + 0.1, acknowledged=first * SEGMENT, window=10 * BUFFER))
    return sorted(rows, key=lambda each: each.time_s)


def decayed_s(*rows: Row) -> float:
    """How long the window was small because it had decayed."""
    found, session = packets(*rows)
    paths = evidence.of_paths(found, session)
    flow = evidence.of_data(found, session, paths)
    span = (float(flow.requests_s[0]), float(flow.done_s[-1]))
    _, _, spent = account(paths, flow, np.arange(span[0], span[1], 0.01), span)
    return sum(each.seconds for each in spent if each.cause == "idle-decay")


GROWS = (10, 20, 40, 80, 100, 100, 100)


def test_a_window_has_decayed_that_begins_small_after_a_pause_with_nothing_on_its_way() -> None:
    first, full = rounds(1.0, 0, GROWS), (100, 100, 100)
    # What four round trips lack to 100 segments.
    assert decayed_s(*first, *rounds(4.0, sum(GROWS), GROWS)) == pytest.approx(0.25, abs=0.05)
    assert decayed_s(*first, *rounds(4.0, sum(GROWS), full)) == pytest.approx(0.0, abs=0.02)
    # The pause is shorter than a timeout.
    assert decayed_s(*first, *rounds(1.9, sum(GROWS), GROWS)) == pytest.approx(0.0, abs=0.02)


def test_a_window_does_not_decay_while_something_is_on_its_way() -> None:
    *first, last = rounds(1.0, 0, GROWS)
    request, *rest = rounds(4.0, sum(GROWS), GROWS)
    # All but the last segment had arrived.
    request.values["acknowledged"] -= SEGMENT
    late = last._replace(time_s=4.0015)
    assert decayed_s(*first, request, rest[0], late, *rest[1:]) == pytest.approx(0.0, abs=0.02)
