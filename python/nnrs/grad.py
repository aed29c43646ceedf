"""Gradients as a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._core import NdArray, Variable
from ._errors import ArgumentTypeError, describe, message, missing_name


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name, "Grad GradEndFunction")


def grad(
    outputs: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    grad_outputs: Any = None,
    persistent_outputs: Sequence[bool] = (),
    bind_grad_output: bool = False,
) -> list[Variable | None]:
    """The gradients of the sum of `outputs` with respect to `inputs`, as a graph that can be differentiated again.

    Args:
        outputs: Variable or list of variables.
        inputs: Variable or list of variables.
        grad_outputs: Gradients of the outputs to start with: None (ones), a number, an array, an NdArray, a Variable,
            or a list of these, one an output.
        persistent_outputs: For each input whether its gradient is persistent.
        bind_grad_output: Whether each gradient's data becomes the input's `grad`, so that solvers use it.

    Returns:
        One Variable an input; None where no output depends on it.

    >>> import nnrs as nn
    >>> x = nn.Variable.from_numpy_array([1.0, 2.0, 3.0], need_grad=True)
    >>> (g,) = nn.grad(x * x * x, [x])
    >>> (h,) = nn.grad(g, [x])
    >>> h.forward()
    >>> h.d.tolist()
    [6.0, 12.0, 18.0]
    """
    outs = _list("outputs", outputs)
    ins = _list("inputs", inputs)
    many = isinstance(grad_outputs, (list, tuple))
    seeds = list(grad_outputs) if many else [grad_outputs] * len(outs)
    if len(seeds) != len(outs):
        expected = f"one for each of the {len(outs)} outputs"
        raise ArgumentTypeError(message("grad", "grad_outputs", expected, str(len(seeds))))
    grads: list[Variable | None] = _core.grad(outs, ins, [_seed(s, y) for s, y in zip(seeds, outs, strict=True)])
    for g, keep in zip(grads, persistent_outputs, strict=False):
        if g is not None:
            g.persistent = bool(keep)
    if bind_grad_output:
        for x, g in zip(ins, grads, strict=True):
            if g is not None:
                x.grad = g.data
    return grads


def _list(argument: str, value: Any) -> list[Variable]:
    if not isinstance(value, (Variable, Iterable)):
        raise ArgumentTypeError(message("grad", argument, "a Variable or a list of Variables", describe(value)))
    items = [value] if isinstance(value, Variable) else list(value)
    for item in items:
        if not isinstance(item, Variable):
            raise ArgumentTypeError(message("grad", argument, "Variables", describe(item)))
    return items


def _seed(seed: Any, y: Variable) -> Variable | None:
    if seed is None or isinstance(seed, Variable):
        return seed
    v = Variable(y.shape, need_grad=False)
    if isinstance(seed, NdArray):
        v.data = seed
    else:
        v.d = np.asarray(seed)
    return v
