"""Parametric functions make the same parameters as NNabla (golden/parametric.json), and undo what fails."""

import inspect
import json
import pathlib

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F  # the golden cases read it, and the next one
import nnrs.initializer as I
import nnrs.parametric_functions as PF

DECOMPOSED = ("svd_", "cpd3_")
"""Their values are those of the machine's LAPACK, whose last bits depend on its processor."""
GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "parametric.json").read_text())


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    nn.seed(313)
    yield
    nn.clear_parameters()


@pytest.mark.parametrize("case", GOLDEN["parametric"], ids=lambda case: case["code"])
def test_same_parameters_as_nnabla(case):
    y = eval(case["code"], {"nn": nn, "F": F, "PF": PF, "I": I, "np": np})
    outputs = y if isinstance(y, (tuple, list)) else [y]
    assert [list(o.shape) for o in outputs] == case["outputs"]
    assert outputs[0].need_grad == case["need_grad"]
    made = nn.get_parameters(grad_only=False)
    assert list(made) == [name for name, *_ in case["parameters"]]
    for name, shape, need_grad, dtype, total, first in case["parameters"]:
        values = np.asarray(made[name].data.data)
        assert (list(made[name].shape), made[name].need_grad, str(values.dtype)) == (shape, need_grad, dtype)
        if any(name in case["code"] for name in DECOMPOSED):
            np.testing.assert_allclose(values.ravel()[:5], [float.fromhex(x) for x in first], 1e-5, 1e-6)
            continue
        assert [float(x).hex() for x in values.ravel()[:5]] == first
        assert values.sum(dtype=np.float64) == pytest.approx(total, rel=1e-12, abs=1e-12)


def test_second_call_uses_the_same_parameters():
    x = nn.Variable((2, 3))
    PF.affine(x, 4, name="fc")
    w = nn.get_parameters()["fc/affine/W"].d.copy()
    PF.affine(x, 4, name="fc")
    assert len(nn.get_parameters()) == 2
    np.testing.assert_array_equal(nn.get_parameters()["fc/affine/W"].d, w)


def test_apply_w_changes_the_result_not_the_parameter():
    x = nn.Variable.from_numpy_array(np.ones((1, 2), np.float32))
    y = PF.affine(x, 1, w_init=I.ConstantInitializer(3), apply_w=lambda w: w * 2)
    y.forward()
    assert y.d.tolist() == [[12.0]]
    assert nn.get_parameters()["affine/W"].d.tolist() == [[3.0], [3.0]]


def test_fixed_parameters_get_no_gradient_but_stay_trainable():
    y = PF.affine(nn.Variable((2, 3)), 4, fix_parameters=True)
    assert not y.need_grad
    assert all(v.need_grad for v in nn.get_parameters().values())
    assert PF.affine(nn.Variable((2, 3)), 4).need_grad


