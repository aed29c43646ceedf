"""Networks described by calling functions with `ProtoVariable`s: what each call would make is noted."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .. import _core
from .._core import Variable
from .._errors import ArgumentError, message
from .._messages import message_class
from ..auto_forward import auto_forward
from ..parameter import get_parameters
from ._proto_graph import ProtoGraph
from ._proto_network import ProtoNetwork
from ._proto_parts import ProtoFunction, ProtoVariable, opened


class FlatModule:
    """The module of a network that is described outside of any `nn.Module`.

    Args:
        name: The network's name; "model" has nothing in front of its functions' names.

    >>> FlatModule(None).get_path_name(), FlatModule("net").get_path_name()
    ('', '@net')
    """

    def __init__(self, name: str | None) -> None:
        self.name = name or "model"

    @staticmethod
    def get_parameters(recursive: bool = True, grad_only: bool = False, memo: Any = None) -> OrderedDict[str, Any]:
        """The parameters of the current scope.

        Args:
            recursive: Not used; there are no modules within.
            grad_only: Leave out those with `need_grad=False`.
            memo: Not used.
        """
        return get_parameters(grad_only=grad_only)

    def get_path_name(self) -> str:
        """What comes before the names of functions and variables."""
        return "" if self.name == "model" else f"@{self.name}"


def unique_name(names: dict[str, int], prefix: str) -> str:
    """`prefix`, or `prefix_1` and so on where that was given before.

    >>> unique_name({"x": 1}, "x")
    'x_1'
    """
    count = names.get(prefix, 0)
    names[prefix] = count + 1
    return f"{prefix}_{count}" if count else prefix


class Description:
    """What calls have added to a network that is not finished."""

    def __init__(self, network: ProtoNetwork) -> None:
        self.network = network
        self.function_names: dict[str, int] = {}
        self.variable_names: dict[str, int] = {}
        self.leaves: dict[str, Any] = {}

    def call(self, path: str, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function with the stand-ins of its ProtoVariables, and note what it made."""
        known: dict[Any, ProtoVariable] = {}
        given = [_replaced(v, known) for v in args]
        named = {name: _replaced(v, known) for name, v in (kwargs or {}).items()}
        with auto_forward(False):
            made = function(*given, **named)
        for y in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(y, Variable) and y.parent is not None:
                y.visit(lambda f: self._note(path, f, known))
        return _described(made, known)

    def _note(self, path: str, f: Any, known: dict[Any, ProtoVariable]) -> None:
        if f.outputs[0].data in known:
            return
        name = f"{path}/{f.name}" if path else f.name
        made = ProtoFunction._of(message_class("Function")._of(_core.record_function(f)), self.network)
        made.name = unique_name(self.function_names, name)
        if isinstance(made.args.get("shape"), (list, tuple)):  # of Reshape, Broadcast, Rand..
            made.args["shape"] = opened(made.args["shape"])
        made.inputs = [self._input(x, f"{name}_in", known) for x in f.inputs]
        for i, y in enumerate(f.outputs):
            v = ProtoVariable(tuple(opened(y.shape)), self._output_name(i, f"{name}_out"))
            v.parent = made.name
            known[y.data] = self.network.variables[str(v.name)] = v
            made.outputs.append(str(v.name))
        for key in made.inputs:
            if key in self.network.variables:
                self.network.variables[key].required.append(made.name)
        self.network.functions[made.name] = made

    def _input(self, x: Any, usual: str, known: dict[Any, ProtoVariable]) -> str:
        v = known.get(x.data)
        if v is None:
            key = f"\0{len(self.leaves)}"  # named when the network is finished
            self.leaves[key] = x
            return key
        if v.name is None:
            v.name = unique_name(self.variable_names, usual)
        there = self.network.variables.setdefault(v.name, v)
        if there is not v:
            text = "names of their own for the variables of a network"
            raise ArgumentError(message("ProtoVariable", "name", text, f"'{v.name}' twice"))
        return v.name

    def _output_name(self, i: int, usual: str) -> str:
        """The name of an output: the usual one, or the one that the network's `renaming` gives."""
        wanted = usual if self.network.renaming is None else self.network.renaming(i, usual)
        found = unique_name(self.variable_names, wanted)
        if wanted != usual and (found != wanted or found in self.network.variables):
            text = "names of their own for the variables of a network"
            raise ArgumentError(message("ProtoGraphGenerator", "names", text, f"'{wanted}' twice"))
        return found

    def finish(self, names: dict[Any, str]) -> None:
        """Give the parameters their names: those in `names`, by their arrays, or the function's and a number."""
        parameters = self.network.parameters
        for f in self.network.functions.values():
            for i, key in enumerate(f.inputs):
                if key in self.leaves:
                    leaf = self.leaves[key]
                    name = names.get(leaf.data) or unique_name(self.variable_names, f"{f.name}_{i}")
                    f.inputs[i] = name
                    if name not in parameters:
                        parameters[name] = ProtoVariable(leaf.shape, name, leaf.need_grad, "Parameter")
                        parameters[name].variable_instance = leaf
                        parameters[name].initializer = getattr(leaf.info, "initializer", None)


