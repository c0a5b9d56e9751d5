"""Tables of Markdown, and the parts of pages that programs write."""

import pytest

from anabranch import InputError
from anabranch.wording import markdown


def test_columns_of_numbers_are_aligned_to_the_right() -> None:
    assert markdown.table(("a", "b"), [["x\n y", "1"]], texts=1) == "| a | b |\n| --- | ---: |\n| x y | 1 |"
    assert markdown.table(("a", "b"), []) == "| a | b |\n| --- | --- |"


def test_only_what_is_between_the_marks_is_replaced() -> None:
    page = "before\n<!-- begin a -->\nold\n<!-- end a -->\n<!-- begin b -->kept<!-- end b -->\n"
    after = "before\n<!-- begin a -->\n\nnew\n\n<!-- end a -->\n<!-- begin b -->kept<!-- end b -->\n"
    assert markdown.replaced(page, "a", "new\n") == after
    assert markdown.replaced(after, "a", "new") == after, "written twice, it is the same"


@pytest.mark.parametrize("page", ["", "<!-- begin a -->", "<!-- end a --><!-- begin a -->"])
def test_a_page_without_both_marks_in_order_is_refused(page: str) -> None:
    with pytest.raises(InputError, match="no marks <!-- begin a --> and <!-- end a -->"):
        markdown.replaced(page, "a", "new")
