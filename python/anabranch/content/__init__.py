"""Real video for live runs: synthetic pictures, encoded by ffmpeg at the rates that an experiment asks for."""

from anabranch.content.make import Made, Measured, cached, make
from anabranch.content.plan import FPS, Container, Film, Ladder, Rendition, film, ladder, of_scenario

__all__ = [
    "FPS",
    "Container",
    "Film",
    "Ladder",
    "Made",
    "Measured",
    "Rendition",
    "cached",
    "film",
    "ladder",
    "make",
    "of_scenario",
]
