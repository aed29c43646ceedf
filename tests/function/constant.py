"""`constant`: an array full of val."""

import numpy as np

from function.case import Case, Error


def reference(val=0, shape=()):
    return np.full(shape, val, np.float64)


CASES = [
    Case(),
    Case(name="vector", args={"val": 2.5, "shape": (3,)}),
    Case(name="list_shape", args={"val": -1, "shape": [2, 3]}),
    Case(name="empty", args={"val": 1, "shape": (2, 0)}),
    Case(name="nan", args={"val": float("nan"), "shape": (2,)}),
]

ERRORS = [
    Error(name="shape", args={"shape": 3}, kind=TypeError, match="argument 'shape'"),
    Error(
        name="negative_dimension",
        args={"shape": (2, -1)},
        kind=ValueError,
        match="argument 'shape'",
        oracle=False,
        reason="NNabla aborts",
    ),
]
