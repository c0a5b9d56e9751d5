"""Which files use which others, and where that goes in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

Graph = dict[str, set[str]]


def rust_uses(source: Path) -> Graph:
    """Which modules of a crate use which others of it, tests aside, and apart from modules that contain each other."""
    files = {name: path for path in source.rglob("*.rs") if "test" not in (name := _module(source, path))}
    return {
        name: {other for other in _used(name, path.read_text(), files) if not _nested(name, other)}
        for name, path in files.items()
    }


def python_uses(package: Path) -> Graph:
    """Which modules of a package use which others of it, also within functions and for types alone."""
    files = {_dotted(package, path): path for path in package.rglob("*.py") if "papers" not in path.parts}
    return {
        module: {used for used in _imported(ast.parse(path.read_text("utf-8")), files) if used != module}
        for module, path in files.items()
    }


def _dotted(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.AST, files: dict[str, Path]) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in files)
        elif isinstance(node, ast.ImportFrom) and node.module in files:
            names = {f"{node.module}.{name.name}" for name in node.names}
            yield from names & files.keys()
            if {name for name in names - files.keys() if name != "anabranch._core"}:
                yield node.module
        yield from _imported(node, files)


def circles(graph: Graph) -> list[set[str]]:
    """The largest sets of nodes that can all be reached from each other, without those of one node."""
    reach = {node: _reachable(graph, node) for node in graph}
    found: list[set[str]] = []
    for node in sorted(graph):
        circle = {other for other in reach[node] if node in reach.get(other, set())}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        new = graph.get(ahead.pop(), set()) - seen
        seen |= new
        ahead += new
    return seen


def _module(source: Path, path: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    if parts[-1] in {"lib", "main", "mod"}:
        parts = parts[:-1]
    return "::".join(parts)


def _nested(one: str, other: str) -> bool:
    return f"{one}::".startswith(f"{other}::") or f"{other}::".startswith(f"{one}::") or not one or not other


def _used(module: str, text: str, files: dict[str, Path]) -> Iterator[str]:
    code = re.sub(r"//.*", "", text.split("#[cfg(test)]\nmod tests {")[0])
    trees = [re.sub(r"\s+", " ", tree) for tree in re.findall(r"\buse\s+([^;]+);", code)]
    paths = [path for tree in trees for path in _leaves(tree)] + re.findall(r"\b(?:crate|super)(?:::\w+)+", code)
    for path in paths:
        base, steps = module.split("::"), path.split(" as ")[0].strip().split("::")
        if steps[0] == "crate":
            base, steps = [], steps[1:]
        elif steps[0] != "super":
            continue
        while steps and steps[0] == "super":
            base, steps = base[:-1], steps[1:]
        while steps and "::".join([*base, steps[0]]) in files:
            base, steps = [*base, steps[0]], steps[1:]
        yield "::".join(base)


def _leaves(tree: str) -> Iterator[str]:
    """The paths of a tree of names, `a::{b, c::{d}}`."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        yield head
        return
    depth, name = 0, ""
    for letter in rest.rpartition("}")[0] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield from _leaves(head + name.strip()) if name.strip() else ()
            name = ""
        else:
            name += letter