def _replaced(value: Any, known: dict[Any, ProtoVariable]) -> Any:
    """A value with Variables for ProtoVariables; `known` gets these by the arrays of those."""
    if isinstance(value, ProtoVariable):
        stand_in = value._placeholder()
        known[stand_in.data] = value
        return stand_in
    return type(value)(_replaced(v, known) for v in value) if type(value) in (list, tuple) else value


def _described(made: Any, known: dict[Any, ProtoVariable]) -> Any:
    if isinstance(made, Variable):
        return known.get(made.data, made)
    return type(made)(_described(v, known) for v in made) if type(made) in (list, tuple) else made


class RepeatInfo:
    """A loop: its name, and how often it runs.

    Args:
        id: The name.
        times: How often.

    >>> RepeatInfo("unroll", 3).times
    3
    """

    def __init__(self, id: str, times: int) -> None:
        self.id = id
        self.times = times


class LoopControlFunction:
    """A function that begins or ends a loop: it has no arguments."""

    def __init__(self) -> None:
        self.arguments: dict[str, Any] = {}


class ProtoGraphBuilder:
    """Where calls with `ProtoVariable`s go: the network that is being described, and those that are finished.

    Args:
        name: The network's name.
        parameter_scope: Dict that gets the parameters.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.networks: OrderedDict[str, ProtoNetwork] = OrderedDict()
        self.proto_graph = ProtoGraph(self.networks, kwargs.get("parameter_scope"))
        self.graph_name: str | None = kwargs.get("name")
        self.stack: list[Any] = []
        self.module: Any = None
        self._current: Description | None = None
        self._names: dict[str, int] = {}

    def get_current(self) -> ProtoNetwork:
        """The network that is being described."""
        return self._description().network

    def _description(self) -> Description:
        if self._current is None:
            self._current = Description(ProtoNetwork(self.proto_graph))
        return self._current

    def get_module(self) -> Any:
        """The module that is being called."""
        if self.module is None:
            self.module = FlatModule(self.graph_name)
        return self.module

    def dirty(self) -> None:
        """Say that there is something to finish."""
        self._description()

    def is_dirty(self) -> bool:
        """Whether a network is being described."""
        return self._current is not None

    def get_graph(self) -> ProtoGraph:
        """The graph that gets the networks."""
        return self.proto_graph

    def begin_module(self, module: Any) -> ProtoNetwork:
        """Let the following calls be those of a module.

        Args:
            module: The module, or a `FlatModule`.
        """
        self.stack.append(module)
        self.module = module
        return self.get_current()

    def end_module(self) -> None:
        """Go back to the module around; the outermost one finishes the network."""
        self.stack.pop()
        if self.stack:
            self.module = self.stack[-1]
        else:
            self.commit_network()

    def commit_network(self) -> None:
        """Finish the network that is being described: name its parameters, and put it into the graph."""
        description, module = self._description(), self.get_module()
        name = unique_name(self._names, self.graph_name or module.name)
        self.graph_name, self.module, self._current = None, None, None
        params = {v.data: key for key, v in module.get_parameters().items()}
        description.finish(params)
        description.network.commit(name, self.networks, params)
