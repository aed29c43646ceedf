"""Memory: statistics of the allocator, a limit, and what a graph will need before it runs."""

from __future__ import annotations

from typing import NamedTuple

from . import _calls, _core
from ._core import Variable
from ._errors import check_type
from ._modes import whole_number


class Stats(NamedTuple):
    """Bytes that the allocator holds."""

    live: int
    cached: int
    peak: int
    blocks: int
    limit: int | None


def stats() -> Stats:
    """Bytes in use, kept for re-use, the most in use since `reset_peak`, blocks in use, and the limit.

    >>> stats().live >= 0
    True
    """
    return Stats(**_core.memory_stats())


def reset_peak() -> None:
    """Start a new measurement of the peak."""
    _core.memory_reset_peak()


def set_limit(limit: int | None) -> None:
    """Let arrays hold `limit` bytes together at most (None: no limit); beyond it a MemoryError is raised."""
    if limit is not None:
        limit = min(whole_number("memory.set_limit", "limit", limit, 0), 2**63 - 1)
    _core.memory_set_limit(limit)


def clear_cache() -> None:
    """Give memory that is kept for re-use back to the system."""
    _core.clear_memory_cache()


class Plan(NamedTuple):
    """What a run of a graph will need."""

    peak: int
    leaves: int
    largest: list[tuple[int, str]]

    def __str__(self) -> str:
        lines = [f"peak {_human(self.peak)}, of it leaves {_human(self.leaves)}; the largest buffers:"]
        lines += [f"  {_human(size):>10}  {what}" for size, what in self.largest]
        return "\n".join(lines)


def plan(
    y: Variable, clear_buffer: bool = False, clear_no_need_grad: bool = False, backward_clear_buffer: bool = False
) -> Plan:
    """The peak memory of forward and backward of `y`, and the largest buffers, before anything runs.

    Args:
        y: The variable that `forward` and `backward` will be called on.
        clear_buffer: As of `forward`.
        clear_no_need_grad: As of `forward`.
        backward_clear_buffer: `clear_buffer` as of `backward`.

    >>> import nnrs as nn
    >>> print(plan(nn.Variable((1000,), need_grad=True) * 2))  # doctest: +ELLIPSIS
    peak ..., of it leaves ...
    """
    check_type("memory.plan", "y", y, Variable, "a Variable")
    return Plan(*_core.plan_memory(y, clear_buffer, clear_no_need_grad, backward_clear_buffer))


class Fit(NamedTuple):
    """What `fit` chose: the planned peak, the marked variables, and the extra time, predicted as a share of a step."""

    peak: int
    chosen: list[tuple[int, str]]
    extra: float

    def __str__(self) -> str:
        if not self.chosen:
            return f"peak {_human(self.peak)}; it fits as it is"
        lines = [f"peak {_human(self.peak)}, about {self.extra:.0%} more time; computed again in backward:"]
        lines += [f"  {_human(size):>10}  {what}" for size, what in self.chosen]
        return "\n".join(lines)


def fit(
    y: Variable,
    budget: int,
    clear_buffer: bool = False,
    clear_no_need_grad: bool = False,
    backward_clear_buffer: bool = False,
) -> Fit:
    """Make a step of forward and backward of `y` fit into `budget` bytes, by computing data again in backward.

    Sets `Variable.recompute` on variables behind `y`, the ones that are cheapest for a byte first; if those are not
    enough, products and convolutions too, but for evenly spread checkpoints. Nothing runs. Persistent variables and
    marks that are already set stay as they are.

    Args:
        y: The variable that `forward` and `backward` will be called on.
        budget: Bytes for data and gradients of the graph, leaves included; see `plan`.
        clear_buffer: As of `forward`; say what the step will say. A step that clears more needs no more than this.
        clear_no_need_grad: As of `forward`.
        backward_clear_buffer: `clear_buffer` as of `backward`.

    Returns:
        The planned peak, what is computed again (bytes, what it is), and the predicted extra time as a share of a step.

    Raises:
        ValueError: If no choice that was tried fits; the message names the smallest peak found. Marks are as before.

    >>> import nnrs as nn
    >>> import nnrs.functions as F
    >>> x = nn.Variable((8, 4, 32, 32), need_grad=True)
    >>> h = x
    >>> for _ in range(8):
    ...     h = F.layer_normalization(F.batch_normalization(h, None, None, None, None), None, None)
    >>> y = F.sum(h)
    >>> flags = {"clear_no_need_grad": True, "backward_clear_buffer": True}
    >>> before = plan(y, **flags).peak
    >>> fit(y, before * 2 // 3, **flags).peak <= before * 2 // 3
    True
    """
    check_type("memory.fit", "y", y, Variable, "a Variable")
    budget = min(whole_number("memory.fit", "budget", budget, 0), 2**63 - 1)
    return Fit(*_core.fit_memory(y, budget, clear_buffer, clear_no_need_grad, backward_clear_buffer))


def _human(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


_calls.check_functions(globals())
