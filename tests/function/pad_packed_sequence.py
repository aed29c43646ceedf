"""`pad_packed_sequence`: packed sequences with padding again."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(
    packed_sequence: np.ndarray,
    batch_sizes: np.ndarray,
    batch_first: bool = False,
    padding_value: float | None = None,
    total_length: int | None = None,
) -> tuple[np.ndarray, ...]:
    steps = max(len(batch_sizes), -1 if total_length is None else total_length)
    y = np.full((steps, int(batch_sizes[0]), *packed_sequence.shape[1:]), padding_value or 0.0)
    rows = iter(packed_sequence)
    for t, n in enumerate(batch_sizes):
        for b in range(n):
            y[t, b] = next(rows)
    lengths = [int(sum(n > b for n in batch_sizes)) for b in range(int(batch_sizes[0]))]
    return np.swapaxes(y, 0, 1) if batch_first else y, np.array(lengths)


GRADS = {"grad_outputs": [0], "oracle_grad": False, "reason": "NNabla has no rule for nn.grad"}
VALUE = {"grad_outputs": [0], "oracle": False, "reason": "NNabla pads with 0 whatever it is told"}
CASES = [
    Case(inputs=[(7, 2), [3, 2, 1, 1]], **GRADS),
    Case(inputs=[(7, 2), [3, 2, 1, 1]], args={"batch_first": True}, name="batch first", **GRADS),
    Case(inputs=[(7,), [3, 2, 1, 1]], name="numbers", **GRADS),
    Case(inputs=[(5, 2), [3, 2, 0]], args={"total_length": 2}, name="empty steps", **GRADS),
    Case(inputs=[(7, 2), [3, 2, 1, 1]], args={"padding_value": -1.5, "total_length": 6}, name="value", **VALUE),
    Case(
        inputs=[(5, 2), [3, 2]],
        args={"padding_value": 2.0, "total_length": 4, "batch_first": True},
        name="value, batch first",
        **VALUE,
    ),
]
HOST = {"host": True, "oracle": False, "reason": "it goes on"}
ERRORS = [
    Error(inputs=[(7, 2), [3, 2, 1]], match="argument 'batch_sizes'.*7 steps", **HOST),
    Error(inputs=[(7, 2), [3, 1, 2, 1]], match="argument 'batch_sizes'.*largest down", name="order", **HOST),
    Error(inputs=[(7, 2), [3, -1, 2, 1]], match="argument 'batch_sizes'.*from 0", name="negative", **HOST),
    Error(
        inputs=[(7, 2), [[3, 4]]], match="argument 'batch_sizes'.*one axis", name="axes", oracle=False, reason="it dies"
    ),
]
