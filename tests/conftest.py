"""What the tests share: how to call the command line, and a scenario that takes a moment."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from anabranch import cli
from anabranch.experiments import paper

# Two unequal paths, one of them lossy and cut for a while, carry a video that needs both.
SCENARIO = """\
schema = 1
question = "Does a short session over two paths come through a cut?"
duration = "60 s"

[transport]
scheduler = "min-rtt"
congestion_control = "cubic"

[link.wifi]
rtt = "30 ms"
rate = "3 Mb/s"
loss = "1 %"

[link.lte]
rtt = "60 ms"
rate = "2 Mb/s"

[[session]]
paths = ["wifi", "lte"]
video = { kind = "progressive", size = "12 MB", rate = "4 Mb/s", fps = 25 }
player = "vlc"

[[event]]
at = "10 s"
link = "wifi"
down = true

[[event]]
at = "14 s"
link = "wifi"
down = false
"""


def pytest_configure() -> None:
    """Lets interrupts through, which a shell ignores for what it starts in the background and all that follows."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# First, because pytest-xdist reads the marks in a hook of the same name.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Distributes tests over processes: a module's stay together, because they share what it prepares.

    Live tests run one at a time, because they would disturb each other. They take longest, so they begin first; those
    of the kernel's programs are the last of them, because they would wait for Rust's tests of these.
    """
    if not config.pluginmanager.hasplugin("xdist"):
        return
    items.sort(key=lambda item: (item.get_closest_marker("live") is None, item.path.name == "test_kernel.py"))
    for item in items:
        group = "live" if item.get_closest_marker("live") else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))


def module_of_paper(name: str, module: str) -> ModuleType:
    """A program in the folder of a shipped paper, or its criteria."""
    folder = paper.shipped()[name]
    # Those of another paper may have the same names.
    for file in folder.glob("*.py"):
        if (other := sys.modules.get(file.stem)) is not None and other.__file__ != str(file):
            del sys.modules[file.stem]
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.pop(0)


def load_script(name: str) -> ModuleType:
    """A program of `scripts/` as a module."""
    scripts = Path(__file__).parent.parent / "scripts"
    # Programs import what they share from their own folder.
    if str(scripts) not in sys.path:
        sys.path.append(str(scripts))
    file = scripts / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their own module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario file in an empty directory."""
    path = tmp_path / "short.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def launch(tmp_path: Path) -> Run:
    """Calls the command line as a process of its own, in the test's own directory."""

    def call(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "anabranch", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=timeout, check=False)

    return call


@pytest.fixture
def anabranch(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """The same within this process: to start one takes longer than most commands."""

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        with contextlib.chdir(tmp_path), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["anabranch", *map(str, arguments)])
            code = _exit_code(cli.main)
        written = capfd.readouterr()
        return subprocess.CompletedProcess([str(argument) for argument in arguments], code, written.out, written.err)

    return call


def _exit_code(main: Callable[[], None]) -> int:
    """What a process would end with; a traceback is on standard error then as it would be there."""
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    # Whatever it is, a panic of the compiled part included.
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@pytest.fixture
def answer(anabranch: Run) -> Callable[..., Any]:
    """Calls the command line with --json, which must succeed and say nothing else, and reads the answer."""

    def call(*arguments: object) -> Any:
        done = anabranch(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return call


def require(*programs: str) -> None:
    """Skips the test where a program is missing; fails it where CI allows no skips."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        _leave(f"{', '.join(missing)} not installed; scripts/setup-live.sh installs what the live tests need")


def _leave(reason: str) -> None:
    if os.environ.get("ANABRANCH_REQUIRE_LIVE"):
        pytest.fail(reason)
    pytest.skip(reason)


def dashjs_reporting(mode: str) -> dict[str, Any]:
    """The configuration of dash.js with CMCD in its requests' ``query`` or ``headers``; without it if no mode is given.

    With CMCD dash.js 5.2.1 stays at its first bitrate. Chromium's decoder sometimes fails after a change on a busy
    machine then, with any server; without CMCD it was never seen to.
    """
    if not mode:
        return {"settings": {}, "largest": []}
    streaming = {"cmcd": {"enabled": True, "mode": mode}, "abr": {"autoSwitchBitrate": {"video": False}}}
    return {"settings": {"streaming": streaming}, "largest": []}


def require_live(*programs: str) -> None:
    """The same for tests that emulate links and use the kernel's Multipath TCP."""
    require("ip", *programs)
    lacking = []
    if os.geteuid() != 0:
        lacking.append("root")
    lacking += [path for path in ("/dev/net/tun", "/proc/sys/net/mptcp/enabled") if not Path(path).exists()]
    if lacking:
        _leave(f"live tests need {', '.join(lacking)}")


# What live tests of the server need besides `ip`, and the length of their film.
SERVER_PROGRAMS = ("tc", "setpriv", "curl", "mptcpize", "nstat", "openssl", "sysctl")
FILM_LEN = 20_000_000


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """A directory that has `videos/film.mp4`, for a server in namespaces; skips where these cannot be made."""
    require_live(*SERVER_PROGRAMS)
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "film.mp4").write_bytes(os.urandom(1 << 16) * (FILM_LEN >> 16))
    return tmp_path


# The length of the ladder below, and its rates.
LADDER_S = 8.0
LADDER_BPS = (300_000, 900_000)


@pytest.fixture(scope="session")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short DASH ladder of two representations for real players, encoded once for all tests."""
    require("ffmpeg")
    folder = tmp_path_factory.mktemp("content") / "ladder"
    command = [sys.executable, "-m", "anabranch", "content", "make", "--out", str(folder), "--segment", "2 s"]
    command += ["--duration", f"{LADDER_S:g} s", "--resolutions", "320x180, 480x270"]
    command += ["--rates", ", ".join(f"{rate} b/s" for rate in LADDER_BPS)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert made.returncode == 0, made.stderr
    return folder
