"""What a case is: a step to time, written once for NNabla's API (nnrs has the same) and once for torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

# A step is timed by the worker, unless it returns seconds: it then measured the part that counts itself.
Step = Callable[[], "float | None"]


class Kit:
    """NNabla's modules, from `nnrs` or from `nnabla`: one adapter serves both."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.nn: Any = import_module(package)
        self.F: Any = import_module(f"{package}.functions")

    @property
    def PF(self) -> Any:
        return import_module(f"{self.package}.parametric_functions")

    @property
    def S(self) -> Any:
        return import_module(f"{self.package}.solvers")


def nabla_step(y: Any, leaves: Sequence[Any], backward: bool) -> Step:
    """Forward of a static graph; or after it, timed alone, backward to gradients of zero."""
    if not backward:
        return lambda: y.forward()

    def step() -> float:
        y.forward()
        for v in leaves:
            v.grad.zero()
        start = time.perf_counter()
        y.backward()
        return time.perf_counter() - start

    return step


def torch_step(call: Callable[[], Any], leaves: Sequence[Any], backward: bool) -> Step:
    """The same of what a call makes of torch's tensors."""

    import torch

    def forward() -> None:
        call()

    def step() -> float:
        y = call()
        for v in leaves:
            v.grad = None
        seed = torch.ones_like(y)
        start = time.perf_counter()
        y.backward(seed)
        return time.perf_counter() - start

    return step if backward else forward


@dataclass
class Case:
    """One row of the table. `limits` holds the largest ratio nnrs may have to each engine: one, or those at all threads
    and at one; `share` the least share of what the machine can do."""

    name: str
    title: str
    nabla: Callable[[Kit], Step]
    torch: Callable[[], Step] | None
    limits: dict[str, float | tuple[float, float]] = field(default_factory=dict)
    operators: int = 1  # in one step: the table shows time per operator
    flops: float = 0  # additions and multiplications of one step, counted directly
    moved: float = 0  # bytes that one step has to read and write at least
    share: float = 0


@dataclass
class Whole:
    """A row measured on whole processes: `measure(engines, quick)` returns a value for each engine."""

    name: str
    title: str
    unit: str
    measure: Callable[[dict[str, str], bool], dict[str, Any]]
    limits: dict[str, float] = field(default_factory=dict)
    ceiling: float | None = None  # largest value nnrs may have by itself
