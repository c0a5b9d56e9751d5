"""The fonts of figures, also for names in Chinese, Japanese and Korean; one sentence where no font has a letter."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from matplotlib.font_manager import fontManager

FAMILY = "DejaVu Sans"
"""The font of all other letters, which comes with matplotlib."""

PACKAGE = "fonts-noto-cjk"
"""The Debian package of the first of the fonts below."""

# Sans-serif fonts with Chinese, Japanese or Korean letters that systems usually have, those with all three first.
_FALLBACKS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "Noto Sans JP",
    "Noto Sans SC",
    "Noto Sans KR",
    "Droid Sans Fallback",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "IPAexGothic",
    "IPAGothic",
    "TakaoGothic",
    "VL Gothic",
    "NanumGothic",
    "UnDotum",
    "Unifont",
)
# Where that package puts its fonts. Matplotlib lists a machine's fonts once, and does not see what is installed later.
_FILES = tuple(Path("/usr/share/fonts/opentype/noto") / f"NotoSansCJK-{weight}.ttc" for weight in ("Regular", "Bold"))

_MISSING = r"Glyph (\d+) .*missing from"
_MOST_NAMED = 3

_log = logging.getLogger("anabranch")
_told: set[str] = set()


def families() -> list[str]:
    """The fonts that a letter is looked for in, in this order: that of the project, then installed fallbacks."""
    return [FAMILY, *_installed(_FILES)]


@lru_cache(maxsize=4)
def _installed(files: tuple[Path, ...]) -> tuple[str, ...]:
    known = {font.name for font in fontManager.ttflist}
    if known.isdisjoint(_FALLBACKS):
        for file in filter(Path.is_file, files):
            fontManager.addfont(file)
        known = {font.name for font in fontManager.ttflist}
    return tuple(name for name in _FALLBACKS if name in known)


@contextmanager
def quiet() -> Iterator[dict[str, None]]:
    """Without matplotlib's warnings, one per letter that no font has; with `-W error` these would end the figure.

    Yields:
        The letters that were missing, in their order, as keys.
    """
    missing: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("always", message=_MISSING)
        shown = warnings.showwarning

        def show(message: Warning | str, *where: Any, **more: Any) -> None:
            if found := re.match(_MISSING, str(message)):
                missing[chr(int(found[1]))] = None
            else:
                shown(message, *where, **more)

        warnings.showwarning = show
        yield missing


@contextmanager
def one_notice() -> Iterator[None]:
    """The same, and the first figure with missing letters says so in one sentence to the log `anabranch`."""
    with quiet() as missing:
        yield
    if missing and not _told:
        _told.update(missing)
        _log.warning(notice(missing))


def notice(missing: Iterable[str]) -> str:
    """The sentence about letters that no installed font has."""
    letters = list(missing)
    more = len(letters) - _MOST_NAMED
    named = ", ".join(letters[:_MOST_NAMED]) + (f" and {more} more letters" if more > 0 else "")
    return (
        f"no installed font has {named}: figures show boxes in their place; "
        f"the Debian package {PACKAGE} has the letters of Chinese, Japanese and Korean"
    )
