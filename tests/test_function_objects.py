"""Functions of the graph as objects (`y.parent`): what they say, beside NNabla's answers, and what they do when called.

`tests/golden/make_function_objects.py` asked NNabla for every case of tests/function/.
"""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import function_harness as h
import nnrs as nn
import nnrs.functions as F
from each_case import each_case
from nnrs import Variable, backward_functions, function
from nnrs._core import Function

GOLDEN = json.loads((Path(__file__).parent / "golden" / "function_objects.json").read_text())
# One node in NNabla, graphs of several here.
GRAPHS = ("FusedConvolution",)
TARGETS = {t.id: t for t in h.targets() if t.id in GOLDEN and GOLDEN[t.id]["name"] not in GRAPHS}
# One case of each function is enough for what does not depend on values.
FIRST = {t.name: t.id for t in reversed(TARGETS.values())}


@pytest.fixture(autouse=True, params=[True, False], ids=["fused", "single"])
def fusion(request):
    old = nn.set_fusion(request.param)
    yield request.param
    nn.set_fusion(old)


def node(target: h.Target, type_config: str = "float") -> Function:
    """The case's function over fresh inputs."""
    inputs = [None if x is None else h.variable(x) for x in target.inputs(type_config)]
    for x, want in zip(inputs, target.case.wants_grad(target.case.make(target.name)), strict=True):
        if x is not None:
            x.need_grad = want
    with h.scope(type_config):
        return target.call(inputs)[0].parent


def leaf(values: Any, need_grad: bool = True) -> Variable:
    return Variable.from_numpy_array(np.array(values, np.float32), need_grad=need_grad)


# As NNabla

# Nodes that have outputs beside the one that the function gives: the range, u.
MORE_OUTPUTS = ("MinMaxQuantize", "SpectralNorm")


@pytest.mark.parametrize("fusion", [True], indirect=True)  # nothing runs
@each_case(TARGETS.values())
def test_what_a_function_says_of_itself(target):
    """Arguments too, by NNabla's names and with its defaults filled in (numbers there are float, here double)."""
    f, golden = node(target), GOLDEN[target.id]
    assert f.name == golden["name"] and f.info.type_name == golden["type_name"]
    info = f.info
    assert info in {info}  # it can be a member of sets, and a key
    assert f.rank == golden["rank"] and f.need_grad == golden["need_grad"] and f.tags == golden["tags"]
    assert len(f.inputs) == len(golden["input"]) and repr(f.args) == repr(f.arguments) == repr(f.info.args)
    assert f.min_outputs() == golden["min_outputs"]
    again = [f.need_setup_recompute(o) for o in range(len(f.outputs))]
    assert again == golden["need_setup_recompute"] or f.name in MORE_OUTPUTS
    assert isinstance(f.context, nn.Context)
    assert list(f.arguments) == list(golden["arguments"])
    for mine, theirs in zip(f.arguments.values(), golden["arguments"].values(), strict=True):
        near = theirs if isinstance(theirs, str) else pytest.approx(theirs, rel=1e-6, nan_ok=True)
        assert type(mine) is type(theirs) and mine == near


# Functions whose gradient reads here what it does not read in NNabla, and why.
READS_MORE = {
    "Max": "x instead of an index kept beside it",
    "Min": "x instead of an index kept beside it",
    "MaxPooling": "x instead of an index kept beside it",
    "SoftmaxCrossEntropy": "x instead of a softmax kept beside it",
    "Sinc": "y instead of computing it again",
    "RDivScalar": "y instead of computing it again",
    "Pow2": "y instead of computing it again",
    "Norm": "y instead of computing it again",
    "RNN": "the arrays instead of a graph kept beside them",
    "LSTM": "the arrays instead of a graph kept beside them",
    "GRU": "the arrays instead of a graph kept beside them",
    "BinaryWeightAffine": "w instead of its signs and scales, which another pass may have written",
    "BinaryWeightConvolution": "w instead of its signs and scales, which another pass may have written",
    "RandomChoice": "y, so that what it was chosen by has been drawn",
    "RandomCrop": "y, so that what it was moved by has been drawn",
    "RandomErase": "y, so that what was erased has been drawn",
    "RandomFlip": "y, so that what it was moved by has been drawn",
    "RandomShift": "y, so that what it was moved by has been drawn",
    "TopKData": "x, on a GPU, instead of places kept beside it",
    "VATNoise": "w, which it writes",
}


