"""`arange`: numbers from start to before stop, step apart."""

import numpy as np

from function.case import Case, Error


def reference(start, stop, step=1):
    return start + step * np.arange(max(0, np.ceil((stop - start) / step)))


CASES = [
    Case(args={"start": 0, "stop": 5}),
    Case(name="step", args={"start": 1, "stop": 6, "step": 2}),
    Case(name="down", args={"start": 5, "stop": 0, "step": -2}),
    Case(name="fractions", args={"start": -1.5, "stop": 1.5, "step": 0.75}),
    Case(name="nothing", args={"start": 5, "stop": 0}),
    Case(name="wrong_way", args={"start": 0, "stop": 5, "step": -1}),
    Case(
        name="positional",
        args={},
        call=lambda F: F.arange(0, 3, 0.5),
        check=lambda ys, xs: np.testing.assert_array_equal(ys[0], np.arange(0, 3, 0.5)),
    ),
]

ERRORS = [
    Error(name="step", args={"start": 0, "stop": 5, "step": 0}, kind=ValueError, match="argument 'step'"),
]
