"""Test cases: each is a scenario, the live server, and the criteria. The client is always the kernel's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from anabranch.errors import InputError
from anabranch.validation import criteria, drawn
from anabranch.validation.criteria import OF_PART, USUAL_PARTS, Criteria, Part

KERNEL, ANABRANCH = "kernel", "anabranch"
"""The servers of live runs."""


@dataclass(frozen=True)
class TestCase:
    """One test case.

    Attributes:
        part: The part to which it belongs.
        name: Such as ``10 Mb/s, 50 ms, 0.5 %, 1 BDP, cubic``.
        scenario: The scenario as TOML, of the simulation and of the live run.
        server: The server of the live run.
        in_browser: Whether the real dash.js in Chromium plays in the live run, and not the scenario's player.
        sessions: The number of sessions that run at the same time.
        seconds: The duration of a run.
        live_runs: The number of live runs, with seeds from 1.
        simulated_runs: The number of simulated runs, with seeds from 1, where they are not paired with the live ones.
        paired: Whether a live run is compared with the simulated run of its seed: the same seed loses the same packets,
            and these determine nearly everything. Where runs vary for other reasons as well, distributions are
            compared.
        criteria: What has to agree.
    """

    # Not a class of tests.
    __test__ = False

    part: Part
    name: str
    scenario: str
    server: str
    in_browser: bool
    sessions: int
    seconds: int
    live_runs: int
    simulated_runs: int
    paired: bool
    criteria: Criteria


@dataclass(frozen=True)
class _Link:
    """A link: rate in Mb/s, round trip in ms, loss in per mille, queue in percent of the bandwidth-delay product."""

    rate: int
    rtt: int
    loss: int
    queue: int

    def toml(self, name: str) -> str:
        # Mb/s times ms is 1000 bits.
        queue = self.rate * self.rtt * 1000 // 8 * self.queue // 100
        return (
            f'[link.{name}]\nrate = "{self.rate} Mb/s"\nrtt = "{self.rtt} ms"\nqueue = "{queue} B"\n'
            f'loss = "{self.loss_percent}"\n'
        )

    @property
    def loss_percent(self) -> str:
        return f"{self.loss / 10:g} %"

    @property
    def name(self) -> str:
        return f"{self.rate} Mb/s, {self.rtt} ms, {self.loss_percent}, {self.queue / 100:g} BDP"


_Links = tuple[_Link, ...]

FIRST_PATH = "path1"
"""The path over the first of a test case's links."""

_RATES, _RTTS, _LOSSES, _QUEUES = (2, 10, 18), (20, 50, 100, 200), (0, 5, 20), (50, 100, 200)


def _one_path_links() -> list[_Link]:
    """Of the 108 combinations 20: two Latin squares over the grid of rates and round trips, the second one thinned out.

    So every rate meets every round trip, and every value of one quantity nearly every value of another.
    """

    def link(i: int, j: int, shift: int) -> _Link:
        return _Link(_RATES[i], _RTTS[j], _LOSSES[(i + j + shift) % 3], _QUEUES[(2 * i + j + 2 * shift) % 3])

    grid = [(i, j) for i in range(len(_RATES)) for j in range(len(_RTTS))]
    return [link(i, j, 0) for i, j in grid] + [link(i, j, 1) for i, j in grid if (i + j) % 3 != 1]


# The transport of (b), (e) and the two paths of (f): upstream Linux's.
_UPSTREAM = 'kernel = "upstream"\n'
_TCP = 'protocol = "tcp"\n'
_OURS = ""
_BULK = 'video = { kind = "bulk" }\n'
# Simulated runs are cheap, so their mean can be precise.
_SIMULATED_RUNS = 40
# A duration at which even the slowest test cases have sent some thousand packets.
_SECONDS = 60


