"""Shapes that change when they should not: between set-up, forward and backward, in hooks, by other threads.

Whatever happens is a value or an error that says so; never a panic, and never memory of another size. After the shapes
are back, the graph computes what it did.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import function_harness as h
import nnrs as nn
import nnrs.functions as F
from each_case import each_case
from graph_helpers import leaf

TARGETS = h.targets(wanted=lambda case: case.check is None)


def grown(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0] * 20 + 1, *shape[1:]) if shape else (7,)


def grown_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], shape[-1] * 20 + 1) if shape else (1, 7)


def shrunk(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(1, n // 2) for n in shape)


def emptied(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (0, *shape[1:])


def turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[::-1] if shape != shape[::-1] else (*shape, 1)


CHANGES = [grown, grown_last, shrunk, emptied, turned]


def forgiving(f: Callable[..., Any], *args: Any, **more: Any) -> None:
    """Calls it; errors are as good as values."""
    try:
        f(*args, **more)
    except (nn.Error, RuntimeError) as e:
        assert "internal error" not in str(e), e


def changed_before_forward(outputs: list[Any], change: Callable[[], None]) -> None:
    change()
    forgiving(nn.forward_all, outputs)
    forgiving(outputs[0].backward)


def changed_between(outputs: list[Any], change: Callable[[], None]) -> None:
    nn.forward_all(outputs)
    change()
    forgiving(outputs[0].backward)
    for y in outputs:
        forgiving(lambda y=y: y.d)


def changed_after_clearing(outputs: list[Any], change: Callable[[], None]) -> None:
    total = F.sum(F.sin(outputs[0]))
    total.forward(clear_buffer=True)
    change()
    forgiving(total.backward, clear_buffer=True)
    forgiving(lambda: outputs[0].d)


def changed_by_hooks(outputs: list[Any], change: Callable[[], None]) -> None:
    total = F.sum(F.sin(outputs[0]))
    forgiving(total.forward, function_pre_hook=lambda f: change())
    forgiving(total.forward, function_post_hook=lambda f: change())
    forgiving(total.backward, function_pre_hook=lambda f: change())


def changed_where_values_are_made_again(outputs: list[Any], change: Callable[[], None]) -> None:
    for y in outputs:
        y.recompute = True
    total = F.sum(F.sin(outputs[0] * 2.0))
    total.forward()
    change()
    forgiving(total.backward)
    forgiving(lambda: outputs[0].d)


def changed_behind_a_cut(outputs: list[Any], change: Callable[[], None]) -> None:
    total = F.sum(F.sin(outputs[0]))
    total.forward(clear_buffer=True)
    change()
    forgiving(outputs[0].clear_all_graph_links)
    forgiving(total.backward)


def called_apart(outputs: list[Any], change: Callable[[], None]) -> None:
    f = outputs[0].parent
    if f is None:
        return
    nn.forward_all(outputs)
    change()
    forgiving(f.forward, f.inputs, f.outputs)
    forgiving(f.backward, f.inputs, f.outputs)


def changed_before_grad(outputs: list[Any], change: Callable[[], None]) -> None:
    f = outputs[0].parent
    if f is None:
        return
    change()
    inputs, found = [x for x in f.inputs if x.need_grad], []
    forgiving(lambda: found.extend(nn.grad(outputs, inputs, grad_outputs=[1] * len(outputs))))
    for g in found:
        forgiving(g.forward)


MOMENTS = [
    changed_before_grad,
    changed_before_forward,
    changed_between,
    changed_after_clearing,
    changed_by_hooks,
    changed_where_values_are_made_again,
    changed_behind_a_cut,
    called_apart,
]


FIRST = {target.name: target for target in reversed(TARGETS)}
OTHERS = [target for target in TARGETS if target is not FIRST[target.name]]
NUMBERS = {target.id: number for number, target in enumerate(OTHERS)}


@each_case(FIRST.values())
def test_every_function(target: h.Target) -> None:
    shapes_change(target, lambda *_: CHANGES)


@each_case(OTHERS)
def test_every_other_case(target: h.Target) -> None:
    """One change of each input at each moment, another one for the next; all of them in the long test."""
    first = NUMBERS[target.id]
    shapes_change(target, lambda moment, k: [CHANGES[(first + moment + k) % len(CHANGES)]])


@pytest.mark.long
@each_case(OTHERS)
def test_every_change_of_every_other_case(target: h.Target) -> None:
    shapes_change(target, lambda *_: CHANGES)


def shapes_change(target: h.Target, changes: Callable[[int, int], list[Callable[..., Any]]]) -> None:
    """Each input gets other shapes (by the numbers of moment and input) at each moment; afterwards the graph is as good
    as before.
    """
    inputs = target.inputs("float")
    wants = target.case.wants_grad(inputs)
    with h.scope("float"):
        expected = [] if target.case.mutates else h.forward(target, [h.variable(x) for x in inputs])
        for number, moment in enumerate(MOMENTS):
            for k, x in enumerate(inputs):
                for reshape in changes(number, k) if x is not None else []:
                    with h.told(f"{moment.__name__}, input {k} {reshape.__name__}"):
                        outputs = shape_changes(target, h.variables(inputs, wants), k, x, moment, reshape)
                        if expected and all(y.parent for y in outputs):
                            nn.forward_all(outputs)
                            same(outputs, expected)


def shape_changes(
    target: h.Target, leaves: list[Any], k: int, x: np.ndarray, moment: Callable[..., None], reshape: Callable[..., Any]
) -> list[Any]:
    """The outputs of a graph, of which input k had another shape at that moment."""
    outputs = target.call(leaves)
    v, shape = leaves[k], leaves[k].shape
    moment(outputs, lambda: v.reset_shape(reshape(shape), True))
    v.reset_shape(shape, True)
    v.d = x
    for y in outputs:
        y.recompute = False
    return outputs


def same(outputs: list[Any], expected: list[np.ndarray]) -> None:
    for y, right in zip(outputs, expected, strict=True):
        if y.d.shape != right.shape or y.d.tobytes() != right.tobytes():  # a tenth of the time of the other
            np.testing.assert_array_equal(y.d, right)


@pytest.mark.parametrize(
    "name, make",
    {
        "affine": lambda x, w: F.affine(x, w),
        "softmax": lambda x, w: F.softmax(x, axis=1),
        "max": lambda x, w: F.max(x, axis=1),
        "embed": lambda x, w: F.embed(F.sum(x * 0, axis=1), w),
        "transpose": lambda x, w: F.transpose(x, (1, 0)),
        "layer_normalization": lambda x, w: F.layer_normalization(x, None, None),
        "concatenate": lambda x, w: F.concatenate(x, x * 2, axis=0),
    }.items(),
)
def test_another_thread_reshapes_an_input(name, make):
    x, w = leaf(np.ones((4, 6))), leaf(np.ones((6, 3)))
    y = F.sum(F.sin(make(x, w)))
    stop = threading.Event()

    def reshape():
        while not stop.is_set():
            x.reset_shape((20000, 6), True)
            x.reset_shape((4, 6), True)

    other = threading.Thread(target=reshape)
    other.start()
    try:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            forgiving(y.forward)
            forgiving(y.backward)
    finally:
        stop.set()
        other.join()
    x.d = np.ones((4, 6))
    y.forward()
    y.backward()
    assert np.isfinite(y.d) and x.g.shape == (4, 6)
