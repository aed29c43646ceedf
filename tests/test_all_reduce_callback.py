"""Gradients that are added up over processes while backward still computes others; threads stand for processes."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs._communication import communicator
from thread_transport import run_threads


@pytest.fixture(autouse=True)
def fresh():
    yield
    nn.clear_parameters()


def array(*values):
    return nn.NdArray.from_numpy_array(np.float32(values))


def network(rank=0):
    """A loss over this rank's data, its parameters, and their gradients."""
    nn.clear_parameters()
    nn.seed(7)
    x = nn.Variable.from_numpy_array(np.random.default_rng(rank).normal(size=(4, 5)).astype(np.float32))
    h = F.relu(PF.affine(x, 6, name="a"))
    h = PF.affine(h, 6, name="shared")
    h = PF.affine(F.tanh(h), 6, name="shared")
    y = F.mean(F.pow_scalar(h, 2))
    parameters = list(nn.get_parameters().values())
    run(y, parameters, None)
    return y, parameters, [p.g.copy() for p in parameters]


def run(y, parameters, callback):
    for p in parameters:
        p.grad.zero()
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True, communicator_callbacks=callback)


@pytest.mark.parametrize("scale", [1, 0.25])
def test_the_callback_alone_only_scales(scale):
    comm, y, parameters, plain = C.Communicator(), *network()
    run(y, parameters, comm.all_reduce_callback([p.grad for p in parameters], 10, True, scale_grad=scale))
    for p, g in zip(parameters, plain, strict=True):
        np.testing.assert_array_equal(p.g, g * np.float32(scale))


@pytest.mark.parametrize("pack_size", [1, 40, 10**6])
def test_gradients_are_reduced_while_backward_goes_on(pack_size):
    networks = [network(rank) for rank in range(3)]
    total = sum(np.float64(1) * np.concatenate([g.ravel() for g in plain]) for _, _, plain in networks)

    def work(comm):
        y, parameters, _ = networks[comm.rank]
        grads = [p.grad for p in parameters]
        callback = comm.all_reduce_callback(grads, pack_size, division=True, scale_grad=3)
        found = []
        for _ in range(2):  # the same callback, and a new one
            for each in (callback, comm.all_reduce_callback(grads, pack_size, True, scale_grad=3)):
                run(y, parameters, each)
                found.append(np.concatenate([p.g.ravel() for p in parameters]))
        assert all((f == found[0]).all() for f in found)
        return found[0]

    for got in run_threads(3, work):
        np.testing.assert_allclose(got, total, rtol=1e-4, atol=1e-6)


def test_packs_go_as_soon_as_they_are_final(monkeypatch):
    """In the order in which gradients become final, before the run is over; shared ones after their last use."""
    y, parameters, _ = network()
    names = {p.grad: name for name, p in nn.get_parameters().items()}
    sent = []

    class Noted(communicator._PackSender):
        def send(self, pack):
            sent.append([names[g] for g in pack])
            return super().send(pack)

    monkeypatch.setattr(communicator, "_PackSender", Noted)
    callback = C.Communicator().all_reduce_callback([p.grad for p in parameters], 1, scale_grad=2)
    seen = []
    finish = callback.on_finish_function_backward
    callback.on_finish_function_backward = lambda f: (finish(f), seen.append((f.name, len(sent))))
    run(y, parameters, callback)
    assert [pack[0].split("/")[0] for pack in sent] == ["shared", "shared", "a", "a"]
    assert [number for name, number in seen if name == "Affine"] == [0, 2, 4]


def test_gradients_outside_of_the_graph_and_a_run_without_any():
    def work(comm):
        outside, x = array(comm.rank + 1.0), nn.Variable.from_numpy_array([2.0], need_grad=True)
        x.g = 0
        y = F.sum(x * x)
        y.forward()
        y.backward(communicator_callbacks=comm.all_reduce_callback([x.grad, outside], 1))
        assert (x.g[0], outside.data[0]) == (8, 3)
        y = F.sum(nn.Variable.from_numpy_array([2.0]))
        y.forward()
        y.backward(communicator_callbacks=comm.all_reduce_callback([outside], 1))
        return float(outside.data[0])

    assert run_threads(2, work) == [6, 6]


def test_networks_that_differ_are_an_error_for_all():
    def work(comm):
        x = nn.Variable.from_numpy_array([2.0], need_grad=True)
        z = nn.Variable.from_numpy_array([2.0, 1.0], need_grad=True)
        y = F.sum(F.sum(F.exp(x)) * z) if comm.rank else F.sum(F.sum(F.exp(z)) * x)
        y.forward()
        with pytest.raises(ValueError, match="expected the same call on all processes"):
            y.backward(communicator_callbacks=comm.all_reduce_callback([x.grad, z.grad], 1))
        comm.barrier()

    run_threads(2, work)


def test_a_callback_after_a_run_that_failed():
    comm = C.Communicator()
    y, parameters, plain = network()
    callback = comm.all_reduce_callback([p.grad for p in parameters], 1, scale_grad=2)

    def fail(f):
        if f.name == "Tanh":
            raise KeyError("no")

    with pytest.raises(KeyError):
        y.backward(communicator_callbacks=callback, function_post_hook=fail)
    other, parameters, plain = network(1)
    callback._exchange._data = [p.grad for p in parameters]
    run(other, parameters, callback)
    for p, g in zip(parameters, plain, strict=True):
        np.testing.assert_array_equal(p.g, 2 * g)


def test_a_group_reduces_its_own():
    def work(comm):
        comm.new_group(("first", [0, 1]))
        x = nn.Variable.from_numpy_array([comm.rank + 1.0], need_grad=True)
        x.g = 0
        y = F.sum(x * x)
        y.forward()
        y.backward(communicator_callbacks=comm.all_reduce_callback(x.grad, 1, group="first"))
        return float(x.g[0])

    assert run_threads(3, work) == [6, 6, 6]
