"""A Python function's profile, collected over its calls: the decorator `profile`.

>>> @profile
... def work(n):
...     return sum(range(n))
>>> work(10)
45
>>> work.profiler.ncalls
1
>>> work.profiler.reset_stats()

What was collected is printed when the program ends, or by `work.profiler.print_stats()`.
"""

from __future__ import annotations

import atexit
import cProfile
import functools
import pstats
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .._errors import check_callable, check_integer

__all__ = ["profile"]


def _always(*args: Any, **kw: Any) -> bool:
    return True


class FunctionProfile:
    """A function with its profile. `profile` makes it; a decorated function has it as `profiler`.

    Args:
        fn: The function.
        condition: Called with its arguments: whether to profile the call. By default all are.
        profile_class: Profiler, `cProfile.Profile` or `profile.Profile`.
        print_freq: Calls from one print to the next; 0: at the program's end alone.
        sort_keys: Keys of `pstats.Stats.sort_stats`; by default cumulative time, own time, calls.
        print_restrictions: Arguments of `pstats.Stats.print_stats`; by default the first 40 lines.
    """

    profiling = False
    """Whether a function is being profiled now. Others are not, as long as it is."""

    def __init__(
        self,
        fn: Callable[..., Any],
        condition: Callable[..., Any] | None = None,
        profile_class: Callable[[], Any] = cProfile.Profile,
        print_freq: int = 0,
        sort_keys: Iterable[str] | None = None,
        print_restrictions: Iterable[Any] | None = None,
    ) -> None:
        check_callable("profile", "fn", fn)
        check_callable("profile", "condition", condition or _always)
        check_callable("profile", "profile_class", profile_class)
        self.fn = fn
        self.condition = condition or _always
        self.profile_class = profile_class
        self.print_freq = check_integer("profile", "print_freq", print_freq, 0)
        self.sort_keys = tuple(sort_keys or ("cumulative", "time", "calls"))
        self.print_restrictions = tuple((40,) if print_restrictions is None else print_restrictions)
        self.stats: Any = None
        self.ncalls = 0
        atexit.register(self._at_exit)

    def __call__(self, *args: Any, **kw: Any) -> Any:
        if not self.condition(*args, **kw):
            return self.fn(*args, **kw)
        self.ncalls += 1
        if FunctionProfile.profiling:
            return self.fn(*args, **kw)
        profiler = self.profile_class()
        FunctionProfile.profiling = True
        try:
            return profiler.runcall(self.fn, *args, **kw)
        finally:
            FunctionProfile.profiling = False
            self._add(profiler)

    def _add(self, profiler: Any) -> None:
        if self.stats is None:
            self.stats = pstats.Stats(profiler)
        else:
            self.stats.add(profiler)
        if self.print_freq and self.ncalls % self.print_freq == 0:
            self.print_stats()

    def reset_stats(self) -> None:
        """Forget what was collected."""
        self.stats = None
        self.ncalls = 0

    def print_stats(self, reset: bool = True) -> None:
        """Print what was collected, if the function was called.

        Args:
            reset: Whether to forget it then.
        """
        if self.stats is None:
            return
        code = getattr(self.fn, "__code__", None)
        file, line = (code.co_filename, code.co_firstlineno) if code else ("?", "?")
        print("--- Function Profiling ---")
        print(f'File "{file}", line {line}, function {getattr(self.fn, "__name__", repr(self.fn))}')
        self.stats.stream = sys.stdout
        self.stats.sort_stats(*self.sort_keys)
        self.stats.print_stats(*self.print_restrictions)
        print("--------------------------")
        if reset:
            self.reset_stats()

    def _at_exit(self) -> None:
        try:
            self.print_stats()
        except (OSError, ValueError):  # nothing to print to is open any more
            pass


def profile(
    fn: Callable[..., Any] | None = None,
    condition: Callable[..., Any] | None = None,
    profile_class: Callable[[], Any] = cProfile.Profile,
    print_freq: int = 0,
    sort_keys: Iterable[str] | None = None,
    print_restrictions: Iterable[Any] | None = None,
) -> Any:
    """Decorator of a Python function: profile its calls.

    Args:
        fn: The function; without it the result is the decorator, `@profile(print_freq=10)`.
        condition: Called with the function's arguments: whether to profile the call. By default all are.
        profile_class: Profiler, `cProfile.Profile` or `profile.Profile`.
        print_freq: Calls from one print to the next; 0: at the program's end alone.
        sort_keys: Keys of `pstats.Stats.sort_stats`; by default cumulative time, own time, calls.
        print_restrictions: Arguments of `pstats.Stats.print_stats`; by default the first 40 lines.

    Returns:
        The decorated function, whose attribute `profiler` is a `FunctionProfile`.
    """
    options = (condition, profile_class, print_freq, sort_keys, print_restrictions)
    if fn is None:
        return lambda fn: profile(fn, *options)
    profiler = FunctionProfile(fn, *options)

    def profiled(*args: Any, **kw: Any) -> Any:
        return profiler(*args, **kw)

    functools.update_wrapper(profiled, fn)
    profiled.profiler = profiler  # type: ignore[attr-defined]
    return profiled
