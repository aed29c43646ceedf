"""How long functions take, as hooks of a run see it: `TimeProfiler`.

>>> import nnrs as nn, nnrs.functions as F
>>> y = F.relu(nn.Variable((2, 3)))
>>> profiler = TimeProfiler("cpu", "0")
>>> for _ in range(3):
...     with profiler.scope("forward"):
...         y.forward(function_pre_hook=profiler.pre_hook, function_post_hook=profiler.post_hook)
...     profiler.calc_elapsed_time()
>>> [(f.name, result["num"]) for f, result in profiler.average()["forward"].items()]
[('ReLU', 3)]
"""

from __future__ import annotations

import contextlib
import csv
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..._core import Function
from ..._errors import (
    ArgumentError,
    FileError,
    StateError,
    UnknownExtensionError,
    UnsupportedError,
    check_integer,
    failures_as,
    message,
    reason,
)
from ..._files import atomic_path
from ...ext_utils import import_extension_module
from .base import FunctionHookCallbackBase

_KEY = Any  # a function, or a scope's name


class CpuTimerCallback(FunctionHookCallbackBase):
    """Takes the time between its `pre_hook` and its `post_hook`, for each function that they are called with.

    Args:
        ext_name: Backend whose work it waits for: 'cpu', 'cuda' or 'cudnn'.
        device_id: Number of the GPU, for backends that have one.
    """

    def __init__(self, ext_name: str, device_id: str | int) -> None:
        self.results: OrderedDict[_KEY, list[float]] = OrderedDict()
        """Seconds by function, one for each call of `calc_elapsed_time` that followed a run."""
        self.device_id = str(device_id)
        self.ext_module = import_extension_module(ext_name)
        self.key_to_times: OrderedDict[_KEY, list[float | None]] = OrderedDict()

    @property
    def pre_hook(self) -> Callable[[_KEY], None]:
        """Begins."""

        def callback(key: _KEY) -> None:
            self.key_to_times[key] = [self.timer(), None]

        return callback

    @property
    def post_hook(self) -> Callable[[_KEY], None]:
        """Ends, when the device has done all its work. A ValueError where nothing has begun."""

        def callback(key: _KEY) -> None:
            if key not in self.key_to_times:
                what = "a function that pre_hook has been called with", repr(key)
                raise ArgumentError(message("CpuTimerCallback.post_hook", "key", *what))
            self.ext_module.synchronize(device_id=self.device_id)
            self.key_to_times[key][1] = self.timer()

        return callback

    @staticmethod
    def timer() -> float:
        """Seconds of a clock that never goes back."""
        return time.perf_counter()

    def calc_elapsed_time(self) -> None:
        """Add what was measured since the call before to `results`."""
        for key, (start, end) in self.key_to_times.items():
            if start is not None and end is not None:
                self.results.setdefault(key, []).append(end - start)
        self.key_to_times.clear()

    def average(self, start_index: int = 0) -> dict[_KEY, dict[str, Any]]:
        """By function a dict: `time`, the mean in `scale` ("ms"), of `num` results from number `start_index` on."""
        start = check_integer("average", "start_index", start_index, 0)
        return {key: _mean(times[start:]) for key, times in self.results.items()}


def _mean(seconds: list[float]) -> dict[str, Any]:
    mean = sum(seconds) / len(seconds) * 1e3 if seconds else float("nan")
    return {"time": mean, "num": len(seconds), "scale": "ms"}


