"""What the tests of graphs are made of: leaves, a training step, comparison, a check that the engine still works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import nnrs.functions as F
from nnrs import Variable

X = np.array([0.5, -1.0, 2.0], "float32")


def leaf(values: Any, need_grad: bool = True) -> Variable:
    """A float32 variable of these values."""
    return Variable.from_numpy_array(np.array(values, "float32"), need_grad=need_grad)


def close(actual: Any, expected: Any) -> None:
    """Equal but for some units in the last place of float32."""
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


def train(y: Variable, *leaves: Variable) -> None:
    """Forward and backward, with the gradients of the leaves from zero."""
    for x in leaves:
        x.g = 0
    y.forward()
    y.backward()


def names(record: list[str]) -> Callable[[Any], None]:
    """A hook that writes down the functions' names."""
    return lambda f: record.append(f.name)


def promises_any_memory() -> bool:
    """The system lets a program ask for more memory than there is, and ends it when it writes there."""
    rule = Path("/proc/sys/vm/overcommit_memory")
    return rule.exists() and rule.read_text().strip() == "1"


def works() -> None:
    """The engine still does what it should."""
    x = leaf([0.5, -1.0])
    y = F.sin(F.tanh(x))
    y.forward()
    y.backward()
    np.testing.assert_allclose(y.d, np.sin(np.tanh([0.5, -1.0])), rtol=1e-6)
