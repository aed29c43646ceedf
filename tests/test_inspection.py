"""`utils.inspection`: texts and tables as NNabla 1.39 prints them for the same graphs, from which they were taken."""

from __future__ import annotations

import csv
import time

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs.utils.inspection import CpuTimerCallback, FunctionHookCallbackBase, NanInfTracer, TimeProfiler, pprint
from nnrs.utils.inspection.pretty_print import PrettyPrinter


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    yield
    nn.clear_parameters()


@pytest.fixture
def graph():
    x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3), need_grad=True)
    with nn.parameter_scope("s"):
        h = PF.affine(x, 2, name="fc", w_init=np.ones((3, 2)))
    return x, F.mean(F.log(h))


TEXT = """\
s/fc/affine/Affine(Affine)
	Depth = 0
	Args: ['base_axis=1']
	Inputs: [(2, 3), (3, 2), (2,)]
	Outputs: [(2, 2)]
	Backward Inputs: [True, True, True]
Log(Log)
	Depth = 1
	Args: []
	Inputs: [(2, 2)]
	Outputs: [(2, 2)]
	Backward Inputs: [True]
Mean(Mean)
	Depth = 2
	Args: ['axes=[0, 1]', 'keep_dims=False']
	Inputs: [(2, 2)]
	Outputs: [()]
	Backward Inputs: [True]
"""
STATISTICS = """\
	Input Data:
		Med:  [2.5, 1.0, 0.0]
		Ave:  [2.5, 1.0, 0.0]
		Std:  [1.7078252, 0.0, 0.0]
		Min:  [0.0, 1.0, 0.0]
		Max:  [5.0, 1.0, 0.0]
	Output Data:
		Med:  [7.5]
		Ave:  [7.5]
		Std:  [4.5]
		Min:  [3.0]
		Max:  [12.0]
	Input Grads:
		Med:  [0.10416667, 0.16666667, 0.10416667]
		Ave:  [0.10416668, 0.16666669, 0.10416667]
		Std:  [0.0625, 0.08505173, 0.0]
		Min:  [0.041666668, 0.0625, 0.10416667]
		Max:  [0.16666667, 0.27083334, 0.10416667]
	Output Grads:
		Med:  [0.052083336]
		Ave:  [0.052083332]
		Std:  [0.03125]
		Min:  [0.020833334]
		Max:  [0.083333336]
"""


def test_pprint(graph, capsys):
    assert pprint(graph[1]) is None
    assert capsys.readouterr().out == TEXT


def numbers(text):
    """Names and numbers of lines of statistics."""
    lines = [line.partition(":  ") for line in text.splitlines()]
    return [name for name, *_ in lines], [eval(values) for *_, values in lines if values]


@pytest.mark.host
def test_pprint_with_statistics(graph, capsys):
    x, y = graph
    for v in (x, *nn.get_parameters().values()):
        v.g = 0
    printer = pprint(y, forward=True, backward=True, summary=True, hidden=True, printer=True)
    first = capsys.readouterr().out.partition("Log(Log)")[0].partition("[True, True, True]\n")[2]
    names, values = numbers(first)
    assert names == numbers(STATISTICS)[0]
    for mine, theirs in zip(values, numbers(STATISTICS)[1], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-6)
    assert [f["name"] for f in printer.functions] == ["s/fc/affine/Affine(Affine)", "Log(Log)", "Mean(Mean)"]
    assert printer.functions[2]["outputs"] == [y] and printer.functions[0]["inputs"][0] == x
    assert printer.get_scope_name(x) is None


def test_gradients_that_were_not_kept_are_none(graph, capsys):
    x, y = graph
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    pprint(y, summary=True)
    assert "Med:  [None]" in capsys.readouterr().out
    empty = F.relu(nn.Variable((0, 2)))
    empty.visit(PrettyPrinter(summary=True))
    assert "Med:  [None]" in capsys.readouterr().out
    with pytest.raises(TypeError, match="pprint: argument 'v': expected a Variable"):
        pprint(3)


# --- NaN and infinities -----------------------------------------------------------------------------------------------


def run(tracer, y):
    with tracer.trace():
        y.forward(function_post_hook=tracer.forward_post_hook)
        y.backward(function_post_hook=tracer.backward_post_hook)


def test_nan_is_traced(graph, capsys):
    x, y = graph
    tracer = NanInfTracer(need_details=False)
    run(tracer, y)
    x.d = -x.d
    with pytest.raises(ValueError) as e:
        run(tracer, y)
    assert str(e.value) == "The 0th output of the function 'Log' (rank: 1) has nan or inf as its values."
    assert capsys.readouterr().out == "Error during forward propagation\n\tAffine\n\tLog <-- ERROR\n"
    with pytest.raises(ValueError, match=r"function type: Log\n.*\['\(2, 2\)'\]\n.*\['\(2, 2\)'\]\n.*args: \{\}"):
        run(NanInfTracer(), y)
    run(NanInfTracer(trace_nan=False), y)
    tracer.check()
    x.d = -x.d
    run(tracer, y)


def test_infinities_are_traced(graph):
    x, y = graph
    x.d = 0
    with pytest.raises(ValueError, match="'Log'"):
        run(NanInfTracer(), y)
    run(NanInfTracer(trace_inf=False), F.log(nn.Variable.from_numpy_array([0.0])))


