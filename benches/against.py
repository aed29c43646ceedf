"""Measures nnrs beside itself as it was at another commit: what a change has made faster, or slower.

    make bench-against REV=cd075f6                         # every timed case, at one thread and at all
    .venv/bin/python benches/against.py cd075f6 --case chain --case two_plans --threads 1

The other commit is built in release mode under .bench/, once. The cases are those of this checkout; rounds of both take
turns.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import cases
import environments
import run
from engine import Engine


def built(revision: str) -> str:
    """The interpreter of an environment with nnrs as it was at that commit."""
    commit = git("rev-parse", "--verify", f"{revision}^{{commit}}")
    folder = environments.HOME / f"nnrs-{commit[:12]}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"making {folder}", file=sys.stderr, flush=True)
        sources, wheels = folder / "sources", folder / "wheels"
        environments.run(sys.executable, "-m", "venv", "--clear", str(folder))
        git("worktree", "prune")
        git("worktree", "add", "--force", "--detach", str(sources), commit)
        maturin = str(Path(sys.executable).parent / "maturin")
        build = ["build", "--release", "--locked", "--manifest-path", str(sources / "Cargo.toml"), "--out", str(wheels)]
        environments.run(maturin, *build, "--target-dir", str(environments.HOME / "target"))
        wheel = str(next(wheels.glob("*.whl")))
        environments.run(str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
        git("worktree", "remove", "--force", str(sources))
        (folder / "complete").touch()
    return str(python)


def git(*arguments: str) -> str:
    command = ["git", "-C", str(environments.ROOT), *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr.strip())
    return result.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument("--case", action="append", metavar="NAME", help="only cases whose name begins so (repeatable)")
    parser.add_argument("--quick", action="store_true", help="few short rounds: a first look")
    parser.add_argument("--threads", type=run.thread_counts, default="1,all", metavar="N,...", help="default: 1,all")
    args = parser.parse_args()
    environments.HOME.mkdir(exist_ok=True)
    pythons = {"before": built(args.revision), "now": environments.interpreter("nnrs")}
    pace = run.Pace(5, 0.05, 2.0) if args.quick else run.Pace()
    chosen = [c for c in cases.TIMED if c.name.startswith(tuple(args.case or ("",)))]
    for threads in args.threads:
        print(f"{threads} threads: time now / before", flush=True)
        for case in chosen:
            print(f"{ratio(case, pythons, threads, pace):>8}  {case.name}", flush=True)


def ratio(case: cases.Case, pythons: dict[str, str], threads: int, pace: run.Pace) -> str:
    logs = [environments.HOME / f"{name}-{threads}.log" for name in pythons]
    pair = [Engine("nnrs", python, threads, log) for python, log in zip(pythons.values(), logs, strict=True)]
    try:
        for engine in pair:
            reply = engine.ask("build", name=case.name)
            if "error" in reply:
                return "error"
        times: list[list[float]] = [[], []]
        for _ in range(pace.rounds):
            for engine, found in zip(pair, times, strict=True):
                found.append(engine.ask("round", seconds=pace.seconds)["seconds"])
        before, now = (run.figure(t, 1)["value"] for t in times)
        return f"{now / before:.2f}"
    finally:
        for engine in pair:
            engine.stop()


if __name__ == "__main__":
    main()
