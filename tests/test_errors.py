"""Snapshots of error texts: tests/golden/errors.txt, written anew by `pytest tests/test_errors.py --regenerate`.

Each error is also checked for its kinds, and for the function, argument and shapes that it must name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs import NdArray, Variable

GOLDEN = Path(__file__).parent / "golden" / "errors.txt"


def var(*shape: int) -> Variable:
    return Variable(shape, need_grad=True)


def nd(*shape: int) -> NdArray:
    return NdArray(shape)


@dataclass
class Case:
    """An error: what raises it, its built-in kind, and words that its text must have."""

    act: Callable[[], Any]
    kind: type[Exception]
    words: tuple[str, ...]


def late(change: Callable[[Variable], Any]) -> None:
    """A static graph that fails only when it runs."""
    x = var(2, 3)
    y = F.mul2(F.tanh(x), var(2, 3))
    change(x)
    y.forward()


def limited(act: Callable[[], Any]) -> None:
    nn.memory.clear_cache()
    nn.memory.set_limit(nn.memory.stats().live + 1000)
    try:
        act()
    finally:
        nn.memory.set_limit(None)


def out_of_memory() -> None:
    x = var(1000, 1000)
    limited(F.tanh(x).forward)


def inside_itself() -> None:
    y = F.tanh(var(3))
    y.forward(function_pre_hook=lambda f: y.forward())


def not_kept(read: str) -> None:
    x = var(3)
    y = F.sin(F.tanh(F.exp(x)))
    y.forward()
    y.backward()
    if read == "d":
        x.d = 1
    getattr(y.parent.inputs[0], read)


def cycle() -> None:
    x = var(3)
    h = F.tanh(x)
    h.rewire_on(F.sin(h))


CASES = {
    # shapes
    "add2 shapes": Case(lambda: F.add2(var(2, 3), var(4, 3)), ValueError, ("add2", "(2, 3)", "(4, 3)", "x1")),
    "mul2 ranks": Case(lambda: F.mul2(var(2, 3), var(2)), ValueError, ("mul2", "(2, 3)", "(2,)")),
    "operator shapes": Case(lambda: var(2, 3) - var(3, 2), ValueError, ("sub2", "(2, 3)", "(3, 2)")),
    "array operator shapes": Case(lambda: nd(2, 3) * nd(3, 2), ValueError, ("mul2", "(2, 3)", "(3, 2)")),
    "affine inner size": Case(
        lambda: F.affine(var(2, 3), var(4, 5)), ValueError, ("affine", "weight", "(2, 3)", "(4, 5)")
    ),
    "affine weight ndim": Case(lambda: F.affine(var(2, 3), var(3)), ValueError, ("affine", "weight", "(3,)")),
    "affine bias": Case(
        lambda: F.affine(var(2, 3), var(3, 5), var(4)), ValueError, ("affine", "bias", "(5,)", "(4,)", "(2, 3)")
    ),
    "affine base_axis": Case(
        lambda: F.affine(var(2, 3), var(3, 5), base_axis=2), ValueError, ("affine", "base_axis", "2")
    ),
    "batch_matmul ndim": Case(
        lambda: F.batch_matmul(var(2, 3), var(3)), ValueError, ("batch_matmul", "(2, 3)", "(3,)")
    ),
    "batch_matmul inner size": Case(
        lambda: F.batch_matmul(var(5, 2, 3), var(5, 2, 3)), ValueError, ("batch_matmul", "(5, 2, 3)")
    ),
    "reshape size": Case(lambda: F.reshape(var(2, 3), (4, 2)), ValueError, ("reshape", "shape", "(2, 3)", "4, 2")),
    "reshape two unknown": Case(lambda: F.reshape(var(2, 3), (-1, -1)), ValueError, ("reshape", "shape", "-1")),
    "broadcast": Case(lambda: F.broadcast(var(2, 3), (2, 4)), ValueError, ("broadcast", "shape", "(2, 3)", "2, 4")),
    "broadcast fewer axes": Case(lambda: F.broadcast(var(2, 3), (3,)), ValueError, ("broadcast", "shape", "(2, 3)")),
    "where": Case(
        lambda: F.where(var(2, 3), var(2, 3), var(2, 4)), ValueError, ("where", "(2, 3)", "(2, 4)", "x_false")
    ),
    "convolution channels": Case(
        lambda: F.convolution(var(1, 3, 8, 8), var(4, 2, 3, 3)),
        ValueError,
        ("convolution", "weight", "(1, 3, 8, 8)", "(4, 2, 3, 3)"),
    ),
    "convolution kernel too large": Case(
        lambda: F.convolution(var(1, 3, 2, 2), var(4, 3, 3, 3)),
        ValueError,
        ("convolution", "(1, 3, 2, 2)", "(4, 3, 3, 3)"),
    ),
    "convolution pad": Case(
        lambda: F.convolution(var(1, 3, 8, 8), var(4, 3, 3, 3), pad=(1,)), ValueError, ("convolution", "pad", "2", "1")
    ),
    "convolution stride 0": Case(
        lambda: F.convolution(var(1, 3, 8, 8), var(4, 3, 3, 3), stride=(0, 1)),
        ValueError,
        ("convolution", "stride", "0"),
    ),
    "convolution group": Case(
        lambda: F.convolution(var(1, 3, 8, 8), var(4, 3, 3, 3), group=2), ValueError, ("convolution", "group")
    ),
    "max_pooling kernel": Case(
        lambda: F.max_pooling(var(1, 3, 8, 8), (-1, 2)), ValueError, ("max_pooling", "kernel", "-1")
    ),
    "softmax_cross_entropy target": Case(
        lambda: F.softmax_cross_entropy(var(4, 10), var(4)),
        ValueError,
        ("softmax_cross_entropy", "target", "(4, 10)", "(4,)"),
    ),
    "sigmoid_cross_entropy target": Case(
        lambda: F.sigmoid_cross_entropy(var(4, 10), var(4, 1)),
        ValueError,
        ("sigmoid_cross_entropy", "(4, 10)", "(4, 1)"),
    ),
    # axes and values
    "sum axis": Case(lambda: F.sum(var(2, 3), axis=2), ValueError, ("sum", "axis", "2", "(2, 3)")),
    "sum axes twice": Case(lambda: F.sum(var(2, 3), axis=(0, -2)), ValueError, ("sum", "axis", "(2, 3)")),
    "softmax axis": Case(lambda: F.softmax(var(2, 3), axis=-3), ValueError, ("softmax", "axis", "-3", "(2, 3)")),
    # types
    "input is an array": Case(lambda: F.tanh(np.ones(3)), TypeError, ("tanh", "x", "ndarray", "from_numpy_array")),
    "input is None": Case(lambda: F.add2(var(3), None), TypeError, ("add2", "x1", "None")),
    "argument is text": Case(lambda: F.leaky_relu(var(3), alpha="s"), TypeError, ("leaky_relu", "alpha", "'s'")),
    "argument is None": Case(lambda: F.add_scalar(var(3), None), TypeError, ("add_scalar", "val", "None")),
    "unknown keyword": Case(lambda: F.tanh(var(3), foo=1), TypeError, ("tanh", "foo")),
    "missing input": Case(lambda: F.affine(var(3)), TypeError, ("affine", "weight")),
    "outputs is no list": Case(lambda: F.tanh(var(3), outputs=nd(3)), TypeError, ("outputs", "list")),
    "outputs of another shape": Case(
        lambda: F.tanh(var(3), outputs=[nd(4)]), ValueError, ("tanh", "outputs", "(3,)", "(4,)")
    ),
    "operand is None": Case(lambda: var(3) + None, TypeError, ("Variable", "None")),
    # arrays and variables
    "negative size": Case(lambda: nd(2, -1), ValueError, ("shape", "-1")),
    "size overflow": Case(lambda: nd(2**31, 2**31, 4), ValueError, ("2147483648",)),
    "shape is text": Case(lambda: Variable("ab"), TypeError, ("shape", "'ab'")),
    "text as data": Case(lambda: NdArray.from_numpy_array(np.array(["a"])), TypeError, ("dtype", "str")),
    "view": Case(lambda: nd(2, 3).view((4,)), ValueError, ("shape", "(2, 3)", "(4,)")),
    "narrow": Case(lambda: nd(2, 3).narrow(0, 1, 2), ValueError, ("start 1", "length 2", "(2, 3)")),
    "copy_from": Case(lambda: nd(2, 3).copy_from(nd(4, 2)), ValueError, ("arr", "(2, 3)", "(4, 2)")),
    "reset_shape": Case(lambda: var(2, 3).reset_shape((4,)), ValueError, ("shape", "(2, 3)", "(4,)", "force")),
    "data of another shape": Case(lambda: setattr(var(3), "data", nd(4)), ValueError, ("data", "(3,)", "(4,)")),
    "data is no NdArray": Case(lambda: setattr(var(3), "data", np.ones(3)), TypeError, ("data", "NdArray", ".d")),
    "index": Case(lambda: var(3)[5], IndexError, ("x[key]", "from -3 to 2", "got 5")),
    "indices": Case(lambda: var(3)[np.array([0, 7])], IndexError, ("x[key]", "from -3 to 2", "0 to 7")),
    "too many indices": Case(lambda: var(3)[0, 1], IndexError, ("x[key]", "at most 1", "got 2")),
    "size": Case(lambda: PF.affine(var(2, 3), float("nan")), TypeError, ("affine", "n_outmaps", "int", "nan")),
    # graphs
    "late shape": Case(
        lambda: late(lambda x: x.reset_shape((4, 3), True)), ValueError, ("mul2", "(4, 3)", "(2, 3)", "made at")
    ),
    "late memory": Case(out_of_memory, MemoryError, ("3.8 MiB", "limit", "largest")),
    "no parent": Case(lambda: var(3).forward(), RuntimeError, ("forward", "parent")),
    "backward grad": Case(
        lambda: F.tanh(var(3)).backward(grad=np.ones(2)), ValueError, ("backward", "grad", "(3,)", "(2,)")
    ),
    "run inside itself": Case(inside_itself, RuntimeError, ("running", "hook")),
    "rewire shape": Case(lambda: F.tanh(var(3)).rewire_on(var(4)), ValueError, ("rewire_on", "(3,)", "(4,)")),
    "rewire cycle": Case(cycle, RuntimeError, ("rewire_on", "cycle")),
    "gradient not kept": Case(lambda: not_kept("g"), RuntimeError, ("gradient", "persistent")),
    "data not kept": Case(lambda: not_kept("d"), RuntimeError, ("changed", "persistent")),
}


def text_of(case: Case) -> tuple[BaseException, str]:
    with pytest.raises(Exception) as e:
        case.act()
    text = re.sub(r"0x[0-9a-f]+", "0x..", str(e.value))
    text = re.sub(r"\S*test_errors\.py:\d+", "test_errors.py:LINE", text)
    text = re.sub(r"in use .*?, cached", "in use .., cached", text)
    text = re.sub(r"limit [^;]*; the largest arrays: [^\n]*", "limit ..; the largest arrays: ..", text)
    return e.value, f"{type(e.value).__name__}: {text}"


@pytest.mark.host
@pytest.mark.parametrize("name", CASES)
def test_kinds_and_words(name):
    case = CASES[name]
    error, text = text_of(case)
    plain = ("operand is None",)  # Python's own error
    assert isinstance(error, case.kind), text
    assert name in plain or isinstance(error, nn.Error), f"not an nnrs.Error: {text}"
    raw = str(error)
    missing = [w for w in case.words if w not in raw]
    assert not missing, f"{missing} not in: {text}"
    assert not re.search(r"panick|unwrap|internal error|Some\(|<class ", raw), raw
    if case.kind in (ValueError, TypeError) and isinstance(error, nn.Error):
        assert re.match(r"[\w.]+: ", raw), f"no function named: {raw}"


@pytest.mark.host
def test_snapshots(request):
    """The texts are read and found good by a person once; a change of them is a change of the interface."""
    texts = "".join(f"## {name}\n{text_of(case)[1]}\n\n" for name, case in CASES.items())
    if request.config.getoption("--regenerate"):
        GOLDEN.write_text(texts)
    assert GOLDEN.read_text() == texts


def test_late_errors_name_the_script_line():
    x = var(2, 3)
    h = F.tanh(x)
    y = F.mul2(h, var(2, 3))  # this line
    line = next(i for i, s in enumerate(Path(__file__).read_text().splitlines(), 1) if s.endswith("# this line"))
    x.reset_shape((4, 3), True)
    with pytest.raises(ValueError) as e:
        y.forward()
    assert f"{Path(__file__).name}:{line}" in str(e.value)
    assert y.parent.origin.endswith(f"{Path(__file__).name}:{line}")


def test_a_label_that_wants_a_gradient():
    """As NNabla: a RuntimeError in backward, not a silent nothing."""
    y = F.softmax_cross_entropy(var(4, 10), var(4, 1))
    y.forward()
    with pytest.raises(RuntimeError, match="softmax_cross_entropy.*target"):
        y.backward()


def test_errors_have_their_classes():
    for name, kind in (
        ("ShapeError", ValueError),
        ("GraphError", RuntimeError),
        ("StateError", RuntimeError),
        ("OutOfMemoryError", MemoryError),
    ):
        cls = getattr(nn._errors, name)
        assert issubclass(cls, nn.Error) and issubclass(cls, kind)
    assert issubclass(nn.Error, Exception) and nn.Error.__module__ == "nnrs"


def test_unknown_names():
    for module in (nn, F):
        with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
            module.no_such_thing  # noqa: B018
    with pytest.raises(AttributeError):
        var(3).no_such_thing  # noqa: B018
    with pytest.raises(AttributeError):
        var(3).shape = (2,)


class Raises:
    """Whose text cannot be had."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error