def test_no_grad_makes_parameters_that_later_calls_train():
    with nn.no_grad():
        assert not PF.affine(nn.Variable((2, 3)), 4).need_grad
    assert PF.affine(nn.Variable((2, 3)), 4).need_grad


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda x: PF.affine(x, 5, base_axis=3),
            ValueError,
            "affine: argument 'base_axis': expected an axis between -3",
        ),
        (lambda x: PF.affine(x, -1), ValueError, "affine: argument 'n_outmaps'"),
        (lambda x: PF.affine(x, 2.5), TypeError, "affine: argument 'n_outmaps': expected int"),
        (lambda x: PF.affine(x, 5, bogus=1), TypeError, "bogus"),
        (lambda x: PF.affine(x, 5, name=3), TypeError, "affine: argument 'name'"),
        (lambda x: PF.affine(3, 5), TypeError, "affine: argument 'inp': expected a Variable or NdArray, got int 3"),
        (lambda x: PF.convolution(x, 4, (3,), group=2), ValueError, "expected a divisor of the 3 input channels"),
        (lambda x: PF.convolution(x, 4, (3,), group=0), ValueError, "group"),
        (lambda x: PF.depthwise_convolution(x, (3,), multiplier=0), ValueError, "argument 'multiplier'"),
        (lambda x: PF.depthwise_convolution(x, (0,)), ValueError, "argument 'kernel'"),
        (lambda x: PF.depthwise_deconvolution(x, (3,), divisor=2), ValueError, "argument 'divisor'"),
        (lambda x: PF.deformable_convolution(x, 4, (3,), x), ValueError, "argument 'x'"),
        (lambda x: PF.deformable_convolution(x, 4, (3,), x, group=2), ValueError, "argument 'group'"),
        (lambda x: PF.embed(x, 3, [4]), TypeError, "embed: argument 'n_features': expected int"),
        (lambda x: PF.affine(x, 5, w_init=np.ones((3, 3))), ValueError, r"expected values of shape \(12, 5\)"),
        (lambda x: PF.affine(x, 5, w_init="ones"), ValueError, "^affine: argument 'w_init': expected a callable"),
        (lambda x: PF.affine(x, 5, b_init=I.ConstantInitializer), ValueError, "^affine: argument 'b_init': expected a"),
        (lambda x: PF.convolution(x, 5, (2,), w_init=5), ValueError, "^convolution: argument 'w_init': .*, got int 5"),
        (lambda x: PF.convolution(x, 5, (2,), b_init=np.ones(3)), ValueError, "^convolution: argument 'b_init'"),
        (lambda x: PF.lstm(x, *[nn.Variable((1, 1, 3, 4))] * 2, w0_init=5), ValueError, "^lstm: argument 'w0_init'"),
        (lambda x: PF.svd_affine(x, 5, 1, b_init=5), ValueError, "^svd_affine: argument 'b_init'"),
        (
            lambda x: PF.deformable_convolution(x, 2.5, (3,), x),
            TypeError,
            "^deformable_convolution: argument 'outmaps'",
        ),
        (lambda x: PF.layer_normalization(x, param_init={"beta": 5}), ValueError, r"argument 'param_init\['beta'\]'"),
        (
            lambda x: PF.fixed_point_quantized_affine(x, 5, delta_w=-1),
            ValueError,
            "^fixed_point_quantized_affine: in fixed_point_quantize: argument 'delta'",
        ),
        (lambda x: PF.affine(x, 5, apply_b=lambda b: 1 / 0), ZeroDivisionError, "division"),
    ],
)
def test_errors_leave_no_parameters(call, kind, text):
    with pytest.raises(kind, match=text):
        call(nn.Variable((2, 3, 4)))
    assert len(nn.get_parameters(grad_only=False)) == 0
    assert len(nn.get_current_parameter_scope()) == 0


@pytest.mark.parametrize(
    "layer, own",
    [
        (PF.batch_normalization, "'beta', 'gamma', 'mean', 'var'"),
        (PF.fused_batch_normalization, "'beta', 'gamma', 'mean', 'var'"),
        (PF.layer_normalization, "'beta', 'gamma'"),
        (lambda x, **options: PF.multi_head_attention(x, x, x, 2, **options), "'q_weight', .*, 'attn_bias_v'"),
        (lambda x, param_init: PF.group_normalization(x, 1, 1, 0, 1e-5, False, False, param_init), "'beta', 'gamma'"),
    ],
)
def test_initial_values_of_no_parameter_are_ignored_with_a_warning(layer, own, monkeypatch):
    monkeypatch.setattr("nnrs._param_init._told", set())
    x = nn.Variable((2, 3, 4))
    with pytest.warns(RuntimeWarning, match=f"'param_init': '?zork'? is ignored: the parameters are {own}$") as found:
        layer(x, param_init={"zork": 1})
    assert [w.filename for w in found] == [__file__]
    layer(x, param_init={"zork": 1})  # told once
    with pytest.warns(RuntimeWarning, match="': 5 is ignored"):
        layer(x, param_init={5: 1})


def test_functions_of_ones_own_take_any_initial_values():
    @PF.parametric_function_api("own", [("a", "A number.", "()", True)])
    def own(x, param_init=None):
        return x, param_init

    assert own(3, param_init={"b": 1}) == (3, {"b": 1})


