"""Cases that several functions of one family share."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, distinct, floats, uniform

# Two inputs that meet NaN, infinity and zeros of both signs in either place.
CORNERS_OF_TWO = Case(
    name="corners",
    inputs=[
        [np.nan, np.nan, 1.0, np.inf, np.inf, -np.inf, 0.0, 0.0, -0.0, -2.0, 2.0],
        [np.nan, 2.0, np.nan, np.inf, -np.inf, 1.0, 0.0, -2.0, 0.0, -0.0, 3.0],
    ],
    differentiable=False,
)
# Fewer axes broadcast as in NumPy.
RANKS = Case(name="ranks", inputs=[(2, 3), (3,)], oracle=False, reason="NNabla wants equal numbers of axes")
RANKS_NO_GRAD = Case(
    name="ranks",
    inputs=[(2, 3), (3,)],
    differentiable=False,
    oracle=False,
    reason="NNabla wants equal numbers of axes",
)
# Two inputs that do not broadcast.
SHAPES = [
    Error(name="shapes", inputs=[(2, 3), (2, 2)], match="argument 'x1'", kind=ValueError),
]
# A number that is none.
VAL = [
    Error(name="val", inputs=[(2, 3)], args={"val": "a"}, kind=TypeError, match="argument 'val'"),
]

UNREDUCED = "nn.grad of NNabla does not sum over the stretched dimensions"
# Two inputs that are nowhere near each other, for functions with a kink where they are equal.
APART = [
    Case(inputs=[distinct(2, 3, step=0.5), uniform(-0.1, 0.1, 2, 3)], elementwise=True),
    Case(
        name="broadcast",
        inputs=[distinct(2, 1, 3, step=0.5), uniform(-0.1, 0.1, 1, 4, 3)],
        oracle_grad=False,
        reason=UNREDUCED,
    ),
    Case(
        name="broadcast_second",
        inputs=[distinct(2, 3, step=0.5), uniform(-0.1, 0.1, 1, 3)],
        oracle_grad=False,
        reason=UNREDUCED,
    ),
]

# Comparisons of two arrays.
COMPARISONS = [
    Case(inputs=[floats(-2, 3, 2, 3), floats(-2, 3, 2, 3)], elementwise=True, differentiable=False),
    Case(name="broadcast", inputs=[floats(-2, 3, 2, 1, 3), floats(-2, 3, 1, 4, 3)], differentiable=False),
    Case(name="broadcast_second", inputs=[floats(-2, 3, 2, 3), floats(-2, 3, 1, 3)], differentiable=False),
    CORNERS_OF_TWO,
    RANKS_NO_GRAD,
]

# Comparisons of an array and a number.
COMPARISONS_SCALAR = [
    Case(inputs=[floats(-2, 3, 2, 4)], elementwise=True, differentiable=False),
    Case(name="val", inputs=[floats(-2, 3, 2, 4)], args={"val": -1}, differentiable=False),
    Case(name="fraction", inputs=[[0.5, 0.25, 0.75, np.nan, np.inf, -np.inf]], args={"val": 0.5}, differentiable=False),
    Case(name="nan", inputs=[[0.5, np.nan]], args={"val": np.nan}, differentiable=False),
]

# Logic of two arrays.
LOGIC = [
    Case(inputs=[floats(-1, 2, 2, 3), floats(-1, 2, 2, 3)], elementwise=True, differentiable=False),
    Case(name="broadcast", inputs=[floats(-1, 2, 2, 1, 3), floats(-1, 2, 1, 4, 3)], differentiable=False),
    Case(name="broadcast_second", inputs=[floats(-1, 2, 2, 3), floats(-1, 2, 1, 3)], differentiable=False),
    CORNERS_OF_TWO,
    RANKS_NO_GRAD,
]

# Logic of an array and a truth.
LOGIC_SCALAR = [
    Case(name="true", inputs=[floats(-1, 2, 2, 4)], args={"val": True}, elementwise=True, differentiable=False),
    Case(name="false", inputs=[floats(-1, 2, 2, 4)], args={"val": False}, differentiable=False),
    Case(name="number", inputs=[[np.nan, 0.0, -0.0, 0.3, np.inf]], args={"val": 2}, differentiable=False),
]

# Arithmetic of two arrays, wherever they lie.
ARITHMETIC = [
    Case(inputs=[(2, 3), (2, 3)], elementwise=True),
    Case(name="broadcast", inputs=[(2, 1, 3), (1, 4, 3)]),
    Case(name="broadcast_second", inputs=[(2, 3), (1, 3)]),
    Case(name="inplace", inputs=[(2, 3), (2, 3)], args={"inplace": True}),
    CORNERS_OF_TWO,
    RANKS,
]

# Arithmetic of an array and a number, wherever they lie.
ARITHMETIC_SCALAR = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="val_2.5", inputs=[(2, 3)], args={"val": 2.5}),
    Case(name="val_-1", inputs=[(2, 3)], args={"val": -1}),
    Case(name="val_0", inputs=[(2, 3)], args={"val": 0}),
    Case(name="inplace", inputs=[(2, 3)], args={"val": 2, "inplace": True}),
    Case(
        name="corners",
        inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]],
        args={"val": 0.5},
        differentiable=False,
    ),
]
