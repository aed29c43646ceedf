"""DynamicLossScalingUpdater: the calls it makes, and its scale, are NNabla 1.39's (asked with the same stand-ins)."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.solvers as S
from backend import BACKEND
from nnrs.experimental.mixed_precision_training import DynamicLossScalingUpdater
from nnrs.ext_utils import get_extension_context


class Recorder:
    """A loss, a solver and a communicator that note what is asked of them; `bad` says which gradients overflow."""

    def __init__(self, bad=()):
        self.log, self.bad = [], list(bad)

    def forward(self, **kw):
        self.log.append(("forward", kw))

    def backward(self, grad, **kw):
        self.log.append(("backward", grad, kw))

    def check_inf_or_nan_grad(self):
        return bool(self.bad.pop(0)) if self.bad else False

    def scale_grad(self, v):
        self.log.append(("scale", v))

    def weight_decay(self, v):
        self.log.append(("decay", v))

    def zero_grad(self):
        self.log.append("zero")

    def update(self):
        self.log.append("update")

    def feed(self):
        self.log.append("feed")

    def all_reduce(self, grads, **kw):
        self.log.append(("reduce", grads, kw))


def scales(bad, updates, **kw):
    r = Recorder(bad)
    u = DynamicLossScalingUpdater(r, r, r.feed, **kw)
    found = []
    for _ in range(updates):
        u.update()
        found.append(u.scale)
    return r.log, found


def run(scale, clear=True):
    return [("forward", {"clear_no_need_grad": clear}), ("backward", scale, {"clear_buffer": clear})]


def test_the_calls_of_an_update():
    log, _ = scales([], 1)
    assert log == ["zero", "feed", *run(8.0), ("scale", 0.125), "update"]
    log, _ = scales([1], 1, accum_grad=2, weight_decay=0.1)
    twice = ["zero", *2 * ["feed", *run(8.0)], "zero", *2 * ["feed", *run(4.0)]]
    assert log == [*twice, ("scale", 0.25), ("decay", 0.1), "update"]


def test_gradients_are_exchanged():
    r = Recorder()
    DynamicLossScalingUpdater(r, r, r.feed, comm=r, grads=[1, 2]).update()
    assert ("reduce", [1, 2], {"division": False, "inplace": False}) in r.log


@pytest.mark.parametrize(
    "bad, updates, arguments, expected",
    [
        ([], 8, {"N": 2}, [8, 8, 8, 16, 16, 16, 32, 32]),
        ([0, 1, 1, 0], 5, {"N": 1, "scaling_factor": 4.0, "scale": 2.0}, [2, 0.125, 0.125, 0.5, 0.5]),
        ([1] * 300, 2, {"clear_buffer": False}, [8 * 2.0**-101, 8 * 2.0**-202]),
    ],
)
def test_the_scale_is_nnablas(bad, updates, arguments, expected):
    log, found = scales(bad, updates, **arguments)
    assert found == expected
    assert log.count("update") == (0 if len(bad) == 300 else updates)


def test_half_precision_learns_with_gradients_below_its_range():
    """A gradient of 2^-26 is zero in half; scaled by 2^10 it is not."""
    with nn.context_scope(get_extension_context(BACKEND, type_config="half")):
        w = nn.Variable.from_numpy_array(np.full(4, 2.0, np.float32), need_grad=True)
        loss = F.sum(w * 2.0**-13) * 2.0**-13
    solver = S.Sgd(2.0**20)
    solver.set_parameters({"w": w})
    updater = DynamicLossScalingUpdater(solver, loss, scale=2.0**30, scaling_factor=2.0**10)
    updater.update()
    assert updater.scale == 2.0**20  # 2^30 and its products overflow
    np.testing.assert_allclose(w.d.astype(np.float64), 2.0 - 2.0**-6)
