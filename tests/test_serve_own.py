"""`anabranch serve` with algorithms in Python: what they send, what their failures end, and what a reload takes."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anabranch import InputError
from anabranch.algorithms.serving import import_anew
from anabranch.cli.serve import check
from conftest import FILM_LEN, Run
from test_serve_page import TIMEOUT_S, Namespace, network
from test_service import CONFIGURATION, FETCH, Service, wait_for

pytestmark = pytest.mark.live

MIN_RTT = """\
from anabranch import Scheduler


class Own(Scheduler):
    def decide(self, view, trigger):
        self.ctx.emit("candidates", len(view.candidates))
        return min(view.candidates, key=lambda subflow: subflow.srtt)
"""
FAILS = """\
from anabranch import Scheduler


class Own(Scheduler):
    def __init__(self):
        self.decisions = 0

    def decide(self, view, trigger):
        self.decisions += 1
        if self.decisions == 20:
            raise ValueError("the twentieth")
        return view.candidates[0]
"""
REFUSES = """\
from pathlib import Path

from anabranch import CongestionControl, Scheduler


class Own(Scheduler):
    def __init__(self):
        if Path("refuse").exists():
            raise RuntimeError("no more")

    def decide(self, view, trigger):
        return view.candidates[-1]


class Shrinks(CongestionControl):
    def on_ack(self, ack, window, siblings):
        window.cwnd = 0.5

    def on_congestion(self, cause, window, siblings):
        window.ssthresh = 2.0
