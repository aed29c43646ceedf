"""Random numbers in captured runs (CUDA graphs), and training steps that do not wait for the GPU.

As tests/test_gpu.py: needs a GPU, or NNRS_CUDA=emulate in a build with the feature `emulate`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from gpu_helpers import DEVICES, cpu, gpu, graphs, needs_gpu, numbers, replays, variable, works_on_gpu  # noqa: F401 (a fixture)
from nnrs.experimental.mixed_precision_training import DynamicLossScalingUpdater
from nnrs.ext import cuda

pytestmark = [needs_gpu, pytest.mark.usefixtures("works_on_gpu")]

Array = np.ndarray
Between = Callable[[int, nn.Variable], None]


def noisy_net(x: nn.Variable, t: nn.Variable, p: float = 0.5) -> tuple[nn.Variable, nn.Variable]:
    h = F.tanh(PF.affine(x, 8, name="a") + F.randn(0, 0.1, (16, 8)))
    h = F.dropout(PF.batch_normalization(h, name="bn"), p)
    h = h + 0.01 * F.rand(-1, 1, (16, 8), seed=5)
    return F.sum(F.pow_scalar(PF.affine(F.dropout(h, 0.2, seed=9), 1, name="b") - t, 2.0)), h


def nothing(k: int, x: nn.Variable) -> None:
    pass


def train_noisy(
    context: nn.Context, between: Between = nothing, recompute: bool = False, steps: int = 12
) -> tuple[list[Array], nn.Variable]:
    """Losses and a look at random values, with what `between` does between the steps."""
    nn.clear_parameters()
    nn.random.prng = np.random.RandomState(3)
    nn.seed(11)
    with nn.context_scope(context), nn.recompute(recompute):
        x, t = nn.Variable((16, 4)), nn.Variable((16, 1))
        loss, h = noisy_net(x, t)
        h.persistent = not recompute
    s = S.Adam(0.01)
    s.set_parameters(nn.get_parameters())
    seen = []
    for k in range(steps):
        x.d, t.d = numbers(16, 4, seed=k), numbers(16, 1, seed=100 + k)
        s.zero_grad()
        loss.forward(clear_no_need_grad=True)
        between(k, x)
        loss.backward(clear_buffer=True)
        s.update()
        seen += [loss.d.copy()] + [v.g.copy() for v in nn.get_parameters().values()]
        between(k + 100, x)
    return seen, loss


def is_replayed(y: nn.Variable, plans: int | None = None) -> bool:
    counts = replays(y)
    return all(n > 0 for n in counts) and len(counts) == (plans or len(counts))


def reseed(k: int, x: nn.Variable) -> None:
    if k in (5, 107):
        nn.seed(k)


def evaluate(k: int, x: nn.Variable) -> None:
    """Forward runs of another graph with the global stream's numbers."""
    if k % 3 == 0:
        y = F.dropout(x, 0.3) * 2
        y.forward()


def switch(k: int, x: nn.Variable) -> None:
    if k in (6, 109):
        cuda.set_graphs(False)
    if k in (107, 10):
        cuda.set_graphs(True)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("between", [nothing, reseed, evaluate, switch])
def test_random_numbers_in_captured_runs_are_those_of_other_runs(between: Between, recompute: bool) -> None:
    with graphs(True):
        on, loss = train_noisy(gpu(), between, recompute)
        assert is_replayed(loss, 2), cuda.graphs(loss)
    with graphs(False):
        off, _ = train_noisy(gpu(), nothing if between is switch else between, recompute)
    assert all(np.array_equal(a, b) for a, b in zip(on, off, strict=True))
    if between is not switch:
        there, _ = train_noisy(cpu(), between, recompute)
        for a, b in zip(on, there, strict=True):
            np.testing.assert_allclose(a, b, rtol=5e-3, atol=1e-3)


def draws(make: Callable[[], nn.Variable], runs: int = 10, seed_at: int = 6) -> tuple[list[Array], nn.Variable]:
    nn.seed(3)
    y = make()
    out = []
    for k in range(runs):
        if k == seed_at:
            nn.seed(4)
        y.forward()
        out.append(y.d.copy())
    return out, y