@dataclass(frozen=True)
class _Kind:
    """What the test cases of a kind have in common; by default one session that downloads as much as it can."""

    part: Part
    transport: str
    live_runs: int
    session: str = _BULK
    sessions: int = 1
    seconds: int = _SECONDS

    def case(self, links: Sequence[_Link], control: str) -> TestCase:
        tables = "".join(link.toml(f"path{number}") for number, link in enumerate(links, start=1))
        lossy = any(link.loss for link in links)
        return TestCase(
            part=self.part,
            name=f"{' + '.join(link.name for link in links)}, {control}",
            scenario=(
                f'schema = 1\nduration = "{self.seconds} s"\n[transport]\n{self.transport}'
                f'congestion_control = "{control}"\n{tables}[[session]]\ncount = {self.sessions}\n{self.session}'
            ),
            server=ANABRANCH if self.part is Part.OUR_SERVER else KERNEL,
            in_browser=False,
            sessions=self.sessions,
            seconds=self.seconds,
            live_runs=self.live_runs,
            simulated_runs=_SIMULATED_RUNS,
            paired=lossy and len(links) == 1 and self.sessions == 1,
            criteria=OF_PART[self.part],
        )


# Both controls that every kernel has.
_CONTROLS = ("newreno", "cubic")
# The kernel's control by rate, which some kernels lack: no quick test case has it.
_BBR = "bbr"
# Queues from a quarter of the bandwidth-delay product to four times that, and losses that loss-based controls react to.
_BBR_OVER_ONE = (
    _Link(10, 60, 0, 25),
    _Link(10, 50, 0, 100),
    _Link(10, 50, 0, 400),
    _Link(10, 50, 20, 100),
    _Link(2, 100, 5, 200),
    _Link(18, 20, 5, 50),
)
# Pairs of links for the same control, alike and unlike.
_BBR_OVER_TWO: tuple[_Links, ...] = (
    (_Link(10, 50, 0, 100), _Link(10, 50, 0, 100)),
    (_Link(5, 60, 0, 25), _Link(5, 60, 0, 25)),
    (_Link(10, 20, 5, 100), _Link(2, 100, 5, 100)),
    (_Link(10, 20, 0, 100), _Link(10, 100, 0, 100)),
)
# Bytes of a chunk and the links that it comes over, for the same control: shallow queues, and unlike rates.
_BBR_CHUNKS_OVER: tuple[tuple[int, _Links], ...] = (
    (250_000, (_Link(5, 60, 0, 25), _Link(5, 60, 0, 25))),
    (250_000, (_Link(5, 60, 0, 100), _Link(5, 60, 0, 100))),
    (100_000, (_Link(2, 60, 5, 200), _Link(1, 60, 5, 200))),
)
# Links that two sessions share.
_SHARED = (_Link(10, 50, 0, 100), _Link(10, 50, 5, 100))
# Runs of test cases in which chance decides more than in those of `_PAIRS`.
_VARYING_RUNS = 8


def _one_path() -> list[TestCase]:
    # With random losses simulation and live run lose the same packets, so a few runs suffice. Without them chance
    # decides which of several cycles a kernel's run falls into.
    alone = [
        _Kind(Part.ONE_PATH, _TCP, 4 if link.loss else 12).case([link], control)
        for link in _one_path_links()
        for control in _CONTROLS
    ]
    varying = _Kind(Part.ONE_PATH, _TCP, _VARYING_RUNS)
    shared = [_two_sessions(varying, [link]) for link in _SHARED]
    # The phase of its cycles is chance, so the same losses do not make the same run.
    rate_based = [
        replace(varying.case([link], _BBR), paired=False, criteria=criteria.RATE_BASED) for link in _BBR_OVER_ONE
    ]
    return [*alone, *shared, *rate_based]


def _two_sessions(kind: _Kind, links: Sequence[_Link]) -> TestCase:
    """Two sessions over the same links: which of their packets are lost is chance."""
    case = replace(kind, sessions=2).case(links, "cubic")
    return replace(case, name=f"two sessions, {case.name}", criteria=criteria.SHARED_LINK)