def test_gradients_are_traced(capsys):
    x = nn.Variable.from_numpy_array(np.float32([0, 4]), need_grad=True)
    x.g = 0
    tracer = NanInfTracer(need_details=False)
    y = F.sum(F.pow_scalar(x, 0.5))
    with pytest.raises(ValueError, match="The 0th output of the function 'PowScalar'"):
        run(tracer, y)
    assert capsys.readouterr().out == "Error during backward propagation\n\tSum\n\tPowScalar <-- ERROR\n"


def test_hooks_of_a_tracer():
    tracer = NanInfTracer()
    assert tracer.pre_hook is None
    with pytest.raises(NotImplementedError, match="forward_post_hook"):
        _ = tracer.post_hook
    nothing = NanInfTracer(False, False)
    assert nothing.forward_post_hook is None and nothing.backward_post_hook is None
    for name in ("pre_hook", "post_hook"):
        with pytest.raises(NotImplementedError, match=f"FunctionHookCallbackBase.{name} is missing"):
            getattr(FunctionHookCallbackBase(), name)


# --- times ------------------------------------------------------------------------------------------------------------


def timed(profiler, y, times=3):
    for _ in range(times):
        with profiler.scope("forward"):
            y.forward(function_pre_hook=profiler.pre_hook, function_post_hook=profiler.post_hook)
        with profiler.scope("backward") as same:
            assert same is profiler
            y.backward(function_pre_hook=profiler.pre_hook, function_post_hook=profiler.post_hook)
        profiler.calc_elapsed_time(["forward", "backward", "summary"])
    return profiler


def test_times_by_scope(graph):
    profiler = timed(TimeProfiler("cpu", "0"), graph[1])
    means = profiler.average()
    assert list(means) == ["summary", "forward", "backward"]
    assert [f.name for f in means["forward"]] == ["Affine", "Log", "Mean"]
    assert [f.name for f in means["backward"]] == ["Mean", "Log", "Affine"]
    for scope in ("forward", "backward"):
        assert all(r["time"] > 0 and r["num"] == 3 and r["scale"] == "ms" for r in means[scope].values())
        assert means["summary"][scope]["time"] >= sum(r["time"] for r in means[scope].values())
    assert [len(v) for v in profiler.get_all_results()["summary"].values()] == [3, 3]
    assert np.isnan(profiler.average(5)["summary"]["forward"]["time"])


def test_a_timer_takes_the_time(monkeypatch):
    now = iter([1.0, 3.0, 10.0, 14.0, 20.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    timer = CpuTimerCallback("cpu", 0)
    for _ in range(2):
        timer.pre_hook("a")
        timer.post_hook("a")
        timer.calc_elapsed_time()
    timer.pre_hook("a")
    timer.calc_elapsed_time()
    assert dict(timer.results) == {"a": [2.0, 4.0]}
    assert timer.average() == {"a": {"time": 3000.0, "num": 2, "scale": "ms"}}
    assert timer.average(1)["a"]["time"] == 4000
    with pytest.raises(ValueError, match="expected a function that pre_hook has been called with, got 'b'"):
        timer.post_hook("b")


def test_times_are_printed_and_written(graph, tmp_path, capsys):
    x, y = graph
    profiler = timed(TimeProfiler("cpu", "0"), F.log(y))
    profiler()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "### summary ###" and lines[3] == "" and lines[4] == "### forward ###"
    assert lines[1].startswith("forward: ") and lines[1].endswith(" [ms]") and lines[5].startswith("Affine: ")
    profiler.to_csv(tmp_path / "out")
    with open(tmp_path / "out" / "profile_summary.csv") as f:
        rows = list(csv.DictReader(f))
    assert [(r["scope"], r["scale"], r["num"]) for r in rows] == [("forward", "ms", "2"), ("backward", "ms", "2")]
    with open(tmp_path / "out" / "profile_detail.csv") as f:
        rows = list(csv.DictReader(f))
    assert [r["scope"] for r in rows] == ["Affine_0", "Log_0", "Mean_0", "Log_1"]
    assert [r["original_key"] for r in rows] == ["Affine", "Log", "Mean", "Log"]
    assert all(float(r["time_forward"]) > 0 and r["num_backward"] == "2" for r in rows)
    with pytest.raises(OSError, match="cannot make the folder"):
        profiler.to_csv(tmp_path / "out" / "profile_detail.csv")


def test_wrong_use_of_a_profiler():
    profiler = TimeProfiler("cpu", "0")
    with pytest.raises(RuntimeError, match="there is no scope to measure in"):
        _ = profiler.pre_hook
    with pytest.raises(ValueError, match=r"expected one of the scopes \['summary'\], got 'x'"):
        profiler.calc_elapsed_time("x")
    with pytest.raises(ValueError, match="call_post_hook"):
        profiler.call_post_hook("x", "y")
    with pytest.raises(NotImplementedError, match="expected one of 'cpu', 'cuda', 'cudnn', got 'foo'"):
        TimeProfiler("foo", "0")


def test_functions_are_printed_in_nnablas_order(capsys):
    x = nn.Variable((2, 3))
    made = pprint(F.add2(F.sin(F.tanh(x)), F.cos(F.abs(x))), hidden=True, printer=True)
    names = [str(f["name"]).partition("(")[0] for f in made.functions]
    assert names == ["Tanh", "Sin", "Abs", "Cos", "Add2"]
