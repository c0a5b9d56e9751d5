"""Writes docs/reference/python.md: the names of the Python package, with the signatures and docstrings of the sources.

.venv/bin/python scripts/python-reference.py                  writes the page
.venv/bin/python scripts/python-reference.py --check          says whether it would change
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "anabranch"
PAGE = ROOT / "docs" / "reference" / "python.md"

HEAD = """\
# The Python package

Every public name, generated from the docstrings (`make docs`). [Use Anabranch from Python](../how-to/python.md) shows
them in use, [Your own algorithm](../how-to/own-algorithm.md) those for algorithms. Times are in seconds, rates in
bit/s, sizes in bytes, unless a name ends in another unit.
"""

# The sections of the page: a title, the module by which programs reach the names, and the names in their order. A test
# compares them with what the modules offer.
SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Runs", "anabranch", ("run", "Run", "Scenario", "RunWarning", "InputError")),
    ("Many runs", "anabranch", ("sweep", "Swept", "compare", "Compared")),
    (
        "What can be named",
        "anabranch",
        (
            *("schedulers", "congestion_controls", "path_policies", "players", "abr_rules", "queues", "loss_models"),
            *("ladders", "synthetic_rates", "reducers", "scenarios", "plans", "papers"),
        ),
    ),
    ("Rates of links", "anabranch.traces", ("read", "synthesize", "Trace")),
    (
        "Own algorithms",
        "anabranch.algorithms",
        (
            *("Scheduler", "CongestionControl", "PathPolicy", "AbrRule", "scheduler", "congestion_control"),
            *("path_policy", "abr_rule", "Context", "AlgorithmError"),
        ),
    ),
    (
        "What schedulers see and answer",
        "anabranch.algorithms",
        ("SchedulerView", "Subflow", "InFlight", "SentPacket", "Send", "Duplicate", "Wait"),
    ),
    ("What congestion controls see", "anabranch.algorithms", ("Ack", "Window", "Siblings")),
    (
        "What bitrate rules see and answer",
        "anabranch.algorithms",
        ("PlayerView", "Ladder", "Download", "Progress", "PlayerEvent", "Decision"),
    ),
)

# Where names are defined.
SOURCES = (
    *("session.py", "many.py", "scenario.py", "warning.py", "catalogue.py", "traces.py"),
    *("algorithms/bases.py", "algorithms/loading.py", "_core.pyi"),
)
# Attributes that belong to the package's own modules, although their names have no underscore.
_INTERNAL = ("outcome", "portable")

Definition = ast.ClassDef | ast.FunctionDef
_LISTS = ("Args", "Attributes", "Raises", "Warns", "Returns", "Yields")


@cache
def _tree(source: str) -> ast.Module:
    return ast.parse((PACKAGE / source).read_text(encoding="utf-8"))


def definition(module: str, name: str) -> Definition:
    """Where a name is defined: in the module's own file, or the first source that has it."""
    own = f"{module.removeprefix('anabranch.')}.py"
    for source in ([own] if own in SOURCES else []) + [each for each in SOURCES if each != "traces.py"]:
        for node in _tree(source).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                return node
    raise SystemExit(f"error: `{name}` of {module} is in none of {', '.join(SOURCES)}")


def signature(node: ast.FunctionDef, name: str) -> str:
    """A function's name, arguments and result, in lines of at most 110 letters."""
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, |$)", "", arguments)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{name}({arguments}){result}"
    if len(line) <= 110:
        return line
    parts = [ast.unparse(part) for part in _arguments(node.args)]
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){result}"])


def _arguments(found: ast.arguments) -> Iterator[ast.arguments]:
    """Each argument as a list of its own, for one line each."""
    none: list[ast.expr | None] = []
    positional = [*found.posonlyargs, *found.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(found.defaults)) + list(found.defaults)
    for argument, default in zip(positional, defaults, strict=True):
        if argument.arg not in ("self", "cls"):
            yield ast.arguments([], [argument], None, [], [], None, [default] if default else [])
    if found.kwonlyargs:
        yield ast.arguments([], [ast.arg("*")], None, [], none, None, [])
    for argument, kw_default in zip(found.kwonlyargs, found.kw_defaults, strict=True):
        yield ast.arguments([], [argument], None, [], [], None, [kw_default] if kw_default else [])


