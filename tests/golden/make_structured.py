"""Asks NNabla what case files cannot say and writes structured.json, which nnrs must agree with.

    python tests/golden/make_structured.py     # with nnabla 1.39 installed

- `indexing`: `x[index]` for x = arange(12) as (3, 4): shape, values and the chain of nodes, or the error's type.
- `setting`: `z[index] = value` for z = zeros (3, 4): what z holds afterwards.
- `batch_normalization`: running statistics after 1, 2, 3 forwards, and the inputs.
- `sizes`: output shapes of convolution and pooling for many arguments.
- `slice_arguments`: the resolved arguments that the node of `F.slice` holds.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import nnabla as nn
import nnabla.functions as F
import numpy as np

INDICES = """1; -1; 1:3; 0:2, 1:3; 1:3, ..., None; None; ...; :, 1; :, ::2; ::-1; ::-1, ::-2; :, -2:
1, 2; -1, -1; 2:1; 0, ...; ..., 0; -1, None, 1:; None, 1, None, :2; :, None, 3; [0, 2]
[[0, 1], [2, 0]]; [0, -1]; [0, 2], [1, 3]; None, [0, 2], None; True; 5; -5; :, :, 0
..., ...; 1.5; 'a'; [7]; ::0"""
SETTINGS = ["1", "1:3", "1:3, ::2", "-1, 1:", "..., 0", "[0, 2]", "::-1"]


def variable(values: Any) -> nn.Variable:
    """A variable that holds the values."""
    return nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=True)


def chain(v: nn.Variable) -> list[str]:
    """The names of the nodes above v, first inputs only, the nearest first."""
    names = []
    while v.parent is not None:
        names.append(v.parent.info.type_name)
        v = v.parent.inputs[0]
    return names


def indexed(index: str) -> dict[str, Any]:
    """One entry of `indexing`."""
    x = variable(np.arange(12).reshape(3, 4))
    try:
        y = eval(f"x[{index}]", {"x": x})
        y.forward()
    except Exception as error:
        return {"index": index, "error": type(error).__name__}
    return {"index": index, "shape": list(y.shape), "values": y.d.ravel().tolist(), "nodes": chain(y)}


def assigned(index: str) -> dict[str, Any]:
    """One entry of `setting`: the values 1, 2, ... of the part's shape."""
    shape = eval(f"x[{index}]", {"x": np.zeros((3, 4))}).shape
    value = np.arange(1, np.prod(shape) + 1).reshape(shape)
    z = variable(np.zeros((3, 4)))
    exec(f"z[{index}] = value", {"z": z, "value": variable(value)})
    z.forward()
    return {"index": index, "value": value.tolist(), "result": z.d.tolist(), "nodes": chain(z)}


def running(shape: tuple[int, ...], axis: int, decay_rate: float) -> dict[str, Any]:
    """One entry of `batch_normalization`; x is made of multiples of 1/8."""
    x = ((np.arange(np.prod(shape)) * 37 % 32 - 16) / 8).reshape(shape)
    stat = [n if a == axis else 1 for a, n in enumerate(shape)]
    mean, variance = variable(np.full(stat, 0.5)), variable(np.full(stat, 2.0))
    beta, gamma = variable(np.zeros(stat)), variable(np.ones(stat))
    y = F.batch_normalization(variable(x), beta, gamma, mean, variance, axes=[axis], decay_rate=decay_rate)
    means, variances = [], []
    for _ in range(3):
        y.forward()
        means.append(mean.d.ravel().tolist())
        variances.append(variance.d.ravel().tolist())
    entry = {"x": x.tolist(), "axis": axis, "decay_rate": decay_rate}
    return entry | {"mean": means, "variance": variances, "y": y.d.ravel().tolist()}


def sizes() -> list[dict[str, Any]]:
    """Output sizes along an axis of n elements."""
    found = []
    for n, k, stride, pad in itertools.product((3, 5, 8), (1, 2, 3), (1, 2, 3), (0, 1)):
        x, args = nn.Variable((1, 1, n, n)), {"pad": (pad, pad), "stride": (stride, stride)}
        pooled = [F.max_pooling(x, (k, k), ignore_border=border, **args).shape[-1] for border in (True, False)]
        convolved = [
            F.convolution(x, nn.Variable((1, 1, k, k)), dilation=(d, d), **args).shape[-1]
            for d in (1, 2)
            if d * (k - 1) < n + 2 * pad
        ]
        entry = {"n": n, "kernel": k, "stride": stride, "pad": pad}
        found.append(entry | {"pooling": pooled[0], "pooling_with_border": pooled[1], "convolution": convolved})
    return found


def slice_arguments() -> list[dict[str, Any]]:
    """What F.slice stores for a (3, 4) input."""
    calls: list[list[Any]] = [
        [None, None, None],
        [[0, 1], [2, 3], None],
        [[None, 1], [2, None], [None, 2]],
        [[-2, -3], [3, -1], [1, 1]],
        [[None, None], [None, None], [-1, -1]],
        [[0, 0], [10, 10], [1, 1]],
        [[1], [3], [1]],
    ]
    x = nn.Variable((3, 4))
    return [{"call": call, "arguments": F.slice(x, *call).parent.info.args} for call in calls]


if __name__ == "__main__":
    indices = [index for line in INDICES.splitlines() for index in line.split("; ")]
    golden = {
        "indexing": [indexed(index) for index in indices],
        "setting": [assigned(index) for index in SETTINGS],
        "batch_normalization": [running((4, 3), 1, 0.9), running((2, 3, 2, 2), 1, 0.9), running((3, 2, 4), 2, 0.5)],
        "sizes": sizes(),
        "slice_arguments": slice_arguments(),
    }
    Path(__file__).with_name("structured.json").write_text(json.dumps(golden, indent=None) + os.linesep)
