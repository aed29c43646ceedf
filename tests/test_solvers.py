"""Solvers: NNabla's paths over 100 steps, the whole interface."""

from __future__ import annotations

import inspect
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.solvers as S
from nnrs import _core
from solver_helpers import ALL, NORMED, parameter, solver_of, steps

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make_solvers  # noqa: E402 - lies beside its data

# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", make_solvers.ARGUMENTS)
def test_paths_of_100_steps_are_nnablas(name):
    golden = np.load(GOLDEN / "solvers.npz")
    for arguments in make_solvers.ARGUMENTS[name]:
        for variant in make_solvers.VARIANTS:
            run = make_solvers.run(nn, getattr(S, name)(**arguments), variant)
            for key, array in run.items():
                full = f"{name}/{make_solvers.label(arguments)}/{variant}/{key}"
                want = golden[full]
                assert array.shape == want.shape and array.dtype == want.dtype
                # Both compute in float: rounding of 100 steps.
                np.testing.assert_allclose(array, want, rtol=2e-6, atol=4e-6, err_msg=full)


def test_every_golden_path_was_followed():
    kinds = {key.split("/")[0] for key in np.load(GOLDEN / "solvers.npz")}
    assert kinds == {s["name"] for s in _core.solver_registry()}


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind not in NORMED])
def test_many_parameters_of_all_sizes(kind):
    shapes = [(), (0,), (1,), (70000,), (3, 5), (1000, 40)]
    params = {str(i): parameter(np.full(s, 0.5), 1.0) for i, s in enumerate(shapes)}
    solver = solver_of(kind, **params)
    solver.update()
    values = {float(v) for w in params.values() for v in np.unique(w.d)}
    assert len(values) == 1 and values.pop() < 0.5


def changes(solver, weights, gradients, decay=None):
    """What one update takes from each weight."""
    params = {str(i): parameter(w, g) for i, (w, g) in enumerate(zip(weights, gradients, strict=True))}
    solver.set_parameters(params)
    if decay is not None:
        solver.weight_decay(decay)
    solver.update()
    return [w - v.d for w, v in zip(weights, params.values(), strict=True)]


def test_lars_at_its_corners():
    """As NNabla: a weight of a norm below eps has a rate of 1, and to a divisor below eps, eps is added."""
    solver = S.Lars(lr=1.0, momentum=0.0, coefficient=0.5, eps=1.0)
    w, zero, small = np.array([3.0, 4.0]), np.zeros(2), np.array([0.3, 0.4])
    found = changes(solver, [w, w, w, zero, small], [w / 4, w / 50, zero, w / 5, w / 5])
    want = [w / 2, w / 50 * 2.5 / 1.1, zero, w / 5, w / 5]
    np.testing.assert_allclose(found, want, rtol=1e-5)
    np.testing.assert_allclose(changes(solver, [w, w], [w / 5, zero], 0.5), [w / 2] * 2, rtol=1e-5)


def test_lamb_at_its_corners():
    """As NNabla: with a direction below eps the rate is eta; weights of zero stay but for gamma_l."""
    w, zero = np.array([3.0, 4.0]), np.zeros(2)
    found = changes(S.Lamb(eta=1.0), [w, zero, zero], [zero, w, zero])
    np.testing.assert_array_equal(found, np.zeros((3, 2)))
    (up,) = changes(S.Lamb(eta=1.0, gamma_l=1.0), [zero], [w])
    np.testing.assert_allclose(np.linalg.norm(up), 1.0, rtol=1e-5)
    (down,) = changes(S.Lamb(eta=1.0, gamma_u=2.0), [w], [w])
    np.testing.assert_allclose(np.linalg.norm(down), 2.0, rtol=1e-5)
    (small,) = changes(S.Lamb(eta=1.0, beta1=0.5, beta2=0.75, eps=5.0, bias_correction=True), [w], [w / 5])
    np.testing.assert_allclose(small, w / 5 / (w / 5 + 5), rtol=1e-5)