"""


@pytest.fixture
def site(videos: Path) -> Path:
    """A directory with a film, a configuration, and next to it the scheduler that it names."""
    (videos / "serve.toml").write_text(CONFIGURATION + 'scheduler = "own:Own"\n', "utf-8")
    (videos / "own.py").write_text(MIN_RTT, "utf-8")
    return videos


@contextmanager
def serving(machine: Namespace, site: Path) -> Iterator[Service]:
    service = Service(machine, site)
    try:
        service.wait_for("serving ")
        yield service
    finally:
        service.end()


def metric(machine: Namespace, site: Path, name: str) -> float:
    """A metric of the server, which is at most a second old."""
    page = machine.run("curl --silent http://127.0.0.1:9100/metrics", site)
    (found,) = re.findall(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)
    return float(found)


def fetch(client: Namespace, site: Path) -> int:
    """Downloads the film to `got`; the exit code of curl."""
    (site / "got").unlink(missing_ok=True)
    with client.start("exec " + FETCH.format("--fail", "got"), site) as download:
        try:
            download.communicate(timeout=TIMEOUT_S)
        finally:
            download.kill()
    return download.returncode


def is_intact(site: Path, name: str = "got") -> bool:
    return (site / name).read_bytes() == (site / "videos" / "film.mp4").read_bytes()


def test_a_failure_ends_its_connection_and_a_reload_takes_the_new_code(site: Path) -> None:
    with network(True, site) as (machine, client), serving(machine, site) as service:
        assert fetch(client, site) == 0
        assert is_intact(site)
        joins = client.run("nstat -asz MPTcpExtMPJoinSynAckRx", site).split()
        assert joins[joins.index("MPTcpExtMPJoinSynAckRx") + 1] == "1"
        wait_for(lambda: metric(machine, site, "anabranch_decision_seconds_count") > FILM_LEN / 1500)
        assert 1e-7 < metric(machine, site, 'anabranch_decision_seconds{quantile="0.5"}') < 0.01
        assert metric(machine, site, "anabranch_connections_failed_total") == 0
        # A connection that exists keeps the code that it began with. It leaves room in the queues, and connections
        # that fail have sent little by then: a full queue drops resets, too, and their client would wait for more.
        slow = client.start("exec " + FETCH.format("--fail --limit-rate 2M", "slow"), site)
        wait_for(lambda: (site / "slow").exists())
        child = service.child()
        (site / "own.py").write_text(FAILS, "utf-8")
        machine.run("anabranch serve --config serve.toml --reload", site)
        after = service.wait_for("options read again")
        assert [fetch(client, site) for _ in range(2)] == [56, 56]
        after = service.wait_for('own.py", line 11, in decide', after)
        after = service.wait_for("ValueError: the twentieth", after)
        after = service.wait_for("error: `own:Own` raised ValueError at ", after)
        last = service.output.decode().splitlines()[after - 1]
        pattern = (
            r"of the server's run: the twentieth \(/.*/own\.py:11\); the connection of \d+\.\d+\.\d+\.\d+:\d+ is reset"
        )
        assert re.search(pattern, last)
        wait_for(lambda: metric(machine, site, "anabranch_connections_failed_total") == 2)
        slow.communicate(timeout=TIMEOUT_S)
        assert (slow.returncode, is_intact(site, "slow")) == (0, True)
        for once in (b"Traceback (most recent call last)", b"raised ValueError at "):
            assert service.output.count(once) == 1, "for both connections"
        # A broken file changes nothing.
        (site / "own.py").write_text(MIN_RTT + "def broken(:\n", "utf-8")
        os.kill(service.pid, signal.SIGHUP)
        after = service.wait_for("the server goes on as before", after)
        assert re.search(r"SyntaxError: .*\(own\.py, line 8\)", service.output.decode().splitlines()[after - 1])
        (site / "own.py").write_text(MIN_RTT, "utf-8")
        os.kill(service.pid, signal.SIGHUP)
        service.wait_for("options read again", after)
        assert (fetch(client, site), is_intact(site), service.child()) == (0, True, child)


def test_a_constructor_that_raises_refuses_and_signals_end_a_busy_server(site: Path) -> None:
    (site / "own.py").write_text(REFUSES, "utf-8")
    with network(True, site) as (machine, client), serving(machine, site) as service:
        (site / "refuse").touch()
        assert fetch(client, site) == 7, "curl could not connect"
        after = service.wait_for("error: `own:Own` cannot be made: RuntimeError: no more (")
        wait_for(lambda: metric(machine, site, "anabranch_connections_unmade_total") == 1)
        (site / "refuse").unlink()
        assert (fetch(client, site), is_intact(site)) == (0, True)
        # What a method leaves behind is checked, too.
        controlled = CONFIGURATION + 'congestion-control = "own:Shrinks"\n'
        (site / "serve.toml").write_text(controlled, "utf-8")
        os.kill(service.pid, signal.SIGHUP)
        after = service.wait_for("options read again", after)
        assert fetch(client, site) == 56
        service.wait_for("window.cwnd became 0.500 packets; expected at least 1", after)
        (site / "serve.toml").write_text(CONFIGURATION + 'scheduler = "own:Own"\n', "utf-8")
        os.kill(service.pid, signal.SIGHUP)
        service.wait_for("options read again", after)
        slow = client.start("exec " + FETCH.format("--limit-rate 1M", "slow"), site)
        wait_for(lambda: (site / "slow").exists())
        for _ in range(2):
            os.kill(service.pid, signal.SIGTERM)
            time.sleep(0.3)
        assert service.process.wait(timeout=TIMEOUT_S) == 0
        slow.communicate(timeout=TIMEOUT_S)
        # The second signal ended the download, which takes twenty seconds.
        assert slow.returncode == 56


LISTEN = ("--root", ".", "--listen", "srv1=10.99.0.1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scheduler", "nowhere:Own"), "--scheduler: `nowhere:Own`: there is no module `nowhere`"),
        (("--scheduler", "broken:Own"), "(broken.py, line 2)"),
        (("--scheduler", "own:Other"), "has no class `Other`"),
        (("--congestion-control", "own:Own"), "--congestion-control: `own:Own` is a scheduler"),
        (("--scheduler", "own:Needs"), "`own:Needs` needs the option weight"),
        (("--scheduler", "own:Raises"), "`own:Raises` cannot be made: ZeroDivisionError: division by zero ("),
        (("--scheduler", "ends:Own"), "`ends:Own`: its module ends the program when it is imported"),
    ],
)
def test_what_is_wrong_with_an_own_algorithm_is_said_before_serving(
    anabranch: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    needs = "class Needs(Own):\n    def __init__(self, weight):\n        pass\n"
    raises = "class Raises(Own):\n    def __init__(self):\n        1 / 0\n"
    (tmp_path / "own.py").write_text(MIN_RTT + needs + raises, "utf-8")
    (tmp_path / "broken.py").write_text("\nclass Own(:\n", "utf-8")
    (tmp_path / "ends.py").write_text("raise SystemExit(3)\n", "utf-8")
    done = anabranch("serve", *LISTEN, *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
    assert not {"own", "broken", "ends"} & set(sys.modules), "nothing was imported here"
    # The wiring's check knows no constructor, but the names.
    if "Raises" not in arguments[1]:
        done = anabranch("serve", *LISTEN, *arguments, "--check")
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_modules_are_imported_anew_with_their_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights_of_own.py").write_text("WEIGHT = 1\n", "utf-8")
    method = "    def weight(self):\n        return weights_of_own.WEIGHT + ADDED\n"
    source = f"import weights_of_own\n{MIN_RTT}\n{method}"
    (tmp_path / "algorithm_of_own.py").write_text("ADDED = 10\n" + source, "utf-8")
    name = [("scheduler", "algorithm_of_own:Own")]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (first,) = import_anew(name, None)
    assert first().weight() == 11  # type: ignore[attr-defined]
    # Within the second in which the files were written, and of the same length.
    (tmp_path / "weights_of_own.py").write_text("WEIGHT = 2\n", "utf-8")
    (tmp_path / "algorithm_of_own.py").write_text("ADDED = 20\n" + source, "utf-8")
    (second,) = import_anew(name, None)
    assert second().weight() == 22  # type: ignore[attr-defined]
    (tmp_path / "algorithm_of_own.py").write_text("nonsense\n", "utf-8")
    module = sys.modules["algorithm_of_own"]
    with pytest.raises(InputError, match=r"NameError: .*algorithm_of_own\.py:1\)"):
        import_anew(name, None)
    assert sys.modules["algorithm_of_own"] is module
    for imported in ("algorithm_of_own", "weights_of_own"):
        del sys.modules[imported]


def test_a_check_apart_ends_whatever_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_LONGEST_S", 1)
    with pytest.raises(InputError, match="were not imported within 1 s"):
        check.run(lambda: time.sleep(60))
    with pytest.raises(InputError, match="ended the process that checks them, with code 4"):
        check.run(lambda: os._exit(4))
    with pytest.raises(InputError, match="was broken off"):
        check.run(lambda: time.sleep(60), lambda: False)
    with pytest.raises(OSError, match="a disk"):
        check.run(lambda: (_ for _ in ()).throw(OSError("a disk")))
    check.run(lambda: None)
    assert subprocess.run(["true"], check=False).returncode == 0, "no child is left to be taken for another one"
