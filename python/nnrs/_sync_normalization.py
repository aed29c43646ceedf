"""`sync_batch_normalization`: batch normalization by the statistics of the batches of several processes together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ._core import NdArray, Variable, synchronized
from ._errors import ArgumentError, ArgumentTypeError, check_flag, check_type, describe, message
from ._modes import auto_forward

A = TypeVar("A", Variable, NdArray)
HERE = "sync_batch_normalization"


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
    from .normalization_functions import _statistic, batch_normalization

    if not hasattr(comm, "all_reduce") or not isinstance(getattr(comm, "size", None), int):
        expected = "a communicator, with size and all_reduce"
        raise ArgumentTypeError(message(HERE, "comm", expected, describe(comm)))
    check_type(HERE, "group", group, str, "the name of a group")
    if hasattr(comm, "_member"):
        comm._member(HERE, group)
    args = (x, beta, gamma, mean, variance, axes, decay_rate, eps, batch_stat, output_stat)
    if comm.size == 1 or not check_flag(HERE, "batch_stat", batch_stat):
        return batch_normalization(*args)
    if not isinstance(x, Variable):
        raise ArgumentError(message(HERE, "x", "a Variable where several processes work together", describe(x)))
    beta, gamma = (_statistic(x, axes) if v is None else v for v in (beta, gamma))
    if args[2] is None:
        gamma.data.fill(1)
    with auto_forward(False):
        made = batch_normalization(x, beta, gamma, *args[3:])  # which is not run: it makes the checks
    f = (made[0] if output_stat else made).parent
    gpus = comm._gpus(HERE, group) if hasattr(comm, "_gpus") else None
    y, *statistics = synchronized(f, comm, group, gpus)
    return (y, *statistics) if output_stat else y
