"""`random_crop`: a part of each sample, from another place."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error
from moved_samples import repeated, same, shows, sources, stay


def reference(x: np.ndarray, shape: tuple[int, ...] | None = None, base_axis: int = 1, seed: int = -1) -> np.ndarray:
    if shape and tuple(shape) != x.shape[-len(shape) :]:
        raise ValueError("only a part that is all of x is not random")
    return x


X = (2, 3, 4)
GRAD = {"oracle_grad": False, "reason": "NNabla draws anew in graphs of gradients, or fails"}
NO = {"differentiable": False}
CASES = [
    Case(inputs=[X], name="default is all", **GRAD),
    Case(inputs=[X], name="another shape", reshaped=[(3, 2)], oracle=False, reason="NNabla dies"),
    Case(inputs=[X], args={"shape": ()}, name="no sizes are all, too", **GRAD),
    Case(inputs=[X], args={"shape": (3, 4), "base_axis": 0}, name="all", **GRAD),
    Case(
        inputs=[repeated(200, 4, 5)],
        args={"shape": (3, 3)},
        check=shows([*stay(200), sources(4, 3, "crop"), sources(5, 3, "crop")], 1),
        **NO,
        name="places",
    ),
    Case(
        inputs=[repeated(3, 2, 5)],
        args={"shape": (4,), "base_axis": -1},
        check=shows([*stay(3, 2), sources(5, 4, "crop")], 2),
        **NO,
        name="two axes of samples",
    ),
    Case(
        inputs=[np.arange(12.0).reshape(3, 4)],
        args={"shape": (2, 3)},
        check=shows([sources(3, 2, "crop"), sources(4, 3, "crop")], 1),
        **NO,
        name="samples are left out",
    ),
    Case(
        inputs=[np.arange(12.0).reshape(3, 4)],
        args={"shape": (2, 3), "base_axis": 0},
        check=shows([sources(3, 2, "crop"), sources(4, 3, "crop")], 0),
        **NO,
        name="one sample",
    ),
    Case(
        inputs=[repeated(40, 9)],
        call=lambda F, x: [F.random_crop(x, (2,), seed=s) for s in (3, 3, 4)],
        check=same,
        **NO,
        name="a seed repeats",
    ),
    Case(inputs=[[[np.nan, np.nan, np.nan]]], args={"shape": (2,)}, check=lambda y, x: None, **NO, name="NaN"),
    Case(
        inputs=[(0, 3, 4)],
        args={"shape": (2, 2)},
        check=lambda y, x: None,
        **NO,
        oracle=False,
        reason="NNabla dies",
        name="empty",
    ),
]
ERRORS = [
    Error(inputs=[X], args={"shape": (3, 5)}, match="argument 'shape'", name="larger than x"),
    Error(
        inputs=[X],
        args={"shape": (1, 2, 3, 4)},
        match="argument 'shape'",
        name="more axes than x",
        oracle=False,
        reason="NNabla dies",
    ),
    Error(inputs=[X], args={"shape": (-1,)}, match="argument 'shape'", name="negative", oracle=False, reason="it dies"),
    Error(inputs=[X], args={"base_axis": 3}, match="argument 'base_axis'", name="base_axis"),
    Error(inputs=[()], match="argument 'base_axis'", name="0-d"),
]
