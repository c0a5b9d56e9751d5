"""From the name of an algorithm in a scenario to an object of its class.

A name is ``module:Class``, or what a decorator registered in this process. Modules are looked for next to the scenario,
next to the plan that has it, in the current directory, and where Python looks.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from anabranch import _core, arguments
from anabranch.algorithms.bases import BASES, AbrRule, Algorithm, CongestionControl, PathPolicy, Scheduler
from anabranch.errors import InputError, nearest

_WORDS = {
    "scheduler": "scheduler",
    "congestion_control": "congestion control",
    "path_policy": "path policy",
    "abr_rule": "bitrate rule",
}

_registered: dict[tuple[str, str], type[Algorithm]] = {}

# The files of modules as they were when this process imported them.
_imported: dict[str, tuple[int, int] | None] = {}

_A = TypeVar("_A", bound=type[Algorithm])


class RefusalError(Exception):
    """An algorithm cannot be made. The arguments are the option at fault, or ``name``, and the message."""


def scheduler(name: str) -> Callable[[_A], _A]:
    """Registers a scheduler under a name, which the scenarios of this process can then use.

    >>> @anabranch.scheduler("mine")  # doctest: +SKIP
    ... class Mine(anabranch.Scheduler): ...
    """
    return _registration("scheduler", name)


def congestion_control(name: str) -> Callable[[_A], _A]:
    """Registers a congestion control, as `scheduler` does."""
    return _registration("congestion_control", name)


def path_policy(name: str) -> Callable[[_A], _A]:
    """Registers a path policy, as `scheduler` does."""
    return _registration("path_policy", name)


def abr_rule(name: str) -> Callable[[_A], _A]:
    """Registers a bitrate rule; a scenario names it as ``player = { kind = "rate", rule = "mine" }``."""
    return _registration("abr_rule", name)


def _registration(kind: str, name: str) -> Callable[[_A], _A]:
    arguments.text("name", name, f'a name in quotes: @anabranch.{kind}("my-name")')

    def register(cls: _A) -> _A:
        try:
            _check_class(kind, name, cls)
        except RefusalError as refusal:
            raise InputError(str(refusal.args[1])) from None
        taken = [entry[1] for entry in _core.registry() if entry[0] == registry_of(kind)]
        if name in taken or ":" in name or not name:
            reason = "is built in" if name in taken else "is no name; expected one without a colon"
            raise InputError(f"`{name}` {reason}")
        _registered[kind, name] = cls
        return cls

    return register


def registry_of(kind: str) -> str:
    """The name of the list of built-in algorithms of a kind."""
    return {"abr_rule": "abr-rules", "path_policy": "path-policies"}.get(kind, kind.replace("_", "-") + "s")


def is_registered(kind: str, name: str) -> bool:
    """Whether a decorator registered that name."""
    return (kind, name) in _registered


def make(kind: str, name: str, folders: Sequence[Path], options: Mapping[str, Any]) -> Algorithm:
    """An object of the class of that name.

    Args:
        kind: What it is, such as ``scheduler``.
        name: ``module:Class``, or what a decorator registered.
        folders: Where the module is looked for first.
        options: Arguments of the constructor.

    Raises:
        RefusalError: The module, the class or an option is wrong.
    """
    cls = find(kind, name, folders)
    check_options(name, cls, options)
    try:
        return cls(**options)
    except Exception as error:
        place = _place(error)
        raise RefusalError("name", f"`{name}` cannot be made: {type(error).__name__}: {error}{place}") from None


def find(kind: str, name: str, folders: Sequence[Path] = ()) -> type[Algorithm]:
    """The class of that name.

    Raises:
        RefusalError: There is none, its module cannot be imported, or it is of another kind.
    """
    registered = _registered.get((kind, name))
    if registered is not None:
        return registered
    cls = locate(name, folders)
    _check_class(kind, name, cls)
    return cls  # type: ignore[return-value]


def locate(name: str, folders: Sequence[Path] = ()) -> object:
    """What ``module:Class`` names, of whatever kind.

    Raises:
        RefusalError: There is none, or its module cannot be imported.
    """
    module_name, _, class_name = name.partition(":")
    module = _import(name, module_name, folders)
    cls = getattr(module, class_name, None)
    if cls is None:
        public = [known for known in vars(module) if not known.startswith("_")]
        hint = nearest(class_name, public, prefix=f"{module_name}:")
        raise RefusalError("name", f"`{name}`: {_file_of(module)} has no class `{class_name}`{hint}")
    return cls


def _check_class(kind: str, name: str, cls: object) -> None:
    base, what = BASES[kind], _WORDS[kind]
    if not isinstance(cls, type):
        raise RefusalError("name", f"`{name}` is no class; expected one with the base anabranch.{base.__name__}")
    if not issubclass(cls, base):
        is_kind = next((_WORDS[other] for other, its in BASES.items() if issubclass(cls, its)), None)
        found = f"is a {is_kind}" if is_kind else f"has not the base anabranch.{base.__name__}"
        raise RefusalError(
            "name", f"`{name}` {found}; a {what} is needed: class {cls.__name__}(anabranch.{base.__name__})"
        )
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise RefusalError("name", f"`{name}` lacks the method{'s' if len(missing) > 1 else ''} {', '.join(missing)}")


def check_options(name: str, cls: type[Algorithm], options: Mapping[str, Any]) -> None:
    """Refuses options that the constructor does not take, and the absence of those that it needs.

    Raises:
        RefusalError: Such an option is given or absent.
    """
    parameters = inspect.signature(cls).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    takes = [
        parameter.name
        for parameter in parameters.values()
        if parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    for option in options:
        if option not in takes:
            known = f"known are {', '.join(takes)}" if takes else "its constructor takes none"
            hint = nearest(option, takes, f"; {known}")
            raise RefusalError(option, f"`{name}` has no such option{hint}")
    absent = [p.name for p in parameters.values() if p.default is p.empty and p.name in takes and p.name not in options]
    if absent:
        raise RefusalError("name", f"`{name}` needs the option{'s' if len(absent) > 1 else ''} {', '.join(absent)}")


def _import(name: str, module_name: str, folders: Sequence[Path]) -> ModuleType:
    with _looking_in(folders), _without_bytecode():
        try:
            _forget_namesake(module_name, folders)
            module = importlib.import_module(module_name)
            version = _version(module)
            # In a notebook the file is edited between two runs, and the run is to be that of the file.
            if _imported.setdefault(module_name, version) != version:
                _imported[module_name] = version
                module = importlib.reload(module)
            return module
        except ModuleNotFoundError as error:
            if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
                looked_in = " or ".join(map(str, places(folders)))
                modules = [path.stem for place in places(folders) for path in place.glob("*.py")]
                hint = nearest(module_name, modules, f"; expected {module_name}.py in {looked_in}")
                raise RefusalError("name", f"`{name}`: there is no module `{module_name}`{hint}") from None
            raise RefusalError("name", f"`{name}`: {type(error).__name__}: {error}{_place(error)}") from None
        except Exception as error:
            raise RefusalError("name", f"`{name}`: {type(error).__name__}: {error}{_place(error)}") from None


def _forget_namesake(module_name: str, folders: Sequence[Path]) -> None:
    """Another folder's module of the same name makes way for the one that is found here."""
    loaded = getattr(sys.modules.get(module_name), "__file__", None)
    if loaded is None or "." in module_name:
        return
    here = importlib.machinery.PathFinder.find_spec(module_name, [str(place) for place in places(folders)])
    if here is not None and here.origin is not None and Path(here.origin).resolve() != Path(loaded).resolve():
        del sys.modules[module_name]
        _imported.pop(module_name, None)


