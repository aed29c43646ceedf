"""Quantization-aware training has NNabla's losses, parameters and functions; recorders record what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
import quantized_training
from nnrs.experimental import graph_converters as GC
from nnrs.utils import qnn

pytestmark = pytest.mark.host
GOLDEN = json.loads((Path(__file__).parent / "golden" / "qnn.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    yield
    nn.clear_parameters()


@pytest.mark.parametrize("name", list(GOLDEN))
def test_training_is_nnablas(name):
    expected, found = GOLDEN[name], quantized_training.train("nnrs", quantized_training.configs(qnn)[name])
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-4)
    np.testing.assert_allclose(found["output"], expected["output"], atol=1e-4)
    assert found["types"] == expected["types"]
    assert found["rate"] == pytest.approx(expected["rate"])
    assert found["sums"].keys() == expected["sums"].keys()
    for key, value in expected["sums"].items():
        assert found["sums"][key] == pytest.approx(value, abs=2e-4), key


X = np.float32([[-1.0, 3.0], [0.5, -4.0]])
RECORDERS = [
    (qnn.minmax_minmax_recorder, 2, {}, [-4.0, 3.0]),
    (qnn.abs_max_recorder, 1, {}, [4.0]),
    (qnn.max_max_recorder, 1, {}, [3.0]),
    (qnn.minmax_mva_recorder, 2, {"decay": 0.75}, [-1.0, 0.75]),
    (qnn.max_mva_recorder, 1, {"decay": 0.5}, [1.5]),
    (qnn.max_mva_recorder, 1, {}, [0.03]),
]


def statistics(count):
    return [nn.Variable.from_numpy_array(np.zeros((1, 1), np.float32)) for _ in range(count)]


@pytest.mark.parametrize("recorder, count, args, expected", RECORDERS)
def test_recorders(recorder, count, args, expected):
    x, recorded = nn.Variable.from_numpy_array(X, need_grad=True), statistics(count)
    y = recorder(x, *recorded, **args)
    y.forward()
    assert np.array_equal(y.d, X)
    np.testing.assert_allclose([v.d.item() for v in recorded], expected, rtol=1e-5)
    x.g = 1
    y.backward(np.full((2, 2), 5.0))
    assert (x.g == 6).all()  # straight through
    recorder(x, *statistics(count), **args, training=False).forward()
    idle = statistics(count)
    recorder(x, *idle, training=False).forward()
    assert all(v.d == 0 for v in idle)


def test_statistics_that_do_not_fit():
    x = nn.Variable((2, 2))
    for recorded in (statistics(1), [*statistics(1), nn.Variable((1,))], [nn.Variable((2, 1)), *statistics(1)]):
        with pytest.raises(ValueError, match="MinMaxMinMaxRecorder: argument 'inputs'"):
            qnn.MinMaxMinMaxRecorder(nn.get_current_context())(x, *recorded)


@pytest.mark.parametrize(
    "rounding, narrow, scale",
    [("NOTROUND", False, 4 / 255), ("NOTROUND", True, 4 / 254), ("CEIL", False, 1 / 32), ("FLOOR", False, 1 / 64)],
)
def test_scales(rounding, narrow, scale):
    x = nn.Variable((2, 3))
    for name, callback, values in (
        ("pair", qnn.MinMaxMvaRecorderCallback, {"m": -1.0, "M": 3.0}),
        ("one", qnn.MaxMvaRecorderCallback, {"M": 2.0}),
    ):
        args = {"narrow_range": narrow, "round_method": rounding, "name": name}
        assert callback.get_scale_zeropoint(x, **args) == (None, None)
        for letter, value in values.items():
            nn.parameter.get_parameter_or_create(f"{letter}-{name}", (1, 1), np.full((1, 1), value))
        s, zero = callback.get_scale_zeropoint(x, **args)
        assert s.d.item() == pytest.approx(scale) and zero.d.item() == 0
        assert s.shape == zero.shape == (1, 1) and not s.need_grad
        assert nn.get_parameters(grad_only=False)[f"scale-{name}"] == s


def test_nothing_recorded_is_no_scale_of_zero():
    nn.parameter.get_parameter_or_create("M-x", (1, 1), np.zeros((1, 1)))
    scale, _ = qnn.AbsMaxRecorderCallback.get_scale_zeropoint(nn.Variable((2, 3)), name="x")
    assert 0 < scale.d.item() < 1e-20


def config(**changes):
    found = type("Changed", (qnn.QATConfig,), {"skip_inputs_layers": [], "skip_outputs_layers": [], **changes})()
    found.niter_to_recording, found.niter_to_training = 1, 3
    return found


def types_of(y):
    found = []
    y.visit(lambda f: found.append(f.info.type_name))
    return found


def test_states_and_positions():
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32))
    y = F.relu(PF.affine(x, 4))
    scheduler = qnn.QATScheduler(config(recorder_position=qnn.QATConfig.RecorderPosition.BOTH))
    scheduler(y)
    states = []
    for _ in range(4):
        states.append((scheduler.state, len(types_of(y))))
        y.forward()
        scheduler.step()
    assert [state.name for state, _ in states] == ["NON_QNN", "NON_QNN", "RECORDING", "RECORDING"]
    assert [n for _, n in states] == [2, 2, 7, 7]  # x, W, b, between and behind
    assert scheduler.state == qnn.QNNState.TRAINING
    assert types_of(y).count("QuantizeLinear") == types_of(y).count("DequantizeLinear") == 4


def test_added_and_joined_inputs_share_a_range():
    x = nn.Variable.from_numpy_array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    for join in (F.add2, lambda a, b: F.concatenate(a, b, axis=1)):
        nn.clear_parameters()
        y = join(F.tanh(x), F.sinh(F.sin(x)))
        before = y.shape
        scheduler = qnn.QATScheduler(config(pow2=qnn.QATConfig.RoundingMethod.NOTROUND))
        scheduler(y)
        for _ in range(4):
            y.forward()
            scheduler.step()
        y.forward()
        first, second = (v.parent.inputs[1] for v in y.parent.inputs)
        assert first == second and y.shape == before


def test_functions_of_several_outputs_go_through_all_states():
    for position in qnn.QATConfig.RecorderPosition:
        x = nn.Variable.from_numpy_array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
        a, b = F.split(F.tanh(x), axis=0)
        y = a + b
        changed = config(recorder_position=position)
        changed.niter_to_recording, changed.niter_to_training = 1, 500  # ranges are moving averages
        scheduler = qnn.QATScheduler(changed)
        scheduler(y)
        for _ in range(502):
            y.forward()
            scheduler.step()
        y.forward()
        assert scheduler.state == qnn.QNNState.TRAINING and "QuantizeLinear" in types_of(y)
        np.testing.assert_allclose(y.d, np.tanh(x.d).sum(0), atol=0.02)
        nn.clear_parameters()


def test_only_the_numbers_of_steps_that_make_sense():
    for recording, training in ((0, -1), (-1, 5), (5, 5), (6, 5)):
        wrong = qnn.QATConfig()
        wrong.niter_to_recording, wrong.niter_to_training = recording, training
        with pytest.raises(ValueError, match="niter_to_training above it, got"):
            qnn.QATScheduler(wrong)
    with pytest.raises(ValueError, match="QATScheduler"):
        qnn.QATScheduler()


@pytest.mark.parametrize("pow2", [True, False, "ROUND", None])
def test_powers_of_two_are_a_method_of_rounding(pow2):
    config = qnn.QATConfig()
    config.niter_to_training, config.pow2 = 1, pow2
    for make in (qnn.QATScheduler, lambda config: GC.QuantizeRecordingToTrainingModifier({}, config)):
        with pytest.raises(TypeError, match=r"pow2 of QATConfig.RoundingMethod, got .*\n  hint: RoundingMethod.ROUND"):
            make(config)


def test_other_precision_modes_are_not_there():
    x = nn.Variable((2, 3))
    y = PF.affine(x, 4)
    scheduler = qnn.QATScheduler(config(precision_mode=qnn.PrecisionMode.QNN))
    scheduler(y)
    scheduler.step()
    scheduler.step()
    scheduler.step()
    with pytest.raises(NotImplementedError, match="SIM_QNN"):
        scheduler.step()


def test_the_solver_gets_what_is_new():
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).random((2, 3, 4, 4)))
    y = PF.batch_normalization(PF.convolution(x, 4, (3, 3)))
    solver = S.Adam(0.5)
    solver.set_parameters(nn.get_parameters())
    scheduler = qnn.QATScheduler(config(bn_folding=True), solver)
    scheduler(y)
    scheduler.step()
    scheduler.step()
    assert "conv/w-folded" in solver.get_parameters()
    scheduler.step()
    scheduler.step()
    assert solver.learning_rate() == pytest.approx(0.05)


def test_ranks_number_functions_but_for_those_of_training():
    recorder = qnn.FunctionsRankRecorder()
    F.relu(F.dropout(F.tanh(nn.Variable((2,))))).visit(recorder)
    assert sorted((f.info.type_name, rank) for f, rank in recorder.functions_ranks.items()) == [
        ("ReLU", 1),
        ("Tanh", 0),
    ]


def test_saving_wants_a_graph_for_evaluation():
    scheduler = qnn.QATScheduler(config())
    scheduler(nn.Variable((2,)), True)
    with pytest.raises(RuntimeError, match="training=False"):
        scheduler.save("a.nnp", [])
    with pytest.raises(NotImplementedError, match="deploy"):
        scheduler.save("a.nnp", [], deploy=True)