def markdown(docstring: str) -> str:
    """A docstring in Google's style as Markdown: sections become lists, and references code."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", docstring).replace("``", "`")
    text = re.sub(
        r"::\n\n((?: {4}.*\n?|\n)+)",
        lambda found: ":\n\n```text\n" + textwrap.dedent(found[1]).strip() + "\n```\n",
        text,
    )
    # Doctests are run elsewhere.
    text = re.sub(r"^(>>>|\.\.\.) .*\n(?:(?!>>>)\S.*\n?)*", "", text + "\n", flags=re.MULTILINE)
    parts = re.split(rf"^({'|'.join(_LISTS)}):\n", text, flags=re.MULTILINE)
    lines = [parts[0].strip()]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines.append(_section(title, textwrap.dedent(body).strip()))
    return "\n\n".join(line for line in lines if line)


def _section(title: str, body: str) -> str:
    if title in ("Returns", "Yields"):
        return f"{title}: {_joined(body.splitlines())}"
    items = re.split(r"\n(?=\S)", body)
    found = [re.match(r"(\*{0,2}\w+)(?: \([^)]*\))?:\s*(.*)", item, re.DOTALL) for item in items]
    listed = [
        f"- `{each[1]}`: {_joined(each[2].splitlines())}" if each else f"- {_joined(item.splitlines())}"
        for each, item in zip(found, items, strict=True)
    ]
    return f"{title}:\n\n" + "\n".join(listed)


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())


@dataclass(frozen=True)
class Member:
    """A method, property or attribute of a class."""

    title: str
    text: str


def members(node: ast.ClassDef) -> Iterator[Member]:
    """What a class offers, in the order of the source."""
    body = node.body
    for position, each in enumerate(body):
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_") and each.name not in _INTERNAL:
            decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in each.decorator_list}
            read = decorators & {"property", "cached_property"} and each.returns
            title = f"{each.name}: {ast.unparse(each.returns)}" if read else signature(each, each.name)
            if "overload" not in decorators and "setter" not in decorators:
                yield Member(title, markdown(ast.get_docstring(each) or ""))
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and position + 1 < len(body):
            after = body[position + 1]
            said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if said and not each.target.id.startswith("_"):
                assert isinstance(after, ast.Expr)
                assert isinstance(after.value, ast.Constant)
                title = f"{each.target.id}: {ast.unparse(each.annotation)}"
                yield Member(title, markdown(_dedented(str(after.value.value))))


def _dedented(docstring: str) -> str:
    first, _, rest = docstring.partition("\n")
    return f"{first.strip()}\n{textwrap.dedent(rest)}"


def described(module: str, name: str) -> str:
    """A name as a part of the page."""
    node = definition(module, name)
    lines = [f"### `{module}.{name}`", ""]
    if isinstance(node, ast.FunctionDef):
        lines += ["```text", signature(node, name), "```", ""]
    else:
        constructors = [
            each for each in node.body if isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__new__")
        ]
        for each in constructors[:1]:
            lines += ["```text", signature(each, name).partition(" -> ")[0], "```", ""]
    lines += [markdown(ast.get_docstring(node) or ""), ""]
    for member in members(node) if isinstance(node, ast.ClassDef) else ():
        lines += [_member(member)]
    return "\n".join(lines).strip() + "\n"


def _member(member: Member) -> str:
    text = textwrap.indent(member.text, "    ").strip()
    title = " ".join(member.title.split()).replace("( ", "(").replace(", )", ")")
    return f"- **`{title}`**: {text}\n" if text else f"- **`{title}`**\n"


def page() -> str:
    """The page."""
    parts = [HEAD]
    for title, module, names in SECTIONS:
        parts += [f"## {title}\n", *(described(module, name) for name in names)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def main() -> None:
    """Writes the page, or compares it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