def test_amsbound_goes_up_as_nnablas():
    """The paper's upper bound goes down to final_lr, with 1 + 1 / (gamma t)."""
    for kind, bounds in (S.AMSBound, [6, 11, 16]), (S.AdaBound, [6, 3.5, 1 + 5 / 3]):
        solver = kind(alpha=1.0, beta1=0.0, final_lr=0.05, gamma=0.2, eps=0.0)
        w = parameter([0.0])
        solver.set_parameters({"w": w})
        for bound in bounds:
            before = w.d.copy()
            w.g = [1e-4]
            solver.update()
            np.testing.assert_allclose(before - w.d, [0.05 * bound * 1e-4], rtol=1e-3)


def test_norms_are_of_the_whole_parameter_in_any_type():
    n, g = 100_000, np.float32(2e19)
    for dtype in (np.float32, np.float64):
        w = nn.Variable.from_numpy_array(np.full(n, 3, dtype), need_grad=True)
        w.grad.cast(dtype)[...] = g  # its square is beyond float
        solver = S.Lars(lr=0.5, coefficient=0.25, momentum=0.0)
        solver.set_parameters({"w": w})
        solver.update()
        np.testing.assert_allclose(w.d, 3 - 0.5 * 0.25 * 3, rtol=1e-6)


def test_one_variable_under_two_names_has_new_norms_for_the_second():
    w = parameter(np.full(4, 1.0), 1.0)
    solver = S.Lars(lr=1.0, momentum=0.0, coefficient=0.5)
    solver.set_parameters({"a": w, "b": w})
    solver.update()
    np.testing.assert_allclose(w.d, 0.25, rtol=1e-6)


@pytest.mark.parametrize("dtype, context", [(np.float16, "float"), (np.float64, "float"), (np.float64, "double")])
def test_weights_become_float_but_doubles_stay_in_a_context_of_doubles(dtype, context):
    """The context in which the solver was made, as it is its own in NNabla, which has none of doubles."""
    w = nn.Variable.from_numpy_array(np.ones(3, dtype), need_grad=True)
    with nn.context_scope(nn.Context([f"cpu:{context}"], "CpuCachedArray", "0")):
        solver = solver_of(S.Momentum, w=w)
    for _ in range(3):
        w.grad.cast(dtype)[...] = 0.5
        solver.scale_grad(1e-3)
        solver.update()
    assert w.d.dtype == w.g.dtype == (np.float64 if context == "double" else np.float32)
    step = float(np.float32(1e-3)) * float(np.float32(0.001)) * 0.5
    np.testing.assert_allclose(w.d, 1 - step * (1 + 1.9 + 2.71), rtol=1e-7 if context == "float" else 1e-9)


def test_integers_become_float():
    w = nn.Variable.from_numpy_array(np.array([1, 2]), need_grad=True)
    w.grad.fill(1)
    solver_of(S.Sgd, w=w).update()
    assert w.d.dtype == np.float32
    np.testing.assert_allclose(w.d, [0.999, 1.999], rtol=1e-6)


# --- parameters -------------------------------------------------------------------------------------------------------


def test_set_parameters_by_reset_and_retain_state():
    a, b = parameter([1.0], 1.0), parameter([1.0, 2.0], 1.0)
    solver = solver_of(S.Adam, a=a, b=b)
    solver.update()
    assert steps(solver) == {"a": 1, "b": 1}
    solver.set_parameters({"a": a}, reset=False)
    assert steps(solver) == {"a": 0, "b": 1}
    other = parameter([5.0, 6.0], 1.0)
    solver.set_parameters({"b": other}, reset=False, retain_state=True)
    assert steps(solver) == {"a": 0, "b": 1}
    solver.update()
    assert (other.d < [5.0, 6.0]).all()
    with pytest.raises(RuntimeError, match=r"state of 'b': its shape was \(2,\), now it is \(1,\)"):
        solver.set_parameters({"c": a, "b": a}, reset=False, retain_state=True)
    assert list(solver.get_parameters()) == ["a", "b"]
    solver.set_parameters({"b": other}, retain_state=True)
    assert steps(solver) == {"b": 0}


