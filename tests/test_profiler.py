"""`GraphProfiler`: a row a function in NNabla's order, whose times are positive; files laid out as NNabla's."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs.utils import profiler as P


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    yield
    nn.clear_parameters()


def profiled(solver=True, **options):
    x, t = nn.Variable((4, 3)), nn.Variable((4, 1))
    h = F.relu(PF.affine(x, 5, name="fc"))
    loss = F.mean(F.softmax_cross_entropy(PF.affine(h, 3, name="fc2"), t))
    sgd = S.Sgd(0.01)
    sgd.set_parameters(nn.get_parameters())
    profiler = P.GraphProfiler(loss, device_id=0, ext_name="cpu", solver=sgd if solver else None, n_run=3, **options)
    profiler.run()
    return profiler


# Scope, shapes, arguments and name: what NNabla 1.39 says of the same graph.
ROWS = [
    ("fc/affine", [(4, 3), (3, 5), (5,)], {"base_axis": 1}, "Affine"),
    (None, [(4, 5)], {"inplace": False}, "ReLU"),
    ("fc2/affine", [(4, 5), (5, 3), (3,)], {"base_axis": 1}, "Affine"),
    (None, [(4, 3), (4, 1)], {"axis": 1}, "SoftmaxCrossEntropy"),
    (None, [(4, 1)], {"axes": [0, 1], "keep_dims": False}, "Mean"),
]


def test_a_row_a_function():
    result = profiled().get_result()
    for kind in ("forward", "backward"):
        rows = [(s.parameter_scope, s.inputs_shape, dict(s.args_info), s.function_name) for s in result[kind]]
        assert rows == ROWS
        assert all(float(s.mean_time) > 0 and s.n_run == 3 for s in result[kind])
    for kind in ("forward_all", "backward_all", "training"):
        assert float(result[kind]) > 0 and result[f"n_run_{kind}"] == 3
    assert "training" not in profiled(solver=False).get_result()


def test_functions_without_gradients_take_no_time_backward():
    profiler = P.GraphProfiler(F.sum(F.relu(nn.Variable((2, 3)))), "0", "cpu", n_run=2)
    profiler.run()
    assert [s.mean_time for s in profiler.result["backward"]] == ["0.0", "0.0"]


def test_a_function_that_is_run_again_is_one_row():
    x = nn.Variable((2, 3), need_grad=True)
    with nn.recompute():
        h = F.sigmoid(F.tanh(x))
    profiler = P.GraphProfiler(F.sum(h), "0", "cpu", n_run=2)
    profiler.run()
    assert [s.function_name for s in profiler.result["backward"]] == ["Tanh", "Sigmoid", "Sum"]


def test_time_ends_it():
    x = nn.Variable((2,))
    profiler = P.GraphProfiler(F.sum(x), 0, "cpu", n_run=10**9, max_measure_execution_time=0.0, time_scale="n")
    profiler.run()
    assert [s.n_run for s in profiler.result["forward"]] == [1] and profiler.result["n_run_forward_all"] == 1
    assert float(profiler.result["forward"][0].mean_time) > 10


def test_values_of_inputs_stay():
    x = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    profiler = P.GraphProfiler(F.sum(x * 2), 0, "cpu", n_run=2)
    profiler.run()
    assert x.d.tolist() == [1, 2] and float(profiler.graph.d) == 6


def test_csv_and_print(capsys):
    profiler = profiled(time_scale="u")
    P.GraphProfilerCsvWriter(profiler, file := io.StringIO()).write()
    rows = list(csv.reader(io.StringIO(file.getvalue())))
    assert rows[:5] == [
        ["num. of run", "3"],
        ["device id", "0"],
        ["ext name", "cpu"],
        ["time scale", "u"],
        ["nnrs version", nn.__version__],
    ]
    assert rows[5] == [] and len(rows[6]) == 8
    assert rows[7][:4] == ["fc/affine", "Affine", "[(4, 3), (3, 5), (5,)]", "base_axis: 1"]
    assert rows[11][:4] == ["", "Mean", "[(4, 1)]", "axes: [0, 1], keep_dims: False"]
    assert rows[11][6:] == ["3", "3"] and rows[12] == []
    names = ["forward all", "forward_all_n_run", "backward all", "backward_all_n_run"]
    assert [r[0] for r in rows[12:] if r] == [*names, "training(forward + backward + update)", "training_n_run"]
    profiler.print_result()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "time scale: u" and lines[1] == "-----------------forward--------------------"
    assert lines[2].startswith("ProfileStat(parameter_scope='fc/affine', inputs_shape=[(4, 3), (3, 5), (5,)], args_in")
    assert lines[-1].startswith("all forward: ")
    P.GraphProfilerCsvWriter(profiler)
    assert capsys.readouterr().out.startswith("num. of run,3")


def test_scales():
    assert [P.convert_time_scale(0.5, unit) for unit in "mun"] == [5e2, 5e5, 5e8]
    with pytest.raises(NotImplementedError, match="expected 'm', 'u' or 'n', got 'x'"):
        P.convert_time_scale(1, "x")


def test_wrong_arguments():
    y = F.sum(nn.Variable((2,)))
    with pytest.raises(ValueError, match="argument 'n_run': expected 1 or more, got 0"):
        P.GraphProfiler(y, 0, "cpu", n_run=0)
    with pytest.raises(ModuleNotFoundError, match="expected one of 'cpu', 'cuda', 'cudnn'"):
        P.GraphProfiler(y, 0, "tpu")
    with pytest.raises(TypeError, match="argument 'graph'"):
        P.GraphProfiler(3, 0, "cpu")
    with pytest.raises(NotImplementedError, match="argument 'format'"):
        P.GraphProfiler(y, 0, "cpu", time_scale="s")
    profiler = P.GraphProfiler(y, 0, "cpu")
    for f in (profiler.print_result, P.GraphProfilerCsvWriter(profiler, io.StringIO()).write):
        with pytest.raises(RuntimeError, match=r"there are no results yet\n  hint: call the profiler's run\(\) first"):
            f()
    with pytest.raises(TypeError, match="argument 'gb'"):
        P.GraphProfilerCsvWriter(3)


def test_functions_are_listed_in_nnablas_order():
    x = nn.Variable((2, 3), need_grad=True)
    profiler = P.GraphProfiler(F.add2(F.exp(F.tanh(x)), F.relu(x)), device_id=0, ext_name="cpu", n_run=1)
    profiler.run()
    for kind in ("forward", "backward"):
        assert [f.function_name for f in profiler.get_result()[kind]] == ["Tanh", "Exp", "ReLU", "Add2"]