@pytest.mark.parametrize("name", list(FIRST.values()))
def test_gradients_read_no_more_than_in_nnabla(name):
    """No more arrays in all: where NNabla reads the input, nnrs may read the output instead."""
    f, golden = node(TARGETS[name]), GOLDEN[name]
    n, m = len(f.inputs), len(f.outputs)
    mine = {("x", j) for i in range(n) for j in range(n) if f.grad_depends_input_data(i, j)}
    mine |= {("y", o) for i in range(n) for o in range(m) if f.grad_depends_output_data(i, o)}
    theirs = {("x", j) for row in golden["input"] for j in range(n) if row[j]}
    theirs |= {("y", o) for row in golden["output"] for o in range(len(row)) if row[o]}
    assert len(mine) <= len(theirs) or f.name in READS_MORE


@pytest.mark.parametrize("name", [n for n in FIRST.values() if TARGETS[n].case.differentiable])
def test_what_a_gradient_does_not_read_may_be_anything(name):
    """The meaning of grad_depends_*: the gradient of input i is the same with garbage where it says False."""
    target = TARGETS[name]
    f = node(target, "double")
    outputs = f.outputs
    nn.forward_all(outputs)
    for k, y in enumerate(outputs):
        y.g = np.cos(np.arange(y.size) + k).reshape(y.shape)
    for i in [i for i, x in enumerate(f.inputs) if x.need_grad]:
        x, y = f.inputs, outputs
        expected = gradient(f, i, x, y)
        x = [v if f.grad_depends_input_data(i, j) else garbage(v) for j, v in enumerate(x)]
        y = [v if f.grad_depends_output_data(i, o) else garbage(v) for o, v in enumerate(y)]
        np.testing.assert_array_equal(gradient(f, i, x, y), expected)


def garbage(v: Variable) -> Variable:
    """A Variable with v's gradient and other data."""
    other = Variable(v.shape, need_grad=v.need_grad)
    other.d = np.full(v.shape, 1, v.d.dtype) if v.d.dtype.kind != "f" else np.full(v.shape, 12345.0)
    other.grad = v.grad
    return other


def gradient(f: Function, i: int, x: list[Variable], y: list[Variable]) -> np.ndarray:
    f.backward(x, y, [False] * len(x))
    return x[i].g.copy()


