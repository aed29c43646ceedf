"""`shift`: the elements moved along axes."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, shifts: object = None, border_mode: str = "nearest") -> np.ndarray:
    y = x
    shifts = [] if shifts is None else list(shifts)
    for axis, by in zip(range(x.ndim - len(shifts), x.ndim), shifts, strict=True):
        n, lines = x.shape[axis], []
        for i in range(n):
            at = i - by
            if border_mode == "nearest":
                at = min(max(at, 0), n - 1)
            if border_mode == "reflect":
                at = at % (2 * n)
                at = min(at, 2 * n - 1 - at)
            line = np.take(y, [at], axis) if 0 <= at < n else np.zeros_like(np.take(y, [0], axis))
            lines.append(line)
        y = np.concatenate(lines, axis) if n else y
    return y


CASES = [
    Case(inputs=[(2, 3)], name="default", reshaped=[(3, 2)]),
    Case(inputs=[(3, 4)], args={"shifts": (1, 0)}, name="down", reshaped=[(5, 2)]),
    Case(inputs=[(3, 4)], args={"shifts": (-1, 2)}, name="both"),
    Case(inputs=[(2, 5)], args={"shifts": (-2,)}, name="last axis"),
    Case(inputs=[(2, 2, 3)], args={"shifts": (1, 1, -1)}, name="three"),
    Case(inputs=[(2, 5)], args={"shifts": (0, 2), "border_mode": "reflect"}, name="reflect"),
    Case(inputs=[(2, 5)], args={"shifts": (1, -3), "border_mode": "reflect"}, name="reflect both"),
    Case(inputs=[(5,)], args={"shifts": (-9,), "border_mode": "reflect"}, name="reflect far"),
    Case(
        inputs=[(4,)],
        args={"shifts": (2**62 + 1,), "border_mode": "reflect"},
        name="far",
        oracle=False,
        reason="it wraps",
    ),
    Case(inputs=[(2, 4)], args={"shifts": (0, 7)}, name="nearest far"),
    Case(inputs=[(2, 4)], args={"shifts": (0, -(2**62))}, name="nearest very far", oracle=False, reason="it wraps"),
    Case(inputs=[(2, 4)], args={"shifts": (0, 1), "border_mode": "constant"}, name="constant"),
    Case(inputs=[(2, 4)], args={"shifts": (1, -3), "border_mode": "constant"}, name="constant both"),
    Case(inputs=[(2, 4)], args={"shifts": (0, 5), "border_mode": "constant"}, name="constant far"),
    Case(inputs=[(2, 1)], args={"shifts": (0, 1), "border_mode": "reflect"}, name="one element"),
    Case(inputs=[()], args={"shifts": ()}, name="0-d", oracle=False, reason="NNabla dies"),
    Case(
        inputs=[(0, 3)], args={"shifts": (1, 1)}, name="empty", differentiable=False, oracle=False, reason="NNabla dies"
    ),
]
ERRORS = [
    Error(
        inputs=[(2, 3)],
        args={"shifts": (1, 1, 1)},
        match="argument 'shifts'.*at most 2",
        oracle=False,
        reason="it goes on",
    ),
    Error(inputs=[(2, 3)], args={"border_mode": "wrap"}, match="argument 'border_mode'", name="mode"),
]
