"""`meshgrid`: the coordinates of a grid."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(*x: np.ndarray, ij_indexing: bool = False) -> object:
    y = np.meshgrid(*x, indexing="ij" if ij_indexing else "xy")
    return y[0] if len(y) == 1 else tuple(y)


NO_RULE = {"oracle_grad": False, "reason": "NNabla has no rule for nn.grad"}
WRONG = {"oracle": False, "reason": "NNabla writes the gradient where another one is to be added to"}
CASES = [
    Case(inputs=[(2,), (3,)], reshaped=[(4,), (1,)], **NO_RULE),
    Case(inputs=[(2,), (3,)], args={"ij_indexing": True}, name="ij", **NO_RULE),
    Case(inputs=[(2,), (3,), (4,)], name="three", **WRONG),
    Case(inputs=[(2,), (3,), (2,)], args={"ij_indexing": True}, name="three, ij", **WRONG),
    Case(inputs=[(3,)], name="one", **NO_RULE),
    Case(inputs=[(2,), (3,)], name="the second alone", grad_outputs=[1], **NO_RULE),
    Case(inputs=[(2,), (0,)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2,), (1, 3)], match=r"argument 'x\[1\]'.*one axis"),
    Error(inputs=[], match="meshgrid", name="none", oracle=False, reason="an AssertionError"),
]
