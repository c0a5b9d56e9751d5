"""The MPD that ffmpeg wrote, brought up to what a player and the simulator should read in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, takewhile
from pathlib import Path
from xml.etree import ElementTree

INIT_NAME = "init-$RepresentationID$.mp4"
MEDIA_NAME = "media-$RepresentationID$-$Number%05d$.m4s"

_DASH = "urn:mpeg:dash:schema:mpd:2011"
# Elements of another namespace may stand in a Representation (ISO/IEC 23009-1, 5.3.7.3); players ignore them. The name
# is that of AStream, which had no namespace for it; our own reader takes sizes from it.
_SIZES = "urn:anabranch:segment-sizes"
_NAMESPACES = {
    "": _DASH,
    "sizes": _SIZES,
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "xlink": "http://www.w3.org/1999/xlink",
}


def finish(file: Path, rates_bps: Sequence[int]) -> list[list[int]]:
    """States the target rates as bandwidths, as the scenario does, and the size of every media segment.

    Args:
        file: The MPD, next to its media segments.
        rates_bps: For each representation, bit/s.

    Returns:
        For each representation, the bytes of its media segments.
    """
    for prefix, uri in _NAMESPACES.items():
        ElementTree.register_namespace(prefix, uri)
    tree = ElementTree.parse(file)
    representations = list(tree.iter(f"{{{_DASH}}}Representation"))
    sizes = []
    for rank, (element, rate) in enumerate(zip(representations, rates_bps, strict=True)):
        element.set("bandwidth", str(rate))
        sizes.append(_sizes(file.parent, rank))
        for number, size in enumerate(sizes[-1]):
            attributes = {"id": f"{rank}-{number + 1}", "size": str(size), "scale": "bytes"}
            element.insert(number, ElementTree.Element(f"{{{_SIZES}}}SegmentSize", attributes))
    ElementTree.indent(tree)
    tree.write(file, encoding="utf-8", xml_declaration=True)
    return sizes


def _sizes(directory: Path, rank: int) -> list[int]:
    """Bytes of the media segments of a representation, in order."""
    files = (directory / f"media-{rank}-{number:05}.m4s" for number in count(1))
    return [file.stat().st_size for file in takewhile(Path.is_file, files)]
