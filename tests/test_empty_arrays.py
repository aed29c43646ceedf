"""Arrays without elements whose other sizes are huge: work and memory follow the number of elements, and what would
have 2**40 elements or outputs is an error before it starts.

In a process of its own with little memory, whose end says which call never came back.
"""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import backend
import nnrs as nn
import nnrs.functions as F

H = 2**40

# What is made of empty arrays alone: forward and backward are done at once.
EMPTY = {
    "average_pooling": "F.average_pooling(z(0, 1, H, 4), (2, 2))",
    "batch_matmul": "F.batch_matmul(z(H, 0, 3), z(H, 3, 0))",
    "broadcast": "F.broadcast(z(1, 0), (H, 0))",
    "concatenate": "F.concatenate(z(H, 0), z(H, 0), axis=1)",
    "convolution": "F.convolution(z(0, 1, H, 4), z(0, 1, 3, 3))",
    "dropout": "F.dropout(z(H, 0))",
    "flip": "F.flip(z(H, 0))",
    "gather": "F.gather(z(H, 0), z(0, need=False), axis=1)",
    "layer_normalization": "F.layer_normalization(z(H, 0), z(1, 0), z(1, 0))",
    "log_softmax": "F.log_softmax(z(H, 0))",
    "matrix_diag": "F.matrix_diag(z(H, 0))",
    "max_pooling": "F.max_pooling(z(0, 1, H, 4), (2, 2))",
    "pad": "F.pad(z(H, 0), (1, 1, 0, 0))",
    "slice": "z(H, 0)[::2]",
    "softmax": "F.softmax(z(H, 0))",
    "softmax, first axis": "F.softmax(z(H, 0), axis=0)",
    "softmax_cross_entropy": "F.softmax_cross_entropy(z(0, H), z(0, 1, need=False))",
    "stack": "F.stack(z(H, 0), z(H, 0), axis=1)",
    "sum, first axis": "F.sum(z(H, 0), axis=0)",
    "tile": "F.tile(z(0), (H,))",
    "transpose": "F.transpose(z(H, 0, 3), (2, 1, 0))",
    "where": "F.where(z(H, 0), z(H, 0), z(H, 0))",
}

# What would make 2**40 elements or outputs.
TOO_MUCH = {
    "affine": "F.affine(z(H, 0), z(0, 3))",
    "affine, columns": "F.affine(z(0, 3), z(3, H))",
    "batch_matmul": "F.batch_matmul(z(H, 2, 0), z(H, 0, 2))",
    "convolution": "F.convolution(z(0, H, 4, 4), z(H, 1, 3, 3), group=H)",
    "group": "F.convolution(z(1, 2, 4, 4), z(2, 1, 3, 3), group=H)",
    "linspace": "F.linspace(0, 1, H)",
    "norm": "F.norm(z(H, 0), axis=1)",
    "pad": "F.pad(z(0, 4), (H, H, 0, 0))",
    "prelu": "F.prelu(z(0, H), z(H))",
    "scatter_nd": "F.scatter_nd(z(0), z(1, 0, need=False), shape=(H,))",
    "split": "F.split(z(H))",
    "split of nothing": "F.split(z(H, 0))",
    "sum": "F.sum(z(H, 0), axis=1)",
}