WRONG = {
    "argument": lambda r: F.leaky_relu(var(2), alpha=r),
    "layer": lambda r: PF.affine(r, 3),
    "layer's argument": lambda r: PF.affine(var(2, 3), 3, base_axis=r),
    "shape": lambda r: nn.Variable(r),
    "parameter": lambda r: nn.parameter.get_parameter_or_create("w", r),
    "hook": lambda r: var(2).forward(function_pre_hook=r),
    "visitor": lambda r: var(2).visit(r),
    "number of outputs": lambda r: F.sin(var(2), n_outputs=r),
    "name": lambda r: setattr(var(2), "name", r),
    "context": lambda r: nn.Context(device_id=r),
    "rate": lambda r: nn.solvers.Sgd().set_learning_rate(r),
    "solver": lambda r: nn.solvers.Sgd(lr=r),
    "states": lambda r: nn.solvers.Sgd().set_states(r),
    "path": lambda r: nn.load_parameters(r),
    "variables": lambda r: nn.forward_all(r),
}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_what_is_no_mistake_of_repr_passes(call: Callable[[Any], Any], error: type[BaseException]) -> None:
    own = error("own")
    with pytest.raises(error) as raised:
        call(Raises(own))
    assert raised.value is own
    with pytest.raises(nn.Error, match="Cube"):  # it is not kept for the next error
        raise_wrong()


def raise_wrong() -> None:
    from cube_function import Cube

    F.sin(Cube())


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_a_repr_that_fails_is_a_question_mark(call: Callable[[Any], Any]) -> None:
    with pytest.raises(nn.Error):
        call(Raises(ValueError("own")))