@pytest.mark.parametrize("name", [n for n in FIRST.values() if TARGETS[n].case.differentiable])
def test_direct_backward_is_that_of_the_graph(name):
    f = node(TARGETS[name], "double")
    x, y = f.inputs, f.outputs
    root = F.sum(y[0] * F.constant(1.0, y[0].shape)) if len(y) == 1 else None
    nn.forward_all(y)
    for v in y:
        v.g = 1
    f.backward(x, y, [False] * len(x))
    direct = [v.g.copy() for v in x if v.need_grad]
    f.backward(x, y)
    twice = [v.g.copy() for v in x if v.need_grad]
    for a, b in zip(direct, twice, strict=True):
        np.testing.assert_allclose(b, a if sum(v == x[0] for v in x) > 1 else 2 * a, rtol=1e-12)
    if root is not None and not TARGETS[name].case.mutates and f.name != "Dropout":
        for v in x:
            if v.need_grad:
                v.g = 0
        root.forward()
        root.backward()
        for a, v in zip(direct, [v for v in x if v.need_grad], strict=True):
            np.testing.assert_allclose(v.g, a, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", list(FIRST.values()))
def test_direct_setup_and_forward_on_other_variables(name):
    target = TARGETS[name]
    f, outputs = node(target), []
    others = [h.variable(np.array(v.d)) for v in f.inputs]
    outputs = [Variable() for _ in f.outputs]
    f.setup(others, outputs)
    assert [y.shape for y in outputs] == [y.shape for y in f.outputs]
    f.forward(others, outputs)
    direct = [y.d.copy() for y in outputs]
    f.setup_recompute(others, outputs)
    for y in outputs:
        y.data.clear()
    f.recompute(others, outputs)
    for y, values in zip(outputs, direct, strict=True):
        np.testing.assert_array_equal(y.d, values)
    if target.case.check is None and not target.case.mutates:
        expected = [h.rounded(y, "float") for y in target.reference(target.inputs("float"))]
        for y, r in zip(outputs, expected, strict=f.name not in MORE_OUTPUTS):
            assert h.error(y.d, r) <= h.tolerance(target.case, "float")


# Members


def test_members_of_one_function():
    x, w = leaf([[1.0, -2.0, 3.0]]), leaf(np.ones((3, 2)))
    y = F.affine(x, w)
    f = y.parent
    assert f.inputs == [x, w] and f.outputs == [y] and f.inputs[0].d.tolist() == [[1, -2, 3]]
    assert f.arguments == {"base_axis": 1} and f.min_outputs() == 1 and f.need_grad
    assert f.context == nn.get_current_context() and f.rank == 0 and F.exp(y).parent.rank == 1
    assert f == y.parent and hash(f) == hash(y.parent) and f != F.affine(x, w).parent and f != 1
    for member in ("name", "inputs", "outputs", "arguments", "args", "info", "context", "rank", "need_grad"):
        with pytest.raises(AttributeError):
            setattr(f, member, getattr(f, member))
    with pytest.raises(TypeError):
        Function()


def test_tags_stay_with_the_function():
    y = F.exp(leaf([1.0]))
    y.parent.tags = {"a": "1"}
    assert y.parent.tags == y.parent.info.tags == {"a": "1"}
    tags = y.parent.tags
    tags["b"] = "2"
    assert y.parent.tags == {"a": "1"}


def test_outputs_that_were_dropped_come_back():
    a, b = F.split(leaf([[1.0], [2.0]]), axis=0)
    f = a.parent
    assert f.min_outputs() == 2
    del b
    f.outputs[1].forward()
    assert f.outputs[1].d.tolist() == [2.0]


def test_numbers_that_are_not_there():
    f = F.mul2(leaf([1.0]), leaf([2.0])).parent
    for i, j in ((0, 2), (2, 0), (-1, 0), (0, -1), (100, 100)):
        assert not f.grad_depends_input_data(i, j) and not f.auto_grad_depends_input_data(i, j)
        assert not f.grad_depends_output_data(i, j) and not f.auto_grad_depends_output_data(i, j)


def test_rules_read_what_is_in_their_graph():
    x, w = leaf(np.ones((2, 3))), leaf(np.ones((3, 2)))
    f = F.affine(x, w).parent
    table = [[f.auto_grad_depends_input_data(i, j) for j in range(2)] for i in range(2)]
    assert table == [[False, True], [True, False]]
    assert not f.auto_grad_depends_output_data(0, 0)
    assert F.softmax(x).parent.auto_grad_depends_output_data(0, 0)
    assert F.tanh(x).parent.auto_grad_depends_output_data(0, 0)


def test_calling_a_function_makes_another_and_computes_it():
    x, other = leaf([1.0, -2.0]), leaf([-4.0, 4.0])
    f = F.leaky_relu(x, alpha=0.5).parent
    y = f(other)
    assert y.d.tolist() == [-2, 4] and y.parent != f and y.parent.inputs == [other]
    y.backward()
    assert other.g.tolist() == [0.5, 1.0]
    assert f(other.data).data.tolist() == [-2, 4]
    a, b = F.split(leaf([[1.0], [2.0]]), axis=0)[0].parent(leaf([[3.0], [4.0]]))
    assert a.d.tolist() == [3] and b.d.tolist() == [4]
    with pytest.raises(TypeError):
        f(1)


def test_calling_the_function_of_a_python_function():
    import python_functions as scripts

    object_ = scripts.MySquare()
    f = object_(leaf([2.0])).parent
    y = f(leaf([3.0]))
    assert y.d.tolist() == [9] and [entry[0] for entry in object_.log] == ["setup", "setup", "forward"]
    x2, y2 = leaf([4.0]), Variable()
    f.setup([x2], [y2])
    f.forward([x2], [y2])
    y2.g = 1
    f.backward([x2], [y2], [False])
    assert y2.d.tolist() == [16] and x2.g.tolist() == [8]
    f.backward([x2], [y2])
    assert x2.g.tolist() == [16] and object_.log[-1][1:3] == [[True], [True]]


@pytest.mark.parametrize(
    "accum, expected", [(None, [9, 4]), ([False, False], [2, 3]), ([True, False], [9, 3]), ([False], [2, 4])]
)
def test_accumulation(accum, expected):
    a, b = leaf(3.0), leaf(2.0)
    y = a * b
    y.forward()
    y.g, a.g, b.g = 1, 7, 1
    y.parent.backward([a, b], [y], accum)
    assert [a.g, b.g] == expected


def test_backward_leaves_inputs_without_need_grad_alone():
    a, b = leaf(3.0), leaf(2.0, need_grad=False)
    y = a * b
    y.forward()
    y.g, b.g = 1, 5
    y.parent.backward([a, b], [y], [False, False])
    assert a.g == 2 and b.g == 5


def test_direct_calls_do_not_touch_the_graph():
    x = leaf([1.0, 2.0])
    y = F.exp(x)
    y.forward()
    other, out = leaf([[0.0]]), Variable((7,))
    y.parent.setup([other], [out])
    y.parent.forward([other], [out])
    assert out.shape == (1, 1) and y.shape == (2,) and out.parent is None
    y.forward()
    np.testing.assert_allclose(y.d, np.exp([1, 2]), rtol=1e-6)


@pytest.mark.parametrize("call, words", [
    (lambda f, x, y: f.setup([x], [y]), "2 inputs"),
    (lambda f, x, y: f.setup([x, x, x], [y]), "inputs"),
    (lambda f, x, y: f.setup([x, Variable((5,))], [y]), "broadcast"),
    (lambda f, x, y: f.setup([x, x], []), "outputs"),
    (lambda f, x, y: f.forward([x, x], [Variable((9,))]), "setup"),
    (lambda f, x, y: f.backward([x, x], [Variable((9,))]), "setup"),
    (lambda f, x, y: f.setup([x.data, x], [y]), "Variable"),
    (lambda f, x, y: f.setup(1, [y]), "Sequence"),
    (lambda f, x, y: f.backward([x, x], [y], True), "Sequence"),
])  # fmt: skip
def test_wrong_direct_calls(call, words):
    x = leaf([1.0, 2.0])
    y = x * x
    with pytest.raises((TypeError, ValueError), match=words):
        call(y.parent, x, Variable((2,)))


def test_random_functions_repeat_their_numbers():
    x = leaf(np.ones(1000))
    y = F.dropout(x, 0.5)
    f, out = y.parent, Variable((1000,))
    assert f.need_setup_recompute(0)
    y.forward()
    first = y.d.copy()
    f.recompute([x], [out])
    np.testing.assert_array_equal(out.d, first)
    f.forward([x], [out])
    assert not np.array_equal(out.d, first)


def test_running_statistics_stay_when_recomputed():
    x, one = leaf(np.arange(6.0).reshape(3, 2)), np.ones((1, 2))
    mean, variance = leaf(one, False), leaf(one, False)
    y = F.batch_normalization(x, leaf(one), leaf(one), mean, variance)
    f, out = y.parent, Variable((3, 2))
    f.forward(f.inputs, [out])
    after, values = mean.d.copy(), out.d.copy()
    assert not np.array_equal(after, one)
    f.recompute(f.inputs, [out])
    np.testing.assert_array_equal(mean.d, after)
    np.testing.assert_array_equal(out.d, values)


# Shared memory


def test_outputs_in_the_memory_of_inputs():
    x = leaf([[1.0, 2.0]])
    f = F.reshape(x, (2, 1)).parent
    assert f.inplace_data(0) == 1 and f.inplace_data_with(0) == 0
    for y in (F.relu(x, inplace=True), F.add2(x, x, inplace=True), F.exp(x)):
        assert y.parent.inplace_data(0) == 0 and y.parent.inplace_data_with(0) == 0


@pytest.mark.parametrize("name", list(FIRST.values()))
def test_sharing_as_nnabla_says(name):
    f, golden = node(TARGETS[name]), GOLDEN[name]
    mine = [f.inplace_data(i) for i in range(len(f.inputs))]
    assert mine == golden["inplace_data"] or f.name in ("Identity", "Unlink")


# Leaving out inputs


def test_an_active_input_mask():
    values = [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    for function_, expected, gradients in (
        (F.add_n, [4, 8], [[1, 1], [0, 0], [1, 1]]),
        (F.mul_n, [3, 12], [[3, 6], [0, 0], [1, 2]]),
    ):
        x = [leaf(v) for v in values]
        y = function_(*x)
        root = F.sum(y)
        root.forward()
        whole = y.d.copy() if y.data.clear_called is False else None
        y.parent.set_active_input_mask([1, 0, True])
        for v in x:
            v.g = 0
        root.forward()
        root.backward()
        assert y.d.tolist() == expected and [v.g.tolist() for v in x] == gradients
        assert y.parent.inputs == x
        (g,) = nn.grad([root], [x[0]])
        g.forward()
        assert g.d.tolist() == gradients[0]
        (none,) = nn.grad([root], [x[1]])
        none.forward()
        assert none.shape == x[1].shape and not none.d.any()
        y.parent.set_active_input_mask([True] * 3)
        root.forward()
        np.testing.assert_array_equal(y.d, whole)


@pytest.mark.parametrize("mask", [[True, False], [False] * 3, []])
def test_wrong_masks(mask):
    f = F.add_n(*[leaf([1.0]) for _ in range(3)]).parent
    with pytest.raises(ValueError, match="mask"):
        f.set_active_input_mask(mask)


def test_functions_that_cannot_leave_out_inputs():
    x = leaf([[1.0, 2.0]])
    for y in (F.affine(x, leaf(np.ones((2, 2)))), F.concatenate(x, x), F.add2(x, x), F.stack(x, x)):
        with pytest.raises(RuntimeError, match="cannot leave out inputs"):
            y.parent.set_active_input_mask([True, False])


def test_backward_takes_no_more_flags_than_inputs():
    x = leaf([[1.0, 2.0]])
    y = F.mul2(x, x)
    y.forward()
    with pytest.raises(
        ValueError, match="mul2: argument 'accum': expected at most a flag for each of the 2 inputs"
    ) as e:
        y.parent.backward([x, x], [y], [True, False, True])
    assert isinstance(e.value, nn.Error)


# Documentation


@pytest.mark.parametrize("module", [function, backward_functions], ids=lambda m: m.__name__)
def test_examples_of_modules(module):
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("name", [n for n in dir(Function) if not n.startswith("_")] + ["__call__"])
def test_members_are_documented_and_their_examples_run(name):
    text = getattr(Function, name).__doc__
    assert text and len(text) > 20
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_an_output_that_is_an_input():
    a, b = leaf([1.0, 1]), leaf([2.0, 2])
    assign = F.assign(a, b).parent
    assign.forward([a, b], [b])
    assert a.d.tolist() == b.d.tolist() == [2, 2]
    assign.forward([b, b], [b])
    assert b.d.tolist() == [2, 2]


def test_functions_with_their_arguments_to_be_called_later():
    """NNabla's classes: all arguments are given, the context first."""
    x = nn.Variable.from_numpy_array(np.ones((2, 3), "float32"))
    w = nn.Variable.from_numpy_array(np.ones((3, 4), "float32"))
    make = function.Affine(nn.Context(["cpu:float"]), base_axis=1)
    y = make(x, w)
    y.forward()
    assert (y.d == 3).all() and y.parent.name == make.name == "Affine" and make.arguments == {"base_axis": 1}
    assert (make(x, w, auto_forward=True).d == 3).all()
    for wrong in [lambda: function.Affine(), lambda: function.Affine(nn.Context()), lambda: function.Affine(3, 1)]:
        with pytest.raises(TypeError, match="Affine.*(base_axis|ctx)"):
            wrong()
    with pytest.raises(AttributeError, match="no attribute 'Affin'"):
        function.Affin  # noqa: B018


@pytest.mark.parametrize(
    ("name", "arguments", "shapes"),
    [
        ("FusedBatchNormalization", ([1], 0.9, 1e-5, True, "relu"), [(2, 3), (1, 3), (1, 3), (1, 3), (1, 3)]),
        (
            "FusedConvolution",
            (1, (0,), (1,), (1,), 1, False, 0.9, 1e-5, True, "elu", [0.5], "constant", 0.0),
            [(2, 3, 4), (5, 3, 2), (5,)],
        ),
    ],
)
def test_makers_of_graphs(name, arguments, shapes):
    made = getattr(function, name)(nn.get_current_context(), *arguments)
    rng = np.random.RandomState(0)
    y = made(*[leaf(rng.rand(*shape)) for shape in shapes])
    y.forward()
    assert made.name == name and np.isfinite(y.d).all()
    with pytest.raises(TypeError, match=name):
        getattr(function, name)(nn.get_current_context())


def test_maker_of_sync_batch_normalization():
    comm = object()
    made = function.SyncBatchNormalization(nn.get_current_context(), comm, "world", [1], 0.9, 1e-5, True)
    assert made.arguments["comm"] is comm
    assert list(made.arguments) == ["comm", "group", "axes", "decay_rate", "eps", "batch_stat"]
