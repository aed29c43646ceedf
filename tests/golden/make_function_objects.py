"""Asks NNabla what the function objects of all case files say and writes function_objects.json for the tests.

    python tests/golden/make_function_objects.py     # with nnabla 1.39 and pytest installed

For each case whose call makes one node over the case's inputs: the node's name, arguments, and what it says about the
data that its gradient reads (`input[i][j]`: the gradient of input i reads input j; `output[i][o]`: output o; `auto_`:
the same for the rule of `nn.grad`), about sharing memory, and about recomputation.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["NNRS_TEST_MODULE"] = "nnabla"
sys.path.insert(0, str(Path(__file__).parent.parent))

import function_harness as h  # noqa: E402


def node(target: h.Target) -> Any:
    """The case's node, or None where the call makes several nodes or none."""
    inputs = [None if x is None else h.variable(x) for x in target.inputs("float")]
    present = [x for x in inputs if x is not None]
    for x, want in zip(inputs, target.case.wants_grad(target.case.make(target.name)), strict=True):
        if x is not None:
            x.need_grad = want
    f = target.call(inputs)[0].parent
    return f if f is not None and list(f.inputs) == present else None


def plain(value: Any) -> bool:
    """Whether JSON can hold it."""
    return isinstance(value, (bool, int, float, str, list, type(None)))


def described(f: Any) -> dict[str, Any]:
    """All answers of one node."""
    n, m = len(f.inputs), len(f.outputs)
    table = lambda ask, width: [[bool(ask(i, j)) for j in range(width)] for i in range(n)]  # noqa: E731
    return {
        "name": f.name,
        "type_name": f.info.type_name,
        "arguments": {k: v for k, v in f.arguments.items() if plain(v)},
        "tags": f.tags,
        "rank": f.rank,
        "need_grad": f.need_grad,
        "min_outputs": f.min_outputs(),
        "input": table(f.grad_depends_input_data, n),
        "output": table(f.grad_depends_output_data, m),
        "auto_input": table(f.auto_grad_depends_input_data, n),
        "auto_output": table(f.auto_grad_depends_output_data, m),
        "inplace_data": [f.inplace_data(i) for i in range(n)],
        "need_setup_recompute": [f.need_setup_recompute(o) for o in range(m)],
    }


def entries() -> dict[str, Any]:
    """The answers of every case that NNabla runs."""
    found = {}
    for target in h.targets():
        try:
            f = node(target)
        except Exception:  # noqa: BLE001, S112  (a case that NNabla does not take)
            continue
        if f is not None:
            found[target.id] = described(f)
    return found


if __name__ == "__main__":
    text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entries().items())
    Path(__file__).with_name("function_objects.json").write_text("{\n" + text + "\n}\n")
