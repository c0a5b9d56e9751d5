"""What can be named in a scenario, and what is shipped: each a dictionary from names to `Entry`."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from anabranch import _core, errors


@dataclass(frozen=True)
class Entry:
    """Something that can be named.

    Attributes:
        name: Its name in scenarios, plans and on the command line.
        summary: What it does, in one sentence.
        source: Where it is described: a paper, a standard, the kernel. Empty for scenarios, plans and reducers.
    """

    name: str
    summary: str
    source: str


class Catalogue(Mapping[str, Entry]):
    """All of one kind, by name, in the order of the registry."""

    def __init__(self, kind: str, entries: Mapping[str, Entry]) -> None:
        self.kind = kind
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            hint = errors.nearest(name, self._entries) if isinstance(name, str) else ""
            raise KeyError(f"no {self.kind} called `{name}`{hint}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {entry.summary}" for name, entry in self.items())

    def _repr_html_(self) -> str:
        sources = any(entry.source for entry in self.values())
        head = "<th>name</th><th>summary</th>" + ("<th>source</th>" if sources else "")
        rows = []
        for entry in self.values():
            texts = (entry.name, entry.summary, entry.source)[: 3 if sources else 2]
            rows.append("".join(f'<td style="text-align:left">{html.escape(text)}</td>' for text in texts))
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def kinds() -> list[str]:
    """The kinds of what can be named, in the order of the registry."""
    return [*dict.fromkeys(of for of, *_ in _core.registry()), *_FILES]


def of_kind(kind: str) -> Catalogue:
    """All of one of `kinds`. Plans and papers are files, which are read only where they are asked for."""
    return _FILES[kind]() if kind in _FILES else _of(kind)


def _of(kind: str) -> Catalogue:
    found = {name: Entry(name, about, source) for of, name, about, source in _core.registry() if of == kind}
    return Catalogue(kind, found)


def schedulers() -> Catalogue:
    """The schedulers, which choose the subflow of the next data: ``transport.scheduler``."""
    return _of("schedulers")


def congestion_controls() -> Catalogue:
    """The congestion controls, which set the window of each subflow: ``transport.congestion_control``."""
    return _of("congestion-controls")


def path_policies() -> Catalogue:
    """The path policies, which choose the subflows that may carry new data: ``transport.path_policy``."""
    return _of("path-policies")


def response_pacings() -> Catalogue:
    """How a server paces what DASH viewers ask for: ``server.response_pacing``."""
    return _of("response-pacings")


def players() -> Catalogue:
    """The players, which request the content of a session: ``session.player``."""
    return _of("players")


def abr_rules() -> Catalogue:
    """The bitrate rules of DASH players; a scenario names the player of the same name."""
    return _of("abr-rules")


def queues() -> Catalogue:
    """The queues in front of a link: ``link.NAME.queue``."""
    return _of("queues")


def loss_models() -> Catalogue:
    """The loss models of a link: ``link.NAME.loss``."""
    return _of("loss-models")


def ladders() -> Catalogue:
    """The shipped ladders of bitrates for DASH videos: ``session.video.ladder``."""
    return _of("ladders")


def synthetic_rates() -> Catalogue:
    """Kinds of networks whose rates can be synthesised: ``link.NAME.rate``, and `anabranch.traces.synthesize`."""
    return _of("synthetic-rates")


def reducers() -> Catalogue:
    """The reducers: numbers that a plan can ask for in addition to the metrics."""
    return _of("reducers")


def scenarios() -> Catalogue:
    """The shipped scenarios, which `anabranch.run` takes by name."""
    return _of("scenarios")


def plans() -> Catalogue:
    """The shipped plans, which `anabranch.sweep` takes by name."""
    from anabranch.experiments import plan

    return Catalogue("plans", {name: Entry(name, plan.load(name).question, "") for name in plan.shipped()})


def papers() -> Catalogue:
    """The shipped papers, which ``anabranch reproduce`` takes by name."""
    from anabranch.experiments import paper

    loaded = [paper.load(name) for name in paper.shipped()]
    return Catalogue("papers", {each.name: Entry(each.name, f"{each.title}.", each.source) for each in loaded})


_FILES = {"plans": plans, "papers": papers}