# Equal paths, then different rates, different round trips, both different, and losses.
_PAIRS: tuple[_Links, ...] = (
    (_Link(10, 20, 0, 100), _Link(10, 20, 0, 100)),
    (_Link(10, 50, 0, 100), _Link(2, 50, 0, 100)),
    (_Link(10, 20, 0, 100), _Link(10, 100, 0, 100)),
    (_Link(2, 50, 0, 200), _Link(10, 100, 0, 100)),
    (_Link(10, 50, 5, 100), _Link(10, 50, 5, 100)),
)
# Ratios of rates or round trips of 1:5 and losses: the subflows' send buffers and not their windows decide how the data
# is shared. The faster path comes first.
_UNLIKE: tuple[_Links, ...] = (
    (_Link(10, 20, 5, 100), _Link(2, 100, 5, 100)),
    (_Link(10, 20, 1, 100), _Link(2, 100, 1, 100)),
    (_Link(10, 50, 5, 100), _Link(2, 50, 5, 100)),
    (_Link(10, 20, 5, 100), _Link(10, 100, 5, 100)),
)
# Unlike queues: one that never has room for a window, and one that delays by four round trips.
_UNLIKE_QUEUES: tuple[_Links, ...] = (
    (_Link(10, 50, 0, 50), _Link(10, 50, 0, 400)),
    (_Link(10, 50, 5, 50), _Link(10, 50, 5, 400)),
)
# Three paths, of which each differs from the next one in one or both of rate and round trip.
_THREE: tuple[_Links, ...] = (
    (_Link(10, 20, 0, 100), _Link(10, 50, 0, 100), _Link(2, 100, 0, 100)),
    (_Link(10, 20, 5, 100), _Link(10, 50, 5, 100), _Link(2, 100, 5, 100)),
)
# Runs over unlike links with random losses, live and simulated. Their goodput varies by a tenth from run to run, so the
# interval of the mean of fewer runs would be wider than the tolerance.
_LOSSY_RUNS = 48
_LOSSY_SIMULATED_RUNS = 200


def _both_orders(links: Iterable[_Links]) -> list[_Links]:
    """Links in both orders."""
    return [order for each in links for order in (each, each[::-1])]


def _unlike(links: _Links) -> TestCase:
    lossy = any(link.loss for link in links)
    live_runs, simulated = (_LOSSY_RUNS, _LOSSY_SIMULATED_RUNS) if lossy else (_VARYING_RUNS, _SIMULATED_RUNS)
    case = _Kind(Part.SEVERAL_PATHS, _UPSTREAM, live_runs).case(links, "cubic")
    return replace(case, simulated_runs=simulated, criteria=criteria.UNLIKE_PATHS)


def _several_paths() -> list[TestCase]:
    varying = _Kind(Part.SEVERAL_PATHS, _UPSTREAM, _VARYING_RUNS)
    pairs = [replace(varying, live_runs=5).case(pair, control) for pair in _PAIRS for control in _CONTROLS]
    unlike = [_unlike(links) for links in _both_orders((*_UNLIKE, *_UNLIKE_QUEUES, *_THREE))]
    shared = _two_sessions(varying, _PAIRS[2])
    rate_based = [replace(varying.case(pair, _BBR), criteria=criteria.UNLIKE_PATHS) for pair in _BBR_OVER_TWO]
    return [*pairs, *unlike, shared, *rate_based]


def _our_server() -> list[TestCase]:
    kind = _Kind(Part.OUR_SERVER, _OURS, 3)
    pairs = [kind.case(pair, "cubic") for pair in _PAIRS]
    return [kind.case([_Link(10, 50, 5, 100)], "cubic"), *pairs, kind.case(_PAIRS[2], "lia")]


# The controls that `anabranch kernel attach` brings into the kernel.
_COUPLED_CONTROLS = ("lia", "olia", "balia", "mcc")


def _coupled() -> list[TestCase]:
    return [_coupled_over(pair, control) for pair in _PAIRS for control in _COUPLED_CONTROLS]


def _coupled_over(links: _Links, control: str) -> TestCase:
    # Coupled windows are smaller than uncoupled ones, so that chance decides more of what random losses leave of them.
    lossy = any(link.loss for link in links)
    live_runs, simulated = (_LOSSY_RUNS, _LOSSY_SIMULATED_RUNS) if lossy else (5, _SIMULATED_RUNS)
    return replace(_Kind(Part.COUPLED, _UPSTREAM, live_runs).case(links, control), simulated_runs=simulated)


# dash.js without its fast switch: with it, it fetches the segment on screen again and keeps its buffer almost empty, so
# that sessions that differ in a packet soon differ in everything, in Chromium as in the model. Such a player is no
# basis for a comparison.
_DASH_JS = ("dash.js-5 without fast switch", '{ kind = "dash.js-5", fast_switch = false }')
_BOLA = ("bola", '"bola"')


