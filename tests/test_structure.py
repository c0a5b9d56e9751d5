"""What may depend on what, as docs/architecture.md has it."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from module_graph import circles, python_uses, rust_uses

ROOT = Path(__file__).parent.parent
CRATES = sorted(path.name for path in (ROOT / "crates").iterdir())

# From the lowest layer to the highest; a crate may use those of lower layers, and no others.
LAYERS = [
    {"units", "registry"},
    {"segment", "events"},
    {"stack", "network", "media", "wire"},
    {"scenario"},
    {"observation"},
    {"sim", "live", "kernel"},
    {"serve", "testnet"},
    {"testbed"},
    {"validation"},
    {"python"},
]

# What a crate must not use although it is in a lower layer.
FORBIDDEN = {
    "live": {"scenario", "observation", "media", "network"},
    "serve": {"scenario", "observation", "media", "network", "wire"},
    "testnet": {"scenario", "observation", "media", "stack"},
    "testbed": {"sim"},
    "validation": {"live", "serve", "testnet", "testbed"},
    "scenario": {"wire"},
}


def used(crate: str) -> set[str]:
    """The crates of ours that a crate uses, but for its tests."""
    manifest: dict[str, Any] = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
    tables = [manifest, *manifest.get("target", {}).values()]
    names = [name for table in tables for name in table.get("dependencies", {})]
    return {name.removeprefix("anabranch-") for name in names if name.startswith("anabranch-")}


def layer(crate: str) -> int:
    return next(number for number, crates in enumerate(LAYERS) if crate in crates)


def test_every_crate_has_a_layer_and_a_row_in_the_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(rows) == CRATES == sorted(crate for crates in LAYERS for crate in crates)


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_uses_only_lower_layers(crate: str) -> None:
    upwards = {other for other in used(crate) if layer(other) >= layer(crate)}
    assert not upwards, f"{crate} uses {sorted(upwards)}, which are not below it"
    assert not used(crate) & FORBIDDEN.get(crate, set())


def test_the_layers_are_not_only_on_paper() -> None:
    """A rule that no crate could break would show nothing."""
    assert used("sim") >= {"stack", "network", "media", "scenario", "observation"}
    assert "sim" not in used("testbed")


@pytest.mark.parametrize("crate", ["stack", "network", "media", "scenario", "observation", "sim", "segment", "events"])
def test_simulated_code_asks_neither_the_clock_nor_the_environment(crate: str) -> None:
    forbidden = re.compile(r"std::time::(Instant|SystemTime)|std::(net::(Tcp|Udp)|thread|process|env)\b|rand::rng\(")
    found = []
    for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
        name = path.relative_to(ROOT).as_posix()
        if re.search(r"test|random\.rs|wraps\.rs", name):
            continue
        # Unit tests follow the code in the same file.
        code = path.read_text().split("#[cfg(test)]\nmod tests {")[0]
        found += [f"{name}: {match[0]}" for match in forbidden.finditer(code)]
    assert not found


# Scenarios have a short form of these, so they are named there as well.
SHORT_FORMS = {"bernoulli", "drop-tail"}


@pytest.mark.parametrize("part", ["loss", "queue"])
def test_a_part_of_a_link_is_named_in_its_file_and_in_its_line_of_the_registry(part: str) -> None:
    """A model or queue that needs a line elsewhere (a second type, a table, a check) would be named there."""
    folder = ROOT / "crates" / "network" / "src" / part
    lines = re.findall(r'"([\w-]+)" => \w+\((\w+)::(\w+)\)', (folder / "mod.rs").read_text())
    assert len(lines) > 1
    for kind, file, parameters in [line for line in lines if line[0] not in SHORT_FORMS]:
        name = re.compile(rf'"{kind}"|\b{parameters}\b')
        sources = (path for path in ROOT.glob("crates/*/src/**/*.rs") if "test" not in path.stem)
        found = {path for path in sources if name.search(path.read_text())}
        # The laws are users of scenarios.
        found = {path for path in found if not path.is_relative_to(ROOT / "crates" / "validation")}
        assert found - {ROOT / "crates/network/src/lib.rs"} == {folder / "mod.rs", folder / f"{file}.rs"}, kind


def test_metrics_are_folded_in_one_crate() -> None:
    """Below `observation` a type of metrics would be a second place where events become numbers."""
    metrics = re.compile(r"JsonSchema\)\]\n(?:#\[.*\]\n)*pub struct \w+(?:Metrics|Report)\b")
    having = {
        crate
        for crate in CRATES
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs")
        if metrics.search(path.read_text())
    }
    assert "observation" in having
    assert not {crate for crate in having if layer(crate) < layer("observation")}


@pytest.mark.parametrize("crate", CRATES)
def test_no_files_of_a_crate_use_each_other(crate: str) -> None:
    """A module and those in it are one thing: these are circles of files of which none contains another."""
    assert circles(rust_uses(ROOT / "crates" / crate / "src")) == []


def test_a_circle_of_rust_files_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\nmod c;\n")
    (tmp_path / "a.rs").write_text("use crate::b::{Second, self};\nuse super::c;\n")
    (tmp_path / "b.rs").write_text("pub fn second() -> crate::a::First {}\n")
    (tmp_path / "c.rs").write_text("// use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n")
    assert circles(rust_uses(tmp_path)) == [{"a", "b"}]


# The parts of the Python package from the lowest layer to the highest; each uses those before it, and no others.
PARTS = [
    *(
        "errors",
        "arguments",
        "tables",
        "system",
        "results",
        "wording",
        "figures",
        "runs",
        "traces",
        "algorithms",
        "content",
        "live",
    ),
    *("experiments", "validation", "report", "library", "cli", "__main__"),
]


def part(module: str) -> str:
    return module.split(".")[1]


def test_a_part_of_the_python_package_uses_only_those_before_it() -> None:
    graph = python_uses(ROOT / "python" / "anabranch")
    assert {part(module) for module in graph if module != "anabranch"} == set(PARTS)
    upwards = {
        (module, other)
        for module, used in graph.items()
        for other in used
        if module != "anabranch"
        # The package itself has the public names of its parts, so none of them can ask it for one. `_core` is compiled.
        if other == "anabranch" or PARTS.index(part(other)) > PARTS.index(part(module))
    }
    assert upwards == set()


def test_no_files_of_the_python_package_use_each_other() -> None:
    assert circles(python_uses(ROOT / "python" / "anabranch")) == []


def test_a_circle_of_python_files_is_found(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("def f():\n    from p.b import g\n")
    (package / "b.py").write_text("from p import c\n")
    (package / "c.py").write_text("import p.a\nif TYPE_CHECKING:\n    import p.d\n")
    (package / "d.py").write_text("import p.a\n")
    assert circles(python_uses(package)) == [{"p.a", "p.b", "p.c", "p.d"}]


# As `too-many-lines-threshold` in clippy.toml; here with documentation and empty lines.
LONGEST_FUNCTION = 60


def functions_longer_than(limit: int) -> list[str]:
    found = []
    for path in sorted(path for tree in ("python", "scripts", "tests") for path in (ROOT / tree).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                found += [f"{path.relative_to(ROOT)}: {node.name} has {lines} lines"] if lines > limit else []
    return found


def test_commands_print_by_one_module() -> None:
    """`console` escapes what a terminal would act on."""
    printing = re.compile(r"(?<![\w.])print\(|typer\.echo\(")
    commands = (ROOT / "python" / "anabranch" / "cli").rglob("*.py")
    found = [path.name for path in commands if printing.search(path.read_text("utf-8"))]
    assert found == ["console.py"]


def test_names_of_scripts_have_one_style() -> None:
    """Hyphens between words; what other scripts import is one word."""
    names = [path.name for path in (ROOT / "scripts").rglob("*") if "__pycache__" not in path.parts]
    assert [name for name in names if "_" in name] == []


def test_functions_fit_on_a_screen() -> None:
    assert functions_longer_than(LONGEST_FUNCTION) == []


def test_long_functions_are_found() -> None:
    assert functions_longer_than(LONGEST_FUNCTION // 2)


def long_comments(path: Path, width: int) -> list[int]:
    """Lines with comments of Rust that are longer than code may be; tables and what stands between fences may be."""
    found, fenced = [], False
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        comment = re.match(r"\s*//[/!]? ?(.*)", line)
        text = comment[1] if comment else ""
        fenced = bool(comment) and fenced != text.startswith("```")
        if comment and not fenced and not text.startswith("|") and len(line) > width:
            found.append(number)
    return found


def test_comments_wrap_where_code_does() -> None:
    """Rustfmt leaves the width of comments alone."""
    width = tomllib.loads((ROOT / "rustfmt.toml").read_text("utf-8"))["max_width"]
    sources = [path for path in ROOT.rglob("*.rs") if not {"target", ".venv"} & set(path.parts)]
    found = {str(path.relative_to(ROOT)): lines for path in sources if (lines := long_comments(path, width))}
    assert not found, found
    assert long_comments(ROOT / "crates/stack/src/congestion/lia.rs", width // 2), "shorter lines are found"
