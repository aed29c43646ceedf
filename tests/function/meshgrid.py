"""`meshgrid`: the coordinates of a grid."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(*x: np.ndarray, ij_indexing: bool = False) -> object:
    y = np.meshgrid(*x, indexing="ij" if ij_indexing else "xy")
    return y[0] if len(y) == 1 else tuple(y)


CASES = [
    Case(inputs=[(2,), (3,)], reshaped=[(4,), (1,)]),
    Case(inputs=[(2,), (3,)], args={"ij_indexing": True}, name="ij"),
    Case(inputs=[(2,), (3,), (4,)], name="three"),
    Case(inputs=[(2,), (3,), (2,)], args={"ij_indexing": True}, name="three, ij"),
    Case(inputs=[(3,)], name="one"),
    Case(inputs=[(2,), (3,)], name="the second alone", grad_outputs=[1]),
    Case(inputs=[(2,), (0,)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2,), (1, 3)], match=r"argument 'x\[1\]'.*one axis"),
    Error(inputs=[], match="meshgrid", name="none", oracle=False, reason="an AssertionError"),
]
