"""Tables of Markdown, and the parts of a page that a script writes; other scripts import it."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """A table whose first columns are texts, and the others numbers."""
    lines = [list(head), ["---"] * texts + ["---:"] * (len(head) - texts), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def replaced(page: str, name: str, text: str) -> str:
    """The page with this text between the marks of that name."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if begin not in page or end not in page:
        raise SystemExit(f"error: the page has no marks {begin} and {end}")
    head, _, rest = page.partition(begin)
    return f"{head}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"
