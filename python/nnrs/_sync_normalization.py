"""`sync_batch_normalization`: batch normalization by the statistics of the batches of several processes together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from ._core import Function, NcclGroup, NdArray, Variable, in_recomputing
from ._errors import ArgumentError, ArgumentTypeError, describe, message
from ._modes import auto_forward, context_scope, get_current_context
from .function import PythonFunction

A = TypeVar("A", Variable, NdArray)
HERE = "sync_batch_normalization"


class _InOrder(PythonFunction):
    """What the functions here have in common: each output has the shape of the input of its number."""

    def min_outputs(self) -> int:
        return 1

    def setup_impl(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        for x, y in zip(inputs, outputs, strict=False):
            y.reset_shape(x.shape, True)

    def grad_depends_input_data(self, i: int, j: int) -> bool:
        return False

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        return False

    def _give(self, x: Variable, gradient: Any, accum: bool) -> None:
        x.g = x.g + gradient if accum else gradient


class _AllReduce(_InOrder):
    """The sum of an array over all processes; its gradient is the sum of their gradients."""

    name = "SyncBatchNormalizationSum"

    def __init__(self, comm: Any, group: str) -> None:
        super().__init__()
        self._comm, self._group = comm, group

    def _sum(self, array: NdArray) -> None:
        self._comm.all_reduce(array, division=False, inplace=True, group=self._group)

    def forward_impl(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        outputs[0].d = inputs[0].d
        self._sum(outputs[0].data)

    def backward_impl(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], propagate_down: Any, accum: Any
    ) -> None:
        gradient = NdArray.from_numpy_array(outputs[0].g.copy())
        self._sum(gradient)  # also where this process needs it not: the others wait for it
        if propagate_down[0]:
            self._give(inputs[0], gradient.data, accum[0])

    def _nnrs_gradient(self, gy: list[Variable]) -> list[Variable | None]:
        return [_AllReduce(self._comm, self._group)(gy[0])]


class _Count(_InOrder):
    """How many elements each channel has."""

    name = "SyncBatchNormalizationCount"

    def __init__(self, channels: int) -> None:
        super().__init__()
        self._channels = channels

    def setup_impl(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        outputs[0].reset_shape((1,), True)

    def forward_impl(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        outputs[0].d = inputs[0].size / self._channels

    def backward_impl(self, inputs: Any, outputs: Any, propagate_down: Any, accum: Any) -> None:
        pass

    def _nnrs_gradient(self, gy: list[Variable]) -> list[Variable | None]:
        return [None]


class _MoveStatistics(_InOrder):
    """Gives mean and variance on, and moves the running ones: mean and variance of all, and how many they are of."""

    name = "SyncBatchNormalization"

    def __init__(self, mean: Variable, variance: Variable, decay_rate: float) -> None:
        super().__init__()
        self._running, self._decay = (mean, variance), decay_rate

    @property
    def args(self) -> dict[str, Any]:
        return {"running": self._running}

    def min_outputs(self) -> int:
        return 2

    def forward_impl(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        count, moves = float(inputs[2].d[0]), not in_recomputing()
        unbiased = (1.0, count / (count - 1) if count > 1 else float("nan"))
        for x, y, running, times in zip(inputs, outputs, self._running, unbiased, strict=False):
            y.d = x.d
            if moves:
                running.d = self._decay * running.d + (1 - self._decay) * times * x.d.reshape(running.shape)

    def backward_impl(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], propagate_down: Any, accum: Any
    ) -> None:
        for i, y in enumerate(outputs):
            if propagate_down[i]:
                self._give(inputs[i], y.g, accum[i])

    def _nnrs_gradient(self, gy: list[Variable]) -> list[Variable | None]:
        return [*gy, None]


def sync_batch_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    mean: A | None,
    variance: A | None,
    comm: Any,
    group: str = "world",
    axes: int | Sequence[int] = [1],  # noqa: B006 (NNabla's default)
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: bool = False,
    n_outputs: int | None = None,
) -> Any:
    """Batch normalization by the statistics of the batches of all processes of a communicator together.

    For a communicator of one process, and without batch_stat, it is `batch_normalization`. The batches of the processes
    may have different sizes. The gradient of x has what x adds to the losses of all processes; those of beta and gamma
    are this process's. All processes call `nn.grad` together, and run what it makes alike.

    Where the communicator and the graph have the context of a GPU, sums go from GPU to GPU and nobody waits for them.
    All processes then make the graph together, and run it alike: forward, backward, other collectives in one order.

    Args:
        x: N-D array, this process's batch.
        beta: Shift, of x's size at `axes` and size 1 elsewhere, or None.
        gamma: Scale, of beta's shape, or None.
        mean: Running mean, of beta's shape; with batch_stat it may be None.
        variance: Running variance, likewise.
        comm: Communicator: an object with `size`, and `all_reduce(array, division, inplace, group)`, which adds up an
            NdArray over the processes.
        group: The communicator's group of processes.
        axes: Axes with statistics of their own; the others are averaged over.
        decay_rate: How much of the running statistics each forward pass keeps.
        eps: Added to the variance.
        batch_stat: Normalize by the statistics of the batches and move the running ones; if not, by the running ones.
        output_stat: Return mean and biased variance of the batches, too.
        n_outputs: Not used; NNabla's.

    Returns:
        y of x's shape; with output_stat the tuple (y, mean, variance).

    Raises:
        TypeError: For a communicator that is none.
        ValueError: For shapes or axes that do not fit, or without statistics to use.

    >>> import nnrs as nn, nnrs.functions as F
    >>> V = nn.Variable.from_numpy_array
    >>> class Alone:
    ...     size = 1
    ...
    ...     def all_reduce(self, data, **options): ...
    >>> x, mean, variance = V([[1, 2], [3, 6]]), V([[0, 0]]), V([[1, 1]])
    >>> y = F.sync_batch_normalization(x, None, None, mean, variance, Alone())
    >>> y.forward()
    >>> print(y.d.round(3))
    [[-1. -1.]
     [ 1.  1.]]
    """
    from . import functions as F
    from .normalization_functions import _statistic, batch_normalization

    if not hasattr(comm, "all_reduce") or not isinstance(getattr(comm, "size", None), int):
        expected = "a communicator, with size and all_reduce"
        raise ArgumentTypeError(message(HERE, "comm", expected, describe(comm)))
    if hasattr(comm, "_member"):
        comm._member(HERE, group)
    args = (x, beta, gamma, mean, variance, axes, decay_rate, eps, batch_stat, output_stat)
    if comm.size == 1 or not batch_stat:
        return batch_normalization(*args)
    if not isinstance(x, Variable):
        raise ArgumentError(message(HERE, "x", "a Variable where several processes work together", describe(x)))
    with auto_forward(False):
        batch_normalization(*args)  # which is not run: it makes the checks
    kept = {int(a) % x.ndim for a in (axes if isinstance(axes, (Sequence, np.ndarray)) else [axes])}
    reduced = [axis for axis in range(x.ndim) if axis not in kept]
    running = tuple(_statistic(x, axes) if v is None else v for v in (mean, variance))
    gpus = comm._gpus(HERE, group) if hasattr(comm, "_gpus") and x.size else None
    context = get_current_context()
    wide = context._widened()  # counts and sums of squares are large
    with context_scope(wide):
        if gpus is not None:
            found = _by_gpus(x, running, gpus, reduced, decay_rate)
        else:
            found = _by_host(x, running, _AllReduce(comm, group), reduced, decay_rate)
        y, *statistics = _normalized(x, beta, gamma, *found, eps)
    if wide.backend != context.backend:
        y, *statistics = (F.mul_scalar(v, 1) for v in (y, *statistics))  # stored as other functions' outputs are
    return (y, *statistics) if output_stat else y


def _by_gpus(
    x: Variable, running: Any, gpus: NcclGroup, reduced: list[int], decay_rate: float
) -> tuple[Variable, Variable]:
    """Mean and variance, by functions that need no host; the running ones are moved."""
    from . import functions as F

    def total(values: Variable) -> Variable:
        made = gpus.sum_of(values)
        made.persistent = True  # made once, as on the other processes
        return made

    sums = F.sum(x, reduced, keepdims=True)
    channels, ones = sums.size, (1,) * x.ndim
    count = F.constant(1, (1,))
    for axis in reduced:
        count = F.mul2(count, F.shape(F.unlink(x), axis, axis + 1))
    both = total(F.concatenate(F.reshape(sums, (channels,)), F.unlink(count), axis=0))
    number = F.unlink(F.reshape(F.slice(both, (channels,), (channels + 1,)), ones))
    mean = F.div2(F.reshape(F.slice(both, (0,), (channels,)), sums.shape), number)
    variance = F.div2(total(F.sum(F.pow_scalar(F.sub2(x, mean), 2), reduced, keepdims=True)), number)
    unbiased = F.mul2(F.unlink(variance), F.div2(number, F.add_scalar(number, -1)))

    def moved(value: Variable, old: Variable, new: Variable) -> Variable:
        move = F.assign(old, F.reshape(F.add2(decay_rate * F.unlink(old), (1 - decay_rate) * new), old.shape))
        value = F.add2(value, F.reshape(F.sink(F.unlink(move)), ones))  # 0, once it is moved
        value.persistent = True
        return value

    return moved(mean, running[0], F.unlink(mean)), moved(variance, running[1], unbiased)


def is_sum_of_all(f: Function) -> bool:
    """Whether `f` sums over processes."""
    return f.name in (_AllReduce.name, "SumOverGpus")


def running_statistics(f: Function) -> list[Variable] | None:
    """The running ones in the shapes of `f`'s outputs, where `f` hands on mean or variance, or both, of all batches."""
    from . import functions as F

    if f.name == _MoveStatistics.name and "running" in f.info.args:
        found = list(f.info.args["running"])
    elif not f.outputs[0].persistent:
        return None
    else:
        at, found = f, []
        for name in ("Add2", "Reshape", "Sink", "Unlink"):  # as `_by_gpus` makes them
            parent = at.inputs[-1].parent if at is not None and at.name == name else None
            if parent is None:
                return None
            at = parent
        if at.name != "Assign":
            return None
        found = [at.inputs[0]]
    return [F.reshape(running, v.shape) for running, v in zip(found, f.outputs, strict=True)]


