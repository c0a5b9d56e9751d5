"""Figures of sessions, of runs and of comparisons, made with matplotlib from recordings and metrics alone."""

from anabranch.figures.comparison import compare
from anabranch.figures.run import draw_run
from anabranch.figures.session import draw_session

__all__ = ["compare", "draw_run", "draw_session"]
