"""Parametric functions that are written in Python: those that take a communicator, which is an object of Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import functions as F
from . import initializer as I
from ._core import Variable
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    check_array,
    check_flag,
    check_integer,
    check_integers,
    describe,
    message,
)
from ._parametric_api import Input, ParamInit, own_parameter, parametric_function_api

HERE = "sync_batch_normalization"
_AT_AXES = "<1, but inp's size at axes>"
_BATCH = [
    ("beta", "Bias.", _AT_AXES, True),
    ("gamma", "Scale.", _AT_AXES, True),
    ("mean", "Running mean.", _AT_AXES, False),
    ("var", "Running variance.", _AT_AXES, False),
]


def _batch_parameters(
    inp: Input,
    axes: int | Sequence[int],
    fix_parameters: bool,
    param_init: ParamInit,
    no_scale: bool,
    no_bias: bool,
) -> tuple[Any, Any, Any, Any]:
    """beta, gamma, running mean and variance of a batch normalization."""
    check_array(HERE, "inp", inp)
    several = isinstance(axes, (Sequence, np.ndarray)) or axes is None
    kept = {_axis(inp, a) for a in (check_integers(HERE, "axes", axes) if several else [axes])}
    shape = tuple(n if i in kept else 1 for i, n in enumerate(inp.shape))
    init = _by_name(param_init)
    fix_parameters = check_flag(HERE, "fix_parameters", fix_parameters)
    no_scale, no_bias = check_flag(HERE, "no_scale", no_scale), check_flag(HERE, "no_bias", no_bias)

    def make(name: str, usual: float, is_trained: bool) -> Variable:
        first = init.get(name)
        first = I.ConstantInitializer(usual) if first is None else first
        argument, with_grad = f"param_init['{name}']", is_trained and not fix_parameters
        return own_parameter(HERE, argument, name, shape, first, is_trained, with_grad)

    beta = None if no_bias else make("beta", 0, True)
    gamma = None if no_scale else make("gamma", 1, True)
    return beta, gamma, make("mean", 0, False), make("var", 1, False)


def _axis(x: Input, axis: Any) -> int:
    axis = check_integer(HERE, "axes", axis)
    if not -len(x.shape) <= axis < len(x.shape):
        raise ArgumentError(message(HERE, "axes", f"an axis of {x.shape}", axis))
    return axis % len(x.shape)


def _by_name(param_init: Any) -> Mapping[str, Any]:
    if param_init is None:
        return {}
    if not isinstance(param_init, Mapping):
        raise ArgumentTypeError(message(HERE, "param_init", "initial values by name, a dict", describe(param_init)))
    return param_init


@parametric_function_api("bn", _BATCH)
def sync_batch_normalization(
    inp: Input,
    comm: Any,
    group: str = "world",
    axes: Sequence[int] = [1],  # noqa: B006 (NNabla's default)
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: ParamInit = None,
    no_scale: bool = False,
    no_bias: bool = False,
) -> Any:
    """Batch normalization by the statistics of the batches of all processes of a communicator together.

    Args:
        inp: Input, this process's batch.
        comm: Communicator, see `nnrs.functions.sync_batch_normalization`.
        group: The communicator's group of processes.
        axes: Axes that keep statistics of their own (the channels).
        decay_rate: How much of the running statistics each step keeps.
        eps: Added to the variance.
        batch_stat: Use the batches' statistics (training), else the running ones.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name: 'beta', 'gamma', 'mean', 'var'; by default 0, 1, 0, 1.
        no_scale: Leave out the scale.
        no_bias: Leave out the bias.

    Returns:
        Variable of `inp`'s shape; with `output_stat` also mean and variance.

    >>> class Alone:
    ...     size = 1
    ...     def all_reduce(self, data, **options): ...
    >>> from nnrs import Variable
    >>> from nnrs.parameter import clear_parameters
    >>> sync_batch_normalization(Variable((2, 3, 4, 4)), Alone()).shape
    (2, 3, 4, 4)
    >>> clear_parameters()
    """
    x: Any = inp
    own = _batch_parameters(inp, axes, fix_parameters, param_init, no_scale, no_bias)
    return F.sync_batch_normalization(x, *own, comm, group, axes, decay_rate, eps, batch_stat, output_stat)