def forget_versions(modules: Iterable[str]) -> None:
    """These modules are imported anew, which is no change of a file behind our back."""
    for module in modules:
        _imported.pop(module, None)


def _version(module: ModuleType) -> tuple[int, int] | None:
    """What changes when a module's file does."""
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    status = Path(file).stat()
    return status.st_mtime_ns, status.st_size


def places(folders: Sequence[Path]) -> list[Path]:
    """Where modules are looked for before Python's own places."""
    # The scenario's own folder first: a run must not depend on where it is started more than it has to.
    return list(dict.fromkeys([*(Path(folder).resolve() for folder in folders), Path.cwd()]))


@contextmanager
def _looking_in(folders: Sequence[Path]) -> Iterator[None]:
    """Lets Python find modules in these folders and in the current directory, while it imports one."""
    before = list(sys.path)
    sys.path[:0] = [str(place) for place in places(folders)]
    # A module that was written a moment ago is not in the finder's list of files yet.
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Keeps no compiled files: Python takes one for current if the source has the same second and length."""
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _file_of(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or f"module `{module.__name__}`"


def _place(error: BaseException) -> str:
    """Where an exception was raised in the author's code, for a message of one line."""
    if isinstance(error, SyntaxError) and error.filename:
        return ""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def module_of(cls: type[Algorithm]) -> ModuleType | None:
    """The module in which a class was written."""
    return sys.modules.get(cls.__module__)


__all__ = [
    "AbrRule",
    "CongestionControl",
    "PathPolicy",
    "RefusalError",
    "Scheduler",
    "abr_rule",
    "check_options",
    "congestion_control",
    "find",
    "forget_versions",
    "is_registered",
    "locate",
    "make",
    "module_of",
    "path_policy",
    "places",
    "registry_of",
    "scheduler",
]