@pytest.mark.parametrize(
    "make",
    [
        lambda: F.rand(-2, 3, (70, 33)),
        lambda: F.rand(0, 1, (70, 33), seed=7),
        lambda: F.randint(-5, 99, (1000,)),
        lambda: F.dropout(variable(np.ones(1000)), 0.5) + 0 * F.rand(shape=(1000,)),
        lambda: F.dropout(variable(np.ones(1000)), 0.5, seed=7),
        lambda: F.rand_binomial(100, 0.3, (500,)),
        lambda: F.random_choice(variable(np.arange(300)), variable(np.ones(300)), (40,)),
        lambda: F.random_choice(variable(np.arange(300)), variable(np.ones(300)), (40,), False, seed=7),
        lambda: F.random_crop(variable(numbers(4, 3, 20)), (2, 9)),
        lambda: F.random_flip(variable(numbers(20, 3, 5)), (1, 2)),
        lambda: F.random_shift(variable(numbers(4, 30, 5)), (9, 2), "reflect"),
        lambda: F.random_shift(variable(numbers(4, 30, 5)), (1, 9, 2), "constant", seed=7),
        lambda: F.random_erase(variable(numbers(4, 3, 8, 8)), 1.0, n=2),
        lambda: F.random_erase(variable(numbers(4, 8, 8, 3)), 1.0, share=False, channel_last=True),
    ],
)
def test_captured_draws_are_those_of_the_cpu_to_the_bit(make: Callable[[], nn.Variable]) -> None:
    on_gpu, y = draws(make)
    assert is_replayed(y), cuda.graphs(y)
    with nn.context_scope(cpu()):
        on_cpu, _ = draws(make)
    assert all(np.array_equal(a, b) for a, b in zip(on_gpu, on_cpu, strict=True))
    assert len({a.tobytes() for a in on_gpu}) == 10


