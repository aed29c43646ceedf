"""Where NaN and infinities come from: `NanInfTracer`.

>>> import nnrs as nn, nnrs.functions as F
>>> tracer = NanInfTracer(need_details=False)
>>> y = F.log(nn.Variable.from_numpy_array([-1.0]))
>>> y.forward(function_post_hook=tracer.forward_post_hook)
>>> try:  # doctest: +NORMALIZE_WHITESPACE
...     tracer.check()
... except ValueError as error:
...     print(error)
Error during forward propagation
    Log <-- ERROR
The 0th output of the function 'Log' (rank: 0) has nan or inf as its values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..._core import Function, NdArray
from ..._errors import ArgumentError
from .base import FunctionHookCallbackBase

_ORDINALS = {1: "1st", 2: "2nd", 3: "3rd"}


class _Seen(NamedTuple):
    """A function that has run, and for each array how many NaN and infinities it has."""

    function: Function
    counts: list[list[NdArray]]


class NanInfTracer(FunctionHookCallbackBase):
    """Looks for NaN and infinities in the outputs of functions, and in the gradients of their inputs.

    Its hooks count them on the device; `check` reads the counts and raises an error that names the first function that
    has some, with all that ran before it.

    Args:
        trace_nan: Whether to look for NaN.
        trace_inf: Whether to look for infinities.
        need_details: Whether the error has type, shapes and arguments of the function.
    """

    def __init__(self, trace_nan: bool = True, trace_inf: bool = True, need_details: bool = True) -> None:
        self.trace_nan = trace_nan
        self.trace_inf = trace_inf
        self.need_details = need_details
        self.key_to_stat_fwd: dict[Function, _Seen] = {}
        self.key_to_stat_bwd: dict[Function, _Seen] = {}

    @property
    def pre_hook(self) -> None:
        """None: it has none."""
        return None

    @property
    def post_hook(self) -> Any:
        """An error: there is `forward_post_hook`, and `backward_post_hook`."""
        raise NotImplementedError("NanInfTracer has no post_hook: it has a forward_post_hook and a backward_post_hook")

    @property
    def forward_post_hook(self) -> Callable[[Function], None] | None:
        """For `function_post_hook` of forward; None if it looks for nothing."""

        def callback(f: Function) -> None:
            self._see(self.key_to_stat_fwd, f, [v.data for v in f.outputs])

        return callback if self.trace_nan or self.trace_inf else None

    @property
    def backward_post_hook(self) -> Callable[[Function], None] | None:
        """For `function_post_hook` of backward; None if it looks for nothing."""

        def callback(f: Function) -> None:
            self._see(self.key_to_stat_bwd, f, [v.grad for v in f.inputs if v.need_grad])

        return callback if self.trace_nan or self.trace_inf else None

    def _see(self, seen: dict[Function, _Seen], f: Function, arrays: Sequence[NdArray]) -> None:
        from ... import functions as F

        looks = [look for look, on in ((F.isnan, self.trace_nan), (F.isinf, self.trace_inf)) if on]
        seen.pop(f, None)
        seen[f] = _Seen(f, [[F.sum(look(a)) for look in looks] for a in arrays])

    @contextlib.contextmanager
    def trace(self) -> Iterator[NanInfTracer]:
        """A block at whose end `check` is called."""
        yield self
        self.check()

    def check(self) -> None:
        """Look at the counts of the runs since the call before.

        Raises:
            ValueError: If there is a NaN or an infinity. What ran before is printed.
        """
        forward, backward = list(self.key_to_stat_fwd.values()), list(self.key_to_stat_bwd.values())
        self.key_to_stat_fwd.clear()
        self.key_to_stat_bwd.clear()
        self._check(forward, "forward")
        self._check(backward, "backward")

    def _check(self, seen: list[_Seen], kind: str) -> None:
        for at, (f, counts) in enumerate(seen):
            wrong = [i for i, several in enumerate(counts) if any(float(count) > 0 for count in several)]
            if wrong:
                before = "".join(f"\t{other.function.name}\n" for other in seen[:at])
                print(f"Error during {kind} propagation\n{before}\t{f.name} <-- ERROR")
                raise ArgumentError(self._message(f, wrong[0]))

    def _message(self, f: Function, number: int) -> str:
        ordinal = _ORDINALS.get(number, f"{number}th")
        text = f"The {ordinal} output of the function '{f.name}' (rank: {f.rank}) has nan or inf as its values."
        if not self.need_details:
            return text
        return (
            f"{text}\n  function type: {f.info.type_name}\n"
            f"  shapes of inputs: {[str(v.shape) for v in f.inputs]}\n"
            f"  shapes of outputs: {[str(v.shape) for v in f.outputs]}\n  function args: {f.args}"
        )