class TimeProfiler(FunctionHookCallbackBase):
    """Measures functions in scopes, "forward" and "backward" for instance, and the scopes as a whole ("summary").

    In each iteration: runs within `with profiler.scope(name)`, which get the hooks, and then `calc_elapsed_time()`. In
    the end `profiler()` prints the means, and `to_csv` writes them.

    Args:
        ext_name: Backend: 'cpu', 'cuda' or 'cudnn'. On a GPU each function is waited for.
        device_id: Number of the GPU.

    Raises:
        NotImplementedError: For another backend.
    """

    def __init__(self, ext_name: str, device_id: str | int) -> None:
        self.profiler = CpuTimerCallback
        self.ext_name = ext_name
        self.device_id = device_id
        self.profilers: dict[str, CpuTimerCallback] = {}
        self._scope_name = ""
        self._scopes: list[str] = []
        try:
            self.create_new_profiler("summary")
        except UnknownExtensionError as error:
            raise UnsupportedError(str(error)) from error

    def create_new_profiler(self, scope_name: str) -> None:
        """Begin a scope's results anew."""
        self.profilers[scope_name] = self.profiler(ext_name=self.ext_name, device_id=self.device_id)

    @contextlib.contextmanager
    def scope(self, scope_name: str) -> Iterator[TimeProfiler]:
        """A block whose runs are measured under a name."""
        if scope_name not in self.profilers:
            self.create_new_profiler(scope_name)
        before, self._scope_name = self._scope_name, scope_name
        self.call_pre_hook("summary", scope_name)
        try:
            yield self
        finally:
            self._scope_name = before
            self.call_post_hook("summary", scope_name)

    @property
    def pre_hook(self) -> Callable[[Function], None]:
        """For `function_pre_hook`, within a scope."""
        return self._current("pre_hook").pre_hook

    @property
    def post_hook(self) -> Callable[[Function], None]:
        """For `function_post_hook`, within a scope."""
        return self._current("post_hook").post_hook

    def _current(self, hook: str) -> CpuTimerCallback:
        if self._scope_name not in self.profilers:
            hint = f"read {hook} within `with profiler.scope(name):`"
            raise StateError(message(f"TimeProfiler.{hook}", None, "there is no scope to measure in", hint=hint))
        return self.profilers[self._scope_name]

    def call_pre_hook(self, scope_name: str, key: _KEY) -> None:
        """Begin the time of `key` in a scope."""
        if scope_name not in self.profilers:
            self.create_new_profiler(scope_name)
        self.profilers[scope_name].pre_hook(key)

    def call_post_hook(self, scope_name: str, key: _KEY) -> None:
        """End the time of `key` in a scope, which must be there."""
        self._known("call_post_hook", scope_name).post_hook(key)

    def _known(self, function: str, scope_name: str) -> CpuTimerCallback:
        if scope_name not in self.profilers:
            what = f"one of the scopes {list(self.profilers)}", repr(scope_name)
            raise ArgumentError(message(f"TimeProfiler.{function}", "scope_name", *what))
        return self.profilers[scope_name]

    def calc_elapsed_time(self, names: str | Iterable[str] | None = None) -> None:
        """Add what was measured since the call before to the results: once an iteration.

        Args:
            names: Scopes; by default all.

        Raises:
            ValueError: If there is no such scope.
        """
        names = list(self.profilers) if names is None else [names] if isinstance(names, str) else list(names)
        for profiler in [self._known("calc_elapsed_time", name) for name in names]:
            profiler.calc_elapsed_time()

    def average(self, start_index: int = 0) -> dict[str, dict[_KEY, dict[str, Any]]]:
        """`CpuTimerCallback.average` of each scope; in "summary" that of the scopes themselves."""
        return {name: profiler.average(start_index) for name, profiler in self.profilers.items()}

    def get_all_results(self) -> dict[str, Mapping[_KEY, list[float]]]:
        """Seconds by function, by scope: of scopes that have results."""
        return {name: profiler.results for name, profiler in self.profilers.items() if profiler.results}

    def to_csv(self, out_dir: str | os.PathLike[str] = "./", ignore_init: bool = True) -> None:
        """Write the means to `profile_summary.csv` (scopes) and `profile_detail.csv` (functions) in a folder.

        Args:
            out_dir: The folder; it is made if it is not there.
            ignore_init: Whether to leave the first iteration out.

        Raises:
            OSError: If they cannot be written.
        """
        text = f"TimeProfiler.to_csv: cannot make the folder {os.fspath(out_dir)!r}: "
        with failures_as(lambda error: FileError(text + reason(error, out_dir)), OSError):
            os.makedirs(out_dir, exist_ok=True)
        means = self.average(start_index=1 if ignore_init else 0)
        summary = [{"scope": scope, **result} for scope, result in means.pop("summary").items()]
        _write_csv(os.path.join(out_dir, "profile_summary.csv"), ["scope", "time", "scale", "num"], summary)
        columns = [f"{column}_{scope}" for scope in means for column in ("time", "num", "scale")]
        rows = _detail(means)
        _write_csv(os.path.join(out_dir, "profile_detail.csv"), ["scope", "original_key", *columns], rows)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Print the means, without the first iteration."""
        for name, results in self.average(start_index=1).items():
            if not results:
                continue
            print(f"### {name} ###")
            for key, result in results.items():
                print(f"{_text(key)}: {result['time']} [{result['scale']}]")
            print()


def _text(key: _KEY) -> str:
    return key.name if isinstance(key, Function) else str(key)


def _detail(means: Mapping[str, Mapping[_KEY, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """A row a function, with the results of all scopes; functions of one name are numbered."""
    rows: dict[_KEY, dict[str, Any]] = {}
    counts: dict[str, int] = {}
    for scope, results in means.items():
        for key, result in results.items():
            if key not in rows:
                name = _text(key)
                counts[name] = counts.get(name, -1) + 1
                rows[key] = {"scope": f"{name}_{counts[name]}", "original_key": name}
            rows[key].update((f"{column}_{scope}", value) for column, value in result.items())
    return list(rows.values())


def _write_csv(path: str, columns: list[str], rows: Iterable[Mapping[str, Any]]) -> None:
    with atomic_path(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, columns)
        writer.writeheader()
        writer.writerows(rows)
