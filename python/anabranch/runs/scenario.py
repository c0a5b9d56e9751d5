"""A scenario in Python, with keys that editors complete and type checkers know."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from anabranch import arguments

if TYPE_CHECKING:
    from typing import Unpack

    from anabranch import tables


class Scenario(dict[str, Any]):
    """A scenario as a dictionary, for `anabranch.run`.

    >>> from anabranch import Scenario
    >>> from anabranch.tables import BulkVideo, Link, Session
    >>> scenario = Scenario(
    ...     duration="10 s",
    ...     link={"wifi": Link(rtt="30 ms", rate="3 Mb/s"), "lte": Link(rtt="60 ms", rate="2 Mb/s")},
    ...     session=[Session(video=BulkVideo(kind="bulk", size="2 MB"))],
    ... )
    >>> scenario
    <Scenario of 10 s: links wifi, lte; 1 session>

    The keys are those of a scenario's file; ``docs/reference/scenario.md`` explains them. Each table is a dictionary,
    too: `anabranch.tables` has its type. Values are checked when the scenario runs, or by `check`.
    """

    if TYPE_CHECKING:

        def __init__(self, **keys: Unpack[tables.Scenario]) -> None: ...

    else:

        def __init__(self, *given: Any, **keys: Any) -> None:
            if given:
                raise arguments.refused(
                    "Scenario: scenario",
                    given[0],
                    'keys, such as Scenario(duration="10 s"), Scenario(**dictionary), or Scenario.load(file or name)',
                )
            super().__init__({"schema": 1, **keys})

    @classmethod
    def load(cls, scenario: str | Path | Mapping[str, Any], *, set: Mapping[str, Any] | None = None) -> Self:  # noqa: A002
        """Reads a scenario, with every default written out.

        Args:
            scenario: A file, the name of a shipped scenario, or a dictionary.
            set: Keys to override, as `anabranch.run` takes them.

        Raises:
            InputError: The scenario, a key or a value is wrong.
            OSError: The file cannot be read.
        """
        from anabranch.runs import reading

        loaded = reading.load(scenario, reading.overrides_of(set))
        return cls(**tomllib.loads(loaded.resolved))

    def check(self) -> Self:
        """The scenario itself, if nothing in it is wrong.

        Raises:
            InputError: A key or a value is wrong; the message names it and, where there is one, the nearest valid name.
        """
        from anabranch.runs import reading

        reading.load(self)
        return self

    @property
    def text(self) -> str:
        """The scenario as TOML, with every default written out: what ``anabranch run`` reads.

        Raises:
            InputError: A key or a value is wrong.
        """
        from anabranch.runs import reading

        return reading.load(self).resolved

    def __repr__(self) -> str:
        links, sessions = list(self.get("link", {})), len(self.get("session", []))
        over = f"links {', '.join(map(str, links))}" if links else "no links"
        counted = f"{sessions} session{'' if sessions == 1 else 's'}"
        return f"<Scenario of {self.get('duration', 'unknown duration')}: {over}; {counted}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), dict(self))


def _again(kind: type[Scenario], keys: dict[str, Any]) -> Scenario:
    return kind(**keys)