@pytest.mark.parametrize(
    "make",
    [
        lambda: F.randn(1, 2, (70, 33)),
        lambda: F.rand_beta(0.3, 0.6, (70, 33)),
        lambda: F.rand_gamma(0.3, 2, (70, 33)),
        lambda: F.image_augmentation(
            variable(numbers(4, 3, 8, 8)), (6, 7), angle=0.5, distortion=0.1, contrast=2.0, brightness=0.5, noise=0.1
        ),
    ],
)
def test_captured_normal_numbers_are_those_of_the_cpu(make: Callable[[], nn.Variable]) -> None:
    on_gpu, y = draws(make)
    assert is_replayed(y)
    with nn.context_scope(cpu()):
        on_cpu, _ = draws(make)
    for a, b in zip(on_gpu, on_cpu, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_backward_drops_what_the_last_forward_dropped() -> None:
    """Also when forward runs twice before it, or another plan runs the function."""
    x = variable(np.ones(1000), need_grad=True)
    h = F.dropout(x, 0.5)
    y, z = F.sum(h * 3.0), F.sum(h * 5.0)
    h.persistent = True
    for k in range(24):
        root = (y, z)[k // 2 % 2]
        for _ in range(1 + k % 3):
            (y, z)[k // 4 % 2].forward()
        root.forward()
        x.g = 0
        root.backward()
        np.testing.assert_array_equal(x.g, h.d * (3.0 if root is y else 5.0))
    assert is_replayed(y) and is_replayed(z), (cuda.graphs(y), cuda.graphs(z))


def test_gradients_of_dropout_as_a_graph_see_the_same_mask() -> None:
    x = variable(np.ones(1000), need_grad=True)
    h = F.dropout(x, 0.5)
    h.persistent = True
    (g,) = nn.grad([F.sum(h**3)], [x])
    masks = set()
    for _ in range(8):
        g.forward()
        np.testing.assert_allclose(g.d, 3 * h.d**2 * 2 * (h.d != 0), rtol=1e-6)
        masks.add(h.d.tobytes())
    assert len(masks) == 8 and is_replayed(g), cuda.graphs(g)


def test_more_draws_than_are_sent_together() -> None:
    nn.seed(8)
    y = F.add_n(*[F.rand(shape=(3,)) for _ in range(600)])
    on_gpu = []
    for _ in range(5):
        y.forward()
        on_gpu.append(y.d.copy())
    assert is_replayed(y), cuda.graphs(y)
    nn.seed(8)
    with nn.context_scope(cpu()):
        z = F.add_n(*[F.rand(shape=(3,)) for _ in range(600)])
    for values in on_gpu:
        z.forward()
        np.testing.assert_allclose(values, z.d, rtol=1e-5)


def test_random_functions_in_threads() -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        with nn.context_scope(gpu()):
            y = F.dropout(variable(np.ones(300)), 0.5, seed=seed)
            z = F.rand(shape=(300,), seed=seed)
        with nn.context_scope(cpu()):
            a = F.dropout(variable(np.ones(300)), 0.5, seed=seed)
            b = F.rand(shape=(300,), seed=seed)
        for _ in range(12):
            nn.forward_all([y, z])
            nn.forward_all([a, b])
            if not np.array_equal(y.d, a.d) or not np.array_equal(z.d, b.d):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert not wrong


def test_a_training_step_never_waits_for_the_gpu() -> None:
    nn.clear_parameters()
    x, t = nn.Variable((16, 4)), nn.Variable((16, 1))
    loss, _ = noisy_net(x, t)
    s = S.Adam(0.01)
    s.set_parameters(nn.get_parameters())
    batches = [(numbers(16, 4, seed=k), numbers(16, 1, seed=k)) for k in range(4)]

    def step(k: int) -> None:
        x.d, t.d = batches[k % 4]
        s.set_learning_rate(0.01 / (1 + k))
        s.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        s.weight_decay(1e-4)
        s.update()

    for k in range(8):
        step(k)
    waits = cuda.host_waits()
    for k in range(8, 16):
        step(k)
    assert cuda.host_waits() == waits
    assert is_replayed(loss, 2), cuda.graphs(loss)
    assert float(loss.d) > 0 and cuda.host_waits() == waits + 1


def test_loss_scaling_waits_once_for_each_update() -> None:
    """For whether a gradient overflowed: the step is done again then."""
    nn.clear_parameters()
    with nn.context_scope(gpu(type_config="half")):
        x, t = nn.Variable((16, 4)), nn.Variable((16, 1))
        loss, _ = noisy_net(x, t)
    s = S.Adam(0.01)
    s.set_parameters(nn.get_parameters())
    batches = [(numbers(16, 4, seed=k), numbers(16, 1, seed=k)) for k in range(4)]
    turn = iter(range(1000))

    def feed() -> None:
        x.d, t.d = batches[next(turn) % 4]

    updater = DynamicLossScalingUpdater(s, loss, feed, scale=8.0)
    for _ in range(10):
        updater.update()
    waits, updates, fed = cuda.host_waits(), 10, next(turn)
    for _ in range(updates):
        updater.update()
    attempts = next(turn) - fed - 1
    assert cuda.host_waits() == waits + attempts
    assert is_replayed(loss, 2), cuda.graphs(loss)


def test_what_functions_keep_is_that_of_the_last_run() -> None:
    """Two plans of one graph, one of which keeps nothing for the backward pass."""
    x = variable(numbers(6, 5), need_grad=True)
    y = F.sum(F.max(x, axis=1) * 3.0)

    def forward(k: int, **flags: bool) -> None:
        x.d = numbers(6, 5, seed=k)
        y.forward(**flags)

    for k in range(8):
        forward(k)
        y.backward(clear_buffer=True)
    for k in range(8):
        forward(k, clear_buffer=True)
    assert is_replayed(y), cuda.graphs(y)
    for k in range(4):
        forward(k)
        forward(k + 50, clear_buffer=True)
        x.g = 0
        y.backward()
        np.testing.assert_array_equal(x.g, 3.0 * (x.d == x.d.max(axis=1, keepdims=True)))


def test_memory_that_others_share_is_left_alone() -> None:
    x = variable(numbers(8, 8), need_grad=True)
    y = F.exp(F.affine(x, x) / 100.0)
    for _ in range(8):
        y.forward()
    assert is_replayed(y), cuda.graphs(y)
    with nn.auto_forward():
        z = F.reshape(y, (64,))
    expected = z.d.copy()
    for k in range(6):
        x.d = numbers(8, 8, seed=k)
        y.forward()
        np.testing.assert_allclose(y.d, np.exp(x.d @ x.d / 100), rtol=1e-5)
        np.testing.assert_array_equal(z.d, expected)


def test_outputs_that_take_over_memory_are_captured() -> None:
    x = variable(numbers(8, 8), need_grad=True)
    h = F.reshape(F.tanh(x), (64,))
    y = F.sum(F.tanh(F.affine(F.reshape(h, (8, 8)), x)) ** 2)
    h.persistent = True
    for k in range(10):
        x.d = numbers(8, 8, seed=k) / 4
        x.g = 0
        y.forward()
        y.backward()
        t = np.tanh(x.d)
        np.testing.assert_allclose(h.d, t.ravel(), rtol=1e-5)
        np.testing.assert_allclose(y.d, (np.tanh(t @ x.d) ** 2).sum(), rtol=1e-4)
        o = np.tanh(t @ x.d)
        back = 2 * o * (1 - o**2)
        np.testing.assert_allclose(x.g, t.T @ back + back @ x.d.T * (1 - t**2), rtol=1e-3, atol=1e-5)
    assert is_replayed(y, 2), cuda.graphs(y)


@pytest.mark.skipif(DEVICES < 2, reason="one device")
def test_random_functions_of_two_devices() -> None:
    def graph(*contexts: nn.Context) -> nn.Variable:
        with nn.context_scope(contexts[0]):
            a = F.rand(shape=(300,))
        with nn.context_scope(contexts[1]):
            return F.dropout(a, 0.5)

    results: list[list[Array]] = []
    for contexts in ((gpu(), gpu(device_id="1")), (gpu(device_id="1"),) * 2, (cpu(),) * 2):
        nn.seed(2)
        y = graph(*contexts)
        results.append([])
        for _ in range(6):
            y.forward()
            results[-1].append(y.d.copy())
    for values in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], values, strict=True))
