"""Calls of `ProtoFunction`s: into the network that is being described, and into a graph."""

from __future__ import annotations

from typing import Any

from .. import _core
from .. import function as functions
from .._core import Variable
from .._errors import ArgumentError, check_list, message
from .._errors import describe as described
from .._messages import message_class
from .._modes import get_current_context
from ._proto_parts import ProtoFunction, ProtoVariable


def describe(f: ProtoFunction, inputs: Any) -> Any:
    """What `f` makes of `inputs`, in the network that is being described; `f` becomes the function that is in it."""
    from .graph_def import current_graph_builder

    here = "ProtoFunction"
    given = check_list(here, "inputs", inputs, (ProtoVariable, Variable), "ProtoVariables or Variables")
    function, builder = _maker(here, f), current_graph_builder()
    description = builder._description()
    made = description.call(builder.get_module().get_path_name(), function, given, {})
    first = made[0] if isinstance(made, tuple) else made
    network = description.network
    noted = network.functions[first.parent]
    f.__dict__.update(vars(noted))
    network.functions[noted.name] = f
    return made


def _maker(here: str, f: ProtoFunction) -> functions.FunctionCall:
    """The function with its arguments, to be called with inputs."""
    maker = functions.maker_of(f.type)
    if maker is None:
        raise ArgumentError(message(here, "f_type", "NNabla's name of a function", described(f.type)))
    return maker(get_current_context(), **f.args)


def graph_call(f: ProtoFunction, **kwargs: Any) -> None:
    """The part of the graph that is `f`."""
    here = f"function '{f.name}'"
    network = f.owner() if f.owner is not None else None
    if network is None:
        raise ArgumentError(message(here, None, "its network is gone", hint="keep the graph that has it"))
    graph = network._graph()
    given = [(name, _instance(here, v)) for name, v in _read(network, f) if v.type != "Parameter"]
    with graph._in_context():
        made = _core.build_network(
            here, _alone(network, f), kwargs.get("batch_size") or 1, list(graph.get_parameters().items()), given
        )
    _, _, variables, parameters = (dict(part) for part in made)
    for name in f.outputs:
        network.variables[name].variable_instance = variables[name]
    for name, v in parameters.items():
        graph.set_parameter(name, v)
        network.parameters[name].variable_instance = v


def _read(network: Any, f: ProtoFunction) -> list[tuple[str, ProtoVariable]]:
    return [(name, network._variable(name)) for name in dict.fromkeys(f.inputs)]


def _instance(here: str, v: ProtoVariable) -> Variable:
    if not isinstance(v.variable_instance, Variable):
        text = f"there is no Variable as variable_instance of the input '{v.name}'"
        raise ArgumentError(message(here, None, text))
    return v.variable_instance


def _alone(network: Any, f: ProtoFunction) -> dict[str, Any]:
    """A network of this function alone, as the core takes it."""
    made = message_class("Network")(name=network.name or "", batch_size=network.batch_size or 0)
    made.variable.extend(v._message() for _, v in _read(network, f))
    made.variable.extend(network._variable(name)._message() for name in f.outputs)
    made.function.append(f._message())
    return made._dict()
