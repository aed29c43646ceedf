"""The runs that are compared: nnrs, NNabla, and NNabla once more without clear flags, where all values can be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FLAGS = ("clear_buffer", "clear_no_need_grad")


class Engine:
    """An engine, its variables and arrays by number. `clears`: False leaves out clear flags and marks to recompute."""

    def __init__(self, name: str, nn: Any, functions: Any, grad: Any, clears: bool = True) -> None:
        self.name, self.nn, self.functions, self.grad, self.clears = name, nn, functions, grad, clears
        self.vars: dict[int, Any] = {}
        self.arrays: dict[int, Any] = {}

    def attempt(self, work: Callable[[Engine], Any]) -> tuple[Any, Exception | None]:
        try:
            with np.errstate(all="ignore"):
                return work(self), None
        except Exception as e:  # which kind is not compared
            return None, e

    def call(self, op: str, x: list[Any], args: dict[str, Any]) -> list[Any]:
        y = OPERATIONS.get(op, lambda f, x, **a: getattr(f, op)(*x, **a))(self.functions, x, **args)
        return list(y) if isinstance(y, (tuple, list)) else [y]

    def forward(self, roots: list[int], flags: dict[str, Any], hooks: dict[str, Any]) -> None:
        flags = flags if self.clears else {}
        v = [self.vars[i] for i in roots]
        if len(v) == 1:
            v[0].forward(**flags, **hooks)
        else:
            self.nn.forward_all(v, **flags, **hooks)

    def value(self, array: Any) -> Any:
        """A copy, read so that no engine takes it for a write."""
        return np.array(array.get_data("r"))


OPERATIONS: dict[str, Any] = {
    "stack0": lambda f, x: f.stack(*x, axis=0),
    "concatenate0": lambda f, x: f.concatenate(*x, axis=0),
    "reshape": lambda f, x: f.reshape(x[0], x[0].shape[::-1], inplace=False),
    "transpose": lambda f, x: f.transpose(x[0], tuple(range(x[0].ndim))[::-1]),
    "sum": lambda f, x: f.sum(x[0], axis=0, keepdims=True),
    "max": lambda f, x: f.max(x[0], axis=0, keepdims=True),
    "softmax": lambda f, x: f.softmax(x[0], axis=0),
    "split": lambda f, x: f.split(x[0], axis=0),
    "leaky_relu": lambda f, x: f.leaky_relu(x[0], alpha=0.3),
}


def engines() -> list[Engine]:
    """nnrs, NNabla, and NNabla without clear flags, on the CPU."""
    import nnabla
    import nnabla.functions
    import nnabla.grad

    import nnrs
    import nnrs.functions

    return [
        Engine("nnrs", nnrs, nnrs.functions, nnrs.grad),
        Engine("NNabla", nnabla, nnabla.functions, nnabla.grad),
        Engine("values", nnabla, nnabla.functions, nnabla.grad, clears=False),
    ]


def values(seed: int, shape: tuple[int, ...]) -> Any:
    """Numbers of a step: never 0, so that kinks are not met by chance."""
    rng = np.random.default_rng(seed)
    return np.asarray(np.round(rng.uniform(0.1, 1.3, shape) * rng.choice([-1.0, 1.0], shape), 3), dtype="float32")
