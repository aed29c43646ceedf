"""Runs the scripts of examples/migration/ on NNabla and on nnrs, unchanged, in turn, and compares their series.

python benches/migration.py                            # the table of docs/migration-scripts.md
python benches/migration.py gan vae --rounds 1         # some of them
python benches/migration.py --golden                   # writes NNabla's series of a few steps, for the tests
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import environments

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "migration"
GOLDEN = ROOT / "tests" / "golden" / "migration_series.json"


class Script(NamedTuple):
    """How a script is compared: its steps in tests, and how far the series may lie apart there, and in a whole run."""

    steps: int = 12
    bound: float = 1e-4
    whole: float = 1e-4


SCRIPTS = {
    "classification_csv": Script(),
    "siamese": Script(),
    "gan": Script(),
    "wgan_gp": Script(),
    "vae": Script(),
    "lstm_lm": Script(),
    "word2vec": Script(),
    "gcn": Script(),
    "meta_learning": Script(),
    "architecture_search": Script(),
    "segmentation_augmentation": Script(whole=5e-3),
    "detection": Script(),
    "quantization_aware": Script(whole=5e-2),
    "pruning": Script(),
    "distillation": Script(),
    "mixed_precision": Script(bound=5e-3, whole=5e-2),
    "diffusion_recompute": Script(),
    "nerf": Script(),
    "transformer_translation": Script(),
    "svd_compression": Script(),
}

Series = dict[str, list[tuple[int, float]]]
CHILD = """
import ast, importlib, json, resource, runpy, sys, time
engine, script, *sys.argv[1:] = sys.argv[1:]
if engine == "nnrs":
    import nnrs.compat
    nnrs.compat.install()
# What the script imports, and what engines import when they write, is outside of the time.
nodes = list(ast.walk(ast.parse(open(script).read())))
names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
names += [n.module for n in nodes if isinstance(n, ast.ImportFrom)]
for name in [*names, "nnabla.utils.image_utils", "h5py", "PIL.Image"]:
    importlib.import_module(name)
sys.argv[0] = script
start = time.perf_counter()
runpy.run_path(script, run_name="__main__")
seconds = time.perf_counter() - start
print()
print(json.dumps({"seconds": seconds, "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def interpreter(engine: str) -> str:
    """The Python of an engine: $NNRS_BENCH_<ENGINE>, else .venv, or one made for NNabla and what scripts import."""
    named = os.environ.get(f"NNRS_BENCH_{engine.upper()}")
    if named:
        return named
    if engine == "nnrs":
        return environments.own()
    packages = [*environments.PACKAGES["nnabla"], "scikit-learn", "pillow", "h5py"]
    return environments.environment(environments.HOME / "migration", environments.python310, lambda: packages)


def run(engine: str, script: str, folder: Path, *more: str) -> dict[str, Any]:
    """One run in a process of its own, at one thread: seconds, peak MiB, series."""
    names = ("NNRS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    command = [interpreter(engine), "-c", CHILD, engine, str(FOLDER / f"{script}.py"), "-o", str(folder), *more]
    environment = {**os.environ, **dict.fromkeys(names, "1"), "MPLBACKEND": "Agg"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a package that is installed is compiled
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    if done.returncode:
        raise RuntimeError(f"{script} on {engine}:\n{done.stderr[-3000:]}")
    return {**json.loads(done.stdout.splitlines()[-1]), "series": series(folder)}


def series(folder: Path) -> Series:
    """What the monitors of a run wrote, by name."""
    files = sorted(folder.rglob("*.series.txt"))
    return {f.name.removesuffix(".series.txt"): [entry(line) for line in f.read_text().splitlines()] for f in files}


def entry(line: str) -> tuple[int, float]:
    index, value = line.split()
    return int(index), float(value.strip("[]"))


def difference(ours: Series, theirs: Series) -> float:
    """The largest difference of two runs, in parts of its series' largest value; infinite where steps differ."""
    if ours.keys() != theirs.keys():
        return float("inf")
    return max(apart(ours[name], theirs[name]) for name in theirs)


def apart(ours: list[tuple[int, float]], theirs: list[tuple[int, float]]) -> float:
    if [i for i, _ in ours] != [i for i, _ in theirs] or not theirs:
        return float("inf")
    largest = max(abs(v) for _, v in theirs) or 1.0
    return max(abs(a - b) for (_, a), (_, b) in zip(ours, theirs, strict=True)) / largest


def once(engine: str, script: str, *more: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return run(engine, script, Path(folder), *more)


def compare(script: str, rounds: int, more: list[str]) -> str:
    """A line of the table: both engines in turn, the best time of each."""
    runs: dict[str, list[dict[str, Any]]] = {"nnabla": [], "nnrs": []}
    for _ in range(rounds):
        for engine, results in runs.items():
            results.append(once(engine, script, *more))
    apart = difference(runs["nnrs"][0]["series"], runs["nnabla"][0]["series"])
    best = {engine: [min(r[key] for r in results) for key in ("seconds", "mib")] for engine, results in runs.items()}
    (theirs, their_mib), (ours, our_mib) = best["nnabla"], best["nnrs"]
    times = f"{theirs:.2f} | {ours:.2f} | {ours / theirs:.2f}"
    return f"| `{script}` | {apart:.1e} | {times} | {their_mib:.0f} | {our_mib:.0f} |"


def write_golden(names: list[str]) -> None:
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    for name in names:
        steps, bound, _ = SCRIPTS[name]
        print(name, flush=True)
        made = once("nnabla", name, "-i", str(steps))["series"]
        golden[name] = {"steps": steps, "bound": bound, "series": made}
    GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", default=list(SCRIPTS), help="names, without .py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="instead of what each script takes")
    parser.add_argument("--golden", action="store_true", help="write tests/golden/migration_series.json")
    args = parser.parse_args()
    if args.golden:
        write_golden(args.scripts)
        return 0
    print(
        "| script | difference | NNabla, s | nnrs, s | ratio | NNabla, MiB | nnrs, MiB |\n|---|---|---|---|---|---|---|"
    )
    for script in args.scripts:
        print(compare(script, args.rounds, ["-i", str(args.steps)] if args.steps else []), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
