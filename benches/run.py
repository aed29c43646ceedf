"""Measures nnrs beside torch and NNabla, and prints the table of ratios.

    make bench                                             # everything; builds nnrs in release mode first
    .venv/bin/python benches/run.py --case conv --quick    # cases whose name begins so, short rounds

Each engine lives in a process of its own for as long as a number of threads is measured; only one works at a time. A
case runs in short rounds in turn (nnrs, torch, NNabla, nnrs, ...), so that a machine that slows down slows all of them.
An engine's figure is the median of the better half of its rounds; beside a ratio stand the least and the largest of
three parts of the rounds. "Of the limit" is the share of what the same run measured the machine to do at most: fused
operations on registers, bytes copied. Results also go to .bench/results.json and .md.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cases
import environments
import report
from cases.case import Case, Whole
from engine import Engine

ENGINES = ("nnrs", "torch", "nnabla")


@dataclass
class Pace:
    """How long to measure: rounds of `seconds`; an engine whose rounds took `patience` together has had enough."""

    rounds: int = 12
    seconds: float = 0.15
    patience: float = 5.0

    @staticmethod
    def of(quick: bool) -> Pace:
        return Pace(5, 0.05, 2.0) if quick else Pace()


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown CPU"
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown CPU")


def figure(times: list[float], operators: int) -> dict[str, Any]:
    best = sorted(times)[: (len(times) + 1) // 2]
    return {"value": statistics.median(best) / operators, "rounds": [t / operators for t in times]}


def build(case: Case, engines: list[Engine]) -> tuple[list[Engine], dict[str, Any]]:
    """The engines that can run the case, and the errors of those that cannot."""
    able, errors = [], {}
    for engine in engines:
        if engine.name == "torch" and case.torch is None:
            continue
        reply = engine.ask("build", name=case.name)
        if "error" in reply:
            errors[engine.label] = reply
            engine.ask("drop")
        else:
            able.append(engine)
    return able, errors


def measure(case: Case, engines: list[Engine], pace: Pace) -> dict[str, Any]:
    able, values = build(case, engines)
    times: dict[str, list[float]] = {e.label: [] for e in able}
    spent = dict.fromkeys(times, 0.0)
    for _ in range(pace.rounds):
        for engine in able:
            if engine.label in values or (spent[engine.label] > pace.patience and len(times[engine.label]) >= 3):
                continue
            start = time.perf_counter()
            reply = engine.ask("round", seconds=pace.seconds)
            spent[engine.label] += time.perf_counter() - start
            if "error" in reply:
                values[engine.label] = reply
            else:
                times[engine.label].append(reply["seconds"])
    for engine in able:
        engine.ask("drop")
        if engine.label not in values:
            values[engine.label] = figure(times[engine.label], case.operators)
    return values


def row(
    case: Case | Whole, threads: int, values: dict[str, Any], limits: dict[str, float] | None = None
) -> dict[str, Any]:
    whole = isinstance(case, Whole)
    share = 0 if whole else case.share
    needs = [getattr(case, part, 0) / rate for part, rate in (limits or {}).items()]
    return {
        "name": case.name,
        "title": case.title,
        "threads": threads,
        "unit": case.unit if whole else "s",
        "values": values,
        "limits": {
            name: limit[threads == 1] if isinstance(limit, tuple) else limit for name, limit in case.limits.items()
        },
        "share": share,
        "ceiling": case.ceiling if whole else None,
        "least": max(needs, default=0) or None,  # seconds at the limit of the machine
        "work": {part: getattr(case, part, 0) for part in ("flops", "moved")},
        "machine": limits,
    }


def show(found: dict[str, Any]) -> dict[str, Any]:
    print(report.line(report.cells(found)), flush=True)
    return found


@functools.cache
def machine_limits(python: str, threads: int) -> dict[str, float]:
    """Operations and bytes a second that the machine does at most: the most that nnrs measures in three times."""
    engine = Engine("nnrs", python, threads, environments.HOME / "nnrs-limits.log")
    found = [reply for reply in (engine.ask("limits") for _ in range(3)) if "error" not in reply]
    engine.stop()
    return {part: max(reply[part] for reply in found) for part in ("flops", "moved")} if found else {}


def timed_rows(chosen: list[Case], pythons: dict[str, str], threads: int, pace: Pace) -> list[dict[str, Any]]:
    """Every case with a fresh set of workers."""
    engines = [
        Engine(name, python, threads, environments.HOME / f"{name}-{threads}.log") for name, python in pythons.items()
    ]
    try:
        limits = machine_limits(pythons["nnrs"], threads) if "nnrs" in pythons else {}
        return [show(row(case, threads, measure(case, engines, pace), limits)) for case in chosen]
    finally:
        for engine in engines:
            engine.stop()


def find_engines(wanted: list[str]) -> tuple[dict[str, str], list[str]]:
    """Interpreters of the engines that answer, and lines that say what was found."""
    pythons, lines = {}, []
    for name in wanted:
        try:
            python = environments.interpreter(name)
        except RuntimeError as error:
            lines.append(f"{name}: left out: {error}")
            continue
        engine = Engine(name, python, 1, environments.HOME / f"{name}-hello.log")
        reply = engine.ask("hello")
        engine.stop()
        if "error" in reply:
            lines.append(f"{name}: left out: {reply['error']}")
        else:
            pythons[name] = python
            lines.append(f"{name} {reply['version']} on Python {reply['python']}")
    return pythons, [*lines, *limit_lines(pythons)]


def limit_lines(pythons: dict[str, str]) -> list[str]:
    """The limits of the machine, at one thread and at all."""
    lines: list[str] = []
    alone = 0.0
    for threads in sorted({1, cores()}) if "nnrs" in pythons else ():
        found = machine_limits(pythons["nnrs"], threads)
        if found:
            flops, moved = found["flops"] / 1e9, found["moved"] / 1e9
            lines.append(
                f"limits of {threads} thread{'s' * (threads > 1)}: {flops:.0f} GFLOP/s, copies {moved:.1f} GB/s"
            )
            alone = alone or flops
            if flops < 0.7 * threads * alone:
                lines.append(f"something else took cores of this machine: rows of {threads} threads may be too slow")
    return lines


def thread_counts(text: str) -> list[int]:
    counts = [cores() if part == "all" else int(part) for part in text.split(",")]
    return sorted(set(counts))


def parser_of(description: str) -> argparse.ArgumentParser:
    """What all measuring asks for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--case", action="append", metavar="NAME", help="only cases whose name begins so (repeatable)")
    parser.add_argument("--quick", action="store_true", help="few short rounds: a first look")
    parser.add_argument("--threads", type=thread_counts, default="1,all", metavar="N,...", help="default: 1,all")
    return parser


