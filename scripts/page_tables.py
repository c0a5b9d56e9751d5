"""Tables of Markdown, their numbers, and the parts of a page that a script writes; other scripts import it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """A table whose first columns are texts, and the others numbers."""
    lines = [list(head), ["---"] * texts + ["---:"] * (len(head) - texts), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def interval(values: Sequence[float], digits: int = 2) -> str:
    """The mean with its 95 % interval (Student's t)."""
    count, mean = len(values), statistics.fmean(values)
    if count < 2:
        return f"{mean:.{digits}f}"
    # A process that only makes a run imports this file, and has no use for this.
    from scipy import stats

    half = float(stats.t.ppf(0.975, count - 1)) * statistics.stdev(values) / math.sqrt(count)
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def quantiles(times: Sequence[float]) -> str:
    """Median, 90th and 99th percentile, of nearest rank."""
    ordered = sorted(times)
    ranks = [max(math.ceil(share * len(ordered)), 1) - 1 for share in (0.5, 0.9, 0.99)]
    return " / ".join(f"{ordered[rank]:.0f}" for rank in ranks)


def replaced(page: str, name: str, text: str) -> str:
    """The page with this text between the marks of that name."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if begin not in page or end not in page:
        raise SystemExit(f"error: the page has no marks {begin} and {end}")
    head, _, rest = page.partition(begin)
    return f"{head}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"
