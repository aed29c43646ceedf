"""Writes clear_flags.json: which arrays NNabla 1.39 clears in forward and backward of 400 small random graphs.

Run with NNabla's Python: `python tests/golden/make_clear_flags.py`. A graph is a list of steps that
tests/test_clear_order.py builds again: leaves, functions with the numbers of their inputs, marks on variables, and the
flags of the runs. For each variable: is its data array cleared after forward, and data and gradient after backward.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

GRAPHS = 400
UNARY = (
    "tanh sin exp sigmoid abs softmax relu relu! leaky_relu leaky_relu! add_scalar add_scalar! mul_scalar mul_scalar! "
    "pow_scalar reshape reshape! identity sum max transpose"
).split()
BINARY = "add2 add2! mul2 sub2 div2 affine concatenate".split()


def program(seed: int) -> dict:
    """A graph: steps, marks, flags. Variables are numbered in the order in which they are made."""
    r = random.Random(seed)
    steps: list = [["leaf", r.random() < 0.8] for _ in range(r.randint(1, 3))]
    for _ in range(r.randint(2, 9)):
        n = len(steps)
        unary = r.random() < 0.65
        name, recent = r.choice(UNARY if unary else BINARY), r.randint(max(0, n - 3), n - 1)
        steps.append([name, recent] if unary else [name, recent, r.randint(0, n - 1)])
    n = len(steps)
    made = [i for i in range(n) if steps[i][0] != "leaf"]
    marks = [[kind, r.choice(made)] for kind in ("persistent", "recompute", "need_grad") if r.random() < 0.25]
    forward = r.choice([{}, {"clear_no_need_grad": True}, {"clear_no_need_grad": True}, {"clear_buffer": True}])
    return {"steps": steps, "marks": marks, "forward": forward, "clear_buffer": r.random() < 0.6}


def call(nn, F, step: list, variables: list):
    """Applies one step; every variable has shape (3, 3)."""
    name, inplace = step[0].rstrip("!"), step[0].endswith("!")
    x = [variables[i] for i in step[1:]]
    if name == "sum" or name == "max":
        return F.broadcast(getattr(F, name)(x[0], axis=1, keepdims=True), (3, 3))
    if name == "concatenate":
        return F.slice(F.concatenate(*x, axis=0), start=(1, 0), stop=(4, 3))
    arguments = {
        "add_scalar": (0.5,), "mul_scalar": (1.5,), "pow_scalar": (2.0,), "reshape": ((3, 3),), "transpose": ((1, 0),)
    }.get(name, ())  # fmt: skip
    named = {"inplace": inplace} if inplace or name == "reshape" else {}
    return getattr(F, name)(*x, *arguments, **named)


def build(nn, F, graph: dict) -> list:
    """The variables of a graph."""
    variables: list = []
    for step in graph["steps"]:
        if step[0] == "leaf":
            v = nn.Variable((3, 3), need_grad=step[1])
            v.d = [[0.5, 0.75, 1.0], [1.25, 0.25, 2.0], [1.5, 0.125, 0.6]]
        else:
            v = call(nn, F, step, variables)
        variables.append(v)
    for kind, i in graph["marks"]:
        setattr(variables[i], kind, kind != "need_grad")
    return variables


def run(nn, F, graph: dict) -> dict:
    """What is cleared: per variable after forward, and data and gradient after backward."""
    variables = build(nn, F, graph)
    arrays = [v.data for v in variables], [v.grad for v in variables]
    for g in arrays[1]:
        g.zero()
    variables[-1].forward(**graph["forward"])
    result = {"forward": [int(a.clear_called) for a in arrays[0]]}
    if "clear_buffer" not in graph["forward"]:
        variables[-1].backward(clear_buffer=graph["clear_buffer"])
        result["backward"] = [[int(a.clear_called) for a in kind] for kind in arrays]
    return result


def main() -> None:
    import nnabla as nn
    import nnabla.functions as F

    graphs = [program(seed) for seed in range(GRAPHS)]
    lines = [json.dumps({**g, "cleared": run(nn, F, g)}) for g in graphs]
    Path(__file__).with_name("clear_flags.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
