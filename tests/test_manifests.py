"""Manifests as packagers write them, read by us and by another reader: ElementTree and fractions, no code of ours."""

from __future__ import annotations

import random
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import anabranch
from anabranch import InputError
from anabranch.runs.reading import load

FOLDER = Path(__file__).parent / "manifests"
EXPECTED = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
NAMES = sorted(path.name for path in FOLDER.glob("*.mpd"))


def _scenario(mpd: Path, keys: str = "") -> Any:
    video = f'{{ kind = "dash", mpd = "{mpd}"{keys} }}'
    head = 'schema = 1\nduration = "60 s"\n[link.a]\nrate = "20 Mb/s"\nrtt = "20 ms"\n'
    scenario = mpd.parent / "session.toml"
    scenario.write_text(f"{head}[[session]]\nvideo = {video}\n", encoding="utf-8")
    return scenario


@pytest.fixture
def mpd(tmp_path: Path) -> Any:
    """Copies a manifest of the folder, or writes one."""

    def place(content: str | bytes) -> Path:
        file = tmp_path / "a.mpd"
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_bytes((FOLDER / content).read_bytes())
        return file

    return place


def _children(element: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [child for child in element if child.tag.rpartition("}")[2] == name]


def _seconds(text: str) -> Fraction:
    """An xs:duration of hours, minutes and seconds."""
    total, number = Fraction(0), ""
    for letter in text.removeprefix("PT"):
        if letter in "HMS":
            total, number = total + Fraction(number) * {"H": 3600, "M": 60, "S": 1}[letter], ""
        else:
            number += letter
    return total


def _template(levels: list[ElementTree.Element]) -> tuple[dict[str, str], list[ElementTree.Element]]:
    """The attributes and the S elements of a SegmentTemplate, inner ones first."""
    attributes: dict[str, str] = {}
    runs: list[ElementTree.Element] = []
    for level in levels:
        for template in _children(level, "SegmentTemplate"):
            attributes = {**template.attrib, **attributes}
            for timeline in _children(template, "SegmentTimeline"):
                runs = runs or _children(timeline, "S")
    return attributes, runs


def _segments(levels: list[ElementTree.Element], length: Fraction | None) -> list[Fraction]:
    """What is played of each media segment in a period."""
    attributes, runs = _template(levels)
    scale = int(attributes.get("timescale", 1))
    if not runs:
        assert length is not None
        part = Fraction(int(attributes["duration"]), scale)
        return [min(part, length - k * part) for k in range(-(-length // part))]
    begin = Fraction(int(attributes.get("presentationTimeOffset", 0)), scale)
    end = None if length is None else begin + length
    at, played = Fraction(0), []
    for run in runs:
        at = Fraction(int(run.get("t", at * scale)), scale)
        for _ in range(int(run.get("r", 0)) + 1):
            after = at + Fraction(int(run.attrib["d"]), scale)
            inside = (after if end is None else min(after, end)) - max(at, begin)
            if inside > 0:
                played.append(inside)
            at = after
    return played


def _read(content: bytes) -> tuple[list[Fraction], list[int]]:
    """Media segments, and the rates of the videos that are not essentially something else."""
    root = ElementTree.fromstring(content)
    periods = _children(root, "Period")
    played: list[Fraction] = []
    rates: set[int] = set()
    for n, period in enumerate(periods):
        length = _seconds(period.attrib["duration"]) if "duration" in period.attrib else None
        whole = root.get("mediaPresentationDuration")
        if length is None and whole is not None and n == len(periods) - 1:
            length = _seconds(whole) - _seconds(period.get("start", "PT0S"))
        sets = [one for one in _children(period, "AdaptationSet") if not _children(one, "EssentialProperty")]
        for position, one in enumerate(sets):
            representations = _children(one, "Representation")
            rates.update(int(representation.attrib["bandwidth"]) for representation in representations)
            if position == 0:
                played += _segments([representations[0], one, period], length)
    return played, sorted(rates)


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_read_as_an_independent_reader_reads_it(name: str, mpd: Any) -> None:
    file = mpd(name)
    (video,) = load(_scenario(file)).videos()
    played, rates = _read(file.read_bytes())
    assert video["segments"] == len(played)
    assert video["duration_s"] == pytest.approx(float(sum(played)), abs=1e-6)
    assert [rate for rate, _ in video["representations"]] == rates


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_has_its_expected_value(name: str, mpd: Any) -> None:
    expected, file = EXPECTED["manifests"][name], mpd(name)
    loaded = load(_scenario(file))
    (video,) = loaded.videos()
    assert video["segments"] == expected.get("media_segments", video["segments"])
    assert [rate for rate, _ in video["representations"]] == expected.get(
        "representations", [rate for rate, _ in video["representations"]]
    )
    if "played" in expected:
        assert f"{video['duration_s']:g} s" == expected["played"]
    if "with_duration_60_s" in expected:
        (minute,) = load(_scenario(file, ', duration = "60 s"')).videos()
        assert minute["segments"] == expected["with_duration_60_s"]
    if "warned" in expected:
        assert [kind for kind, _ in loaded.warnings] == ["manifest"]
        assert expected["warned"] in loaded.warnings[0][1]
        assert "a.mpd:1:515" in loaded.warnings[0][1]
    if "sizes" in expected:
        segments = anabranch.run(_scenario(file)).metrics["sessions"][0]["media_segments"]
        assert segments is not None
        assert [segment["bytes"] for segment in segments] == expected["sizes"]


def test_every_input_is_expected() -> None:
    assert sorted(EXPECTED["manifests"]) == NAMES


def _random_mpd(draw: random.Random) -> bytes:
    """One to three periods of timelines, some of which begin before their period or have holes."""
    text = '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011">\n'
    for n in range(draw.randint(1, 3)):
        scale = draw.choice((1000, 12800, 44100, 90000))
        runs, at = "", 0
        for _ in range(draw.randint(1, 6)):
            jump = draw.choice((0, 0, 0, scale * draw.randint(1, 9)))
            at += jump
            ticks, repeats = draw.randint(scale, 6 * scale), draw.randint(0, 9)
            runs += f'<S t="{at}" d="{ticks}" r="{repeats}"/>' if jump else f'<S d="{ticks}" r="{repeats}"/>'
            at += ticks * (repeats + 1)
        offset = draw.choice((0, draw.randint(0, at // 2)))
        length = Fraction(draw.randint(scale, 2 * at), scale)
        text += (
            f'<Period id="p{n}" duration="PT{float(length):.3f}S"><AdaptationSet contentType="video"><SegmentTemplate '
            f'timescale="{scale}" presentationTimeOffset="{offset}" media="$Time$.m4s"><SegmentTimeline>{runs}'
            '</SegmentTimeline></SegmentTemplate><Representation bandwidth="500000"/></AdaptationSet></Period>\n'
        )
    return f"{text}</MPD>\n".encode()


@pytest.mark.parametrize("seed", range(40))
def test_random_timelines_are_read_as_an_independent_reader_reads_them(seed: int, mpd: Any) -> None:
    content = _random_mpd(random.Random(seed))
    played, _ = _read(content)
    # A period ends at a whole tick, so what is shorter than one may be missing.
    played = [duration for duration in played if duration > Fraction(1, 1000)]
    scenario = _scenario(mpd(content))
    if not played:
        with pytest.raises(InputError, match="no video"):
            load(scenario)
        return
    (video,) = load(scenario).videos()
    assert video["duration_s"] == pytest.approx(float(sum(played)), abs=1e-3)
    assert abs(video["segments"] - len(played)) <= content.count(b"<Period")


@pytest.mark.parametrize(
    ("label", "encoding"),
    [
        ("ISO-8859-1", "latin-1"),
        ("windows-1252", "cp1252"),
        ("UTF-16", "utf-16"),
        ("utf-16", "utf-16-be"),
        ("utf-8", "utf-8-sig"),
    ],
)
def test_the_declared_encoding_is_read(label: str, encoding: str, mpd: Any) -> None:
    text = (FOLDER / "latin1.mpd").read_text(encoding="latin-1").replace("ISO-8859-1", label)
    (video,) = load(_scenario(mpd(text.encode(encoding)))).videos()
    assert video["segments"] == 30


@pytest.mark.parametrize(
    ("change", "line", "parts"),
    [
        (("ISO-8859-1", "UTF-8"), 1, ("byte 0xe9 is not UTF-8", "save the file as UTF-8")),
        (("ISO-8859-1", "x-klingon"), 1, ("x-klingon", "save the file as UTF-8")),
        (("$Number$", "all"), 1, ("(<SegmentTemplate>)", "$Number$")),
        (('bandwidth="300000"', ""), 1, ('(<Representation id="v1">)', "`bandwidth`")),
        (('duration="2000" ', 'duration="2 s" '), 1, ("(<SegmentTemplate>)", "whole number")),
        (('mimeType="video/mp4"', 'mimeType="audio/mp4"'), 1, ("(<Period>)", "has no video")),
        ((' mediaPresentationDuration="PT60S"', ""), 1, ('(<Representation id="v1">)', "give a `duration`")),
    ],
)
def test_a_refusal_names_file_line_element_and_remedy(
    change: tuple[str, str], line: int, parts: tuple[str, ...], mpd: Any
) -> None:
    text = (FOLDER / "latin1.mpd").read_text(encoding="latin-1").replace(*change)
    with pytest.raises(InputError) as error:
        load(_scenario(mpd(text.encode("latin-1"))))
    message = str(error.value)
    assert f"a.mpd:{line}:" in message
    assert all(part in message for part in parts), message


def test_what_is_run_is_warned_of(mpd: Any) -> None:
    with pytest.warns(UserWarning, match="AdaptationSets 1, 2 and 3 have the same codec"):
        run = anabranch.run(_scenario(mpd("set-each.mpd")))
    assert run.metrics["sessions"][0]["media_segments"]
