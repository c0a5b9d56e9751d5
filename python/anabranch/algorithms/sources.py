"""The sources of own algorithms: what a change of makes a run another one."""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

from anabranch import _core
from anabranch.algorithms import loading


def of_scenario(scenario: _core.Scenario) -> list[tuple[str, bytes]]:
    """Names and contents of the modules of a scenario's own algorithms, and of what they import from their folders."""
    found: dict[str, bytes] = {}
    for kind, name in scenario.own_algorithms:
        module = loading.module_of(loading.find(kind, name, scenario.module_folders))
        if module is not None:
            _collect(module, _root(module), found)
    return sorted(found.items())


def lay_out(sources: tuple[tuple[str, bytes], ...]) -> Path:
    """Writes modules that came from another machine into a folder of this process, where they are imported from.

    The folder stays as long as the process, because an algorithm is made anew for every run, and its module is read
    again if its file changed. The same modules have the same folder.

    Args:
        sources: What `of_scenario` gave there.
    """
    return Path(_folder(sources).name)


@cache
def _folder(sources: tuple[tuple[str, bytes], ...]) -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="anabranch-modules-")
    names = [name for name, _ in sources]
    for name, content in sources:
        path = Path(folder.name, *name.split("."))
        package = any(other.startswith(f"{name}.") for other in names)
        file = path / "__init__.py" if package else path.with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


def _root(module: ModuleType) -> Path | None:
    """The folder whose modules belong to the author's algorithm."""
    file = getattr(module, "__file__", None)
    return Path(file).resolve().parent if file else None


def _collect(module: ModuleType, root: Path | None, found: dict[str, bytes]) -> None:
    """A module, and every module of the same folder that its names come from."""
    file = getattr(module, "__file__", None)
    if root is None or file is None or module.__name__ in found:
        return
    path = Path(file).resolve()
    if not path.is_relative_to(root) or path.suffix != ".py":
        return
    found[module.__name__] = path.read_bytes()
    for value in list(vars(module).values()):
        origin = value if isinstance(value, ModuleType) else sys.modules.get(str(getattr(value, "__module__", "")))
        if isinstance(origin, ModuleType):
            _collect(origin, root, found)
