#!/usr/bin/env python3
"""Writes the types that Python has of scenarios and of metrics, from the schemas of the compiled part.

    make docs                                       # writes them, with the other generated pages
    .venv/bin/python scripts/python-types.py        # the same alone, with the package that is installed

`python/anabranch/tables.py` has a `TypedDict` for each table of a scenario, `python/anabranch/results/contract.py` a
class for each object of `metrics.json`. A test compares both with the schemas.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from anabranch import _core

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "anabranch"
WIDTH = 110

Schema = dict[str, Any]

# What a text with a unit is called, by how its description begins.
QUANTITIES = {
    "a time": ("TimeText", "A time with its unit, such as ``50 ms`` (ns, us, ms, s, min, h), or 0."),
    "a size": ("SizeText", "A size with its unit, such as ``64 kB`` (B, kB, MB, GB, KiB, MiB, GiB), or 0."),
    "a rate": ("RateText", "A rate with its unit, such as ``2 Mb/s`` (b/s, kb/s, Mb/s, Gb/s), ``unlimited``, or 0."),
    "a share": ("ShareText", "A share in percent, such as ``2 %``, or 0."),
}


def name_of(reference: str) -> str:
    """The definition that a reference names."""
    return reference.rpartition("/")[2]


def is_table(schema: Schema) -> bool:
    """Whether it describes an object with known keys."""
    return "properties" in schema


def is_choice(schema: Schema) -> bool:
    """Whether it is one of several words."""
    return all("const" in each for each in schema.get("oneOf", [{}]))


def literal(words: list[Any]) -> str:
    """One of these values."""
    return f"Literal[{', '.join(json.dumps(word) for word in words)}]"


def union(types: list[str]) -> str:
    """Any of these types, each once, and words together."""
    words = [each.removeprefix("Literal[")[:-1] for each in types if re.fullmatch(r"Literal\[[^]]*\]", each)]
    others = [each for each in types if not re.fullmatch(r"Literal\[[^]]*\]", each)]
    return " | ".join(dict.fromkeys([*([f"Literal[{', '.join(words)}]"] if words else []), *others]))


def prose(schema: Schema, indent: str = "") -> list[str]:
    """A description as the lines of a docstring."""
    text = " ".join(schema.get("description", "").split()).replace("\\", "\\\\")
    if not text:
        return []
    lines = textwrap.wrap(text, WIDTH - len(indent))
    lines[0] = f'{indent}"""{lines[0]}'
    lines[1:] = [indent + line for line in lines[1:]]
    if len(lines) == 1:
        return [f'{lines[0]}"""']
    return [*lines, f'{indent}"""']


