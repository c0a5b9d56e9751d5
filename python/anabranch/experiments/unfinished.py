"""Sessions that never started or were cut off: what they count for, so that no condition gets better by failing.

Their metrics count until the end of the run only: a video that never starts has no stall. In a comparison the rest of
a video counts, too: it should have played.
"""

from __future__ import annotations

import polars as pl

from anabranch.errors import InputError
from anabranch.experiments.contrast_spec import Contrast, Unfinished
from anabranch.wording import quantities
from anabranch.wording.summary import plural

_CUT_OFF = "cut_off"
# The part of the video that was not seen counts as frozen. Of these columns the rest is known.
_UNSEEN = pl.col("video_s") - pl.col("played_s")
_KNOWN = {
    "stall_s": pl.col("stall_s") + _UNSEEN,
    "longest_stall_s": pl.max_horizontal("longest_stall_s", _UNSEEN),
    "stalls": pl.max_horizontal("stalls", pl.lit(1)),
    "mean_bitrate_bps": pl.col("mean_bitrate_bps").fill_null(0.0) * pl.col("played_s") / pl.col("video_s"),
    "played_s": pl.col("played_s"),
}


def counted(rows: pl.DataFrame, contrast: Contrast) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows with the values that a comparison takes, and what should be known of them, in sentences.

    Raises:
        InputError: A session is not finished, and the plan allows none.
    """
    if _CUT_OFF not in rows.columns:
        return rows, ()
    cut = pl.col(_CUT_OFF).fill_null(value=False)
    number = rows.filter(cut).height
    if not number:
        return rows, ()
    text = f"{number} of {plural(rows.height, 'session')} {'was' if number == 1 else 'were'} cut off"
    if {"video_s", "played_s"} <= set(rows.columns):
        never = rows.filter(cut & pl.col("video_s").is_not_null() & (pl.col("played_s") == 0)).height
        text += f" ({never} of them never started)" if never else ""
    match contrast.unfinished:
        case Unfinished.ERROR:
            raise InputError(f'{text}, and the plan says never_started = "error"; expected a longer `duration`')
        case Unfinished.EXCLUDE:
            return rows.with_columns(pl.when(cut).then(None).otherwise(contrast.metric).alias(contrast.metric)), (
                f"{text} and {'is' if number == 1 else 'are'} left out, as the plan says",
            )
        case Unfinished.WORST:
            return _worst(rows, contrast, cut), (f"{text} and {_count(number)} as the worst session, as the plan says",)
    if not {"video_s", "played_s"} <= set(rows.columns):
        return rows, (f"{text} and {_count(number)} until then",)
    return _to_the_end(rows, contrast, cut, text, number)


def _to_the_end(
    rows: pl.DataFrame, contrast: Contrast, cut: pl.Expr, text: str, number: int
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Until the end of what should have played, as far as that is known."""
    cut = cut & pl.col("video_s").is_not_null()
    if not rows.filter(cut).height:
        return rows, (f"{text} and {_count(number)} until then",)
    if contrast.metric in _KNOWN:
        value = pl.when(cut).then(_KNOWN[contrast.metric]).otherwise(contrast.metric)
        what = f"; what they did not play counts in the {quantities.of_metric(contrast.metric).name}"
        return rows.with_columns(value.cast(pl.Float64).alias(contrast.metric)), (f"{text}{what}",)
    if rows.filter(~cut).height:
        return _worst(rows, contrast, cut), (
            f"{text} and {_count(number)} as the worst session in {quantities.of_metric(contrast.metric).name}",
        )
    # The run is too short for every video: then all are measured over the same time, but for those that never started.
    never = cut & (pl.col("played_s") == 0)
    return _worst(rows, contrast, never), (f"{text} and {_count(number)} until then: no video was played to its end",)


def _count(number: int) -> str:
    return "counts" if number == 1 else "count"


def _worst(rows: pl.DataFrame, contrast: Contrast, chosen: pl.Expr) -> pl.DataFrame:
    """The worst value of any session in the place of those of some."""
    values = rows[contrast.metric].cast(pl.Float64)
    worst = values.min() if contrast.higher_is_better else values.max()
    return rows.with_columns(
        pl.when(chosen).then(pl.lit(worst, dtype=pl.Float64)).otherwise(pl.col(contrast.metric)).alias(contrast.metric)
    )