def _dash() -> list[TestCase]:
    def case(transport: str, player: tuple[str, str], links: Sequence[_Link], live_runs: int) -> TestCase:
        name, value = player
        video = '{ kind = "dash", ladder = "bbb-2s", duration = "110 s" }'
        session = f"video = {video}\nplayer = {value}\n"
        found = _Kind(Part.DASH, transport, live_runs, session, seconds=120).case(links, "cubic")
        return replace(found, name=f"{name}, {found.name}")

    return [
        case(_TCP, _DASH_JS, [_Link(2, 50, 5, 200)], 5),
        # Losses make the number of stalls vary by one or two, so that many runs are needed to know its mean within one.
        case(_TCP, _BOLA, [_Link(10, 50, 20, 100)], 12),
        case(_UPSTREAM, _DASH_JS, [_Link(2, 50, 0, 200), _Link(2, 100, 0, 200)], 5),
        *_chromium(),
    ]


def _chromium() -> list[TestCase]:
    """Test cases with ``manifest.mpd`` next to the scenario as their video.

    A real player needs real media segments, and the simulated one fetches as many bytes.
    """

    def case(transport: str, links: Sequence[_Link], control: str, server: str) -> TestCase:
        name, player = _DASH_JS
        session = f'video = {{ kind = "dash", mpd = "manifest.mpd" }}\nplayer = {player}\n'
        found = _Kind(Part.DASH, transport, 4, session, seconds=90).case(links, control)
        by = "" if server == KERNEL else ", our server"
        return replace(found, name=f"{name} in Chromium{by}, {found.name}", server=server, in_browser=True)

    first = _Link(2, 50, 0, 200)
    return [
        case(_TCP, [first], "cubic", KERNEL),
        # Not 2 + 1 Mb/s: nine tenths of that are just what the highest representation needs, and one run of eight stays
        # on it.
        case(_UPSTREAM, [first, _Link(2, 100, 0, 200)], "cubic", KERNEL),
        case(_OURS, [first, _Link(1, 100, 0, 200)], "lia", ANABRANCH),
    ]


# Time of the cut, in seconds.
_CUT_AT = 20


def _handoff() -> list[TestCase]:
    """A cut and its end.

    A sender with exponential back-off resumes at the first retransmission after the end, so the end must not be close
    to one: a timer three per cent shorter would then change the result by many seconds. The retransmissions on path 1
    are some 7.5 and 15 s after the cut, those on path 2 some 9 and 18 s.
    """

    def cut(path: int, seconds: int) -> TestCase:
        end = _CUT_AT + seconds
        links = [_Link(10, 20, 0, 100), _Link(10, 50, 0, 100)]
        case = _Kind(Part.HANDOFF, _UPSTREAM, 5).case(links, "cubic")
        events = (
            f'[[event]]\nat = "{_CUT_AT} s"\nlink = "path{path}"\ndown = true\n'
            f'[[event]]\nat = "{end} s"\nlink = "path{path}"\ndown = false\n'
        )
        name = f"path {path} cut from {_CUT_AT} s to {end} s: {case.name}"
        return replace(case, name=name, scenario=case.scenario + events)

    return [cut(1, 10), cut(2, 15)]


# Bytes of a chunk and the links that it comes over. The kernel alternates between two times of the large ones.
_CHUNKS_OVER: tuple[tuple[int, _Links], ...] = (
    (250_000, (_Link(10, 20, 0, 100), _Link(10, 100, 0, 100))),
    (300_000, (_Link(10, 20, 0, 100), _Link(10, 100, 0, 100))),
    (250_000, (_Link(8, 20, 0, 200), _Link(2, 100, 0, 200))),
    (300_000, (_Link(8, 20, 0, 200), _Link(2, 100, 0, 200))),
    (100_000, (_Link(2, 50, 5, 200), _Link(1, 100, 5, 200))),
)


