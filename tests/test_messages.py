"""What a call with wrong arguments, a missing module, a wrong hook or setting says: always an nnrs.Error, of its kind.

Whole texts are in tests/golden/errors.txt (test_errors.py).
"""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

HERE = Path(__file__).parent


def var(*shape: int) -> nn.Variable:
    return nn.Variable(shape, need_grad=True)


@pytest.fixture(autouse=True)
def fresh():
    yield
    nn.clear_parameters()
    nn.memory.set_limit(None)


# --- calls ------------------------------------------------------------------------------------------------------------


class Alone:
    """A communicator of one process."""

    size = 1
    all_reduce = None


CALLS = {
    "unknown keyword": (lambda: F.tanh(var(3), foo=1), r"^tanh: .*'foo'\n  hint: tanh\(x, "),
    "missing input": (lambda: F.affine(var(3)), r"^affine: missing .*'weight'"),
    "too many": (lambda: F.tanh(var(3), 1, 2, 3), "^tanh: too many"),
    "composite": (lambda: F.clip_by_value(var(3), 1), "^clip_by_value: missing .*'max'"),
    "bound": (
        lambda: F.clip_by_value(var(3), None, 1),
        "^clip_by_value: argument 'min': expected a Variable, NdArray or number, got NoneType",
    ),
    "complex bound": (lambda: F.clip_by_value(var(3), 0, np.complex64(1)), "^clip_by_value: argument 'max': "),
    "clipped": (
        lambda: F.clip_by_value(3, 0, 1),
        "^clip_by_value: argument 'x': expected a Variable or NdArray, got int 3",
    ),
    "n_outputs": (
        lambda: F.tanh(var(3), n_outputs="a"),
        "^tanh: argument 'n_outputs': expected an int of 64 bits, got str 'a'",
    ),
    "huge n_outputs": (
        lambda: F.tanh(var(3), n_outputs=2**63),
        "^tanh: argument 'n_outputs': expected an int of 64 bits",
    ),
    "n_outputs again": (
        lambda: F.tanh(var(3)).parent(var(3), n_outputs=[]),
        "^tanh: argument 'n_outputs': expected an int",
    ),
    "flag as array": (
        lambda: F.add2(var(2), var(2), inplace=np.ones(2)),
        "^add2: argument 'inplace': expected bool, got array",
    ),
    "flag as array, reduction": (
        lambda: F.max(var(2), with_index=np.ones(2)),
        "^max: argument 'with_index': expected bool",
    ),
    "axes as text": (
        lambda: F.batch_normalization(var(2, 3), None, None, None, None, axes="abc"),
        "^batch_normalization: argument 'axes': expected Sequence.int., got 'abc'",
    ),
    "axes as function": (
        lambda: F.batch_normalization(var(2, 3), None, None, None, None, axes=lambda v: v),
        "^batch_normalization: argument 'axes': expected Sequence.int., got <function",
    ),
    "normalized": (
        lambda: F.batch_normalization(3, None, None, None, None),
        "^batch_normalization: argument 'x': expected a Variable or NdArray, got int",
    ),
    "of a part": (
        lambda: F.sync_batch_normalization(var(2, 3), None, None, None, None, Alone(), eps="a"),
        "^sync_batch_normalization: argument 'eps': expected float",
    ),
    "sink": (lambda: F.sink(3, one_input_grad=False), "^sink: argument 'x': expected a Variable or NdArray, got int"),
    "solver": (lambda: S.Sgd(foo=1), r"^Sgd: .*'foo'\n  hint: Sgd\(lr=0.001\)"),
    "parametric": (lambda: PF.affine(var(3, 4), 2, foo=1), "^affine: .*'foo'"),
    "parametric, missing": (lambda: PF.affine(var(3, 4), name="fc"), "^affine: missing .*'n_outmaps'"),
    "method": (lambda: F.tanh(var(3)).forward(foo=1), r"^Variable.forward: .*'foo'\n  hint: Variable.forward\(clear"),
    "method, missing": (lambda: var(3).reset_shape(), "^Variable.reset_shape: missing .*'shape'"),
    "method, wrong type": (lambda: var(3).size_from_axis("a"), "^Variable.size_from_axis: "),
    "method of an array": (lambda: nn.NdArray((3,)).view((3,), foo=1), "^NdArray.view: .*'foo'"),
    "static method": (lambda: nn.Variable.from_numpy_array(), "^Variable.from_numpy_array: missing .*'data'"),
    "constructor": (lambda: nn.Variable(foo=1), r"^Variable: .*'foo'\n  hint: Variable\(shape"),
    "constructor of an array": (lambda: nn.NdArray(foo=1), "^NdArray: .*'foo'"),
    "solver's method": (lambda: S.Sgd().weight_decay(), "^Solver.weight_decay: missing .*'decay_rate'"),
    "forward_all": (lambda: nn.forward_all([3]), "^forward_all: argument 'variables'"),
    "forward_all, no list": (lambda: nn.forward_all(3), "^forward_all: argument 'variables'"),
    "context": (
        lambda: nn.set_default_context("cpu"),
        "^set_default_context: argument 'ctx'.*\n.*get_extension_context",
    ),
    "grad": (lambda: nn.grad(3, 4), "^grad: argument 'outputs'"),
    "plan": (lambda: nn.memory.plan(None), "^memory.plan: argument 'y'"),
    "limit": (lambda: nn.memory.set_limit("a"), "^memory.set_limit: argument 'limit'"),
    "threads": (lambda: nn.set_num_threads("a"), "^set_num_threads: argument 'n'"),
    "need_grad": (lambda: setattr(var(3), "need_grad", np.ones(2)), "^Variable.need_grad: .*bool, got ndarray"),
    "persistent": (lambda: setattr(var(3), "persistent", np.ones(2)), "^Variable.persistent: .*bool, got ndarray"),
    "name": (lambda: setattr(var(3), "name", 3), "^Variable.name: .*str, got int 3"),
    "d": (lambda: setattr(var(3), "d", "abc"), "^Variable.d: argument 'value': .*numbers.*, got str 'abc'"),
    "g": (lambda: setattr(var(3), "g", None), "^Variable.g: argument 'value': .*numbers.*, got NoneType"),
    "data": (lambda: setattr(nn.NdArray((3,)), "data", "abc"), "^NdArray.data: argument 'value'"),
    "a matrix by a number": (
        lambda: var(2, 3) @ var(),
        "^__matmul__: argument 'other': expected .*1 axis or more.*\n  hint: ",
    ),
    "reduce": (lambda: F.reduce(var(2, 3), op=np.ones(2)), "^reduce: argument 'op': .*'sum' or 'mean', got ndarray"),
}
VALUES = {
    "of a part": (
        lambda: F.clip_by_norm(var(2, 3), 1.0, axis=9),
        r"^clip_by_norm: argument 'axis': .*got 9\n  inputs: x",
    ),
    "of a choice": (lambda: F.reduce(var(2, 3), op="max"), "^reduce: argument 'op': .*'sum' or 'mean', got max"),
    "of a part's own argument": (
        lambda: F.multi_head_attention(*[var(3, 2, 8)] * 3, 2, *[var(8, 8)] * 3, var(4, 8)),
        r"^multi_head_attention: in affine: argument 'weight': ",
    ),
    "of a part of a part": (
        lambda: PF.transformer(var(3, 2, 8), var(3, 2, 8), 8, 2, 1, 1, 4, src_additive_mask=var(4, 4)),
        "^transformer: in multi_head_attention: argument 'additive_mask': expected shape",
    ),
    "of user code in a whole": (
        lambda: PF.transformer(var(3, 2, 8), var(3, 2, 8), 8, 2, 1, 1, 4, activation=lambda x: F.reshape(x, (1,))),
        "^reshape: argument 'shape'",
    ),
    "shape of a bound": (
        lambda: F.clip_by_value(var(2, 3), 0, var(2)),
        r"^clip_by_value: argument 'max': expected a shape that broadcasts with x \(2, 3\), got \(2,\)",
    ),
    "shape of data": (
        lambda: setattr(var(2, 3), "data", nn.NdArray((3, 2))),
        r"^Variable.data: argument 'data': expected shape \(2, 3\), got \(3, 2\)",
    ),
    "shape of grad": (
        lambda: setattr(var(2, 3), "grad", nn.NdArray((6,))),
        r"^Variable.grad: argument 'grad': expected shape \(2, 3\), got \(6,\)",
    ),
    "threads": (lambda: nn.set_num_threads(-1), "^set_num_threads: argument 'n': expected 1 or more, got -1"),
    "limit": (lambda: nn.memory.set_limit(-1), "^memory.set_limit: argument 'limit': expected 0 or more, got -1"),
    "ragged": (lambda: setattr(var(3), "d", [[1], [1, 2]]), "^Variable.d: argument 'value': "),
    "shape of values": (lambda: setattr(var(3), "d", np.ones(2)), r"^Variable.d: .*\(3,\).*\(2,\)"),
    "huge parameter": (lambda: PF.affine(var(2, 3), 2**60), "fits into memory"),
    "empty kernel": (lambda: PF.convolution(var(1, 1, 3, 3), 4, (0, 0)), "^convolution: argument 'kernel'"),
    "a result beyond memory": (
        lambda: F.tile(var(2, 3), (2**62, 2**62)),
        "^tile: argument 'reps': expected a size that fits into memory, got .*\n  inputs: x .*\n  hint: ",
    ),
    "a shape beyond memory": (lambda: F.rand(shape=(2**62, 2**62)), "^rand: argument 'shape': expected a size that"),
    "inputs whose result is beyond memory": (
        lambda: F.add2(var(2**40, 1), var(1, 2**40)),
        "^add2: expected a size that fits into memory, got .*\n  inputs: .*\n  hint: ",
    ),
    "matrices that do not fit": (
        lambda: var(2, 3) @ var(2, 3),
        r"^__matmul__: argument 'other': expected size 3 at axis 0, got \(2, 3\)\n  hint: ",
    ),
    "stacks of matrices that do not fit": (lambda: var(5, 2, 3) @ var(5, 2, 3), "^__matmul__: .*size 3 at axis 1"),
    "vectors that do not fit": (lambda: var(3) @ var(2), "^__matmul__: argument 'other': expected size 3 at axis 0"),
    "not a number": (lambda: F.arange(0, float("nan")), "^arange: argument 'stop': expected a finite number"),
    "no axis": (lambda: F.split(var(), 0), "^split: argument 'axis': the array has no axes"),
    "file without a kind": (lambda: nn.load_parameters("/etc/passwd"), "got a name without a kind"),
    "statistics": (
        lambda: F.batch_normalization(var(2, 3), None, None, None, None, batch_stat=False),
        "^batch_normalization: argument 'mean': expected a Variable, got None",
    ),
}


