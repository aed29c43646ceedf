"""How optimizers, monitors and executors, as `load` makes them of a file, are linked with networks and datasets."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from .. import functions as F
from .. import initializer
from .._errors import ArgumentError, FormatError, message
from ..core.graph_def import ProtoNetwork, ProtoVariable

_GENERATORS: dict[str, Callable[[float], Any]] = {
    "Normal": lambda m: initializer.NormalInitializer(m),
    "Uniform": lambda m: initializer.UniformInitializer((-m, m)),
    "Range": lambda m: initializer.RangeInitializer(0, m),
    "Constant": lambda m: initializer.ConstantInitializer(m),
}


def restore_optimizer_state(optimizer: Any) -> None:
    """Give an optimizer's solver the states that its file has. The solver has its parameters before."""
    optimizer.solver.set_states_from_protobuf(optimizer.proto)
    kind, states = getattr(optimizer, "solver_checkpoint", ("", b""))
    if kind == ".protobuf":
        optimizer.solver.set_states_from_protobuf(states)
    elif kind == ".h5":
        optimizer.solver._load_states("load", states, kind)


def link_components(info: Any) -> None:
    """Link the optimizers, monitors and executors of `base_load` with their networks and datasets.

    Raises:
        ValueError: If one of them names what is not there.
    """
    freeze(linked(info))


def freeze(parameters: Iterable[Any]) -> None:
    """Let no Variable of these be trained."""
    for v in parameters:
        v.need_grad = False


def linked(info: Any) -> list[Any]:
    """As `link_components`, but give the parameters that are not to be trained, which stay as they are."""
    frozen = [v for o in info.optimizers.values() for v in _link_optimizer(info, o)]
    for m in info.monitors.values():
        network = _start(info, m)
        m.data_iterators = _iterators(info, m.proto)
        m.monitor_variables = [_variable(info, network, v) for v in m.proto.monitor_variable]
        m.target = _sink(m.monitor_variables)
    for e in info.executors.values():
        _link_executor(info, e)
    return frozen


def _named(found: Any, name: str, what: str) -> Any:
    if name not in found:
        known = (
            f"one of the {what} {', '.join(map(repr, list(found)[:20]))}" if found else f"{what}, which the file lacks"
        )
        raise ArgumentError(message("load", None, known, repr(name)))
    return found[name]


def _start(info: Any, item: Any) -> ProtoNetwork:
    """Note the network of an item, and what is put into it."""
    item.network = network = _named(info.networks, item.proto.network_name, "networks")
    item.dataset_assign = OrderedDict((_variable(info, network, d), d.data_name) for d in item.proto.data_variable)
    item.generator_assign = OrderedDict(
        (_variable(info, network, g), _generator(g)) for g in item.proto.generator_variable
    )
    return network  # type: ignore[no-any-return]


def _variable(info: Any, network: ProtoNetwork, item: Any) -> ProtoVariable:
    name = item.variable_name
    name = name if name in network.variables else info.renamed_variables.get(name, name)
    return _named(network.variables, name, f"variables of the network '{network.name}'")  # type: ignore[no-any-return]


def _generator(g: Any) -> Any:
    return _named(_GENERATORS, g.type, "generators")(g.multiplier)


def _iterators(info: Any, proto: Any) -> OrderedDict[str, Any]:
    return OrderedDict((name, _named(info.datasets, name, "datasets").data_iterator) for name in proto.dataset_name)


def _parameters(network: ProtoNetwork, name: str) -> list[ProtoVariable]:
    """The variables of this name; of a name with loops, `a{loop}/w`, those of all passes."""
    both = {**network.variables, **network.parameters}
    if name in both:
        return [both[name]]
    parts = [re.escape(part) for part in re.split(r"{[^}]*}", name)]
    pattern = r"\[\d+\]".join(parts)
    found = [v for key, v in both.items() if re.match(pattern, key)]
    return found or [_named(both, name, f"variables of the network '{network.name}'")]


def _rates(network: ProtoNetwork, proto: Any) -> OrderedDict[ProtoVariable, float]:
    pairs = [
        (v, p.learning_rate_multiplier) for p in proto.parameter_variable for v in _parameters(network, p.variable_name)
    ]
    return OrderedDict(pairs)


def _link_optimizer(info: Any, o: Any) -> list[Any]:
    """Link an optimizer; give the parameters that are not to be trained."""
    network = _start(info, o)
    o.data_iterators = _iterators(info, o.proto)
    o.loss_variables = [_variable(info, network, v) for v in o.proto.loss_variable]
    o.parameter_learning_rate_multipliers = _rates(network, o.proto)
    rates = o.parameter_learning_rate_multipliers
    trained = {v.name: v.variable_instance for v, rate in rates.items() if rate > 0}
    o.parameters = OrderedDict(sorted(trained.items()))
    o.solver.set_parameters(trained)
    restore_optimizer_state(o)
    losses = [_made(v) for v in o.loss_variables]
    for loss in losses:
        loss.grad.fill(1.0 / loss.size)
    o.target = losses[0] if len(losses) == 1 else _sink(o.loss_variables, one_input_grad=False)
    return [v.variable_instance for v, rate in rates.items() if not rate > 0 and v.variable_instance is not None]


def _made(v: ProtoVariable) -> Any:
    if v.variable_instance is None:
        raise FormatError(message("load", None, f"no function of the network makes the variable '{v.name}'"))
    return v.variable_instance


def _sink(variables: Iterable[ProtoVariable], **more: Any) -> Any:
    """What runs all of these; None where there are none."""
    found = [_made(v) for v in variables]
    return F.sink(*found, **more) if found else None


def _link_executor(info: Any, e: Any) -> None:
    network = _start(info, e)
    e.output_assign = OrderedDict((_variable(info, network, o), [o.type, o.data_name]) for o in e.proto.output_variable)
    found = [v for p in e.proto.parameter_variable for v in _parameters(network, p.variable_name)]
    e.parameters = OrderedDict((v, v.name) for v in found)
    e.forward_target = _sink(e.output_assign)
    if e.need_back_propagation:
        e.loss_variables = [_variable(info, network, v) for v in e.proto.loss_variable]
        e.parameter_learning_rate_multipliers = _rates(network, e.proto)
        e.backward_target = _sink(e.loss_variables)