def test_get_and_remove_parameters():
    a, b = parameter([1.0]), parameter([2.0])
    solver = solver_of(S.Momentum, a=a, b=b)
    solver.get_parameters()["a"].d = [7.0]
    assert a.d == 7.0
    solver.remove_parameters(["a", "unknown"])
    assert list(solver.get_parameters()) == list(solver.get_states()) == ["b"]
    solver.remove_parameters("b")
    assert not solver.get_parameters()
    solver.set_parameters({"a": a})
    solver.clear_parameters()
    solver.update()
    assert not solver.check_inf_or_nan_grad()


@pytest.mark.parametrize("given", [[("a", 1)], {"a": 1}, {"a": nn.NdArray((1,))}, {1: nn.Variable((1,))}, None])
def test_set_parameters_wants_a_dict_of_variables(given):
    solver = solver_of(S.Sgd, w=parameter([1.0]))
    with pytest.raises(TypeError, match="set_parameters: argument 'param_dict'") as error:
        solver.set_parameters(given)
    assert isinstance(error.value, nn.Error)
    assert list(solver.get_parameters()) == ["w"]


def test_one_variable_under_two_names_is_updated_twice():
    w = parameter(np.ones(100_000), 1.0)
    solver = S.Sgd(lr=0.25)
    solver.set_parameters({"a": w, "b": w})
    solver.update()
    assert (w.d == 0.5).all()


def test_the_solver_follows_new_arrays():
    w = parameter([1.0], 1.0)
    solver = S.Sgd(lr=0.5)
    solver.set_parameters({"w": w})
    w.data, w.grad = nn.NdArray.from_numpy_array(np.float32([10])), nn.NdArray.from_numpy_array(np.float32([4]))
    solver.update()
    assert w.d == 8.0


def test_a_parameter_of_another_size_changes_nothing():
    a, b = parameter([1.0], 1.0), parameter([1.0, 1.0], 1.0)
    solver = solver_of(S.Adam, a=a, b=b)
    b.data = nn.NdArray.from_numpy_array(np.ones(2, np.float32))
    b.data.reset_shape((3,), True) if hasattr(b.data, "reset_shape") else b.reset_shape((3,), True)
    with pytest.raises(ValueError, match="as parameter 'b'"):
        solver.update()
    assert a.d == 1.0 and steps(solver) == {"a": 0, "b": 0}


# --- gradients --------------------------------------------------------------------------------------------------------


def test_zeroed_gradients_take_no_part():
    a, b = parameter([1.0], 1.0), parameter([1.0], 1.0)
    solver = S.Momentum(lr=1.0, momentum=0.5)
    solver.set_parameters({"a": a, "b": b})
    solver.update()
    solver.zero_grad()
    assert a.grad.zeroing and b.grad.zeroing
    b.g = np.zeros(1)
    solver.weight_decay(0.5)
    solver.update()
    assert steps(solver) == {"a": 1, "b": 2}
    assert (a.d, b.d) == (0.0, -0.5)


def test_reading_a_zeroed_gradient_leaves_it_zeroed():
    a = parameter([1.0], 1.0)
    solver = S.Sgd(lr=1.0)
    solver.set_parameters({"a": a})
    solver.zero_grad()
    seen = a.grad.get_data("r")
    assert a.grad.zeroing and seen == 0
    solver.weight_decay(0.5)
    assert a.grad.zeroing
    a.grad.data[0] = 7
    assert seen == 7 and not a.grad.zeroing


def test_gradients_that_are_parts_of_one_array_are_clipped_each():
    flat, parameters = nn.NdArray((6,)), {str(i): parameter([1.0, 2.0], [0.0, 0.0]) for i in range(3)}
    for i, p in enumerate(parameters.values()):
        p.grad = flat.narrow(0, 2 * i, 2)
    flat.data = [3, 4, 6, 8, 0.3, 0.4]
    solver_of(S.Sgd, **parameters).clip_grad_by_norm(1.0)
    np.testing.assert_allclose(flat.data, [0.6, 0.8, 0.6, 0.8, 0.3, 0.4], rtol=1e-6)


