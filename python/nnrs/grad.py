"""Gradients as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _calls, _core
from ._core import NdArray, Variable
from ._errors import ArgumentError, ArgumentTypeError, check_flag, check_list, describe, message
from .function import PythonFunction


def grad(
    outputs: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    grad_outputs: Any = None,
    persistent_outputs: Sequence[bool] = (),
    bind_grad_output: bool = False,
) -> list[Variable]:
    """The gradients of the sum of `outputs` with respect to `inputs`, as a graph that can be differentiated again.

    The graph is that of the shapes which the variables have now: where they change, call this again, as in NNabla.

    Args:
        outputs: Variable or list of variables.
        inputs: Variable or list of variables.
        grad_outputs: Gradients of the outputs to start with: None (ones), a number, an array, an NdArray, a Variable,
            or a list of these, one an output.
        persistent_outputs: For each output whether it becomes persistent; by default all do, as in NNabla.
        bind_grad_output: Whether each gradient's data becomes the input's `grad`, so that solvers use it.

    Returns:
        One Variable an input, of its shape: zeros where no gradient reaches it (`need_grad=False`, labels, an input on
        which no output depends).

    Raises:
        TypeError: If something else is given than Variables.
        ValueError: If a list has another length than `outputs`, or a gradient another shape than its output.

    >>> import nnrs as nn
    >>> x = nn.Variable.from_numpy_array([1.0, 2.0, 3.0], need_grad=True)
    >>> (g,) = nn.grad(x * x * x, [x])
    >>> (h,) = nn.grad(g, [x])
    >>> h.forward()
    >>> h.d.tolist()
    [6.0, 12.0, 18.0]
    """
    from . import functions as F

    outs, ins = (
        [given] if isinstance(given, Variable) else check_list("grad", argument, given, Variable, "Variables")
        for argument, given in (("outputs", outputs), ("inputs", inputs))
    )
    many = isinstance(grad_outputs, (list, tuple))
    seeds = list(grad_outputs) if many else [grad_outputs] * len(outs)
    marks = check_list("grad", "persistent_outputs", persistent_outputs, object, "truth values")
    keep = [check_flag("grad", "persistent_outputs", mark) for mark in marks] or [True] * len(outs)
    bind = check_flag("grad", "bind_grad_output", bind_grad_output)
    for argument, given in (("grad_outputs", seeds), ("persistent_outputs", keep)):
        if len(given) != len(outs):
            expected = f"one for each of the {len(outs)} outputs"
            raise ArgumentError(message("grad", argument, expected, str(len(given))))
    found = _core.grad(outs, ins, [_seed(s, y) for s, y in zip(seeds, outs, strict=True)])
    grads = [F.constant(0, x.shape) if g is None else g for x, g in zip(ins, found, strict=True)]
    for y, persistent in zip(outs, keep, strict=True):
        y.persistent = persistent
    if bind:
        for x, g in zip(ins, grads, strict=True):
            x.grad = g.data
    return grads


class Grad:
    """`grad` as an object.

    >>> import nnrs as nn
    >>> x = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
    >>> (g,) = Grad()([x * x], [x])
    >>> g.forward()
    >>> g.d.tolist()
    [2.0, 4.0]
    """

    def __call__(
        self,
        outputs: Variable | Sequence[Variable],
        inputs: Variable | Sequence[Variable],
        grad_outputs: Any = None,
        persistent_outputs: Sequence[bool] = (),
        bind_grad_output: bool = False,
    ) -> list[Variable]:
        """The gradients: see `grad`, which has the same arguments."""
        return grad(outputs, inputs, grad_outputs, persistent_outputs, bind_grad_output)


class GradEndFunction(PythonFunction):
    """A function whose result is 1 everywhere and whose gradient is 0: NNabla's end of a graph of gradients.

    `grad` of nnrs does not need it.

    >>> import nnrs as nn
    >>> y = GradEndFunction()(nn.Variable((2,)))
    >>> y.forward()
    >>> y.d.tolist()
    [1.0, 1.0]
    """

    @property
    def name(self) -> str:
        """The class's name."""
        return type(self).__name__

    def min_outputs(self) -> int:
        """One."""
        return 1

    def grad_depends_input_data(self, i: int, j: int) -> bool:
        """No."""
        return False

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        """No."""
        return False

    def setup_impl(self, inputs: list[Variable], outputs: list[Variable]) -> None:
        """The output has the input's shape."""
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: list[Variable], outputs: list[Variable]) -> None:
        """Ones."""
        outputs[0].data.fill(1.0)

    def backward_impl(
        self, inputs: list[Variable], outputs: list[Variable], propagate_down: list[bool], accum: list[bool]
    ) -> None:
        """Zeros, which add nothing to what is there."""
        if propagate_down[0] and not accum[0]:
            inputs[0].grad.fill(0.0)


def _seed(seed: Any, y: Variable) -> Variable | None:
    if seed is None or isinstance(seed, Variable):
        return seed
    v = Variable(y.shape, need_grad=False)
    if isinstance(seed, NdArray):
        a = seed
    else:
        given = np.asarray(seed)
        if given.dtype.kind not in "biuf":
            expected = "None, numbers, arrays, NdArrays or Variables"
            raise ArgumentTypeError(message("grad", "grad_outputs", expected, describe(seed)))
        if given.ndim == 0:
            v.d = float(given)
            return v
        a = NdArray.from_numpy_array(given)
    if a.shape != y.shape:
        raise ArgumentError(message("grad", "grad_outputs", f"shape {y.shape}", str(a.shape)))
    v.data = a
    return v


_calls.check_functions(globals())