SCRIPT = f"""
import nnrs as nn, nnrs.functions as F
from nnrs.ext_utils import get_extension_context
H = {H}
nn.set_default_context(get_extension_context({backend.BACKEND!r}))
def z(*shape, need=True):
    return nn.Variable(shape, need_grad=need)
for name, fits, make in {[(k, True, v) for k, v in EMPTY.items()] + [(k, False, v) for k, v in TOO_MUCH.items()]!r}:
    print(name, end=" ", flush=True)
    try:
        y = eval(make)
        y.forward()
        y.backward()
        found = True
    except (nn.Error, MemoryError):
        found = False
    print("done" if fits is found else "WRONG", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory by RLIMIT_AS")
def test_work_follows_the_number_of_elements():
    limited = (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\n"
        if backend.BACKEND == "cpu"
        else ""
    )
    command = [sys.executable, "-c", limited + SCRIPT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired as e:
        pytest.fail(f"never came back: {(e.stdout or b'').decode().splitlines()[-1]}")
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.endswith(" done")] == [] and done.returncode == 0, done.stderr
    assert len(lines) == len(EMPTY) + len(TOO_MUCH)


@pytest.mark.parametrize(
    "reshape",
    [
        lambda: F.reshape(nn.Variable((2,)), (2**62, 4)),
        lambda: F.reshape(nn.Variable((0,)), (2**32, 2**32)),
        lambda: F.reshape(nn.Variable((2,)), (2**32, 2**32, -1)),
        lambda: nn.Variable((0,)).reshape((2**32, 2**32)),
    ],
)
def test_sizes_whose_product_is_no_number(reshape):
    with pytest.raises(nn.Error, match="reshape"):
        reshape()


def test_the_gradient_of_many_tiles_of_nothing():
    x = nn.Variable((2**31, 0), need_grad=True)
    with pytest.raises(nn.Error, match="reshape.*fits into memory|elements"):
        nn.grad([F.sum(F.tile(x, 2**40))], [x])


INDEXED = {
    "softmax_cross_entropy": lambda t: F.softmax_cross_entropy(nn.Variable((400, 64)), t),
    "categorical_cross_entropy": lambda t: F.categorical_cross_entropy(nn.Variable((400, 64)), t),
    "top_n_error": lambda t: F.top_n_error(nn.Variable((400, 64)), t),
    "embed": lambda t: F.embed(t, nn.Variable((64, 3))),
    "gather": lambda t: F.gather(nn.Variable((64, 3)), t),
}


@pytest.mark.parametrize("name", INDEXED)
def test_labels_that_another_thread_writes(name, switching_often):
    t = nn.Variable.from_numpy_array(np.zeros((400, 1), np.int64))
    y = INDEXED[name](t)
    labels, stop = t.data.data, threading.Event()

    def write():
        while not stop.is_set():
            labels[100] = 10**9
            labels[100] = 0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(300):
            try:
                y.forward()
            except ValueError as e:
                assert "internal error" not in str(e) and "1000000000" in str(e)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    "shape, axes", [((0, 3, 4, 5), [0, 2]), ((2, 0, 4, 5), [0, 2]), ((3, 0, 4), [1]), ((2, 3, 0), [0, 2])]
)
def test_normalization_of_nothing_over_axes_that_are_no_neighbours(shape, axes):
    x = nn.Variable(shape, need_grad=True)
    of_axes = nn.Variable([1 if i in axes else n for i, n in enumerate(shape)], need_grad=True)
    y = F.layer_normalization(x, of_axes, of_axes, batch_axis=axes)
    y.forward()
    y.backward()
    assert y.shape == shape and x.g.shape == shape and not of_axes.g.any()
    own = [nn.Variable([n if i in axes else 1 for i, n in enumerate(shape)], need_grad=True) for _ in range(4)]
    has_statistics = all(n for i, n in enumerate(shape) if i not in axes)
    for batch_stat in [False, True][: 1 + has_statistics]:
        y = F.batch_normalization(x, *own, axes=axes, batch_stat=batch_stat)
        y.forward()
        y.backward()
        assert y.shape == shape and x.g.shape == shape


@pytest.mark.parametrize("shape", [(2, 0, 0), (0, 2, 2), (0, 0, 0)])
@pytest.mark.parametrize("name", ["batch_det", "batch_logdet", "batch_inv", "batch_cholesky"])
def test_matrices_without_elements(name, shape):
    x = nn.Variable(shape, need_grad=True)
    y = getattr(F, name)(x)
    y.forward()
    y.backward(1)
    wanted = {"batch_det": np.linalg.det, "batch_logdet": lambda a: np.linalg.slogdet(a)[1]}.get(name, lambda a: a)
    np.testing.assert_array_equal(y.d, wanted(np.zeros(shape)))
    assert x.g.shape == shape


def test_convolutions_over_no_channels() -> None:
    bias = nn.Variable.from_numpy_array(np.float32([1, 2, 3, 4]))
    y = F.convolution(nn.Variable((1, 0, 8, 8)), nn.Variable((4, 0, 3, 3)), bias, pad=(1, 1))
    y.forward()
    assert np.array_equal(y.d, np.broadcast_to(bias.d.reshape(4, 1, 1), (1, 4, 8, 8)))
    x = nn.Variable((1, 4, 8, 8), need_grad=True)
    x.d, x.g = 1, 7
    y = F.convolution(x, nn.Variable((0, 4, 3, 3)), pad=(1, 1))
    y.forward()
    x.grad.zero()
    y.backward()
    assert not x.g.any()
    y = F.deconvolution(nn.Variable((2, 4, 8, 8)), nn.Variable((4, 0, 3, 3)))
    y.forward()
    assert y.d.shape == (2, 0, 10, 10)