def arguments() -> argparse.Namespace:
    parser = parser_of(__doc__.splitlines()[0])
    parser.add_argument("--engines", type=lambda s: s.split(","), default=list(ENGINES), metavar="NAME,...")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    return parser.parse_args()


def write(rows: list[dict[str, Any]], heading: list[str]) -> None:
    text = report.document(rows, heading)
    (environments.HOME / "results.md").write_text(text)
    (environments.HOME / "results.json").write_text(
        json.dumps({"about": heading, "rows": rows}, indent=1, default=float) + "\n"
    )
    remarks = report.notes(rows)
    if remarks:
        print("\n" + "\n".join(remarks))
    print(f"\nwritten: {environments.HOME / 'results.md'}, results.json", file=sys.stderr)


def main() -> None:
    args = arguments()
    prefixes = tuple(args.case or ("",))
    timed = [c for c in cases.TIMED if c.name.startswith(prefixes)]
    whole = [c for c in cases.WHOLE if c.name.startswith(prefixes)]
    if args.list or not timed + whole:
        print("\n".join(c.name for c in [*cases.TIMED, *cases.WHOLE]))
        sys.exit(0 if args.list else f"no case begins with {' or '.join(prefixes)}")

    environments.HOME.mkdir(exist_ok=True)
    pythons, lines = find_engines(args.engines)
    heading = [f"{cpu_name()}, {cores()} cores, {time.strftime('%Y-%m-%d %H:%M')}", *lines]
    print("\n".join([*heading, "", report.header()]), flush=True)
    pace = Pace.of(args.quick)
    rows = [r for threads in args.threads if timed for r in timed_rows(timed, pythons, threads, pace)]
    rows += [show(row(case, cores(), case.measure(pythons, args.quick))) for case in whole]
    write(rows, heading)


if __name__ == "__main__":
    main()
