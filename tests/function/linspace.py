"""`linspace`: num numbers from start to stop, both included."""

import numpy as np

from function.case import Case, Error


def reference(start, stop, num):
    return np.linspace(start, stop, num)


CASES = [
    Case(args={"start": 0, "stop": 1, "num": 5}),
    Case(name="down", args={"start": 5, "stop": -5, "num": 3}),
    Case(name="one", args={"start": 2, "stop": 3, "num": 1}),
    Case(name="none", args={"start": 2, "stop": 3, "num": 0}),
    Case(name="tenths", args={"start": 0, "stop": 1, "num": 11}),
]

ERRORS = [
    Error(name="negative", args={"start": 0, "stop": 1, "num": -1}, match="argument 'num'", kind=ValueError),
    Error(name="fraction", args={"start": 0, "stop": 1, "num": 2.5}, match="argument 'num'", kind=TypeError),
]