def test_decay_scale_and_clip():
    a = parameter([1.0, -2.0], [3.0, 4.0])
    solver = solver_of(S.Sgd, a=a)
    solver.weight_decay(0.5)
    assert a.g.tolist() == [3.5, 3.0]
    solver.scale_grad(2)
    assert a.g.tolist() == [7.0, 6.0]
    solver.clip_grad_by_norm(100)
    assert a.g.tolist() == [7.0, 6.0]
    a.g = [3.0, 4.0]
    solver.clip_grad_by_norm(np.float32(1))
    np.testing.assert_allclose(a.g, [0.6, 0.8], rtol=1e-6)
    b = a.reshape((2, 1), unlink=True)
    solver.set_parameters({"same": b}, reset=False)
    a.g = [3.0, 4.0]
    solver.clip_grad_by_norm(1.0)
    np.testing.assert_allclose(a.g, [0.6, 0.8], rtol=1e-6)
    a.g = [np.inf, 1.0]
    solver.clip_grad_by_norm(1.0)
    np.testing.assert_array_equal(a.g, [np.nan, 0.0])
    a.g = [np.nan, 1.0]
    solver.clip_grad_by_norm(1.0)
    np.testing.assert_array_equal(a.g, [np.nan, 1.0])


@pytest.mark.parametrize(
    ("odd", "found"),
    [(1.0, (0, 0, 0)), (np.nan, (0, 1, 1)), (np.inf, (1, 0, 1)), (-np.inf, (1, 0, 1)), (3.4e38, (0, 0, 0))],
)
def test_check_gradients(odd, found):
    g = np.ones(50_000, np.float32)
    g[40_000] = odd
    solver = solver_of(S.Sgd, a=parameter([1.0], 1.0), b=parameter(np.ones(50_000), g))
    answers = (solver.check_inf_grad(), solver.check_nan_grad(), solver.check_inf_or_nan_grad())
    assert answers == tuple(map(bool, found)) and all(type(a) is bool for a in answers)


def test_fused_weight_decay():
    assert {kind for kind in ALL if kind().weight_decay_is_fused()} == {S.SgdW, S.AdamW, S.Lars, S.Lamb, S.Lion}
    assert S.AdaBelief(weight_decouple=True).weight_decay_is_fused()
    w = parameter([1.0], 0.0)
    solver = S.AdamW(wd=0.5)
    solver.set_parameters({"w": w})
    solver.weight_decay(0.25)
    assert w.g == 0.0
    solver.update()
    np.testing.assert_allclose(w.d, 0.75, rtol=1e-6)
    solver.update()
    np.testing.assert_allclose(w.d, 0.375, rtol=1e-6)


# --- hooks ------------------------------------------------------------------------------------------------------------


def test_hooks_surround_each_parameter_that_takes_part():
    a, b, idle = parameter([1.0], 1.0), parameter([1.0], 1.0), parameter([1.0], 1.0)
    solver = solver_of(S.Sgd, a=a, b=b, idle=idle)
    idle.grad.zero()
    log = []
    nn.set_solver_pre_hook("test", lambda: log.append("global pre"))
    nn.set_solver_post_hook("test", lambda: log.append("global post"))
    try:
        solver.update(lambda: log.append("pre"), lambda: log.append("post"))
        assert log == ["global pre", "pre", "post", "global post"] * 2
        log.clear()
        solver.weight_decay(0.1, pre_hook=lambda: log.append("pre"))
        assert log == ["global pre", "pre", "global post"] * 2
        log.clear()
        solver.check_nan_grad(), solver.clip_grad_by_norm(1.0), solver.scale_grad(1.0)
        assert log == ["global pre", "global post"] * 6
    finally:
        nn.unset_solver_pre_hook("test")
        nn.unset_solver_post_hook("test")
    log.clear()
    solver.update()
    assert log == []


