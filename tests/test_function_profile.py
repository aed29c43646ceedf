"""`utils.function_profile.profile`: counts, conditions and prints as NNabla's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nnrs.utils.function_profile import FunctionProfile, profile


def test_a_decorated_function_is_the_function(capsys):
    @profile
    def add(a, b=1):
        """Adds."""
        return a + b

    assert (add(1), add(1, b=3), add.__name__, add.__doc__) == (2, 4, "add", "Adds.")
    assert add.profiler.ncalls == 2
    add.profiler.print_stats(reset=False)
    add.profiler.print_stats()
    said = capsys.readouterr().out
    assert said.count("--- Function Profiling ---") == 2 and "function add\n" in said and " function calls" in said
    assert f'File "{__file__}", line ' in said
    assert add.profiler.ncalls == 0 and add.profiler.stats is None
    add.profiler.print_stats()
    assert capsys.readouterr().out == ""


def test_conditions_and_prints_in_between(capsys):
    @profile(condition=lambda n: n > 1, print_freq=2, sort_keys=("time",), print_restrictions=(3,))
    def f(n):
        return n

    assert [f(n) for n in (0, 5, 1)] == [0, 5, 1] and f.profiler.ncalls == 1
    assert capsys.readouterr().out == ""
    f(2)
    assert " function calls" in capsys.readouterr().out and f.profiler.ncalls == 0


def test_within_a_profiled_function_others_are_not(capsys):
    inner = profile(lambda: 1)
    outer = profile(lambda: inner())
    assert outer() == 1 and inner.profiler.stats is None
    inner.profiler.print_stats()
    assert capsys.readouterr().out == ""
    outer.profiler.reset_stats()
    inner.profiler.reset_stats()


def test_what_raises_is_profiled_too():
    @profile
    def f():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f()
    assert f.profiler.stats is not None and not FunctionProfile.profiling
    f.profiler.reset_stats()


def test_it_is_printed_in_the_end():
    code = "from nnrs.utils import function_profile\nf = function_profile.profile(len)\nf('ab')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'File "?", line ?, function len' in done.stdout and done.stderr == ""


def test_wrong_arguments():
    for options in ({"fn": 3}, {"condition": 3}, {"profile_class": 3}, {"print_freq": "a"}):
        with pytest.raises(TypeError, match=f"profile: argument '{next(iter(options))}'"):
            profile(**{"fn": len, **options})
