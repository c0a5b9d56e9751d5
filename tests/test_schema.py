"""The JSON Schema of scenarios agrees with the reader: what one accepts or refuses, the other does, too."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from anabranch import InputError, _core
from conftest import Run

NETWORK = 'schema = 1\nduration = "9 s"\n[link.a]\nrate = "2 Mb/s"\n'
BULK = NETWORK + "[[session]]\n"
DASH = BULK + 'video = { kind = "dash", ladder = "bbb-1s" }\n'
RATES = 'rates = ["800 kb/s", "2.4 Mb/s"], segment_duration = "4 s", duration = "10 s"'
PROGRESSIVE = BULK + 'video = { kind = "progressive", size = "1 MB", rate = "1 Mb/s" }\n'


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_core.scenario_schema())
    Draft202012Validator.check_schema(found)
    return found


@pytest.fixture(scope="module")
def accepts(schema: dict[str, Any]) -> Callable[[str], bool]:
    validator = Draft202012Validator(schema)
    return lambda text: validator.is_valid(tomllib.loads(text))


def load(text: str, *overrides: tuple[str, str]) -> _core.Scenario:
    return _core.load(text, name="x.toml", directory=None, overrides=overrides)


@pytest.mark.parametrize("name", [entry[1] for entry in _core.registry() if entry[0] == "scenarios"])
def test_every_shipped_scenario_is_valid_as_written_and_as_resolved(name: str, schema: dict[str, Any]) -> None:
    text = _core.shipped(name)
    assert text is not None
    resolved = _core.load(text, name=name, directory=None, overrides=()).resolved
    for document in (text, resolved):
        errors = [error.message for error in Draft202012Validator(schema).iter_errors(tomllib.loads(document))]
        assert not errors, f"{name}: {errors[:3]}"


SHORT_AND_LONG_FORMS = [
    NETWORK.replace('rate = "2 Mb/s"', 'rate = { rate = "2 Mb/s", burst = "15 kB" }\nrtt = "10 ms"') + "[[session]]\n",
    NETWORK + 'queue = "50 packets"\nloss = { kind = "every-nth", n = 100 }\nup = { loss = "1 %" }\n[[session]]\n',
    NETWORK.replace('rate = "2 Mb/s"', 'rate = { synthetic = "lte", mean = "9 Mb/s" }') + "[[session]]\n",
    BULK + 'transport = { kernel = "upstream", congestion_control = { name = "cubic", constants = "rfc9438" } }\n',
    DASH + 'player = { kind = "dash.js-5", buffer = "12 s", max_resolution = "1280x720" }\nstatistics = {}\n',
    DASH.replace('ladder = "bbb-1s"', RATES + ', resolutions = ["640x360", "1280x720"]'),
    PROGRESSIVE.replace('rate = "1 Mb/s"', 'rate = "1 Mb/s", fps = "24000/1001"') + 'player = "vlc-2"\n',
    BULK + '[[event]]\nat = "1 s"\nlink = "a"\ndown = true\n[[event]]\nat = "2 s"\nlink = "a"\nrate = "1 Mb/s"\n',
    BULK + '[[event]]\nat = "1 s"\npath = "a"\ndown = false\n[transport]\nreceive_buffer = "1 MB"\n',
]


@pytest.mark.parametrize("text", SHORT_AND_LONG_FORMS)
def test_short_and_long_forms_are_accepted(text: str, accepts: Callable[[str], bool]) -> None:
    load(text)
    assert accepts(text)


WRONG = [
    BULK.replace("rate", "raet"),
    BULK.replace("2 Mb/s", "2 Mbps"),
    BULK.replace('"2 Mb/s"', "2"),
    BULK.replace("duration", "#duration"),
    BULK + "cuont = 2\n",
    BULK + "count = 0\n",
    BULK + 'transport = { scheduler = "minrtt" }\n',
    BULK + 'transport = { kernel = "upstraem" }\n',
    BULK + 'video = { kind = "bluk" }\n',
    BULK + 'player = "vcl"\n',
    DASH + 'player = { kind = "bola", fniite = true }\n',
    BULK + '[[event]]\nat = "1 s"\nlink = "a"\ndwon = true\n',
    NETWORK + 'queue = { kind = "red", limit = "9 kB", gentel = true }\n[[session]]\n',
    NETWORK + 'queue = { kind = "redd", limit = "9 kB" }\n[[session]]\n',
    NETWORK + 'loss = { kind = "gilbert-elliott", good_to_bad = "1 %" }\n[[session]]\n',
]


@pytest.mark.parametrize("text", WRONG)
def test_what_the_reader_refuses_an_editor_marks(text: str, accepts: Callable[[str], bool]) -> None:
    with pytest.raises(InputError, match=r"^x\.toml:\d+:\d+: .+"):
        load(text)
    assert not accepts(text)


# Where the keys of a type are in a scenario: the scenario, and the way to the table.
PLACES = {
    "Transport": (BULK, "transport"),
    "Session": (BULK, "session.0"),
    "Event": (BULK + '[[event]]\nat = "1 s"\nsession = 0\nreads = false\n', "event.0"),
    "Path": (NETWORK + '[path.p]\nlinks = ["a"]\n[[session]]\n', "path.p"),
    "Traffic": (NETWORK + '[[traffic]]\npath = "a"\n', "traffic.0"),
    "Progressive": (PROGRESSIVE, "session.0.video"),
    "Dash": (DASH, "session.0.video"),
    "Statistics": (DASH, "session.0.statistics"),
    "Player": (DASH, "session.0.player"),
    "Red": (NETWORK + 'queue = { kind = "red", limit = "99 kB" }\n[[session]]\n', "link.a.queue"),
    "EveryNth": (NETWORK + 'loss = { kind = "every-nth", n = 9 }\n[[session]]\n', "link.a.loss"),
    "Gamma": (
        NETWORK + 'jitter = { kind = "gamma", mean = "1 ms", shape = 2 }\n[[session]]\n',
        "link.a.jitter",
    ),
    "Synthetic": (
        NETWORK.replace('"2 Mb/s"', '{ synthetic = "lte", mean = "9 Mb/s" }') + "[[session]]\n",
        "link.a.rate",
    ),
    "Trace": (NETWORK.replace('"2 Mb/s"', '{ trace = "none.csv" }') + "[[session]]\n", "link.a.rate"),
}


def test_the_ranges_of_the_schema_are_the_readers(schema: dict[str, Any]) -> None:
    checked = 0
    for name, definition in schema["$defs"].items():
        for key, about in definition.get("properties", {}).items():
            bounds = {way: about[way] for way in ("minimum", "maximum") if way in about}
            # Whole numbers of Rust have ranges of their own, which no scenario reaches.
            bounds = {way: bound for way, bound in bounds.items() if abs(bound) < 2**63}
            if not bounds or name not in PLACES:
                assert not bounds or name == "Fps" or name not in schema["$defs"], f"{name}.{key} has no place here"
                continue
            text, table = PLACES[name]
            for way, bound in bounds.items():
                beyond = bound - 1 if way == "minimum" else bound + 1
                with pytest.raises(InputError, match=rf"`{key}` is {beyond}; expected"):
                    load(text, (f"{table}.{key}", str(beyond)))
                checked += 1
    assert checked > 30


def test_the_command_prints_it_or_writes_it(anabranch: Run, tmp_path: Path, schema: dict[str, Any]) -> None:
    printed = anabranch("schema")
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout) == schema
    written = anabranch("schema", "--out", str(tmp_path / "anabranch.schema.json"))
    assert written.returncode == 0, written.stderr
    assert json.loads((tmp_path / "anabranch.schema.json").read_text()) == schema


def test_every_key_says_what_it_means(schema: dict[str, Any]) -> None:
    undocumented = [
        f"{name}.{key}"
        for name, definition in schema["$defs"].items()
        for key, about in definition.get("properties", {}).items()
        if not about.get("description") and key != "kind"
    ]
    assert not undocumented
