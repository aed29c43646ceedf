"""`transpose`: axes in another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    return x.transpose(axes)


CASES = [
    Case(inputs=[(2, 3)], args={"axes": (1, 0)}, reshaped=[(4, 5)], name="matrix"),
    Case(inputs=[(2, 3, 4)], args={"axes": [2, 0, 1]}, name="rotation"),
    Case(inputs=[(2, 3, 4)], args={"axes": (0, 2, 1)}, name="last two"),
    Case(inputs=[(2, 3, 4)], args={"axes": (0, 1, 2)}, name="identity"),
    Case(inputs=[(2, 1, 3, 2)], args={"axes": (3, 1, 0, 2)}, name="4-D"),
    Case(inputs=[(1, 2, 1, 2, 1, 2, 1, 2)], args={"axes": (7, 6, 5, 4, 3, 2, 1, 0)}, name="8-D"),
    Case(inputs=[(33, 65)], args={"axes": (1, 0)}, second=False, name="larger than a tile"),
    Case(inputs=[(4,)], args={"axes": (0,)}, name="1-D"),
    Case(inputs=[(0, 3)], args={"axes": (1, 0)}, differentiable=False, name="empty"),
    Case(inputs=[()], args={"axes": ()}, differentiable=False, oracle=False, reason="NNabla dies", name="0-d"),
    Case(inputs=[(2, 3)], args={"axes": (-1, 0)}, oracle=False, reason="NNabla dies", name="negative"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axes": (1,)}, match="argument 'axes'", name="short"),
    Error(inputs=[(2, 3)], args={"axes": (1, 1)}, match="argument 'axes'", name="twice"),
    Error(inputs=[(2, 3)], args={"axes": (2, 0)}, match="argument 'axes'", name="range"),
    Error(inputs=[(2, 3)], args={"axes": ()}, match="argument 'axes'", name="none"),
]
