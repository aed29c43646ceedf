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
        def send(self, pack, number, count):
            sent.append([names[g] for g in pack])
            super().send(pack, number, count)

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


def two(values, size=2):
    """Leaves with their gradients at zero."""
    made = [nn.Variable.from_numpy_array(np.full(size, v, np.float32), need_grad=True) for v in values]
    for v in made:
        v.grad.zero()
    return made


@pytest.mark.parametrize("pack_size", [1, 1 << 20])
def test_gradients_of_one_shape_in_another_order_are_an_error_for_all(pack_size):
    """They were added up to those of other parameters."""

    def work(comm):
        a, b = two([2, 3])
        first, last = (a, b) if comm.rank else (b, a)
        y = F.sum(F.exp(first) * last)
        y.forward()
        with pytest.raises(ValueError, match="expected the same call on all processes"):
            y.backward(communicator_callbacks=comm.all_reduce_callback([a.grad, b.grad], pack_size))
        for v in (a, b):
            v.grad.zero()
        y.backward()
        comm.all_reduce([a.grad, b.grad])
        return a.g[0], b.g[0]

    expected = (np.exp(2) * 3 + np.exp(3), np.exp(3) * 2 + np.exp(2))  # of e^a b on one, e^b a on the other
    for got in run_threads(2, work):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5000, 40_000])
@pytest.mark.parametrize("where", ["Sum", "Mul2", "Sin"])
def test_a_run_that_fails_on_one_is_an_error_for_all_that_are_left(size, where):
    """What came next was taken for the gradients that did not come."""

    def work(comm):
        a, b = two([comm.rank + 1, 3], size)
        y = F.sum(F.sin(a) * b)
        callback, found = comm.all_reduce_callback([a.grad, b.grad], 1), []

        def fail(f):
            if f.name == where:
                raise KeyError("a bad sample")

        for step in range(4):
            for v in (a, b):
                v.grad.zero()
            y.forward()
            fails = step in (1, 2) and comm.rank == 1
            try:
                y.backward(communicator_callbacks=callback, function_post_hook=fail if fails else None)
                found.append((a.g[0], a.g[-1], b.g[0], b.g[-1]))
            except KeyError:
                found.append("own")
            except ValueError as error:
                assert str(error).startswith(
                    "Communicator.all_reduce_callback: rank 1 of group 'world' has given its backward run up: "
                    "KeyError: 'a bad sample'\n  hint: "
                ), error
                found.append("told")
            if step == 2:
                comm.barrier()
        return found

    a, b = 3 * (np.cos(1) + np.cos(2) + np.cos(3)), np.sin(1) + np.sin(2) + np.sin(3)
    for rank, found in enumerate(run_threads(3, work)):
        assert found[1:3] == (["own"] * 2 if rank == 1 else ["told"] * 2)
        for got in (found[0], found[3]):
            np.testing.assert_allclose(got, (a, a, b, b), rtol=1e-5)


def test_a_run_that_fails_on_all_leaves_nothing_behind():
    def work(comm):
        (a,) = two([comm.rank + 1])
        y = F.sum(F.exp(F.sin(a)))
        callback = comm.all_reduce_callback(a.grad, 1)

        def fail(f):
            if f.name == ("Exp" if comm.rank else "Sin"):
                raise KeyError(f"of rank {comm.rank}")

        for _ in range(3):
            y.forward()
            with pytest.raises(KeyError, match=f"of rank {comm.rank}"):
                y.backward(communicator_callbacks=callback, function_post_hook=fail)
        a.grad.zero()
        y.backward(communicator_callbacks=callback)
        return a.g[0]

    expected = sum(np.exp(np.sin(v)) * np.cos(v) for v in (1, 2))
    np.testing.assert_allclose(run_threads(2, work), [expected] * 2, rtol=1e-5)


@pytest.mark.parametrize("size", [5, 40_000])
@pytest.mark.parametrize("pack_size", [1, 1 << 20])
def test_several_callbacks_in_one_run(size, pack_size):
    """They shared the memory in which they pack."""

    def work(comm):
        for _ in range(20):
            leaves = two([comm.rank + i + 1 for i in range(4)], size)
            y = F.sum(F.exp(0.1 * leaves[0]) * leaves[1] * F.sin(leaves[2]) * leaves[3])
            halves = [comm.all_reduce_callback([p.grad for p in some], pack_size) for some in (leaves[:2], leaves[2:])]
            y.forward()
            y.backward(communicator_callbacks=halves)
            found = [p.g.copy() for p in leaves]
            for p in leaves:
                p.grad.zero()
            y.backward()
            comm.all_reduce([p.grad for p in leaves])
            for p, g in zip(leaves, found, strict=True):
                np.testing.assert_array_equal(p.g, g)

    run_threads(2, work)


def test_callbacks_of_groups_that_not_all_are_in():
    def work(comm):
        comm.new_group(("pair", [0, 1]))
        a, b = two([3, 2])
        y = F.sum(a * b)
        y.forward()
        callbacks = [comm.all_reduce_callback(a.grad, 1, group="pair"), comm.all_reduce_callback(b.grad, 1)]
        y.backward(communicator_callbacks=callbacks)
        return a.g[0], b.g[0]

    assert run_threads(3, work) == [(4, 9), (4, 9), (2, 9)]


