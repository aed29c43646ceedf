"""Measures nnrs beside itself as it was at another commit: what a change has made faster, or slower.

    make bench-against REV=cd075f6                         # every timed case, at one thread and at all
    .venv/bin/python benches/against.py cd075f6 --case chain --case two_plans --threads 1

The other commit is built in release mode under .bench/, once. The cases are those of this checkout; rounds of both take
turns.
"""

from __future__ import annotations

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
    return environments.environment(folder, lambda: sys.executable, lambda: [wheel(commit, folder)])


def wheel(commit: str, folder: Path) -> str:
    sources, wheels = folder / "sources", folder / "wheels"
    git("worktree", "prune")
    git("worktree", "add", "--force", "--detach", str(sources), commit)
    maturin = str(Path(sys.executable).parent / "maturin")
    build = ["build", "--release", "--locked", "--manifest-path", str(sources / "Cargo.toml"), "--out", str(wheels)]
    environments.run(maturin, *build, "--target-dir", str(environments.HOME / "target"))
    git("worktree", "remove", "--force", str(sources))
    return str(next(wheels.glob("*.whl")))


def git(*arguments: str) -> str:
    command = ["git", "-C", str(environments.ROOT), *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr.strip())
    return result.stdout.strip()


def main() -> None:
    parser = run.parser_of(__doc__.splitlines()[0])
    parser.add_argument("revision", help="the commit to compare with")
    args = parser.parse_args()
    environments.HOME.mkdir(exist_ok=True)
    pythons = {"before": built(args.revision), "now": environments.interpreter("nnrs")}
    chosen = [c for c in cases.TIMED if c.name.startswith(tuple(args.case or ("",)))]
    for threads in args.threads:
        print(f"{threads} threads: time now / before", flush=True)
        for case in chosen:
            print(f"{ratio(case, pythons, threads, run.Pace.of(args.quick)):>8}  {case.name}", flush=True)


def ratio(case: cases.Case, pythons: dict[str, str], threads: int, pace: run.Pace) -> str:
    logs = environments.HOME
    pair = [Engine("nnrs", python, threads, logs / f"{k}-{threads}.log", k) for k, python in pythons.items()]
    try:
        values = run.measure(case, pair, pace)
    finally:
        for engine in pair:
            engine.stop()
    errors = [f"{k}: {v['error']}" for k, v in values.items() if "error" in v]
    return errors[0] if errors else f"{values['now']['value'] / values['before']['value']:.2f}"


if __name__ == "__main__":
    main()
