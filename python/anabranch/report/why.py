"""Why a session stalled, or was not faster: its link time by cause, as the page's program reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.errors import InputError
from anabranch.report import shares
from anabranch.report.document import Bar
from anabranch.runs import explanation
from anabranch.runs.explanation import Explanation, Made
from anabranch.runs.runfolder import StoredRun
from anabranch.wording import causes
from anabranch.wording.summary import plural

MOST_STALLS = 30
"""More stalls of a session are counted and not explained: they are too many to read."""


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
        ``note``, a sentence where something is to be said, and the bars of the whole session and of each stall, as
        `anabranch.report.shares.packed` has them.
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
    known = shares.Causes()
    bars = [_bar(each, known) for each in found]
    return {"note": note, **shares.packed(bars, known.fillings())}


def _bar(found: Explanation, known: shares.Causes) -> Bar:
    rate = found.possible_bits / found.due_s / 1e6 if found.due_s else 0.0
    due = f"for {found.due_s:.2f} s a response was due, and the links could have carried {rate:.2f} Mb/s"
    if found.buffer_s is not None:
        due = f"from {found.begin_s:.1f} s on the buffer fell from {found.buffer_s:.1f} s to nothing; {due}"
    parts = [(part.cause, part.share, f"{part.path}: {causes.phrase(part.cause, part.by)}") for part in found.parts]
    pieces = known.pieces(found.useful_share, parts)
    return Bar(found.question, pieces, f"{due[0].upper()}{due[1:]}.", (found.begin_s, found.end_s))
