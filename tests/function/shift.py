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
            lines.append(np.take(y, [at], axis))
        y = np.concatenate(lines, axis) if n else y
    return y


NO_RULE = {"oracle_grad": False, "reason": "NNabla has no rule for nn.grad"}
CASES = [
    Case(inputs=[(2, 3)], name="default", reshaped=[(3, 2)], **NO_RULE),
    Case(inputs=[(3, 4)], args={"shifts": (1, 0)}, name="down", reshaped=[(5, 2)], **NO_RULE),
    Case(inputs=[(3, 4)], args={"shifts": (-1, 2)}, name="both", **NO_RULE),
    Case(inputs=[(2, 5)], args={"shifts": (-2,)}, name="last axis", **NO_RULE),
    Case(inputs=[(2, 2, 3)], args={"shifts": (1, 1, -1)}, name="three", **NO_RULE),
    Case(inputs=[(2, 5)], args={"shifts": (0, 2), "border_mode": "reflect"}, name="reflect", **NO_RULE),
    Case(inputs=[(2, 5)], args={"shifts": (1, -3), "border_mode": "reflect"}, name="reflect both", **NO_RULE),
    Case(inputs=[(5,)], args={"shifts": (-9,), "border_mode": "reflect"}, name="reflect far", **NO_RULE),
    Case(
        inputs=[(4,)],
        args={"shifts": (2**62 + 1,), "border_mode": "reflect"},
        name="far",
        oracle=False,
        reason="it wraps",
    ),
    Case(inputs=[(2, 4)], args={"shifts": (0, 7)}, name="nearest far", **NO_RULE),
    Case(inputs=[(2, 4)], args={"shifts": (0, -(2**62))}, name="nearest very far", oracle=False, reason="it wraps"),
    Case(inputs=[(2, 1)], args={"shifts": (0, 1), "border_mode": "reflect"}, name="one element", **NO_RULE),
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
    Error(
        inputs=[(2, 3)],
        args={"border_mode": "constant"},
        match="argument 'border_mode'",
        name="mode",
        oracle=False,
        reason="it takes it for nearest",
    ),
]
