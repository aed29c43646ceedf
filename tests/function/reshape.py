"""`reshape`: the same elements in another shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, shape: Sequence[int], inplace: bool = True) -> np.ndarray:
    return x.reshape([-1 if n < 0 else n for n in shape])


def make(F: Any, x: Any, **args: Any) -> Any:
    """The plain call: NNabla's in-place reshape does not write into `outputs=`, so that is asked of nnrs only."""
    return F.reshape(x, **args)


CASES = [
    Case(
        inputs=[(2, 3)], args={"shape": (3, 2)}, name="outputs", oracle=False, reason="NNabla leaves outputs= unwritten"
    ),
    Case(inputs=[(2, 3)], args={"shape": (3, 2)}, call=make, name="plain"),
    Case(inputs=[(2, 3, 4)], args={"shape": [4, -1]}, call=make, name="inferred"),
    Case(inputs=[(2, 3)], args={"shape": (2, -2)}, call=make, name="any negative number infers"),
    Case(inputs=[(2, 3)], args={"shape": (6,), "inplace": False}, name="copy"),
    Case(inputs=[(1, 1)], args={"shape": ()}, call=make, name="to 0-d"),
    Case(inputs=[()], args={"shape": (1, 1)}, call=make, name="from 0-d"),
    Case(inputs=[(0, 3)], args={"shape": (3, 0)}, differentiable=False, call=make, name="empty"),
    Case(inputs=[(0, 3)], args={"shape": (-1, 3)}, differentiable=False, call=make, name="empty, inferred"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"shape": (4, 2)}, match="argument 'shape'", name="size"),
    Error(inputs=[(2, 3)], args={"shape": (4, -1)}, match="argument 'shape'", name="not divisible"),
    Error(inputs=[(2, 3)], args={"shape": (-1, -1)}, match="argument 'shape'", name="two inferred"),
    Error(inputs=[(2, 3)], args={"shape": 6}, match="argument 'shape'", kind=(TypeError, ValueError), name="int"),
    Error(
        inputs=[(0, 3)],
        args={"shape": (0, -1)},
        match="argument 'shape'",
        oracle=False,
        reason="NNabla dies",
        name="ambiguous",
    ),
]