def _by_host(
    x: Variable, running: Any, total: _AllReduce, reduced: list[int], decay_rate: float
) -> tuple[Variable, Variable]:
    """Mean and variance, by the host; the running ones are moved."""
    from . import functions as F

    sums = F.sum(x, reduced, keepdims=True)
    count = total(_Count(sums.size)(F.unlink(x)))
    number = F.reshape(count, (1,) * x.ndim)
    mean = F.div2(total(sums), number)
    variance = F.div2(total(F.sum(F.pow_scalar(F.sub2(x, mean), 2), reduced, keepdims=True)), number)
    mean, variance = _MoveStatistics(running[0], running[1], decay_rate)(mean, variance, count)
    mean.persistent = variance.persistent = True  # made once: to make them again would move the running ones twice
    return F.reshape(mean, sums.shape), F.reshape(variance, sums.shape)


def _normalized(
    x: Variable, beta: Any, gamma: Any, mean: Variable, variance: Variable, eps: float
) -> tuple[Variable, Variable, Variable]:
    from . import functions as F

    y = F.mul2(F.sub2(x, mean), F.pow_scalar(F.add_scalar(variance, eps), -0.5))
    y = y if gamma is None else F.mul2(y, gamma)
    y = y if beta is None else F.add2(y, beta)
    return y, mean, variance
