"""Networks as tables of names, for golden/make_graph_optimizer.py and test_graph_optimizer.py."""

from __future__ import annotations

from types import SimpleNamespace as Table
from typing import Any

# Functions as (name, type, input, output), and the network's outputs.
NETWORKS: dict[str, tuple[list[tuple[str, str, str, str]], list[str]]] = {
    "in the middle": ([("f", "Exp", "x", "a"), ("i", "Identity", "a", "b"), ("g", "Tanh", "b", "y")], ["y"]),
    "at the end": ([("f", "Exp", "x", "a"), ("i", "Identity", "a", "y")], ["y"]),
    "of a leaf": ([("i", "Identity", "x", "a"), ("g", "Tanh", "a", "y")], ["y"]),
    "two in a row": ([("i", "Identity", "x", "a"), ("j", "Identity", "a", "b"), ("g", "Tanh", "b", "y")], ["y"]),
    "read twice": (
        [("f", "Exp", "x", "a"), ("i", "Identity", "a", "b"), ("g", "Tanh", "b", "y"), ("h", "Sin", "b", "z")],
        ["y", "z"],
    ),
    "beside a reader": (
        [("f", "Exp", "x", "a"), ("i", "Identity", "a", "b"), ("g", "Tanh", "b", "y"), ("h", "Sin", "a", "z")],
        ["y", "z"],
    ),
    "an output that is read": (
        [("f", "Exp", "x", "a"), ("i", "Identity", "a", "b"), ("g", "Tanh", "b", "y")],
        ["b", "y"],
    ),
}


def network(name: str) -> Table:
    """A network with fresh tables."""
    functions, outputs = NETWORKS[name]
    net = Table(variables={}, parameters={}, functions={}, outputs=list(outputs))
    for f, kind, x, y in functions:
        net.functions[f] = Table(name=f, type=kind, inputs=[x], outputs=[y], owner=lambda: net)
        for v in (x, y):
            net.variables.setdefault(
                v, Table(name=v, proto=Table(name=v), parent=None, required=[], need_grad=v == "x")
            )
        net.variables[x].required.append(f)
        net.variables[y].parent = f
    return net


def described(net: Any) -> dict[str, Any]:
    """What is in the tables."""
    variables = {
        k: [v.name, v.parent, sorted(set(v.required) & set(net.functions)), v.need_grad]
        for k, v in net.variables.items()
    }
    functions = {k: [f.inputs, f.outputs] for k, f in net.functions.items()}
    return {"variables": dict(sorted(variables.items())), "functions": functions, "outputs": net.outputs}


def without_identities(module: Any, name: str) -> dict[str, Any]:
    """The network after all its identities were taken out."""
    net, renamed = network(name), {}
    remover = module.IdentityRemover(renamed)
    for f in list(net.functions.values()):
        remover(f)
    return {"network": described(net), "renamed": renamed}