def _on_off() -> list[TestCase]:
    def chunks(transport: str, size: int, links: Sequence[_Link], control: str, live_runs: int) -> TestCase:
        session = f'video = {{ kind = "bulk", size = "{size} B" }}\nplayer = "on-off"\n'
        case = _Kind(Part.ON_OFF, transport, live_runs, session).case(links, control)
        return replace(case, name=f"{size // 1000} kB, {case.name}")

    def strict(size: int, links: _Links, control: str) -> TestCase:
        case = chunks(_UPSTREAM, size, links, control, _VARYING_RUNS)
        return replace(case, criteria=criteria.CHUNKS_OVER_UNLIKE_PATHS)

    return [
        chunks(_TCP, 250_000, [_Link(10, 50, 0, 100)], "cubic", 3),
        chunks(_TCP, 250_000, [_Link(10, 50, 5, 100)], "cubic", 3),
        chunks(_TCP, 250_000, [_Link(10, 50, 5, 100)], "newreno", 3),
        chunks(_TCP, 100_000, [_Link(2, 100, 0, 200)], "cubic", 3),
        chunks(_UPSTREAM, 250_000, _PAIRS[0], "cubic", 5),
        *(strict(size, links, "cubic") for size, pair in _CHUNKS_OVER for links in _both_orders([pair])),
        *(strict(size, pair, _BBR) for size, pair in _BBR_CHUNKS_OVER),
    ]


DRAWN_RUNS = 48
"""Live runs of a drawn test case, of which there are many."""


def _drawn() -> list[TestCase]:
    return [_of_drawn(each) for each in drawn.drawn()]


def _of_drawn(each: drawn.Drawn) -> TestCase:
    wanted = criteria.OF_PART[Part.DRAWN]
    if each.chunks:
        wanted = criteria.CHUNKS_OVER_UNLIKE_PATHS
    elif each.sessions > 1:
        wanted = criteria.SHARED_LINK
    elif each.paths > 1:
        wanted = criteria.UNLIKE_PATHS
    return TestCase(
        part=Part.DRAWN,
        name=each.name,
        scenario=each.scenario,
        server=KERNEL,
        in_browser=False,
        sessions=each.sessions,
        seconds=drawn.SECONDS,
        live_runs=DRAWN_RUNS,
        simulated_runs=_SIMULATED_RUNS,
        paired=each.seeded or each.chunks or each.paths == 1,
        criteria=wanted,
    )


_OF_PART = {
    Part.DRAWN: _drawn,
    Part.ONE_PATH: _one_path,
    Part.SEVERAL_PATHS: _several_paths,
    Part.OUR_SERVER: _our_server,
    Part.DASH: _dash,
    Part.HANDOFF: _handoff,
    Part.ON_OFF: _on_off,
    Part.COUPLED: _coupled,
}
# Live runs of a quick test case: the minimum for a variance.
_QUICK_RUNS = 2
# The number of quick test cases of a part, where it is more than one; of coupled controls each once.
_QUICK_TEST_CASES = {Part.ONE_PATH: 8, Part.ON_OFF: 2, Part.COUPLED: 4}


def of_parts(parts: Iterable[Part], *, quick: bool = False) -> list[TestCase]:
    """The test cases of some parts. The quick ones are a few of each part, with few runs."""
    return [case for part in parts for case in (_quick(part) if quick else _OF_PART[part]())]


def _quick(part: Part) -> list[TestCase]:
    found = [case for case in _OF_PART[part]() if not case.name.endswith(_BBR)]
    every = -(-len(found) // _QUICK_TEST_CASES.get(part, 1))
    return [replace(case, live_runs=_QUICK_RUNS) for case in found[::every]]


def chosen(letters: Sequence[str], *, quick: bool, text: str | None) -> list[TestCase]:
    """The test cases of the parts with these letters; with a text only those with it in their names.

    Raises:
        InputError: There is no such part or test case.
    """
    by_letter = {part.letter: part for part in Part}
    for letter in letters:
        if letter not in by_letter:
            raise InputError(f"part `{letter}`: expected one of {', '.join(by_letter)}")
    parts = [by_letter[letter] for letter in letters] or USUAL_PARTS
    found = of_parts(parts, quick=quick)
    if text is not None:
        found = [case for case in found if text in case.name]
        if not found:
            raise InputError(f"no test case of these parts has `{text}` in its name")
    return found
