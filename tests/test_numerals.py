import math
import re

import pytest

from anabranch.wording import numerals, summary


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.8, 0.803], ["0.800", "0.803"]),
        ([5.24, 0.8, None], ["5.24", "0.80", "-"]),
        ([433.12, 0.8], ["433", "1"]),
        ([9.996, 1.0], ["10.0", "1.0"]),
        ([0.0, 0.0], ["0", "0"]),
        ([-0.3, 120.0], ["0", "120"]),
        ([1234567.0], ["1234567"]),
        ([None], ["-"]),
        ([], []),
    ],
)
def test_a_column_has_one_precision(values: list[float | None], texts: list[str]) -> None:
    assert numerals.column(values) == texts


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (612.3, 131.2, "612 ± 131"),
        (612.3, 1.3, "612.3 ± 1.3"),
        (0.8, 0.123, "0.80 ± 0.12"),
        (-40.0, 318.0, "-40 ± 318"),
        (500.0, 0.0, "500.0 ± 0.0"),
        (0.0, 0.0, "0 ± 0"),
        (-0.3, 63.0, "0 ± 63"),
        (0.8, None, "0.800 ± ?"),
        (0.8, math.inf, "0.800 ± ?"),
    ],
)
def test_a_mean_and_its_half_width_share_their_decimals(mean: float, half: float | None, text: str) -> None:
    assert numerals.plus_minus(mean, half) == text


def test_numbers_of_the_summary_are_what_programs_read() -> None:
    texts = [summary.count(1234567), summary.megabits(803e3), summary.megabits(800e3), summary.megabits(5.24e9)]
    assert texts == ["1234567", "0.803 Mb/s", "0.800 Mb/s", "5.24 Gb/s"]
    assert [summary.seconds(value) for value in (None, 0.0, 0.0123, 1.0, 123.4)] == [
        "-",
        "0 s",
        "12.3 ms",
        "1.0 s",
        "123 s",
    ]
    assert all(re.fullmatch(r"[\x21-\x7e]+( [\x21-\x7e]+)?", text) for text in texts), "no special spaces"
