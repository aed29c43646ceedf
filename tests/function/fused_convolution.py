"""`fused_convolution`: padding, convolution, batch normalization, sum and activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from function import convolution
from function.case import Case, Error, normal, positive

ACTIVATIONS = {
    "identity": lambda y: y,
    "": lambda y: y,
    "relu": lambda y: np.maximum(y, 0),
    "sigmoid": lambda y: 1 / (1 + np.exp(-y)),
    "tanh": np.tanh,
    "leaky_relu": lambda y, alpha: np.where(y > 0, y, alpha * y),
    "elu": lambda y, alpha: np.where(y > 0, y, alpha * np.expm1(np.minimum(y, 0))),
    "relu6": lambda y: np.clip(y, 0, 6),
}
MODES = {"constant": "constant", "reflect": "reflect", "repeat": "edge"}


def reference(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    beta: np.ndarray | None = None,
    gamma: np.ndarray | None = None,
    mean: np.ndarray | None = None,
    variance: np.ndarray | None = None,
    z: np.ndarray | None = None,
    base_axis: int = 1,
    pad: Sequence[int] | None = None,
    channel_last: bool = False,
    eps: float = 1e-5,
    decay_rate: float = 0.9,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    nonlinearity_args: Sequence[float] = (),
    pad_mode: str = "constant",
    constant_value: float = 0,
    **more: Any,
) -> np.ndarray:
    if pad is not None:
        if len(pad) == x.ndim - base_axis - 1:
            widths = [(p, p) for p in pad]
            widths = [(0, 0)] * base_axis + ([*widths, (0, 0)] if channel_last else [(0, 0), *widths])
        else:
            widths = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))
        value = {"constant_values": constant_value} if pad_mode == "constant" else {}
        x = np.pad(x, widths, MODES[pad_mode], **value)
    y = convolution.reference(x, weight, bias, base_axis=base_axis, channel_last=channel_last, **more)
    if beta is not None:
        axes = tuple(i for i in range(y.ndim) if i != (y.ndim - 1 if channel_last else base_axis))
        m, v = (y.mean(axes, keepdims=True), y.var(axes, keepdims=True)) if batch_stat else (mean, variance)
        y = (y - m) / np.sqrt(v + eps) * gamma + beta
    y = y if z is None else y + z
    return ACTIVATIONS[nonlinearity](y, *nonlinearity_args)


HALF = {"half": 5e-2, "bfloat16": 4e-1}
# Asked once: the values and the first gradients are NNabla's, but these do not add to what is there.
SETS = {"tolerance": HALF, "oracle": False, "reason": "NNabla's gradients take the place of those that are there"}
ONCE = {"tolerance": {**HALF, "second": 1e-5}, "oracle_grad": False, "reason": "NNabla has no gradient of the gradient"}
X, W = (2, 2, 4, 3), (2, 2, 2, 2)
SCALES = [(1, 2, 1, 1), positive(1, 2, 1, 1), (1, 2, 1, 1), positive(1, 2, 1, 1)]
CASES = [
    Case(inputs=[X, W], args={"nonlinearity": "identity"}, name="convolution", **ONCE),
    Case(inputs=[X, W, (2,)], args={"nonlinearity": "tanh", "stride": (2, 1)}, name="bias", **ONCE),
    *(
        Case(
            inputs=[X, W, (2,)],
            args={"nonlinearity": name, "nonlinearity_args": [0.3] if name in ("elu", "leaky_relu") else []},
            name=name or "none",
            second=name not in ("relu", "relu6", "leaky_relu", "elu"),
            **(SETS if name in ("elu", "relu6") else ONCE),
        )
        for name in ACTIVATIONS
    ),
    *(
        Case(
            inputs=[X, W, (2,)],
            args={"pad": (1, 2), "pad_mode": mode, "constant_value": 1.5, "nonlinearity": "sigmoid"},
            name=f"pad {mode}",
            **SETS,
        )
        for mode in MODES
    ),
    Case(inputs=[X, W, (2,)], args={"pad": (1, 2, 0, 1), "nonlinearity": "tanh"}, name="one-sided", **SETS),
    Case(
        inputs=[(1, 4, 3, 2), (2, 2, 2, 2)],
        args={"pad": (1, 0), "pad_mode": "repeat", "channel_last": True, "nonlinearity": "tanh"},
        name="channels last",
        tolerance=HALF,
        oracle=False,
        reason="NNabla pads the channels",
    ),
    Case(
        inputs=[X, W, None, *SCALES],
        args={"batch_stat": False, "nonlinearity": "tanh"},
        name="running statistics",
        need_grad=[True, True, False, True, True, False, False],
        **SETS,
    ),
    Case(
        inputs=[X, W, None, *SCALES, (2, 2, 3, 2)],
        args={"nonlinearity": "sigmoid"},
        name="normalized and added",
        need_grad=[True, True, False, True, True, False, False, True],
        mutates=True,
        tolerance={**HALF, "second": 3e-2},
        oracle_grad=False,
        reason="NNabla has no gradient of the gradient",
    ),
    Case(
        inputs=[X, W, None, None, None, None, None, normal(2, 2, 3, 2)],
        args={"nonlinearity": "tanh"},
        name="added",
        **ONCE,
    ),
]
ERRORS = [
    Error(inputs=[X, W, (2,), *SCALES], match="argument 'bias'", name="bias and normalization"),
    Error(inputs=[X, W, None, *SCALES[:2]], match="argument 'mean'", name="no statistics"),
    Error(inputs=[X, W], args={"nonlinearity": "mish"}, match="argument 'nonlinearity'"),
    Error(inputs=[X, W], args={"nonlinearity": "elu"}, match="argument 'nonlinearity_args'"),
    Error(inputs=[X, W], args={"pad": (1, 1), "pad_mode": "wrap"}, match="argument 'pad_mode'", name="mode"),
    Error(inputs=[X, W], args={"pad": (1,), "pad_mode": "repeat"}, match="argument 'pad'", name="pad"),
    Error(
        inputs=[X, W, None, None, None, None, None, (2, 2, 2, 2)], match="argument 'z'", oracle=False, reason="no error"
    ),
]
