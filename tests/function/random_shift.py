"""`random_shift`: elements moved along axes, each sample by other distances."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error
from moved_samples import repeated, same, shows, sources, stay


def reference(
    x: np.ndarray,
    shifts: tuple[int, ...] | None = None,
    border_mode: str = "nearest",
    constant_value: float = 0.0,
    base_axis: int = 1,
    seed: int = -1,
) -> np.ndarray:
    if any(shifts or ()):
        raise ValueError("only a shift of 0 is not random")
    return x


def moved(times: int, mode: str, far: bool = False, **more) -> Case:
    most = 9 if far else 2
    axes = [*stay(times), sources(3, 3, mode, 1), sources(5, 5, mode, most)]
    args = {"shifts": (1, most), "border_mode": mode, "constant_value": -2.0}
    name = f"{mode}, far" if far else mode
    return Case(
        inputs=[repeated(times, 3, 5)], args=args, check=shows(axes, 1, -2.0), differentiable=False, name=name, **more
    )


X = (2, 3, 4)
GRAD = {"oracle_grad": False, "reason": "NNabla draws anew in graphs of gradients, or fails"}
NO = {"differentiable": False}
CASES = [
    Case(inputs=[X], name="default is none", **GRAD, reshaped=[(3, 2)]),
    Case(inputs=[X], args={"shifts": (0, 0), "border_mode": "reflect"}, name="none", **GRAD),
    *[moved(200, mode) for mode in ("nearest", "constant", "reflect")],
    *[moved(20, mode, far=True) for mode in ("nearest", "constant")],
    moved(20, "reflect", far=True, oracle=False, reason="NNabla mirrors wrongly what moves farther than the size"),
    Case(
        inputs=[np.arange(12.0).reshape(3, 4)],
        args={"shifts": (1, 1), "border_mode": "constant"},
        check=shows([sources(3, 3, "constant", 1), sources(4, 4, "constant", 1)], 1),
        **NO,
        name="samples",
    ),
    Case(
        inputs=[np.arange(12.0).reshape(3, 4)],
        args={"shifts": (1, 2), "base_axis": 0},
        check=shows([sources(3, 3, "nearest", 1), sources(4, 4, "nearest", 2)], 0),
        **NO,
        name="one sample",
    ),
    Case(
        inputs=[repeated(40, 9)],
        call=lambda F, x: [F.random_shift(x, (5,), seed=s) for s in (3, 3, 4)],
        check=same,
        **NO,
        name="a seed repeats",
    ),
    Case(
        inputs=[(0, 3, 4)],
        args={"shifts": (2, 2)},
        check=lambda y, x: None,
        **NO,
        oracle=False,
        reason="NNabla dies",
        name="empty",
    ),
]
LOOSE = {"oracle": False, "reason": "NNabla takes it"}
ERRORS = [
    Error(inputs=[X], args={"shifts": (1, 1, 1, 1)}, match="argument 'shifts'", name="more than axes", **LOOSE),
    Error(inputs=[X], args={"shifts": (-2,)}, match="argument 'shifts'", name="negative", **LOOSE),
    Error(inputs=[X], args={"shifts": (2**40,)}, match="argument 'shifts'", name="huge", **LOOSE),
    Error(inputs=[X], args={"border_mode": "zero"}, match="argument 'border_mode'", name="border_mode", **LOOSE),
    Error(inputs=[X], args={"base_axis": 3}, match="argument 'base_axis'", name="base_axis"),
    Error(inputs=[()], match="argument 'base_axis'", name="0-d"),
]
