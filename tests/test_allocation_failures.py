"""Each allocation of a training step is refused once, and of kernels that need much memory: a MemoryError, after which
graph, parameters and solver are as they should be.
"""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from graph_helpers import leaf
from nnrs import _core

pytestmark = pytest.mark.host


def network(x, t):
    h = PF.convolution(x, 8, (3, 3), pad=(1, 1), name="c1")
    h = F.max_pooling(F.relu(PF.batch_normalization(h, name="b1")), (2, 2))
    h = PF.convolution(h, 8, (3, 3), group=2, name="c2").apply(recompute=True)
    h = F.layer_normalization(F.tanh(h), leaf(np.ones((1, 8, 1, 4))), leaf(np.ones((1, 8, 1, 4))), batch_axis=(0, 2))
    h = F.average_pooling(F.swish(h), (2, 2))
    h = F.concatenate(h, F.sum(h, axis=1, keepdims=True), axis=1)
    h = F.prelu(PF.affine(h, 16, name="a1"), nn.parameter.get_parameter_or_create("slope", (16,)))
    h = F.gather(h, nn.Variable.from_numpy_array(np.arange(8)), axis=1)
    return F.mean(F.softmax_cross_entropy(PF.affine(h, 10, name="a2"), t))


class Step:
    """A step of training, and what it should make."""

    def __init__(self):
        g = np.random.RandomState(0)
        nn.random.prng = np.random.RandomState(1)
        nn.clear_parameters()
        self.x, self.t = nn.Variable((4, 3, 12, 12)), nn.Variable((4, 1))
        self.loss = network(self.x, self.t)
        self.batch = g.randn(4, 3, 12, 12), g.randint(0, 10, (4, 1))
        self.solver = S.Adam(0.01)
        self.solver.set_parameters(nn.get_parameters())

    def run(self):
        self.x.d, self.t.d = self.batch
        self.loss.forward(clear_no_need_grad=True)
        self.solver.zero_grad()
        self.loss.backward(clear_buffer=True)
        self.solver.update()

    def gradients(self):
        """Without an update."""
        self.x.d, self.t.d = self.batch
        self.loss.forward(clear_no_need_grad=True)
        self.solver.zero_grad()
        self.loss.backward(clear_buffer=True)
        return [self.loss.d.copy(), *(p.g.copy() for p in nn.get_parameters().values())]


def is_refused(n, f) -> bool:
    """Runs `f`, with the allocation after `n` refused: whether there was one. Then `f` raised a MemoryError."""
    _core.memory_refuse_after(n)
    try:
        f()
    except MemoryError as e:
        assert _core.memory_refuse_after(None), e
        return True
    finally:
        refused = _core.memory_refuse_after(None)
    assert not refused, f"allocation {n} was refused, and there was no error"
    return False


@pytest.mark.parametrize("fresh", [True, False], ids=["first step", "later step"])
def test_each_allocation_of_a_step(fresh):
    want = None
    for n in range(2000):
        step = Step()
        if not fresh:
            step.run()
        _core.clear_memory_cache()
        before = {k: p.d.copy() for k, p in nn.get_parameters(grad_only=False).items()}
        refused = is_refused(n, step.gradients)
        if refused:
            for k, p in nn.get_parameters().items():
                assert np.array_equal(p.d, before[k]), k
        running = [p for k, p in nn.get_parameters(grad_only=False).items() if k.split("/")[-1] in ("mean", "var")]
        got = step.gradients()
        if want is None:
            reference = Step()
            if not fresh:
                reference.run()
            want = reference.gradients()
        for a, b in zip(got, want, strict=True):
            assert a.tobytes() == b.tobytes(), f"after allocation {n} was refused"
        assert all(np.isfinite(p.d).all() for p in running)
        if not refused:
            break
    assert 30 < n < 1999


def test_each_allocation_of_an_update():
    for n in range(500):
        step = Step()
        step.gradients()
        parameters = nn.get_parameters()
        before = {k: p.d.copy() for k, p in parameters.items()}
        refused = is_refused(n, step.solver.update)
        after = {k: p.d.copy() for k, p in parameters.items()}
        if not refused:
            break
        assert all(np.array_equal(before[k], after[k]) for k in before), f"allocation {n} was refused in the middle"
    assert 0 < n < 499


def large(*shape: int) -> nn.Variable:
    return leaf(np.random.RandomState(2).rand(*shape) + 0.5)


INDICES = np.arange(2**19)[None]

# What needs more than two MiB to work in, or memory for each group of rows.
LARGE = {
    "layer normalization": lambda: F.layer_normalization(large(8, 64, 2048), None, None, batch_axis=1),
    "batch normalization": lambda: F.batch_normalization(
        large(16, 64, 1024), None, None, leaf(np.zeros((16, 1, 1024))), leaf(np.ones((16, 1, 1024))), axes=[0, 2]
    ),
    "batch normalization of short rows": lambda: F.batch_normalization(
        large(128, 32), None, None, leaf(np.zeros((128, 1))), leaf(np.ones((128, 1))), axes=[0]
    ),
    "long convolution": lambda: F.convolution(large(1, 4, 200_000), large(4, 4, 5), pad=(2,)),
    "mean": lambda: F.mean(large(2, 1_000_000), axis=0),
    "sum of a short axis": lambda: F.sum(large(64, 20_000), axis=0),
    "prod": lambda: F.prod(large(2, 600_000), axis=1),
    "norm": lambda: F.norm(large(4, 600_000), p=3, axis=1),
    "pooling": lambda: F.max_pooling(large(1, 1, 600_000), (1, 3), stride=(1, 1), pad=(0, 1)),
    "gather": lambda: F.gather(large(2**19), leaf(INDICES[0], need_grad=False), axis=0),
    "gather_nd": lambda: F.gather_nd(large(2**19), leaf(INDICES, need_grad=False)),
    "scatter_nd": lambda: F.scatter_nd(large(2**19), leaf(INDICES, need_grad=False), [2**19]),
    "pad": lambda: F.pad(large(600_000), (3, 3), "reflect"),
    "matmul": lambda: F.affine(large(600, 700), large(700, 800)),
}


@pytest.mark.parametrize("name", LARGE)
def test_kernels_that_need_much_memory(name):
    y = LARGE[name]()
    loss = F.sum(F.sin(y))
    leaves = [v for v in y.parent.inputs if v.need_grad]

    def run():
        for v in leaves:
            v.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        return [loss.d.copy(), *(v.g.copy() for v in leaves)]

    want = run()
    for n in range(200):
        _core.clear_memory_cache()
        if not is_refused(n, run):
            break
        for a, b in zip(run(), want, strict=True):
            assert a.tobytes() == b.tobytes(), f"after allocation {n} was refused"
    assert 0 < n < 199