def test_a_hook_may_use_the_solver():
    a, b = parameter([1.0], 1.0), parameter([1.0], 1.0)
    solver = solver_of(S.Sgd, a=a, b=b)
    solver.update(lambda: (solver.set_learning_rate(0.5), solver.remove_parameters(["b"])))
    assert (a.d, b.d) == (0.5, 1.0)


def test_an_exception_in_a_hook_comes_through():
    w = parameter([1.0], 1.0)
    solver = solver_of(S.Adam, w=w)
    with pytest.raises(ZeroDivisionError):
        solver.update(lambda: 1 / 0)
    assert w.d == 1.0 and steps(solver) == {"w": 0}
    solver.update()
    assert steps(solver) == {"w": 1}


# --- arguments --------------------------------------------------------------------------------------------------------


def test_arguments_are_nnablas():
    assert S.Adam().info == {
        "alpha": 0.0010000000474974513,
        "beta1": 0.8999999761581421,
        "beta2": 0.9990000128746033,
        "eps": 9.99999993922529e-09,
    }
    solver = S.AdamW(0.5, beta2=0.25)
    assert (solver.name, solver.info["alpha"], solver.info["beta2"]) == ("AdamW", 0.5, 0.25)
    solver.set_learning_rate(0.1)
    assert solver.learning_rate() == float(np.float32(0.1)) and solver.info["alpha"] == 0.5
    assert isinstance(solver, S.Solver) and type(solver).__name__ == "AdamW"


@pytest.mark.parametrize(
    "call",
    [
        lambda: S.Sgd(rate=1),
        lambda: S.Adam(alpha="a"),
        lambda: S.Adam(alpha=None),
        lambda: S.Sgd().set_learning_rate("a"),
        lambda: S.Sgd().weight_decay(None),
        lambda: S.Sgd().scale_grad([1]),
    ],
)
def test_wrong_arguments(call):
    with pytest.raises(TypeError):
        call()


def test_unknown_names():
    with pytest.raises(AttributeError, match="has no attribute 'Adamm'"):
        _ = S.Adamm
    with pytest.raises(RuntimeError, match="set_parameters"):
        S.Sgd().setup({})


def test_solver_api_gives_the_current_context():
    from nnrs.solver import solver_api

    @solver_api
    def made(ctx, rate, more=2):
        """Its own words."""
        return ctx, rate, more

    with nn.context_scope(nn.Context(["cpu:float"], "CpuArray", "3")):
        ctx, rate, more = made(1, more=3)
    assert (ctx.device_id, rate, more) == ("3", 1, 3)
    assert made.__doc__ == "Its own words." and str(inspect.signature(made)) == "(rate, more=2)"


# --- threads ----------------------------------------------------------------------------------------------------------


def test_updates_run_without_the_gil_and_from_several_threads():
    w = parameter(np.ones(300_000), 1.0)
    solver = S.Sgd(lr=0.0)
    solver.set_parameters({"w": w})
    threads = [threading.Thread(target=lambda: [solver.update() for _ in range(20)]) for _ in range(4)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        assert solver.learning_rate() == 0.0
    assert steps(solver) == {"w": 80} and (w.d == 1.0).all()


@pytest.mark.parametrize("more", [{}, {"reset": False}, {"retain_state": True}], ids=str)
@pytest.mark.parametrize("kind", ALL)
def test_sgd_counts_on_where_others_start_afresh(kind, more):
    """As NNabla, whose Sgd never drops a state: t stays 2 when the parameter was removed or cleared, and set again."""
    w, kept = parameter([1.0, 2.0], 1), 2 if kind is S.Sgd else 0
    solver = solver_of(kind, w=w)
    solver.update()
    solver.update()
    times = []
    for drop in (lambda: None, lambda: solver.remove_parameters(["w"]), solver.clear_parameters):
        drop()
        solver.set_parameters({"w": w}, **more)
        times.append(solver.get_states()["w"].t)
    assert times == [kept] * 3
    other = parameter([3.0], 1)
    solver.set_parameters({"w": other}, reset=False)
    assert solver.get_states()["w"].t == kept and solver.get_parameters()["w"] is not w
