"""Pictures of sessions and of comparisons, made with matplotlib from recordings alone."""

from anabranch.figures.comparison import compare
from anabranch.figures.session import draw_session

__all__ = ["compare", "draw_session"]
