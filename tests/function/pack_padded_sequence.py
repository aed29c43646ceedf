"""`pack_padded_sequence`: sequences of several lengths without their padding."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(padded_sequence: np.ndarray, lengths: np.ndarray, batch_first: bool = False) -> tuple[np.ndarray, ...]:
    x = np.swapaxes(padded_sequence, 0, 1) if batch_first else padded_sequence
    rows = [x[t, b] for t in range(x.shape[0]) for b in range(x.shape[1]) if lengths[b] > t]
    sizes = [int(sum(n > t for n in lengths)) for t in range(x.shape[0])]
    return np.array(rows).reshape(len(rows), *x.shape[2:]), np.array(sizes)


GRADS = {"grad_outputs": [0], "oracle_grad": False, "reason": "NNabla has no rule for nn.grad"}
CASES = [
    Case(inputs=[(4, 3, 2), [4, 2, 1]], **GRADS),
    Case(inputs=[(3, 4, 2), [4, 2, 1]], args={"batch_first": True}, name="batch first", **GRADS),
    Case(inputs=[(4, 3), [4, 4, 1]], name="numbers", **GRADS),
    Case(inputs=[(4, 3, 2), [3, 2, 2]], name="steps without any", **GRADS),
    Case(inputs=[(3, 3, 2, 2), [3, 1, 0]], name="an empty one", **GRADS),
]
HOST = {"host": True, "oracle": False, "reason": "it goes on"}
ERRORS = [
    Error(inputs=[(4, 3, 2), [1, 4, 2]], match="argument 'lengths'.*largest down", **HOST),
    Error(inputs=[(4, 3, 2), [5, 4, 2]], match="argument 'lengths'.*from 0 to 4", name="too long", **HOST),
    Error(
        inputs=[(4, 3, 2), [3, 2]], match="argument 'lengths'.*shape", name="number", oracle=False, reason="it goes on"
    ),
    Error(inputs=[(4,), [3, 2]], match="argument 'padded_sequence'", name="axes", oracle=False, reason="it dies"),
]
