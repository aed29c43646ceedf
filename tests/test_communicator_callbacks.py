"""Communicator callbacks: which are called in a backward run, in which order, and what they may rely on."""

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs.communicators import CommunicatorBackwardCallback


class Record(CommunicatorBackwardCallback):
    """Writes down what it is told."""

    def __init__(self, log=None):
        self.log = [] if log is None else log

    def on_finish_function_backward(self, function):
        self.log.append(function.name)

    def on_finish_backward(self):
        self.log.append("end")


def net():
    x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3), need_grad=True)
    a, b = F.tanh(x), F.exp(x)
    y = F.sum(a * b)
    y.forward()
    return x, y


def test_called_after_each_function_and_at_the_end():
    _, y = net()
    callback = Record()
    y.backward(communicator_callbacks=callback)
    assert callback.log == ["Sum", "Mul2", "Exp", "Tanh", "end"]


def test_several_take_turns():
    _, y = net()
    log = []
    y.backward(communicator_callbacks=[Record(log), Record(log)])
    assert log == [name for name in ["Sum", "Mul2", "Exp", "Tanh", "end"] for _ in range(2)]


def test_after_the_hooks_of_the_run_and_the_same_gradient():
    x, y = net()
    x.g = 0
    log = []
    y.backward(
        communicator_callbacks=(Record(log),),
        function_pre_hook=lambda f: log.append("pre"),
        function_post_hook=lambda f: log.append("post"),
    )
    assert log == ["pre", "post", "Sum", "pre", "post", "Mul2", "pre", "post", "Exp", "pre", "post", "Tanh", "end"]
    t, e = np.tanh(x.d.astype(np.float64)), np.exp(x.d.astype(np.float64))
    np.testing.assert_allclose(x.g, (1 - t * t) * e + t * e, rtol=1e-5)


def test_functions_without_gradient_are_not_told():
    x, frozen = nn.Variable((2,), need_grad=True), nn.Variable((2,))
    y = F.exp(x) + F.tanh(frozen)
    x.d, frozen.d = 1, 1
    y.forward()
    callback = Record()
    y.backward(communicator_callbacks=callback)
    assert callback.log == ["Add2", "Exp", "end"]


def test_only_the_end_where_nothing_needs_a_gradient():
    y = F.exp(nn.Variable((2,)))
    y.forward()
    callback = Record()
    y.backward(communicator_callbacks=callback)
    assert callback.log == ["end"]


class Reduce(CommunicatorBackwardCallback):
    """Doubles each parameter's gradient as soon as no more is added to it, as two equal processes would."""

    def __init__(self, parameters, root):
        self.waiting = {id(p): (name, p) for name, p in parameters.items()}
        self.readers = {}
        root.visit(self.count)
        self.sent, self.log = [], []

    def count(self, f):
        for v in f.inputs:
            self.readers[v] = self.readers.get(v, 0) + 1

    def on_finish_function_backward(self, function):
        self.log.append(function.name)
        for v in function.inputs:
            self.readers[v] -= 1
        for key, (name, p) in list(self.waiting.items()):
            if not self.readers[p]:
                self.sent.append((name, p.grad.data_ptr(np.float32)))
                p.g *= 2
                del self.waiting[key]


def shared_layers():
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))
    h = F.relu(PF.affine(x, 6, name="a"))
    h = PF.affine(h, 6, name="shared")
    h = PF.affine(F.tanh(h), 6, name="shared")
    return F.mean(F.pow_scalar(h, 2)), nn.get_parameters()


def address(p):
    return p.grad.data_ptr(np.float32)


@pytest.mark.parametrize("clear_buffer", [False, True])
def test_gradients_can_be_reduced_while_backward_goes_on(clear_buffer):
    y, parameters = shared_layers()
    runs = []
    for callback_class in (None, Reduce, Reduce):
        for p in parameters.values():
            p.grad.zero()
        y.forward(clear_no_need_grad=True)
        callback = callback_class(parameters, y) if callback_class else None
        y.backward(clear_buffer=clear_buffer, communicator_callbacks=callback)
        runs.append((callback, {name: p.g.copy() for name, p in parameters.items()}))
        if callback:
            assert callback.sent == [(name, address(parameters[name])) for name, _ in callback.sent]
    (_, plain), (first, doubled), (second, again) = runs
    assert [name.split("/")[0] for name, _ in first.sent] == ["shared", "shared", "a", "a"]
    assert [name for name, _ in first.sent] == [name for name, _ in second.sent] and first.log == second.log
    for name in plain:
        np.testing.assert_array_equal(doubled[name], 2 * plain[name])
        np.testing.assert_array_equal(again[name], doubled[name])


def test_gradients_that_add_up_over_runs_stay_at_their_addresses():
    y, parameters = shared_layers()
    for p in parameters.values():
        p.grad.zero()
    seen = []
    for _ in range(3):
        y.forward()
        callback = Reduce(parameters, y)
        y.backward(communicator_callbacks=callback)
        seen.append(callback.sent)
    assert seen[0] == seen[1] == seen[2] == [(name, address(parameters[name])) for name, _ in seen[0]]


def test_exception_stops_the_run_with_its_own_traceback():
    class Failing(Record):
        def on_finish_function_backward(self, function):
            super().on_finish_function_backward(function)
            if function.name == "Mul2":
                raise KeyError("link is down")

    x, y = net()
    callback = Failing()
    with pytest.raises(KeyError, match="link is down") as caught:
        y.backward(communicator_callbacks=callback)
    assert callback.log == ["Sum", "Mul2"]
    assert any(entry.name == "on_finish_function_backward" for entry in caught.traceback)
    x.g = 0
    y.backward(communicator_callbacks=Record())
    assert np.isfinite(x.g).all()


@pytest.mark.parametrize("wrong", [3, [3], [Record(), None], Record, "abc", {}])
def test_anything_else_is_refused_before_anything_runs(wrong):
    x, y = net()
    x.g = 7
    with pytest.raises(TypeError, match=r"Variable\.backward.*communicator_callbacks.*CommunicatorBackwardCallback"):
        y.backward(communicator_callbacks=wrong)
    assert (x.g == 7).all()


def test_no_callbacks_at_all():
    x, y = net()
    x.g = 0
    y.backward(communicator_callbacks=[])
    assert x.g.any()


def test_running_the_graph_inside_is_refused():
    _, y = net()

    class Greedy(CommunicatorBackwardCallback):
        def on_finish_function_backward(self, function):
            y.forward()

    with pytest.raises(RuntimeError, match="running"):
        y.backward(communicator_callbacks=Greedy())
    y.forward()
