"""Why a session stalled, or was not faster: its link time by cause, as the page's program reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.errors import InputError
from anabranch.results import linktime
from anabranch.runs import explanation
from anabranch.runs.explanation import Explanation, Made
from anabranch.runs.runfolder import StoredRun
from anabranch.wording import causes
from anabranch.wording.summary import plural

MOST_STALLS = 30
"""More stalls of a session are counted and not explained: nobody reads as many."""

_LEAST_SHARE = 0.01
"""A part with less than this share of what was possible is summed with the others that are as small."""

_DIGITS = 4


def of_run(run: StoredRun) -> Made | str:
    """The run of a folder again, with an account; or why there is none."""
    try:
        return explanation.of_folder(run)
    except InputError as error:
        return str(error)


def of_session(made: Made | str, session: int) -> Mapping[str, Any]:
    """The panel of a session.

    Args:
        made: The run with its account; or why there is none.
        session: The session, counted from 0.

    Returns:
        ``note``, a sentence, where something is to be said; ``rows``, the whole session and each stall, with its parts;
        and ``causes``, to which parts point: the name, the colour and the hatches of each, and whether it is a sum.
    """
    if isinstance(made, str):
        return {"note": f"This session is not explained: {made}.", "causes": [], "rows": []}
    try:
        found = made.whole_and_stalls(session, MOST_STALLS)
    except InputError as error:
        return {"note": f"This session is not explained: {error}.", "causes": [], "rows": []}
    recorded = made.recorded(session)
    more = 0 if recorded is None else len(recorded.stalls_s) - (len(found) - 1)
    note = f"{plural(more, 'stall')} more: `anabranch explain --stall N` explains each." if more else ""
    known: dict[str, int] = {}
    rows = [_row(each, known) for each in found]
    return {"note": note, "causes": [_cause(key) for key in known], "rows": rows}


def _cause(key: str) -> list[str | bool]:
    """The name of a cause in two or three words, its colour, its hatches, and whether it is a sum of several."""
    from anabranch.figures import causes as figures

    name = "smaller parts" if key == figures.OTHERS else causes.SHORT[key]
    return [name, *figures.FILLINGS[key], key == figures.OTHERS]


def _row(found: Explanation, known: dict[str, int]) -> dict[str, Any]:
    from anabranch.figures import causes as figures

    rate = found.possible_bits / found.due_s / 1e6 if found.due_s else 0.0
    due = f"for {found.due_s:.2f} s a response was due, and the links could have carried {rate:.2f} Mb/s"
    if found.buffer_s is not None:
        due = f"from {found.begin_s:.1f} s on the buffer fell from {found.buffer_s:.1f} s to nothing; {due}"
    listed = [part for part in found.parts if part.share >= _LEAST_SHARE]
    # Parts of one cause stand together in the bar.
    listed.sort(key=lambda part: (-found.causes[part.cause], part.cause, -part.share))
    parts = [(linktime.USEFUL, found.useful_share, "new data")]
    parts += [(part.cause, part.share, f"{part.path}: {causes.phrase(part.cause, part.by)}") for part in listed]
    rest = [part.share for part in found.parts if part.share < _LEAST_SHARE]
    if rest:
        parts.append((figures.OTHERS, sum(rest), plural(len(rest), "smaller part")))
    return {
        "label": found.question,
        "said": f"{due[0].upper()}{due[1:]}.",
        "span": [round(found.begin_s, 3), round(found.end_s, 3)],
        "parts": [[known.setdefault(key, len(known)), round(share, _DIGITS), text] for key, share, text in parts],
    }
