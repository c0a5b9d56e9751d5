"""Tables of Markdown, and the parts of a page that a program writes."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.errors import InputError


def table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int | None = None) -> str:
    """A table whose first columns are texts, and the others numbers; all are texts where nothing is said.

    Args:
        head: The names of the columns.
        rows: The texts of each row, without `|`.
        texts: How many of the first columns are texts.
    """
    texts = len(head) if texts is None else texts
    lines = [head, ["---"] * texts + ["---:"] * (len(head) - texts), *rows]
    return "\n".join(f"| {' | '.join(' '.join(field.split()) for field in line)} |" for line in lines)


def replaced(page: str, name: str, text: str) -> str:
    """The page with this text between the marks of that name.

    Raises:
        InputError: It has no such marks.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    head, _, rest = page.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise InputError(f"the page has no marks {begin} and {end}")
    return f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}"
