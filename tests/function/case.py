"""What a case file is made of: `Case`, `Error` and makers of inputs.

A case file, tests/function/leaky_relu.py for `F.leaky_relu`, is all a new function needs to be tested by
`tests/test_functions.py`:

    \"\"\"`leaky_relu`: x where positive, alpha times x elsewhere.\"\"\"
    import numpy as np
    from function.case import Case, Error

    def reference(x, alpha=0.1):
        return np.where(x > 0, x, alpha * x)

    CASES = [Case(inputs=[(2, 3)], kinks=[0], elementwise=True), Case(inputs=[[-np.inf, np.nan]], differentiable=False)]
    ERRORS = [Error(inputs=[(2, 3)], args={"alpha": "a"}, match="argument 'alpha'", kind=TypeError)]  # may be left out

The reference is called as the function is: inputs by position (None where absent), `args` by keyword. It gets
float64 arrays (already rounded to the type under test) or the integer arrays as they are, and returns an array or a
tuple of arrays. Derivatives are checked against finite differences of the reference, so it must be right near the
inputs, not only at them. A list of Python integers makes an integer array: write `[1.0, 2.0]` for floating numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Maker = Callable[[np.random.Generator], np.ndarray]
# A tuple is a shape (standard normal numbers), a list or array the values themselves, None an absent optional input.
Input = tuple | list | np.ndarray | Maker | None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One call of a function: what goes in, and what the walker may check."""

    inputs: Sequence[Input] = ()
    args: dict[str, Any] = field(default_factory=dict)
    # Part of the test's name; the case's number by default.
    name: str = ""
    # Which inputs get a gradient; by default the floating ones. Write it where such an input has none (labels).
    need_grad: Sequence[bool] | None = None
    # Points where the derivative jumps: made inputs (shapes and makers, not given values) keep 0.1 away from them.
    kinks: Sequence[float] = ()
    # rtol and atol of the forward check by type: {"half": 1e-2}; of derivatives under the keys "grad" and "second".
    tolerance: dict[str, float] = field(default_factory=dict)
    # The types whose forward is checked.
    types: Sequence[str] = ("float", "double", "half", "bfloat16")
    # False: no derivative is looked at (comparisons; values at a kink, NaN).
    differentiable: bool = True
    # False: only the first derivative is checked.
    second: bool = True
    # Where backward is deliberately not the derivative of forward (sign, round): grad(gy, *inputs, **args) gives gx,
    # or a tuple with one entry an input (None where it has none). With several outputs gy is a tuple.
    grad: Callable[..., Any] | None = None
    # True: its gradients take the place of those that the inputs have.
    sets: bool = False
    # Numbers of the outputs that are differentiated; by default all.
    grad_outputs: Sequence[int] | None = None
    # True: each output element depends on the input elements at its place only, for any shape: 0-d, empty and re-shaped
    # variants are derived.
    elementwise: bool = False
    # Inputs of another shape for the re-use of the graph (derived where `elementwise`).
    reshaped: Sequence[Input] | None = None
    # check(outputs, inputs), instead of the reference, for random functions: asserts what must hold.
    check: Callable[[list[np.ndarray], list[np.ndarray]], None] | None = None
    # call(F, *inputs, **args), where F.name(*inputs, **args) is not the way.
    call: Callable[..., Any] | None = None
    # True: forward writes into its inputs (running statistics).
    mutates: bool = False
    # False: not run on NNabla, because nnrs differs on purpose or NNabla crashes; `reason` says which.
    oracle: bool = True
    # False: nn.grad (so the second derivative too) is wrong or missing in NNabla, and not asked there; with `reason`.
    oracle_grad: bool = True
    reason: str = ""

    def __post_init__(self) -> None:
        if not (self.oracle and self.oracle_grad) and not self.reason:
            raise ValueError("a case that NNabla does not run says why: reason=")

    def make(self, function: str) -> list[np.ndarray | None]:
        """The input arrays: the same at every call, floating ones in float64."""
        return self._make(self.inputs, function)

    def make_reshaped(self, function: str) -> list[np.ndarray | None] | None:
        """Inputs of another shape, or None where the case has none."""
        if self.reshaped is not None:
            return self._make(self.reshaped, function)
        inputs = self.make(function)
        alike = self.elementwise and len({x.shape for x in inputs if x is not None}) == 1
        return [None if x is None else np.stack([x, x]) for x in inputs] if alike else None

    def _make(self, inputs: Sequence[Input], function: str) -> list[np.ndarray | None]:
        rng = np.random.default_rng(zlib.crc32(function.encode()))
        return [_array(x, rng, self.kinks) for x in inputs]

    def wants_grad(self, inputs: Sequence[np.ndarray | None]) -> list[bool]:
        """Which inputs get a gradient."""
        floating = [x is not None and x.dtype.kind == "f" for x in inputs]
        if self.need_grad is None:
            return floating
        if len(self.need_grad) != len(inputs):
            raise ValueError("need_grad has one entry an input")
        return [bool(want) and is_float for want, is_float in zip(self.need_grad, floating, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Error:
    """A call that must fail, when the node is made or when it runs, with an error that helps."""

    inputs: Sequence[Input] = ()
    args: dict[str, Any] = field(default_factory=dict)
    # A regular expression that the message must contain beside the function's name; not asked of NNabla.
    match: str
    kind: type[Exception] | tuple[type[Exception], ...] = (ValueError, TypeError)
    name: str = ""
    # False: NNabla does not fail here (or dies).
    oracle: bool = True
    reason: str = ""
    # Only the host looks at the numbers: a GPU gives NaN, or leaves them out.
    host: bool = False

    def make(self, function: str) -> list[np.ndarray | None]:
        """The input arrays."""
        rng = np.random.default_rng(zlib.crc32(function.encode()))
        return [_array(x, rng, ()) for x in self.inputs]


def _array(x: Input, rng: np.random.Generator, kinks: Sequence[float]) -> np.ndarray | None:
    if x is None:
        return None
    made = isinstance(x, tuple) or callable(x)
    array = rng.standard_normal(x) if isinstance(x, tuple) else np.asarray(x(rng) if callable(x) else x)
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
        return away_from(array, kinks) if made else array
    return array


def away_from(x: np.ndarray, kinks: Sequence[float], distance: float = 0.1) -> np.ndarray:
    """x with the numbers nearer than `distance` to a kink moved away from it, each to its own side."""
    for kink in kinks:
        side = np.where(x >= kink, 1.0, -1.0)
        x = np.where(np.abs(x - kink) < distance, kink + side * (distance + np.abs(x - kink)), x)
    return x


def normal(*shape: int, mean: float = 0.0, scale: float = 1.0) -> Maker:
    """Normal numbers."""
    return lambda rng: mean + scale * rng.standard_normal(shape)


def large_numbers(*shapes: tuple[int, ...], others: int = 2, args: dict[str, Any] | None = None) -> list[Case]:
    """Cases of a normalization with numbers whose squares are beyond float; `others` inputs behind x are None."""
    return [
        Case(
            inputs=[normal(*shape, scale=1e30), *[None] * others],
            args=args or {},
            differentiable=False,
            types=("float", "double", "bfloat16"),
            name=f"large numbers, {shape}",
            oracle=False,
            reason="NNabla gives NaN",
        )
        for shape in shapes
    ]


def uniform(low: float, high: float, *shape: int) -> Maker:
    """Uniform numbers, at least low and less than high."""
    return lambda rng: rng.uniform(low, high, shape)


def positive(*shape: int) -> Maker:
    """Numbers from 0.5 to 2: for logarithms, divisors, bases of powers."""
    return uniform(0.5, 2.0, *shape)


def integers(low: int, high: int, *shape: int, dtype: Any = np.int32) -> Maker:
    """Integers, at least low and less than high: labels and indices."""
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def floats(low: int, high: int, *shape: int) -> Maker:
    """Integers as floating numbers (exact in every type): for ties and comparisons."""
    return lambda rng: rng.integers(low, high, shape).astype(np.float64)


def distinct(*shape: int, step: float = 0.25) -> Maker:
    """Shuffled multiples of step around zero: no two are near, so max, min and sort have one answer and no kink."""
    size = int(np.prod(shape))
    return lambda rng: (rng.permutation(size).reshape(shape) - size // 2 + 0.5) * step
