"""What a few packets say of paths and data: rules of explanations of captures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from anabranch.results.evidence import PathEvidence

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
