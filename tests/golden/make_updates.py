"""Writes updates.json: what NNabla 1.39 computes where functions write what others read, too.

Run with NNabla's Python: `python tests/golden/make_updates.py`. Each case is a function that
test_in_place_updates.py calls with nnrs; it gives lists of numbers, booleans or words.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

CASES: dict = {}


def case(f):
    CASES[f.__name__] = f
    return f


def leaf(nn, values, need_grad=False):
    return nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=need_grad)


def numbers(*arrays):
    return [np.array(a, np.float64).ravel().tolist() for a in arrays]


X = np.array([[1.5, -0.5], [0.25, 2.0], [-1.0, 0.5], [0.75, 1.0]])


class Norm:
    """Batch normalizations that share their running statistics."""

    def __init__(self, nn, F):
        self.F = F
        self.beta, self.gamma = leaf(nn, [[0, 0]], True), leaf(nn, [[1, 1]], True)
        self.mean, self.variance = leaf(nn, [[0, 0]]), leaf(nn, [[1, 1]])

    def __call__(self, x, **k):
        inputs = (x, self.beta, self.gamma, self.mean, self.variance)
        return self.F.batch_normalization(*inputs, decay_rate=0.5, **k)


@case
def two_assignments(nn, F):
    e = leaf(nn, [1, 1])
    s = F.sink(F.assign(e, e * 2), F.assign(e, e + 3))
    s.forward()
    first = e.d.copy()
    s.forward()
    return numbers(first, e.d)


@case
def a_reader_after_an_assignment(nn, F):
    e = leaf(nn, [0, 0])
    up, loss = F.assign(e, leaf(nn, [1, 2]) + 0.0), F.sum(e * e)
    F.sink(up, loss).forward()
    return numbers(loss.d, e.d)


@case
def a_reader_before_an_assignment(nn, F):
    e = leaf(nn, [3, 4])
    loss, up = F.sum(F.exp(e * 0.5) * e), F.assign(e, leaf(nn, [1, 2]) + 0.0)
    F.sink(loss, up).forward()
    return numbers(loss.d, e.d)


@case
def a_moving_average(nn, F):
    w, e = leaf(nn, [1, 2], True), leaf(nn, [0, 0])
    w.g = 0
    up = F.assign(e, e * 0.9 + w * 0.1)
    loss = F.sum((w - e) ** 2)
    s = F.sink(up, loss)
    values = []
    for _ in range(2):
        s.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        values += [loss.d.copy(), e.d.copy(), w.g.copy()]
    return numbers(*values)


@case
def what_sink_reads_stays(nn, F):
    values = []
    for flags in ({}, {"clear_no_need_grad": True}, {"clear_buffer": True}):
        h = F.exp(leaf(nn, [1, 2], True))
        loss, other = F.sum(h * 2), F.sin(h)
        arrays = [loss.data, other.data]
        F.sink(loss, other).forward(**flags)
        values += [[a.clear_called for a in arrays], *numbers(loss.d, other.d)]
    return values


@case
def a_gradient_after_an_assignment(nn, F):
    e = leaf(nn, [1, -2], True)
    e.g = 0
    y = F.exp(e)
    loss, up = F.sum(y * F.tanh(e)), F.assign(e, leaf(nn, [5, 6]) * 1)
    s = F.sink(loss, up)
    s.forward()
    loss.backward()
    return numbers(loss.d, y.d)


@case
def statistics_before_they_move(nn, F):
    n = Norm(nn, F)
    h = n(leaf(nn, X))
    t = F.sum(n.mean * 10 + 1) + F.sum(h) * 0
    t.forward()
    return numbers(t.d, n.mean.d, n.variance.d)


@case
def two_batches(nn, F):
    n, x = Norm(nn, F), leaf(nn, X)
    z = F.sum(n(F.exp(x))) + F.sum(n(x))
    z.forward()
    return numbers(n.mean.d, n.variance.d)


@case
def training_and_evaluation(nn, F):
    n, x = Norm(nn, F), leaf(nn, X, True)
    x.g = 0
    training, evaluation = n(F.sin(x) * 3), n(x, batch_stat=False)
    z = F.sum(training**2) + F.sum(evaluation**2)
    z.forward(clear_no_need_grad=True)
    z.backward(clear_buffer=True)
    return numbers(z.d, n.mean.d, x.g)


@case
def evaluation_and_training(nn, F):
    n, x = Norm(nn, F), leaf(nn, X)
    evaluation, training = n(x, batch_stat=False), n(F.sin(x) * 3)
    z = F.sum(evaluation**2) + F.sum(training**2)
    z.forward()
    return numbers(z.d, n.mean.d)


@case
def a_discriminator_on_two_inputs(nn, F):
    n, w = Norm(nn, F), leaf(nn, [[0.5, -1.0], [0.25, 0.75]], True)

    def judge(x):
        return F.affine(n(F.affine(x, w)), w)

    fake, real = F.tanh(F.affine(leaf(nn, X), w)), leaf(nn, X[::-1].copy())
    loss = F.mean(F.softplus(judge(fake))) + F.mean(F.softplus(-judge(real)))
    values = []
    for _ in range(2):
        loss.forward(clear_no_need_grad=True)
        w.g = 0
        loss.backward(clear_buffer=True)
        values += [loss.d.copy(), n.mean.d.copy(), n.variance.d.copy(), w.g.copy()]
    return numbers(*values)


@case
def a_filled_leaf(nn, F):
    m, x = leaf(nn, [0, 1, 0]), leaf(nn, [1, 2, 3], True)
    r = x.masked_fill_(m, 9)
    r.forward()
    x.g = 0
    r.backward()
    return [*numbers(r.d, x.d, x.g), [r is x, x.parent is None, r.parent.name, r == x, r.data == x.data]]


@case
def a_filled_variable_of_a_graph(nn, F):
    m, x = leaf(nn, [0, 1, 0]), leaf(nn, [1, 2, 3], True)
    x.g = 0
    y = x * 1
    a = F.exp(y)
    r = y.bool_fill_(m, 9)
    b = F.exp(y)
    nn.forward_all([a, b])
    values = [a.d.copy(), b.d.copy()]
    r.forward()
    values += [r.d.copy(), y.d.copy()]
    r.backward()
    return [*numbers(*values, x.g), [y.parent.name, r.parent.name]]


@case
def a_filled_variable_at_once(nn, F):
    with nn.auto_forward():
        y = leaf(nn, [1, 2, 3], True) * 1
        r = y.masked_fill_(leaf(nn, [0, 1, 0]), 9)
    return [*numbers(r.d, y.d), [y.parent.name, r.parent.name]]


@case
def gradients_of_roots_that_are_cleared(nn, F):
    if nn.__name__ == "nnrs":
        from nnrs.testing import clear_called_flag_recorder as recorder
    else:
        from nnabla.testing import clear_called_flag_recorder as recorder
    found = []
    for make in (F.sin, lambda x: x * x, lambda x: F.add_scalar(x, 1, inplace=True), lambda x: F.sin(F.exp(x))):
        for flag in (True, False):
            y = make(leaf(nn, [1, 2], True))
            y.forward()
            recorder.activate_clear_called_flag_recorder()
            y.backward(clear_buffer=flag)
            found.append([int(grad) for ((_, grad),) in recorder.get_output_clear_called_flags()])
            recorder.deactivate_clear_called_flag_recorder()
    return found


@case
def keys_of_hooks(nn, F):
    called = []
    hook = {k: (lambda f, k=k: called.append(k)) for k in "ab"}
    nn.set_function_pre_hook("b", hook["b"])
    nn.set_function_pre_hook("a", hook["a"])
    nn.set_function_pre_hook("b", hook["b"])
    nn.set_function_post_hook("b", hook["b"])
    nn.set_function_post_hook("a", hook["a"])
    nn.set_function_post_hook("b", hook["b"])
    F.exp(leaf(nn, [1])).forward()
    for key in "ab":
        nn.unset_function_pre_hook(key)
        nn.unset_function_post_hook(key)
    return [called]


def scattered(nn, F, add):
    out = leaf(nn, [0, 1, 2, 3, 4])
    rows, at = leaf(nn, [9, 8], True), leaf(nn, [[1, 3]])
    y = F.scatter_nd(rows, at, out=out, add=add)
    y.forward()
    first = out.d.copy()
    y.forward()
    rows.g = 0
    y.backward()
    return [*numbers(first, out.d, y.d, rows.g), [y.parent.inplace_data(i) for i in range(3)]]


@case
def rows_put_into_an_array(nn, F):
    return scattered(nn, F, False)


@case
def rows_added_to_an_array(nn, F):
    return scattered(nn, F, True)


@case
def rows_put_where_a_mask_says(nn, F):
    out = leaf(nn, [0, 1, 2, 3, 4], True)
    rows, mask = leaf(nn, [9, 8], True), leaf(nn, [1, 0, 1, 0, 0])
    y = F.bool_scatter(rows, mask, out)
    y.forward()
    rows.g = out.g = 0
    y.backward()
    return [*numbers(out.d, y.d, rows.g, out.g), [y.parent.inplace_data(i) for i in range(3)]]


@case
def rows_put_into_a_cache_in_turn(nn, F):
    cache, place = leaf(nn, [[0, 0], [0, 0], [0, 0]]), leaf(nn, [[0]])
    row = leaf(nn, [[1, 2]])
    y = F.scatter_nd(row, place, out=cache)
    total = F.sum(y)
    seen = []
    for i in range(3):
        place.d, row.d = i, [[i + 1, -i]]
        total.forward()
        seen += numbers(total.d, cache.d)
    return seen


@case
def an_array_of_ndarrays_is_written(nn, F):
    array = nn.NdArray.from_numpy_array
    out = array(np.float32([0, 1, 2]))
    F.scatter_nd(array(np.float32([5])), array(np.float32([[2]])), out=out)
    z = F.bool_scatter(array(np.float32([7])), array(np.float32([1, 0, 0])), out)
    return numbers(out.data, z.data)


@case
def the_same_array_is_read_and_written(nn, F):
    out = leaf(nn, [[0, 1, 2]])
    y = F.scatter_nd(leaf(nn, [[4, 5, 6]]), leaf(nn, [[0]]), out=out, add=True)
    z = F.sum(y * 2)
    z.forward()
    w = F.sum(out * 3)
    w.forward()
    return numbers(out.d, z.d, w.d)


def main() -> None:
    import nnabla as nn
    import nnabla.functions as F

    lines = [f"{json.dumps(name)}: {json.dumps(make(nn, F))}" for name, make in CASES.items()]
    Path(__file__).with_name("updates.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