def test_an_error_keeps_parameters_that_were_there():
    PF.affine(nn.Variable((2, 3)), 4)
    with pytest.raises(ValueError, match=r"parameter 'affine/W' has shape \(3, 4\), but shape \(5, 4\) is asked for"):
        PF.affine(nn.Variable((2, 5)), 4)
    assert list(nn.get_parameters()) == ["affine/W", "affine/b"]


def test_api_decorator_adds_name_last():
    @PF.parametric_function_api("mine", [("W", "A weight.", "(k,)", True)])
    def mine(x, k=2, fix_parameters=False):
        """What it does."""
        return nn.parameter.get_parameter_or_create("W", (k,))

    assert str(inspect.signature(mine)).startswith("(x, k=2, fix_parameters=False, name")
    assert mine.__name__ == "mine" and mine.__scope_name__ == "mine"
    assert "What it does." in mine.__doc__ and "A weight." in mine.__doc__
    mine(0)
    mine(0, 3, False, "by_place")
    mine(0, name="by_name")
    assert list(nn.get_parameters()) == ["mine/W", "by_place/mine/W", "by_name/mine/W"]
    with pytest.raises(TypeError):
        mine(0, 3, False, "by_place", "too many")


def test_api_decorator_takes_var_args():
    @PF.parametric_function_api("outer")
    def outer(*xs, **kw):
        return [PF.affine(x, 2, name=f"l{i}", **kw) for i, x in enumerate(xs)]

    outer(nn.Variable((1, 2)), nn.Variable((1, 2)), name="n", with_bias=False)
    assert list(nn.get_parameters()) == ["n/outer/l0/affine/W", "n/outer/l1/affine/W"]


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        PF.nonsense  # noqa: B018


