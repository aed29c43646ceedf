"""How long the functions of a graph take: `GraphProfiler`, and its table as a csv file.

>>> import nnrs as nn, nnrs.functions as F
>>> profiler = GraphProfiler(F.relu(nn.Variable((2, 3))), device_id=0, ext_name="cpu", n_run=3)
>>> profiler.run()
>>> stat = profiler.get_result()["forward"][0]
>>> stat.function_name, stat.inputs_shape, stat.n_run
('ReLU', [(2, 3)], 3)
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, ItemsView
from typing import IO, Any, NamedTuple

from .._core import Function, Variable
from .._errors import ArgumentError, StateError, UnsupportedError, check_integer, check_number, check_type, message
from .._version import __version__
from .._visits import functions_in_order
from ..ext_utils import import_extension_module
from ..parameter import get_parameters

_SCALES = {"m": 1e3, "u": 1e6, "n": 1e9}


class ProfileStat(NamedTuple):
    """A function's part of the time."""

    parameter_scope: str | None
    """Scope of its parameters; None if its second input is no parameter."""
    inputs_shape: list[tuple[int, ...]]
    args_info: ItemsView[str, Any]
    function_name: str
    mean_time: str
    """Mean time of a run as a number in the profiler's unit, in text."""
    n_run: int
    """How often it was run for that."""


def convert_time_scale(sec: float, format: str = "m") -> float:
    """Seconds as milli- ('m'), micro- ('u') or nanoseconds ('n').

    Raises:
        NotImplementedError: For another unit.

    >>> convert_time_scale(0.5, "u")
    500000.0
    """
    if format not in _SCALES:
        raise UnsupportedError(message("convert_time_scale", "format", "'m', 'u' or 'n'", repr(format)))
    return check_number("convert_time_scale", "sec", sec) * _SCALES[format]


class _Clock:
    """The time that each function takes, as the hooks of runs see it."""

    def __init__(self, wait: Callable[[], object]) -> None:
        self.seconds: dict[Function, float] = {}
        self._wait = wait
        self._begun: list[float] = []

    def begin(self, f: Function) -> None:
        self._begun.append(time.perf_counter())

    def end(self, f: Function) -> None:
        self._wait()
        took = time.perf_counter() - self._begun.pop()
        self.seconds[f] = self.seconds.get(f, 0.0) + took


class GraphProfiler:
    """Measures a graph: each function forward and backward, the whole of it, and a training step.

    Functions are timed in runs of the whole graph, in which each runs by itself. The whole graph is run as it is: where
    element-wise functions are fused it takes less than the sum of its functions.

    Args:
        graph: Variable at the graph's end.
        device_id: Number of the GPU, for backends that have one.
        ext_name: Backend: 'cpu', 'cuda' or 'cudnn'.
        solver: Updates the parameters in the measured training steps; without one there are none.
        n_run: How often each is run.
        max_measure_execution_time: Seconds for a function, or for the whole graph, after which no other run begins.
        time_scale: Unit of the results: 'm', 'u' or 'n' for milli-, micro- or nanoseconds.
        backward_accum: Ignored: gradients add up where the graph says so.

    Raises:
        ValueError: If `n_run` is less than 1.
        ModuleNotFoundError: If there is no such backend.
    """

    def __init__(
        self,
        graph: Variable,
        device_id: int | str,
        ext_name: str,
        solver: Any = None,
        n_run: int = 100,
        max_measure_execution_time: float = 1,
        time_scale: str = "m",
        backward_accum: bool = False,
    ) -> None:
        here = "GraphProfiler"
        check_type(here, "graph", graph, Variable, "a Variable")
        convert_time_scale(0, time_scale)
        self.graph = graph
        self.solver = solver
        self.n_run = check_integer(here, "n_run", n_run, 1)
        self.device_id = str(device_id)
        self.ext_name = ext_name
        self.ext_module = import_extension_module(ext_name)
        self.max_measure_execution_time = check_number(here, "max_measure_execution_time", max_measure_execution_time)
        self.time_scale = time_scale
        self.backward_accum = backward_accum
        self.result: dict[str, Any] = {}
        self.name2val = {v: name for name, v in get_parameters().items()}

    def run(self) -> None:
        """Measure everything."""
        self.time_profiling_forward()
        self.time_profiling_backward()
        self.time_profiling_whole_graph()

    def time_profiling_forward(self) -> None:
        """Measure each function's forward run: `result["forward"]`, a `ProfileStat` for each."""
        self.result["forward"] = self._functions(
            lambda clock: self.graph.forward(function_pre_hook=clock.begin, function_post_hook=clock.end)
        )

    def time_profiling_backward(self) -> None:
        """Measure each function's backward run: `result["backward"]`, in the order of `result["forward"]`."""
        self.graph.forward(clear_no_need_grad=True)
        self.result["backward"] = self._functions(
            lambda clock: self.graph.backward(function_pre_hook=clock.begin, function_post_hook=clock.end)
        )

    def time_profiling_whole_graph(self) -> None:
        """Measure the graph as a whole: `result["forward_all"]`, `result["backward_all"]` and, with a solver,
        `result["training"]`, each with its number of runs."""
        self._whole("forward_all", self.graph.forward)
        self._whole("backward_all", self.graph.backward)
        if self.solver is not None:
            self._whole("training", self.training_function)

    def training_function(self) -> None:
        """A training step."""
        self.graph.forward(clear_no_need_grad=True)
        self.solver.zero_grad()
        self.graph.backward(clear_buffer=True)
        self.solver.update()

    def get_result(self) -> dict[str, Any]:
        """The results: lists of `ProfileStat`, times as text, numbers of runs. Empty before `run`."""
        return self.result

    def print_result(self) -> None:
        """Print the results.

        Raises:
            RuntimeError: If there are none yet.
        """
        result = results_of("GraphProfiler.print_result", self)
        print(f"time scale: {self.time_scale}")
        for kind in ("forward", "backward"):
            print(f"-----------------{kind}--------------------", *result[kind], "", sep="\n")
        print(f"all forward: {result['forward_all']}, all backward: {result['backward_all']}")

    def _wait(self) -> None:
        self.ext_module.synchronize(device_id=self.device_id)

    def _repeat(self, run: Callable[[], object], most_seconds: float) -> tuple[float, int]:
        """Seconds and number of runs, after one that does not count."""
        run()
        self._wait()
        start, seconds, runs = time.perf_counter(), 0.0, 0
        while runs < self.n_run and seconds <= most_seconds:
            run()
            self._wait()
            seconds, runs = time.perf_counter() - start, runs + 1
        return seconds, max(runs, 1)

    def _text(self, seconds: float) -> str:
        return f"{convert_time_scale(seconds, self.time_scale):.8}"

    def _whole(self, name: str, run: Callable[[], object]) -> None:
        seconds, runs = self._repeat(run, self.max_measure_execution_time)
        self.result[name], self.result[f"n_run_{name}"] = self._text(seconds / runs), runs

    def _functions(self, run: Callable[[_Clock], object]) -> list[ProfileStat]:
        functions = functions_in_order(self.graph)
        clocks = [_Clock(self._wait)]

        def once() -> None:
            if len(clocks) == 1:  # the first run does not count
                clocks.append(_Clock(self._wait))
                run(clocks[0])
            else:
                run(clocks[1])

        _, runs = self._repeat(once, self.max_measure_execution_time * max(len(functions), 1))
        return [self._stat(f, clocks[1].seconds.get(f, 0.0) / runs, runs) for f in functions]

    def _stat(self, f: Function, seconds: float, runs: int) -> ProfileStat:
        inputs = f.inputs
        name = self.name2val.get(inputs[1]) if len(inputs) > 1 else None
        scope = name.rpartition("/")[0] if name is not None else None
        return ProfileStat(scope, [v.shape for v in inputs], f.args.items(), f.name, self._text(seconds), runs)