class Tables:
    """The tables of a scenario as `TypedDict`s."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.definitions: dict[str, Schema] = schema["$defs"]

    def type_of(self, schema: Schema) -> str:
        """The type of a value."""
        if "$ref" in schema:
            return self._named(name_of(schema["$ref"]))
        if (quantity := self._quantity(schema)) is not None:
            return quantity
        if "enum" in schema:
            return literal(schema["enum"])
        if "const" in schema:
            return literal([schema["const"]])
        if alternatives := schema.get("anyOf") or schema.get("oneOf"):
            if any("enum" in each for each in alternatives):
                # The name of an own algorithm would make any text good, and misspelt names are found by it.
                # `{"name": "module:Class"}` says the same.
                alternatives = [each for each in alternatives if "pattern" not in each]
            return union([self.type_of(each) for each in alternatives if each.get("type") != "null"])
        kinds = schema.get("type", "object")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return union([self._simple(kind, schema) for kind in kinds if kind != "null"])

    def _named(self, name: str) -> str:
        definition = self.definitions[name]
        return self.type_of(definition) if "oneOf" in definition and is_choice(definition) else name

    def _quantity(self, schema: Schema) -> str | None:
        alternatives = schema.get("anyOf", [])
        if not any("pattern" in each for each in alternatives) or not all(
            "pattern" in each or each.get("const") == 0 for each in alternatives
        ):
            return None
        expected = schema.get("x-expected", "")
        return next((name for begin, (name, _) in QUANTITIES.items() if expected.startswith(begin)), "str")

    def _simple(self, kind: str, schema: Schema) -> str:
        match kind:
            case "string":
                return "str"
            case "boolean":
                return "bool"
            case "integer":
                return "int"
            case "number":
                return "float"
            case "array":
                return f"list[{self.type_of(schema['items']) if 'items' in schema else 'Any'}]"
        inner = schema.get("additionalProperties")
        return f"dict[str, {self.type_of(inner)}]" if isinstance(inner, dict) else "dict[str, Any]"

    def table(self, name: str, schema: Schema, optional: tuple[str, ...] = ()) -> list[str]:
        """A class, or a call where a key is a word of Python."""
        required = set(schema.get("required", [])) - set(optional)
        keys = {
            key: self.type_of(value) if key in required else f"NotRequired[{self.type_of(value)}]"
            for key, value in schema["properties"].items()
        }
        if any(keyword.iskeyword(key) for key in keys):
            fields = ", ".join(f'"{key}": {kind}' for key, kind in keys.items())
            return [f'{name} = TypedDict("{name}", {{{fields}}})', *(prose(schema) or [f'"""The table {name}."""']), ""]
        lines = [f"class {name}(TypedDict):", *(prose(schema, "    ") or [f'    """The table `{name}`."""']), ""]
        for key, value in schema["properties"].items():
            lines += [f"    {key}: {keys[key]}", *prose(value, "    ")]
        return [*lines, ""]

    def variants(self, name: str, schema: Schema) -> list[str]:
        """A table for each variant of a choice, and the choice of them."""
        lines, names = list[str](), list[str]()
        for each in schema["oneOf"]:
            kind = each["properties"].get("kind", {}).get("const")
            kind = kind or next(iter(each["required"]))
            variant = "".join(word.title() for word in re.split(r"[^a-z0-9]+", kind)) + name
            names.append(variant)
            lines += self.table(variant, each)
        return [*lines, f"{name} = {union(names)}", *prose(schema), ""]

    def write(self) -> str:
        """The module."""
        lines = [
            "# ruff: noqa: D205",
            '"""The tables of a scenario, for completion and for type checkers: plain dictionaries.',
            "",
            "Generated by scripts/python-types.py from the JSON Schema of scenarios; `make docs` writes it again.",
            "Each name is a `TypedDict`: `Link(rtt=..., rate=...)` is the dictionary that the keys give.",
            '"""',
            "",
            "from typing import Any, Literal, NotRequired, TypedDict",
            "",
        ]
        for name, meaning in QUANTITIES.values():
            lines += [f"{name} = str | Literal[0]", f'"""{meaning}"""', ""]
        aliases = list[str]()
        for name, definition in self._in_order():
            if is_table(definition):
                lines += self.table(name, definition)
            elif "oneOf" in definition and not is_choice(definition):
                aliases += self.variants(name, definition)
        # A class may name an alias that follows it only as text, so aliases and their variants come first.
        head = lines.index(f'"""{QUANTITIES["a share"][1]}"""') + 2
        lines[head:head] = aliases
        return "\n".join([*lines, *self.table("Scenario", self.schema, optional=("schema",))])

    def _in_order(self) -> list[tuple[str, Schema]]:
        """Definitions behind those that they refer to; variants of a choice that stand alone are left out."""
        inlined = {
            name for name, definition in self.definitions.items() if is_table(definition) and not self._is_used(name)
        }
        done, ordered = set[str](), list[tuple[str, Schema]]()

        def add(name: str) -> None:
            if name in done or name in inlined:
                return
            done.add(name)
            definition = self.definitions[name]
            for other in re.findall(r'"#/\$defs/(\w+)"', json.dumps(definition)):
                add(other)
            ordered.append((name, definition))

        for name in self.definitions:
            add(name)
        return ordered

    def _is_used(self, name: str) -> bool:
        return f'"#/$defs/{name}"' in json.dumps(self.schema)


