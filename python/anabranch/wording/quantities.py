"""Names of metrics and of a scenario's keys as people write them: words and units.

A key stays what commands, filters and files take. Pages show its name, and the key as a tooltip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.wording import causes


@dataclass(frozen=True)
class Quantity:
    """What a column shows.

    Attributes:
        key: The column of a table, or the key of a scenario.
        name: In words, without the unit.
        unit: The unit in which it is shown; empty for none.
        scale: The factor from the column's values to that unit.
    """

    key: str
    name: str
    unit: str = ""
    scale: float = 1.0

    @property
    def labelled(self) -> str:
        """The name with the unit, for an axis."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


_UNITS = (
    ("_bps", "Mb/s", 1e-6),
    ("_bytes", "MB", 1e-6),
    ("_packets", "packets", 1.0),
    ("_s", "s", 1.0),
)
# Words for keys that do not say by themselves, in the field's terms.
_NAMES = {
    "startup_s": ("start-up", None),
    "stalls": ("stalls", None),
    "stall_s": ("stall time", None),
    "stall_ratio": ("share of time stalled", None),
    "played_s": ("time played", None),
    "video_s": ("length of the video", None),
    "picture_discards": ("discarded pictures", None),
    "pictures_flushed": ("flushed pictures", None),
    "download_s": ("time of a download", None),
    "qoe_linear": ("linear QoE", ("kb/s", 1.0)),
    "qoe_linear_per_segment": ("linear QoE per media segment", ("kb/s", 1.0)),
    "qoe_log": ("logarithmic QoE", None),
    "switches": ("bitrate switches", None),
    "impactful_switches": ("resolution switches", None),
    "switch_amplitude_bps": ("size of bitrate switches", None),
    "time_on_high_quality": ("share of time in high quality", None),
    "mean_used_bitrate_bps": ("mean of the bitrates used", None),
    "mean_buffer_s": ("mean buffer", None),
    "bytes": ("data", ("MB", 1e-6)),
    "copied_bytes": ("data sent again on another path", None),
    "metered_bytes": ("data on metered paths", None),
    "wasted_bytes": ("data never shown", None),
    "path_switches_new_data": ("path switches with new data", None),
    "longest_delivery_gap_s": ("longest gap in delivery", None),
    "longest_stall_s": ("longest stall", None),
    "reorder_delay_s": ("reordering delay", ("ms", 1e3)),
    "reorder_bytes_max": ("most data waiting for reordering", ("MB", 1e-6)),
    "receive_window_limited_s": ("time limited by the receive window", None),
    "scheduler_wait_s": ("time the scheduler waited", None),
    "rto_count": ("retransmission timeouts", None),
    "mean_cwnd_packets": ("mean congestion window", None),
    "mean_srtt_s": ("mean round trip", ("ms", 1e3)),
    "queue_delay_s": ("queueing delay", ("ms", 1e3)),
    "lateness_s": ("lateness", ("ms", 1e3)),
    "drops_queue": ("packets dropped by the queue", None),
    "drops_random": ("packets lost at random", None),
    "drops_outage": ("packets lost in outages", None),
    "drops_too_big": ("packets dropped as too big", None),
    "total_window.mean_packets": ("mean total window", ("packets", 1.0)),
    "total_window.variation": ("variation of the total window", None),
    "seed_matters": ("whether the seed matters", None),
    "sim_seconds": ("simulated time", ("s", 1.0)),
    "segments_sent": ("segments sent", None),
    "rtt": ("round trip", None),
    "congestion_control": ("congestion control", None),
}
# The last part of a key that is a statistic of what stands before it.
_STATISTICS = {
    "mean": "mean {}",
    "max": "largest {}",
    "p50": "median {}",
    "p95": "{}, 95th percentile",
    "p99": "{}, 99th percentile",
    "p999": "{}, 99.9th percentile",
}
_INDEX = "jain_"
# Groups whose second part names a thing: what stands behind it is "of" that thing.
_OF_THINGS = ("subflows", "links", "link", "path")


def of_metric(key: str) -> Quantity:
    """What a metric is called and in which unit it is shown.

    Args:
        key: A column of a sweep's tables, such as ``reorder_delay_s.p95`` or ``subflows.wifi.goodput_bps``; also one
            that a reducer made, whose name is read by its ending.
    """
    group, *inner = key.split(".")
    if (cause := causes.of_column(key)) is not None:
        return Quantity(key, f"link time: {causes.SHORT[cause]}", "%", 100.0)
    if group in _OF_THINGS and len(inner) >= 2:
        thing, rest = inner[0], inner[1:]
        if group == "links" and len(rest) >= 2:
            thing, rest = f"{thing}, {rest[0]}", rest[1:]
        part = of_metric(".".join(rest))
        return Quantity(key, f"{part.name} of {thing}", part.unit, part.scale)
    if group == "traffic" and len(inner) >= 2:
        part = of_metric(".".join(inner[1:]))
        return Quantity(key, f"{part.name} of cross traffic {inner[0]}", part.unit, part.scale)
    if group in ("run", "fairness", "live") and inner:
        part = of_metric(".".join(inner))
        return Quantity(key, part.name, part.unit, part.scale)
    if group == "control_counts" and inner:
        return Quantity(key, ".".join(inner).replace("_", " "))
    if key in _NAMES or len(inner) != 1 or inner[0] not in _STATISTICS:
        return _plain(key)
    part = of_metric(group)
    return Quantity(key, _STATISTICS[inner[0]].format(part.name), part.unit, part.scale)


def _plain(key: str) -> Quantity:
    """A key without groups."""
    ending, unit, scale = next((each for each in _UNITS if key.endswith(each[0])), ("", "", 1.0))
    name, own = _NAMES.get(key, (None, None))
    if name is None:
        words = key.removesuffix(ending).replace("_", " ").replace(".", " ")
        if key.startswith(_INDEX):
            return Quantity(key, f"Jain's index of {of_metric(key.removeprefix(_INDEX)).name}")
        return Quantity(key, words, unit, scale)
    unit, scale = own or (unit, scale)
    return Quantity(key, name, unit, scale)


def of_keys(keys: Sequence[str]) -> dict[str, str]:
    """The names of a scenario's keys, such as the axes of a plan.

    Returns:
        For each key a name in words that no other of them has; where words cannot tell two keys apart, both keep as
        much of the key as tells them apart.
    """
    names = {key: _of_key(key) for key in keys}
    shortest = endings(keys)
    return {key: name if list(names.values()).count(name) == 1 else shortest[key] for key, name in names.items()}


def _of_key(key: str) -> str:
    # The kind of something is what people call it by: `session.0.player.kind` is the player.
    parts = key.removesuffix(".kind").split(".")
    name, _ = _NAMES.get(parts[-1], (None, None))
    words = name or parts[-1].replace("_", " ")
    return f"{words} of {parts[1]}" if parts[0] in _OF_THINGS and len(parts) > 2 else words


def endings(keys: Sequence[str]) -> dict[str, str]:
    """The shortest ending of each key that no other of them has: ``scheduler`` for ``transport.scheduler``."""
    names = {}
    for key in keys:
        parts = key.split(".")
        tails = [".".join(parts[-length:]) for length in range(1, len(parts) + 1)]
        others = [other for other in keys if other != key]
        names[key] = next((e for e in tails if not any(f".{o}".endswith(f".{e}") for o in others)), key)
    return names
