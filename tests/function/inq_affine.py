"""`inq_affine`: an affine layer whose weights become powers of two by and by."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.affine import reference as affine
from function.case import Case, Error


def reference(
    x: np.ndarray,
    w: np.ndarray,
    fixed: np.ndarray,
    b: np.ndarray | None = None,
    base_axis: int = 1,
    **_: Any,
) -> np.ndarray:
    """Where nothing is fixed in the first pass."""
    return affine(x, w, b, base_axis)


def level(w: np.ndarray, bits: int) -> np.ndarray:
    """The powers of two that are nearest, of those up to the one for the largest weight."""
    most = np.ceil(np.log2(np.abs(w).max() / 1.5))
    least = most + 1 - 2 ** (bits - 2)
    with np.errstate(divide="ignore"):
        k = np.clip(np.floor(np.log2(np.abs(w) / 0.75)), least, most)
    return np.where(np.abs(w) < 2 ** (least - 1), 0, np.sign(w) * 2**k)


def first(algorithm: str, bits: int, last: bool) -> Any:
    """Holds the first pass, which fixes half of the weights or all, against the above."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        x, before, given = (np.asarray(v, np.float64) for v in inputs[:3])
        y, w, fixed = outputs
        free = np.argsort(-np.abs(before[given == 0]))
        count = len(free) if last else len(free) // 2
        expected = given.copy()
        expected[given == 0] = np.isin(np.arange(len(free)), free[:count])
        if algorithm == "largest_abs" or last:
            np.testing.assert_array_equal(fixed, expected)
        np.testing.assert_allclose(w, np.where(fixed == 1, level(before, bits), before), rtol=1e-6)
        np.testing.assert_allclose(y, affine(x, np.asarray(w, np.float64)), rtol=1e-3, atol=1e-3)

    return check


def given(F: Any, *inputs: Any, **args: Any) -> list[Any]:
    """The output, and what forward writes."""
    return [F.inq_affine(*inputs, **args), *inputs[1:3]]


def fixing(
    name: str, fixed: np.ndarray, bits: int = 4, at: Any = (0,), algorithm: str = "largest_abs", **args: Any
) -> Case:
    return Case(
        name=name,
        inputs=[(2, 3), W, fixed],
        args={"num_bits": bits, "inq_iterations": at, "selection_algorithm": algorithm, **args},
        mutates=True,
        check=first(algorithm, bits, at[-1] == 0),
        call=given,
        differentiable=False,
        types=("float", "double"),
    )


# For exponents e: how many float32 above 3/2 of 2**e the first one is that NNabla 1.39 takes for 2**(e + 1), as largest
# weight and beside a larger one. It compares logarithms in float32.
HALFWAY = {-100: (20, 20), -50: (4, 4), -20: (-5, -5), -10: (-1, -1), -6: (1, 1), -3: (0, 0), -1: (1, 0), 0: (1, 0),
           1: (1, 0), 2: (0, 0), 5: (1, 1), 10: (-1, -1), 20: (-5, -5), 50: (4, 4), 100: (20, 20)}  # fmt: skip


def above(e: int, count: int) -> float:
    return float((np.array([1.5 * 2.0**e], np.float32).view(np.int32) + np.int32(count)).view(np.float32)[0])


def halfway() -> list[np.ndarray]:
    """Weights of three layers for each exponent: the last one down, the first one up, and both beside a large one."""
    weights = []
    for e, (largest, other) in HALFWAY.items():
        weights += [[[above(e, largest - 1)]], [[above(e, largest)]]]
        weights += [[[above(e, other - 1), above(e, other), 8 * 2.0**e]]]
    return [np.array(w) for w in weights]


def all_fixed(F: Any, *inputs: Any, **args: Any) -> list[Any]:
    x, one, three, *weights = inputs
    return [F.inq_affine(x, w, three if w.size == 3 else one, **args) for w in weights]


def down_and_up(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    for i, e in enumerate(HALFWAY):
        down, up, both = (np.asarray(y, np.float64).ravel() / 2.0**e for y in outputs[3 * i : 3 * i + 3])
        assert (down.tolist(), up.tolist(), both.tolist()) == ([1], [2], [1, 2, 8]), e


W = np.random.default_rng(3).permutation(np.linspace(-1, 1.3, 12)).reshape(3, 4)
NONE, SOME = np.zeros_like(W), (np.arange(W.size).reshape(W.shape) % 3 == 1) * 1.0
LAZY = {"oracle_grad": False, "reason": "NNabla has no gradient of a gradient here"}
CASES = [
    Case(
        inputs=[(2, 3), (3, 4), NONE, (4,)],
        need_grad=(True, True, False, True),
        reshaped=[(5, 3), (3, 4), NONE, (4,)],
        **LAZY,
    ),
    Case(
        inputs=[(2, 3), (3, 4), NONE],
        args={"inq_iterations": (5, 7)},
        need_grad=(True, True, False),
        name="later",
        **LAZY,
    ),
    Case(
        inputs=[(3, 2, 2), (4, 3, 2), np.zeros((4, 3, 2)), (3, 2)],
        need_grad=(True, True, False, True),
        name="axes",
        **LAZY,
    ),
    fixing("all", NONE),
    fixing("half", NONE, at=(0, 4)),
    fixing("some are fixed", SOME, at=(0, 4)),
    fixing("two bits", SOME, bits=2),
    fixing("five bits", NONE, bits=5, at=(3, 0)),
    fixing("random", NONE, algorithm="random", at=(0, 4), seed=5),
    Case(
        name="halfway between powers",
        inputs=[[[1.0]], np.ones((1, 1)), np.ones((1, 3)), *halfway()],
        args={"num_bits": 6, "inq_iterations": (5,)},
        mutates=True,
        check=down_and_up,
        call=all_fixed,
        differentiable=False,
        types=("float", "double"),
    ),
    fixing("random, the rest", SOME, algorithm="random"),
]
ERRORS = [
    Error(inputs=[(2, 4), (3, 4), (3, 4)], match="argument 'weight'"),
    Error(inputs=[(2, 3), (3, 4), (4, 3)], match="argument 'indicator_fixedweights'", name="indicators"),
    Error(inputs=[(2, 3), (3, 4), (3, 4), (2,)], match="argument 'bias'", name="bias"),
    Error(
        inputs=[(2, 3), (3, 4), (3, 4)],
        args={"selection_algorithm": "small"},
        match="'largest_abs' or 'random'",
        name="algorithm",
    ),
    Error(
        inputs=[(2, 3), (3, 4), (3, 4)],
        args={"num_bits": 1},
        match="argument 'num_bits'",
        name="bits",
        oracle=False,
        reason="its levels grow",
    ),
]
