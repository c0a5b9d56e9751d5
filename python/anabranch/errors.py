"""The error that a wrong input raises: a leaf, which every other module may import."""

from anabranch._core import InputError

__all__ = ["InputError"]