def test_a_run_inside_the_end_of_another_callback():
    """It took the number, and the memory, of a callback that was still open."""

    def work(comm):
        leaves = two(range(1, 7))
        a, b, c, d, e, f = leaves

        class Inner(C.CommunicatorBackwardCallback):
            def on_finish_backward(self):
                z = F.sum(e * 100 + f * 100)
                z.forward()
                z.backward(communicator_callbacks=comm.all_reduce_callback([e.grad, f.grad], 1 << 20))

        y = F.sum(a * 2 + b * 2 + c * 3 + d * 3)
        first, last = (comm.all_reduce_callback([v.grad, w.grad], 1 << 20) for v, w in ((a, b), (c, d)))
        y.forward()
        y.backward(communicator_callbacks=[first, Inner(), last])
        return [v.g[0] for v in leaves]

    assert run_threads(2, work) == [[4, 4, 6, 6, 200, 200]] * 2


def test_the_older_sum_of_parameters_that_are_one_on_one_process_only():
    def work(comm):
        v, u = (nn.Variable.from_numpy_array([1.0], grad=[2.0]) for _ in range(2))
        parameters = {"w": v, "b": v if comm.rank else u}
        comm.add_context_and_parameters((nn.get_current_context(), parameters))
        with pytest.raises(ValueError, match="expected the same call on all processes"):
            comm.allreduce()
        comm.barrier()

    run_threads(2, work)


def test_several_callbacks_of_a_run_that_fails():
    def work(comm):
        comm.new_group(("pair", [0, 1]))
        a, b, c = two([1, 2, 3])
        y = F.sum(F.exp(F.sin(a) * b) * c)
        callbacks = [comm.all_reduce_callback(a.grad, 1), comm.all_reduce_callback([b.grad, c.grad], 1, group="pair")]

        def fail(f):
            if comm.rank == 1 and f.name == "Exp":
                raise KeyError("no")

        y.forward()
        for _ in range(2):
            with pytest.raises((KeyError, ValueError), match="no"):
                y.backward(communicator_callbacks=callbacks, function_post_hook=fail)
            for group in ("pair", "world"):
                one = array(1.0)
                comm.all_reduce(one, group=group)
                assert one.data[0] == (3 if group == "world" else 1 if comm.rank == 2 else 2)
        for v in (a, b, c):
            v.grad.zero()
        y.backward(communicator_callbacks=callbacks)
        return [v.g[0] for v in (a, b, c)]

    e = np.exp(2 * np.sin(1))
    own = np.array([3 * e * 2 * np.cos(1), 3 * e * np.sin(1), e])
    for rank, got in enumerate(run_threads(3, work)):
        np.testing.assert_allclose(got, own * ([3, 1, 1] if rank == 2 else [3, 2, 2]), rtol=1e-5)


def test_the_same_callback_twice_and_one_that_only_hands_on():
    class HandsOn(C.CommunicatorBackwardCallback):
        def __init__(self, to):
            self.to = to

        def on_finish_function_backward(self, function):
            self.to.on_finish_function_backward(function)

        def on_finish_backward(self):
            self.to.on_finish_backward()

    def work(comm):
        (a,) = two([comm.rank + 1.0])
        y = F.sum(a * a) + F.sum(F.exp(a))
        callback = comm.all_reduce_callback(a.grad, 1)
        found = []
        for given in ([callback, callback], HandsOn(callback), HandsOn(callback), callback):
            a.grad.zero()
            y.forward()
            y.backward(communicator_callbacks=given)
            found.append(a.g[0])

        def fail(f):
            if f.name == "Exp":
                raise KeyError("no")

        with pytest.raises(KeyError):
            y.backward(communicator_callbacks=HandsOn(callback), function_post_hook=fail)
        a.grad.zero()
        y.backward(communicator_callbacks=HandsOn(callback))
        return [*found, a.g[0]]

    expected = sum(2 * v + np.exp(v) for v in (1, 2))
    for got in run_threads(2, work):
        np.testing.assert_allclose(got, [expected] * 5, rtol=1e-5)


@pytest.mark.parametrize("size", [2, 100_000])
@pytest.mark.parametrize("pack_size", [1, 1 << 20])
def test_what_flows_through_a_variable_whose_gradient_is_summed_is_ones_own(size, pack_size):
    """The sum was written while functions still read the gradient."""

    def work(comm):
        (a,) = two([comm.rank + 1.0], size)
        h = a * 2
        h.persistent = True
        y = F.sum(h * h)
        callback = comm.all_reduce_callback([h.grad], pack_size)
        for _ in range(5):
            a.grad.zero()
            y.forward()
            y.backward(communicator_callbacks=callback)
            np.testing.assert_array_equal(h.g, np.full(size, 12))  # 2 h of both ranks
            np.testing.assert_array_equal(a.g, np.full(size, 8 * (comm.rank + 1)))  # 4 h of this one

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
    callback._exchange._given = tuple(p.grad for p in parameters)
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