def refused(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as e:
        call()
    assert isinstance(e.value, nn.Error), type(e.value)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_are_type_errors_of_nnrs(name):
    call, text = CALLS[name]
    refused(call, TypeError, text)


@pytest.mark.parametrize("name", VALUES)
def test_wrong_values_are_value_errors_of_nnrs(name):
    call, text = VALUES[name]
    refused(call, ValueError, text)


def test_no_memory_for_a_parameter():
    refused(lambda: PF.affine(var(2, 3), 2**44), MemoryError, "'W'")
    assert not nn.get_parameters()


@pytest.mark.host
def test_indices_that_are_none():
    x = nn.Variable.from_numpy_array(np.ones((3, 2), "f4"))
    for bad in (np.nan, 1e30):
        index = nn.Variable.from_numpy_array(np.array([bad], "f4"))
        for call, name in ((lambda i: F.gather(x, i), "gather"), (lambda i: F.embed(i, x), "embed")):
            refused(call(index).forward, ValueError, f"^{name}: .*a number that is no index")


def test_wrong_types_of_arguments_name_the_inputs_and_the_line():
    line = inspect.currentframe().f_lineno + 2  # type: ignore[union-attr]
    with pytest.raises(TypeError) as e:
        F.sum(var(2, 3), axis=1.5)
    text = "sum: argument 'axis': expected int | Sequence[int] | None, got 1.5\n  inputs: x (2, 3) float32\n  made at: "
    assert str(e.value) == f"{text}{__file__}:{line}"
    refused(lambda: F.sum(var(2, 3), axis=2**70), TypeError, "an int of 64 bits")
    refused(lambda: F.tanh(var(3), outputs=[1]), TypeError, "expected a list of NdArray, got a list with int 1")
    refused(lambda: F.tanh(var(3), outputs=[]), ValueError, "expected 1 array, got 0")
    refused(lambda: F.add_n(), TypeError, r"at least 1 input \(x\), got 0")


def test_normalizations_name_the_inputs_that_were_given():
    x = var(2, 3)
    refused(
        lambda: F.batch_normalization(x, None, var(1, 4), var(1, 3), var(1, 3)),
        ValueError,
        r"argument 'gamma'.*\n  inputs: x \(2, 3\) float32, gamma \(1, 4\) float32, mean \(1, 3\)",
    )


def test_no_classes():
    y = F.softmax_cross_entropy(var(2, 0), nn.Variable((2, 1)))
    refused(y.forward, ValueError, "one class at least")


def test_errors_of_user_code_arrive_as_they_are():
    error = TypeError("mine")

    def hook(f: Any) -> None:
        raise error

    for call in (lambda: F.tanh(var(3)).forward(function_pre_hook=hook), lambda: F.forget(hook, var(3))):
        with pytest.raises(TypeError) as e:
            call()
        assert e.value is error


def test_checked_functions_look_like_functions():
    import copy
    import pickle

    assert F.tanh.__name__ == "tanh" and "tanh" in repr(F.tanh) and F.tanh.__module__ == "nnrs.functions"
    assert pickle.loads(pickle.dumps(F.tanh)) is F.tanh and copy.deepcopy(F.tanh) is F.tanh
    assert (inspect.getdoc(F.tanh) or "").startswith("Hyperbolic tangent") or inspect.getdoc(F.tanh)
    assert list(inspect.signature(F.leaky_relu).parameters) == ["x", "alpha", "inplace", "n_outputs", "outputs"]


# --- hooks ------------------------------------------------------------------------------------------------------------


def test_hooks_that_are_no_functions_are_refused_at_once():
    y = F.tanh(var(3))
    for name in ("function_pre_hook", "function_post_hook", "solver_pre_hook", "solver_post_hook"):
        refused(lambda name=name: getattr(nn, f"set_{name}")("a", 3), TypeError, f"^set_{name}: argument '{name}'")
        refused(lambda name=name: getattr(nn, f"set_{name}")(3, print), TypeError, f"^set_{name}: argument 'key'")
    for run in (y.forward, y.backward):
        refused(lambda run=run: run(function_pre_hook=3), TypeError, "argument 'function_pre_hook'")
        refused(lambda run=run: run(function_post_hook=3), TypeError, "argument 'function_post_hook'")
    refused(lambda: nn.forward_all([y], function_pre_hook=3), TypeError, "argument 'function_pre_hook'")
    refused(lambda: S.Adam().update(3), TypeError, "argument 'pre_hook'")
    y.forward()


def test_classes_of_functions_are_there():
    for entry in nn._core.registry():
        assert getattr(nn.function, entry["class_name"]).__name__ == entry["class_name"]


# --- the table of gradients -------------------------------------------------------------------------------------------


PLACES = {"nonzero", "shape", "searchsorted", "unique"}


def test_the_table_of_gradients_is_true():
    """`gradients` of the registry against what `backward` does to functions of one, two or three equal inputs."""
    checked = 0
    for f in nn._core.registry():
        kinds = [kind for _, kind, _ in f["inputs"]]
        required = [a for a in f["args"] if a[3] is None]
        if not kinds or required or any(kind in ("variadic", "index") for kind in kinds) or len(kinds) > 3:
            continue
        xs = [nn.Variable.from_numpy_array(np.full((2, 2), 0.5, "f4"), need_grad=True) for _ in kinds]
        try:
            y = getattr(F, f["name"])(*xs)
        except (ValueError, TypeError):
            continue  # wants other shapes, or has a signature of its own
        y = y[0] if isinstance(y, tuple) else y
        checked += 1
        if f["name"] in PLACES:
            assert f["gradients"] == [False] * len(xs)
            for ask in (partial(nn.grad, [y], xs), y.backward):
                with pytest.raises(nn.Error, match=f"{f['name']}: .*not differentiable"):
                    ask()
            continue
        for x, flows in zip(xs, f["gradients"], strict=True):
            (g,) = nn.grad([y], [x])  # the constant 0 where no gradient flows
            assert (g is not None and (g.parent is None or g.parent.name != "Constant")) == flows, f["name"]
    assert checked > 50


def test_the_page_says_what_has_a_gradient():
    page = (HERE.parent / "docs" / "functions.md").read_text()
    assert "| [`embed`](#embed) | Layer | to `w` | no | yes | yes |" in page
    assert "| [`equal`](#equal) | Logical | no | yes | yes | yes |" in page
    assert "| [`tanh`](#tanh) | Activation | yes | yes | yes | yes |" in page


CALLS_ELSEWHERE = {
    "grad": lambda: nn.grad(zz=1),
    "forward_all": lambda: nn.forward_all(zz=1),
    "fit": lambda: nn.memory.fit(var(2)),
    "seed": lambda: nn.seed(zz=1),
    "get_parameters": lambda: nn.get_parameters(zz=1),
    "load_parameters": lambda: nn.load_parameters(zz=1),
    "recompute": lambda: nn.recompute(zz=1),
    "context_scope": lambda: nn.context_scope(zz=1),
    "parameter_scope": lambda: nn.parameter_scope(),
    "set_function_pre_hook": lambda: nn.set_function_pre_hook("k"),
}


@pytest.mark.parametrize("name", CALLS_ELSEWHERE)
def test_wrong_calls_of_other_functions(name):
    with pytest.raises(TypeError, match=rf"^{name}: .*\n  hint: {name}\(") as e:
        CALLS_ELSEWHERE[name]()
    assert isinstance(e.value, nn.Error)


FLAGS = {
    "set_auto_forward": lambda v: nn.set_auto_forward(v),
    "auto_forward": lambda v: nn.auto_forward(v).__enter__(),
    "no_grad": lambda v: nn.no_grad(v).__enter__(),
    "recompute": lambda v: nn.recompute(v).__enter__(),
    "set_global_recompute": lambda v: nn.set_global_recompute(v),
    "set_exact_convolution": lambda v: nn.set_exact_convolution(v),
    "set_fusion": lambda v: nn.set_fusion(v),
}


@pytest.mark.parametrize("name", FLAGS)
def test_modes_want_what_has_a_truth(name):
    """Which NNabla takes for true and false is in test_members.py."""
    refused(lambda: FLAGS[name](np.array([1, 0])), TypeError, f"^{name}: argument '.*': expected bool, got ndarray")


def test_contexts_are_made_of_lists_of_str():
    with pytest.raises(TypeError, match="^Context: argument 'backend': expected a list of str, got str 'cpu'") as e:
        nn.Context("cpu")
    assert isinstance(e.value, nn.Error)
