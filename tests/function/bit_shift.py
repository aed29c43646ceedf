"""`bit_shift`: whole numbers with their bits moved."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, shift: np.ndarray, direction: str = "LEFT") -> np.ndarray:
    bits = 8 * x.dtype.itemsize if x.dtype.kind in "iu" else 64
    signed = x.dtype.kind != "u"

    def moved(v: int, by: int) -> int:
        v = v << by if direction == "LEFT" else v >> by
        v %= 1 << bits
        return v - (1 << bits) if signed and v >> (bits - 1) else v

    pairs = np.broadcast(x, shift)
    values = [moved(int(v), int(by)) for v, by in pairs]
    return np.array(values, dtype=object).reshape(pairs.shape).astype(x.dtype if x.dtype.kind in "iu" else np.int64)


def u8(*v: int) -> np.ndarray:
    return np.array(v, np.uint8)


CASES = [
    Case(inputs=[u8(1, 3, 200, 255), u8(1, 7, 1, 0)], differentiable=False),
    Case(inputs=[u8(1, 3, 200, 255), u8(1, 7, 1, 0)], args={"direction": "RIGHT"}, name="right", differentiable=False),
    Case(inputs=[u8(1, 3), u8(8, 9)], name="out of the type", differentiable=False),
    Case(
        inputs=[u8(200, 3), u8(8, 70)],
        args={"direction": "RIGHT"},
        name="all",
        differentiable=False,
        oracle=False,
        reason="C leaves it open",
    ),
    Case(
        inputs=[np.array([[1], [3]], np.uint16), np.array([[3, 14]], np.uint16)], name="broadcast", differentiable=False
    ),
    Case(
        inputs=[np.array([1, 3], np.uint32), np.array([33, 31], np.uint32)],
        name="32 bits",
        differentiable=False,
        types=("float", "double"),
    ),
    Case(
        inputs=[np.array([1, 3], np.uint64), np.array([33, 60], np.uint64)],
        name="64 bits",
        differentiable=False,
        types=("float", "double"),
    ),
    Case(
        inputs=[[-8, 7], [1, 2]],
        name="signs",
        differentiable=False,
        oracle=False,
        reason="NNabla wants unsigned numbers",
    ),
    Case(
        inputs=[np.array([-8, 100], np.int8), [1, 2]],
        args={"direction": "RIGHT"},
        name="signs, right",
        differentiable=False,
        oracle=False,
        reason="NNabla wants unsigned numbers",
    ),
    Case(
        inputs=[np.array([-100, 100], np.int8), [1, 2]],
        name="8 bits",
        differentiable=False,
        oracle=False,
        reason="as above",
    ),
]
ERRORS = [
    Error(inputs=[u8(1), u8(1)], args={"direction": "UP"}, match="argument 'direction'"),
    Error(
        inputs=[u8(1), [-1]],
        match="argument 'shift'.*0 or more",
        name="negative",
        host=True,
        oracle=False,
        reason="it goes on",
    ),
    Error(inputs=[u8(1, 2), u8(1, 2, 3)], match="argument 'shift'", name="shape"),
]
