"""The classes of own algorithms for a server, from modules as their files are now.

A server imports modules when it starts and when it is ordered to read its options again, and at no other time: a file
that is being edited must not reach clients. Objects of the classes of before go on with these.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from anabranch.algorithms import loading
from anabranch.algorithms.bases import Algorithm
from anabranch.errors import InputError

# Other packages that were imported keep what they are: the compiled part of ours cannot be imported twice.
_KEPT = ("anabranch", "__main__")


def import_anew(algorithms: Sequence[tuple[str, str]], directory: Path | None) -> list[type[Algorithm]]:
    """The classes of these kinds and names, in this order.

    The modules of the names are imported anew, with the packages that they are in, and with the modules that are
    next to the configuration file or in the current directory. If that fails, all modules are as before.

    Raises:
        InputError: A module cannot be imported, or has no such class; or the class needs options.
    """
    forgotten = _forget([name for _, name in algorithms], directory)
    try:
        return [_find(kind, name, directory) for kind, name in algorithms]
    except BaseException:
        sys.modules.update(forgotten)
        raise


def _find(kind: str, name: str, directory: Path | None) -> type[Algorithm]:
    option = kind.replace("_", "-")
    try:
        cls = loading.find(kind, name, _folders(directory))
        loading.check_options(name, cls, {})
    except loading.RefusalError as refusal:
        raise InputError(f"--{option}: {refusal.args[1]}") from None
    except SystemExit:
        raise InputError(f"--{option}: `{name}`: its module ends the program when it is imported") from None
    return cls


def _folders(directory: Path | None) -> list[Path]:
    """Where modules are looked for before the current directory: next to the configuration file."""
    return [] if directory is None else [directory]


def _forget(names: Sequence[str], directory: Path | None) -> dict[str, ModuleType]:
    """Lets the next import read the files of the authors' modules; returns what was imported before."""
    named = {name.partition(":")[0].partition(".")[0] for name in names}
    places = {place.resolve() for place in loading.places(_folders(directory))}
    tops = {module.partition(".")[0] for module in sys.modules}
    own = {top for top in tops if top not in _KEPT and (top in named or _home(top) in places)}
    forgotten = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in own}
    for name in forgotten:
        del sys.modules[name]
    loading.forget_versions(forgotten)
    return forgotten


def _home(top: str) -> Path | None:
    """The folder in which Python found a module or package that is in no package."""
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    return path.parent.parent if path.stem == "__init__" else path.parent
