"""Changes of a network that is held as tables of names, as NNabla's `core.graph_def` holds it.

A network has `variables`, `parameters` and `functions` by name, and a list `outputs` of names. A function has `name`,
`type`, lists `inputs` and `outputs` of names, and `owner()`, its network; a variable `name`, `parent`, `need_grad` and
`required` (names of functions). nnrs makes no such networks itself yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._errors import ArgumentError, message
from ..logger import logger

__all__ = ["IdentityRemover", "remove_function", "rename_variable"]


def remove_function(pf: Any, renamed: dict[str, str]) -> None:
    """Take a function of one input and one output out of its network.

    The input's name stays for both where a function reads the output, else the output's.

    Args:
        pf: The function.
        renamed: Gets the name that goes, with the one that stays.
    """
    network = pf.owner()
    old, new = pf.inputs[0], pf.outputs[0]
    x = network.variables.get(old) or network.parameters[old]
    y = network.variables[new]
    others = [name for name in x.required if network.functions[name] is not pf]
    y.parent, y.need_grad = x.parent, x.need_grad
    if y.required:
        _replace_inputs(network, y.required, new, old)
        _replace(network.outputs, new, old)
        y.name = old
        network.variables[old] = y
        gone, kept = new, old
    else:
        if x.parent is not None:
            _replace(network.functions[x.parent].outputs, old, new)
        _replace_inputs(network, others, old, new)
        gone, kept = old, new
    y.required += others
    renamed[gone] = kept
    network.variables.pop(gone, None)
    del network.functions[pf.name]
    logger.info("%s is taken out of its network; %s is now %s", pf.name, gone, kept)


def rename_variable(proto_network: Any, renames: Mapping[str, str]) -> None:
    """Give variables other names.

    Args:
        proto_network: The network. No variable may have a new name already.
        renames: New names by the old ones.

    Raises:
        ValueError: If there is no variable of an old name; then none is renamed.
    """
    for old in renames:
        if old not in proto_network.variables:
            raise ArgumentError(message("rename_variable", "renames", "names of variables of the network", repr(old)))
    for old, new in renames.items():
        v = proto_network.variables.pop(old)
        proto_network.variables[new] = v
        v.name = v.proto.name = new
        if v.parent is not None:
            _replace(proto_network.functions[v.parent].outputs, old, new)
        _replace_inputs(proto_network, v.required, old, new)
    proto_network.outputs = [renames.get(name, name) for name in proto_network.outputs]


class IdentityRemover:
    """Takes functions of type `Identity` out of their networks, when it is called with them.

    Args:
        renamed: Gets the names that go, with those that stay.
        is_required: Says of a function whether it is to go; by default all go.

    >>> from types import SimpleNamespace as Table
    >>> x = Table(name="x", parent=None, required=["i"], need_grad=True)
    >>> y = Table(name="y", parent="i", required=[], need_grad=True)
    >>> net = Table(variables={"x": x, "y": y}, parameters={}, functions={}, outputs=["y"])
    >>> i = Table(name="i", type="Identity", inputs=["x"], outputs=["y"], owner=lambda: net)
    >>> net.functions["i"] = i
    >>> remover = IdentityRemover()
    >>> remover(i)
    >>> list(net.variables), net.functions, remover.renamed
    (['y'], {}, {'x': 'y'})
    """

    def __init__(
        self, renamed: dict[str, str] | None = None, is_required: Callable[[Any], object] | None = None
    ) -> None:
        self.renamed: dict[str, str] = {} if renamed is None else renamed
        self.is_required = is_required

    def __call__(self, pf: Any) -> None:
        if pf.type == "Identity" and (self.is_required is None or self.is_required(pf)):
            remove_function(pf, self.renamed)


def _replace(names: list[str], old: str, new: str) -> None:
    names[:] = [new if name == old else name for name in names]


def _replace_inputs(network: Any, functions: list[str], old: str, new: str) -> None:
    for name in functions:
        _replace(network.functions[name].inputs, old, new)
