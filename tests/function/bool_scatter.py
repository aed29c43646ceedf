"""`bool_scatter`: rows put where a mask is not zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def reference(input: np.ndarray, mask: np.ndarray, output: np.ndarray | None = None) -> np.ndarray:
    y = np.zeros(mask.shape + input.shape[1:]) if output is None else output.copy()
    y[mask != 0] = input
    return y


def onto(F: Any, input: Any, mask: Any, output: Any) -> Any:
    """What a function has made is not written, so the call can be repeated; leaves are: test_in_place_updates.py."""
    return F.bool_scatter(input, mask, F.mul_scalar(output, 1.0))


BREAKS = {"oracle_grad": False, "reason": "NNabla corrupts its memory"}
WRITES = {"oracle": False, "reason": "NNabla writes into `output`"}
CASES = [
    Case(inputs=[(3,), [[1, 0, 1], [0, 0, 1]]], name="elements", **BREAKS),
    Case(inputs=[(1, 3), [0, 1]], name="rows", **BREAKS),
    Case(inputs=[(2, 2), [0.5, 0.0, -2.0]], need_grad=(True, False), name="floats", **BREAKS),
    Case(inputs=[(3,), [[1, 0, 1], [0, 0, 1]], (2, 3)], call=onto, name="onto an array", **WRITES),
    Case(inputs=[(2, 2), [1, 0, 1], (3, 2)], call=onto, name="rows onto an array", **WRITES),
]
ERRORS = [
    Error(
        inputs=[(2,), [1, 1, 1]],
        match="argument 'mask'",
        oracle=False,
        reason="NNabla reads foreign memory",
        name="too few rows",
        host=True,
    ),
    Error(inputs=[(3,), [[1, 0, 1], [0, 0, 1]], (2, 4)], match="argument 'output'", name="shape of output"),
    Error(inputs=[(), [1]], match="argument 'input'", oracle=False, reason="NNabla dies", name="0-d"),
]
