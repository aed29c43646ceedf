"""Graphs that are there as descriptions, function by function: for `Variable.visit` in a block of `graph_def.graph`.

>>> ProtoGraphGenerator({"x": Variable((2,))}, {}).names.values()
dict_values(['x'])
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from .._core import Variable
from .._errors import check_type
from ._proto_parts import ProtoVariable


class ProtoGraphGenerator:
    """Describes the functions that it is called with, in the network that is being described.

    `graph_def.create_graph_from_variable` does it all at once.

    Args:
        names: Variables by the names that they get, or None.
        params: Names of parameters by their arrays (`v.data`).

    Raises:
        ValueError: On a call, if two variables get one name.

    >>> import nnrs as nn, nnrs.functions as F
    >>> x = nn.Variable((2, 3))
    >>> y = F.relu(x)
    >>> with nn.graph_def.graph(name="net") as g, ProtoGraphGenerator({"x": x, "y": y}, {}) as generator:
    ...     y.visit(generator)
    >>> g.net.inputs, g.net.outputs
    (['x'], ['y'])
    """

    def __init__(self, names: Mapping[str, Variable] | None, params: Mapping[Any, str]) -> None:
        for v in (names or {}).values():
            check_type("ProtoGraphGenerator", "names", v, Variable, "Variables by name")
        self.params = dict(params)
        self.names: dict[Any, str] = {v.data: name for name, v in (names or {}).items()} | self.params
        self.variables: dict[Any, ProtoVariable] = {}
        self.outputs: Any = ()

    def __enter__(self) -> ProtoGraphGenerator:
        _builder().get_current().renaming = self.renaming
        return self

    def __exit__(self, *error: object) -> None:
        network = _builder().get_current()
        network.renaming = None
        for v in self.variables.values():
            if v.type != "Parameter":
                v.variable_instance = None
        found = OrderedDict((str(v.name), v) for v in network.variables.values())
        network.parameters.update((name, v) for name, v in found.items() if v.type == "Parameter")
        network.variables = OrderedDict((name, v) for name, v in found.items() if v.type != "Parameter")

    def renaming(self, i: int, v_name: str) -> str:
        """The name of an output of the function that is being described.

        Args:
            i: Number of the output.
            v_name: The name that it has otherwise.
        """
        return self.names.get(self.outputs[i].data, v_name)

    def __call__(self, func: Any) -> None:
        """Describe a function of a graph.

        Args:
            func: The function. A `Sink` is left out.
        """
        if func.info.type_name == "Sink":
            return
        for v in func.inputs:
            if v.data not in self.variables:
                self.variables[v.data] = self._input(v)
        self.outputs = func.outputs
        builder = _builder()
        builder._description()._note(builder.get_module().get_path_name(), func, self.variables)

    def _input(self, v: Variable) -> ProtoVariable:
        kind = "Parameter" if v.data in self.params else "Buffer"
        made = ProtoVariable(v.shape, self.names.get(v.data), v.need_grad, kind)
        made.variable_instance = v
        if kind == "Parameter":
            made.initializer = getattr(v.info, "initializer", None)
        return made


def _builder() -> Any:
    from .graph_def import current_graph_builder

    return current_graph_builder()