class GraphProfilerCsvWriter:
    """Writes a profiler's results as a csv file: what was measured at once, the results with `write`.

    Args:
        gb: The profiler.
        file: File open for text; by default what is printed to.

    >>> import io, nnrs as nn, nnrs.functions as F
    >>> profiler = GraphProfiler(F.relu(nn.Variable((2, 3))), device_id=0, ext_name="cpu", n_run=3)
    >>> profiler.run()
    >>> GraphProfilerCsvWriter(profiler, table := io.StringIO()).write()
    >>> table.getvalue().splitlines()[6]
    'parameter_scope,function_name,inputs_shape,args_info,forward,backward,forward_n_run,backward_n_run'
    """

    def __init__(self, gb: GraphProfiler, file: IO[str] | None = None) -> None:
        check_type("GraphProfilerCsvWriter", "gb", gb, GraphProfiler, "a GraphProfiler")
        self.gb = gb
        self.file = sys.stdout if file is None else file
        self.fields = ["parameter_scope", "function_name", "inputs_shape", "args_info"]
        self.fields += ["forward", "backward", "forward_n_run", "backward_n_run"]
        self.write_header()

    def write_header(self) -> None:
        """Write how it was measured, and the names of the columns."""
        gb = self.gb
        rows: list[list[Any]] = [
            ["num. of run", gb.n_run],
            ["device id", gb.device_id],
            ["ext name", gb.ext_name],
            ["time scale", gb.time_scale],
            ["nnrs version", __version__],
            [],
            self.fields,
        ]
        csv.writer(self.file).writerows(rows)

    def check_same(self, f: dict[str, Any], b: dict[str, Any]) -> bool:
        """Whether two results, as dicts, are of one function."""
        return all(f[field] == b[field] for field in self.fields[:4])

    def write(self) -> None:
        """Write the results.

        Raises:
            RuntimeError: If there are none yet.
        """
        result = results_of("GraphProfilerCsvWriter.write", self.gb)
        rows: list[list[Any]] = []
        for f, b in zip(result["forward"], result["backward"], strict=True):
            if not self.check_same(f._asdict(), b._asdict()):
                what = "forward and backward of one graph", "those of several"
                raise ArgumentError(message("GraphProfilerCsvWriter.write", "gb", *what))
            arguments = ", ".join(f"{name}: {value}" for name, value in f.args_info)
            row = [f.parameter_scope, f.function_name, f.inputs_shape, arguments]
            rows.append([*row, f.mean_time, b.mean_time, f.n_run, b.n_run])
        for kind in ("forward", "backward"):
            rows += [[], [f"{kind} all", result[f"{kind}_all"]], [f"{kind}_all_n_run", result[f"n_run_{kind}_all"]]]
        if "training" in result:
            rows += [[], ["training(forward + backward + update)", result["training"]]]
            rows += [["training_n_run", result["n_run_training"]]]
        csv.writer(self.file).writerows(rows)


def results_of(function: str, profiler: GraphProfiler) -> dict[str, Any]:
    """The profiler's results, which must be there."""
    if {"forward", "backward", "forward_all"} <= profiler.result.keys():
        return profiler.result
    raise StateError(message(function, None, "there are no results yet", hint="call the profiler's run() first"))
