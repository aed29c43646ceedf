"""`nnrs profile`: how long each part of a file's training takes."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._errors import ArgumentError, message
from ..._files import atomic_path
from ..._monitor_files import make_folder
from ...logger import logger
from ._arguments import add_parser
from ._experiment import backward, check_optimizers, mean_of, open_experiment, read_batch
from ._progress import states_as_bar, tracked
from .utility import let_data_to_variable

_SECONDS, _RUNS = 1.0, 100


def profile_command(args: Any) -> None:
    """Write the times of all optimizers' parts."""
    from .. import callback

    callback.update_status(args)
    x = open_experiment("profile", args.config)
    check_optimizers("profile", x)
    make_folder("profile", args.outdir)
    callback.update_status("processing", True)
    columns = {}
    with states_as_bar(os.path.join(args.outdir, "progress.txt")):
        for o in x.optimizers.values():
            title = f"optimizer '{o.name}' with network '{o.network.name}'"
            logger.log(99, "Profiling %s ...", title)
            columns[title] = _times(x, o)
    write_table(os.path.join(args.outdir, "profile.csv"), "time in ms", columns)
    logger.log(99, "Profile Completed.")
    callback.update_status("finished")


def measure(
    run: Callable[[], object], wait: Callable[[], object], seconds: float = _SECONDS, runs: int = _RUNS
) -> float:
    """Mean time of `run` in milliseconds, over as many seconds and runs at least; `wait` waits for a GPU.

    >>> calls = []
    >>> mean = measure(lambda: calls.append(1), lambda: None, seconds=0, runs=5)
    >>> len(calls), mean > 0
    (6, True)
    """
    run()
    wait()
    start, count, total = time.perf_counter(), 0, 0.0
    while time.perf_counter() < start + seconds or count < runs:
        begin = time.perf_counter()
        run()
        wait()
        total += time.perf_counter() - begin
        count += 1
    return total * 1000 / count


def _times(x: Any, o: Any) -> dict[str, float]:
    parts, close = _parts(x, o)
    found: dict[str, float] = {}
    try:
        for name, run in tracked(parts, "Profile"):
            found[name] = measure(run, _waiter())
            logger.log(99, "%s %f(ms)", name, found[name])
        found.update(_functions(o))
    finally:
        close()
    return found


def _waiter() -> Callable[[], object]:
    from ... import get_current_context
    from ...ext_utils import import_extension_module

    context = get_current_context()
    kind = context.backend[0].split(":")[0]
    module = import_extension_module(kind)
    return lambda: module.synchronize(device_id=context.device_id)


def _parts(x: Any, o: Any) -> tuple[list[tuple[str, Callable[[], object]]], Callable[[], None]]:
    """The parts of a training step, by name, and what closes the datasets."""
    import contextlib

    files = contextlib.ExitStack()
    iterators = [files.enter_context(x.datasets[name].data_iterator()) for name in o.proto.dataset_name]

    def load() -> dict[str, np.ndarray]:
        return read_batch(iterators)

    data = load()

    def let(v: Any, name: str) -> Callable[[], object]:
        if name not in data and name.startswith("%"):
            return lambda: v.variable_instance.data.fill(0)
        if name not in data:
            raise ArgumentError(message("profile", "config", f"the datasets have no variable {name!r}"))
        return lambda: let_data_to_variable(v.variable_instance, data[name], data_name=name, variable_name=v.name)

    def generate(v: Any, make: Any) -> Callable[[], object]:
        x = v.variable_instance
        return lambda: let_data_to_variable(x, np.asarray(make(x.shape)), variable_name=v.name)

    parts: list[tuple[str, Callable[[], object]]] = [("load_dataset", load)]
    parts += [(f"let_data ({name} to {v.name})", let(v, name)) for v, name in o.dataset_assign.items()]
    parts += [(f"generate_data ({v.name})", generate(v, make)) for v, make in o.generator_assign.items()]
    parts.append(("forward_all", lambda: o.target.forward(clear_no_need_grad=True)))
    parts.append(("forward_all+backward_all", lambda: _step(o)))
    if o.weight_decay > 0:
        parts.append((f"weight_decay ({o.solver.name})", lambda: o.solver.weight_decay(o.weight_decay)))
    parts.append((f"update ({o.solver.name})", lambda: o.solver.update()))
    parts.append(("monitor_loss", lambda: mean_of(o.loss_variables)))
    return parts, files.close


def _step(o: Any) -> None:
    o.target.forward(clear_no_need_grad=True)
    o.solver.zero_grad()
    backward(o)


def _functions(o: Any) -> dict[str, float]:
    """Times of the functions in runs of the graph."""
    from ... import get_current_context
    from ..profiler import GraphProfiler

    context = get_current_context()
    name = context.backend[0].split(":")[0]
    profiler = GraphProfiler(o.target, context.device_id, name, n_run=_RUNS, max_measure_execution_time=_SECONDS)
    profiler.time_profiling_forward()
    profiler.time_profiling_backward()
    found: dict[str, float] = {}
    for way, stats in profiler.get_result().items():
        for stat in stats if way in ("forward", "backward") else ():
            _add(found, f"{way}_function ({stat.function_name})", float(stat.mean_time))
    return found


def _add(found: dict[str, float], name: str, value: float) -> None:
    """Add a time; a name that is there gets a number."""
    count, key = 1, name
    while key in found:
        count += 1
        key = f"{name} #{count}"
    found[key] = value


def write_table(path: str, title: str, columns: dict[str, dict[str, float]]) -> None:
    """Write a csv file with a column for each dict and a row for each of their names."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow([title, *columns])
        for name in names:
            writer.writerow([name, *(f"{c[name]:f}" if name in c else "" for c in columns.values())])


def add_profile_command(subparsers: Any) -> None:
    """Add the command `profile`."""
    example = "example:\n  nnrs profile -c network.nnp -o times    writes times/profile.csv"
    parser = add_parser(subparsers, "profile", "measure the parts of a training step", examples=example)
    parser.add_argument("-c", "--config", required=True, help=".nntxt or .nnp file with an optimizer")
    parser.add_argument("-o", "--outdir", required=True, help="folder for the results")
    parser.set_defaults(func=profile_command)