class Contract:
    """The objects of `metrics.json` as classes with attributes and typed keys."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.definitions: dict[str, Schema] = schema["$defs"]

    def type_of(self, schema: Schema) -> str:
        """The type of a value."""
        if "$ref" in schema:
            name = name_of(schema["$ref"])
            definition = self.definitions[name]
            return name if is_table(definition) else self.type_of(definition)
        if alternatives := schema.get("anyOf") or schema.get("oneOf"):
            return union([self.type_of(each) for each in alternatives])
        if "const" in schema:
            return literal([schema["const"]])
        if "enum" in schema:
            return literal(schema["enum"])
        kinds = schema["type"]
        return union([self._simple(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)])

    def _simple(self, kind: str, schema: Schema) -> str:
        if kind == "array":
            items = schema.get("items") or schema["prefixItems"][0]
            return f"list[{self.type_of(items)}]"
        if kind == "object":
            return f"dict[str, {self.type_of(schema['additionalProperties'])}]"
        return {"string": "str", "boolean": "bool", "integer": "int", "number": "float", "null": "None"}[kind]

    def keys(self, schema: Schema) -> dict[str, str]:
        """The keys of an object with their types; what need not be observed may be none."""
        required = set() if schema.get("x-observable") else set(schema.get("required", []))
        found = {}
        for key, value in schema["properties"].items():
            kind = self.type_of(value)
            found[key] = kind if key in required else union([*kind.split(" | "), "None"])
        return found

    def record(self, name: str, schema: Schema) -> list[str]:
        """A class."""
        keys = self.keys(schema)
        lines = [f"class {name}(Record):", *prose(schema, "    "), ""]
        for key, value in schema["properties"].items():
            lines += [f"    {key}: {keys[key]}", *prose(value, "    ")]
        by_type: dict[str, list[str]] = {}
        for key, kind in keys.items():
            by_type.setdefault(kind, []).append(key)
        lines += ["", "    if TYPE_CHECKING:"]
        # A dictionary's keys are any text, which is what these signatures refuse.
        ignored = "  # type: ignore[override]"
        if len(by_type) == 1:
            ((kind, names),) = by_type.items()
            lines += [f"        def __getitem__({ignored}", f"            self, key: {literal(names)}, /"]
            return [*lines, f"        ) -> {kind}: ...", ""]
        for number, (kind, names) in enumerate(by_type.items()):
            lines += [f"        @overload{ignored if number == 0 else ''}"]
            lines += [f"        def __getitem__(self, key: {literal(names)}, /) -> {kind}: ..."]
        lines += ["        def __getitem__(self, key: str, /) -> Any: ..."]
        return [*lines, ""]

    def nested(self) -> list[str]:
        """Which values of which keys are records, too, for reading."""
        lines = []
        for name, schema in [*self.definitions.items(), ("Metrics", self.schema)]:
            if not is_table(schema):
                continue
            inner = {}
            for key, value in schema["properties"].items():
                for reference in re.findall(r'"#/\$defs/(\w+)"', json.dumps(value)):
                    if is_table(self.definitions[reference]):
                        inner[key] = reference
            pairs = ", ".join(f'"{key}": {kind}' for key, kind in inner.items())
            if pairs:
                lines.append(f"    {name}: {{{pairs}}},")
        return ["NESTED: dict[type[Record], dict[str, type[Record]]] = {", *lines, "}"]

    def write(self) -> str:
        """The module."""
        lines = [
            "# ruff: noqa: D205",
            '"""The objects of `metrics.json`: dictionaries whose keys are attributes, too.',
            "",
            "Generated by scripts/python-types.py from the contract of metrics; `make docs` writes it again.",
            "What is None was not observed, or does not exist; docs/reference/metrics.md says more of every key.",
            '"""',
            "",
            "from typing import TYPE_CHECKING, Any, Literal, overload",
            "",
            "from anabranch.results.record import Record",
            "",
        ]
        done = set[str]()

        def add(name: str) -> None:
            if name in done:
                return
            done.add(name)
            definition = self.definitions[name]
            for other in re.findall(r'"#/\$defs/(\w+)"', json.dumps(definition)):
                add(other)
            if is_table(definition):
                lines.extend(self.record(name, definition))

        for name in self.definitions:
            add(name)
        lines += self.record("Metrics", self.schema)
        lines += [*self.nested(), '"""The classes of nested objects, by class and key."""']
        return "\n".join(lines)


def formatted(text: str) -> str:
    """The text as ruff formats it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PACKAGE / "generated.py"), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def modules() -> dict[Path, str]:
    """The generated modules with their content."""
    return {
        PACKAGE / "tables.py": formatted(Tables(json.loads(_core.scenario_schema())).write()),
        PACKAGE / "results" / "contract.py": formatted(Contract(json.loads(_core.metrics_schema())).write()),
    }


if __name__ == "__main__":
    for path, content in modules().items():
        path.write_text(content, encoding="utf-8")
        print(path.relative_to(PACKAGE.parent.parent))