WRONG = {
    "rng of affine": (lambda: PF.affine(nn.Variable((2, 3)), 2, rng=0), "rng"),
    "rng of convolution": (lambda: PF.convolution(nn.Variable((1, 2, 4)), 2, (1,), rng=0), "rng"),
    "apply_w of affine": (lambda: PF.affine(nn.Variable((2, 3)), 2, apply_w=(1,)), "apply_w"),
    "apply_b of affine": (lambda: PF.affine(nn.Variable((2, 3)), 2, apply_b=1), "apply_b"),
    "apply_w of embed": (lambda: PF.embed(nn.Variable((2,)), 2, 2, apply_w=5), "apply_w"),
    "axes": (lambda: PF.convolution(nn.Variable(()), 2, (1,), channel_last=True), "base_axis"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_name_themselves_and_make_no_parameters(name):
    call, argument = WRONG[name]
    with pytest.raises(nn.Error, match=f"argument '{argument}'"):
        call()
    assert not nn.get_parameters()


# One tree: layers are made by Rust code, what the script does with the tree by Python code.


def test_a_layer_finds_what_the_script_put_there():
    w = nn.Variable.from_numpy_array(np.full((2, 1), 3, np.float32), need_grad=True)
    nn.parameter.set_parameter("fc/affine/W", w)
    y = PF.affine(nn.Variable.from_numpy_array(np.ones((1, 2), np.float32)), 1, name="fc", with_bias=False)
    y.forward()
    y.backward()
    assert y.d.tolist() == [[6.0]] and w.g.tolist() == [[1.0], [1.0]]
    assert nn.parameter.get_parameter("fc/affine/W") is w  # the script's own object


def test_a_layer_in_a_dict_of_the_script():
    own = {}
    with nn.parameter_scope("net", own):
        PF.affine(nn.Variable((1, 2)), 3, name="fc")
        inner = nn.get_current_parameter_scope()
        assert list(nn.get_parameters()) == ["fc/affine/W", "fc/affine/b"]
    assert own["net"] is inner and own["net"]["fc"]["affine"]["W"].shape == (2, 3)
    assert not nn.get_parameters()


def test_values_that_are_no_parameters_stay_where_they_are():
    scope = nn.get_current_parameter_scope()
    scope["note"] = "mine"
    scope[5] = 7
    try:
        PF.prelu(nn.Variable((1, 2)))
        with pytest.raises(nn.Error, match="'note'.*got str 'mine'"):
            PF.prelu(nn.Variable((1, 2)), name="note")
        assert list(scope) == ["note", 5, "prelu"] and scope["note"] == "mine"
    finally:
        del scope["note"], scope[5]


def test_what_an_outer_function_made_goes_with_what_its_layers_made():
    @PF.parametric_function_api("outer")
    def outer(x):
        PF.affine(x, 2, name="kept")
        PF.affine(x, 2, name="new")
        nn.parameter.set_parameter("kept/affine/b", nn.Variable((2,)))
        raise KeyError("after both")

    with nn.parameter_scope("outer"):
        PF.affine(nn.Variable((1, 2)), 2, name="kept")
    before = nn.get_parameters(grad_only=False)
    with pytest.raises(KeyError):
        outer(nn.Variable((1, 2)))
    after = nn.get_parameters(grad_only=False)
    assert list(after) == list(before) and all(after[k] is before[k] for k in before)
    assert "new" not in nn.get_current_parameter_scope()["outer"]


def test_a_layer_that_fails_in_its_second_parameter_leaves_none():
    with pytest.raises(ValueError, match="argument 'b_init'"):
        PF.affine(nn.Variable((1, 2)), 2, b_init=np.ones(3))
    assert not nn.get_current_parameter_scope()
    with pytest.raises(KeyboardInterrupt):
        PF.affine(nn.Variable((1, 2)), 2, b_init=lambda shape: (_ for _ in ()).throw(KeyboardInterrupt))
    assert not nn.get_current_parameter_scope()


def test_layers_in_threads_and_tasks_know_their_own_scopes():
    import asyncio
    import threading

    async def layer(name):
        with nn.parameter_scope(name):
            await asyncio.sleep(0)
            PF.embed(nn.Variable((1,)), 2, 2)

    async def both():
        await asyncio.gather(layer("a"), layer("b"))

    with nn.parameter_scope("main"):
        asyncio.run(both())
        thread = threading.Thread(target=lambda: PF.embed(nn.Variable((1,)), 2, 2, name="thread"))
        thread.start()
        thread.join()
    assert sorted(nn.get_parameters()) == ["main/a/embed/W", "main/b/embed/W", "thread/embed/W"]


def test_parameters_note_the_initializer_and_draw_in_order():
    PF.affine(nn.Variable((1, 2)), 3)
    info = nn.parameter.get_parameter("affine/W").info.initializer
    assert isinstance(info, I.UniformInitializer) and info.rng is nn.random.prng
    own = np.random.RandomState(5)
    PF.affine(nn.Variable((1, 2)), 3, rng=own, name="own")
    drawn = np.random.RandomState(5).uniform(*info.lim, (2, 3)).astype(np.float32)
    np.testing.assert_array_equal(nn.parameter.get_parameter("own/affine/W").d, drawn)
    table = I.NormalInitializer()
    PF.embed(nn.Variable((1,)), 2, 2, initializer=table)
    assert nn.parameter.get_parameter("embed/W").info.initializer is table


def test_layers_on_arrays_compute_at_once():
    x = nn.NdArray.from_numpy_array(np.float32([[-4, 2]]))
    y = PF.prelu(x)
    assert isinstance(y, nn.NdArray) and y.data.tolist() == [[-1.0, 2.0]]
    y, mean, var = PF.batch_normalization(x, output_stat=True)
    assert isinstance(mean, nn.NdArray) and mean.shape == (1, 2)


def test_errors_say_where_the_layer_was_made():
    y = PF.affine(nn.Variable((1, 2)), 2, w_init=np.ones((2, 2), np.float32))
    y.parent.inputs[0].reset_shape((1, 3), True)
    with pytest.raises(nn.Error, match=r"test_parametric_functions\.py:\d+"):
        y.forward()
