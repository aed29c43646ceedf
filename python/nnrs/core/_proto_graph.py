"""Described networks with their parameters and executors (`nnrs.core.graph_def`), as a `.nnp` file has them."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import Any

from .. import _core
from .._errors import ArgumentError, check_type, message
from .._messages import Message, message_class
from .._modes import context_scope, get_current_context
from ..parameter import get_parameters, parameter_scope, set_parameter
from ._proto_network import ProtoNetwork


class ProtoExecutor:
    """How a network is run: the names of its inputs and outputs, as a message `Executor` in `proto`.

    Args:
        proto: The message.
    """

    def __init__(self, proto: Any) -> None:
        self.proto = proto
        self.renaming: dict[str, str] | None = None
        self.network_name: str | None = None

    @staticmethod
    def from_proto(proto: Any) -> ProtoExecutor:
        """The executor of a message."""
        return ProtoExecutor(proto)

    @staticmethod
    def create_from_dict(executor: dict[str, Any], network: ProtoNetwork) -> ProtoExecutor:
        """The executor of a dict as `save` takes it; an `output` that is a dict gives ProtoVariables new names.

        Args:
            executor: The dict: `name`, `network`, `data`, `output`, and what else a message `Executor` has.
            network: The network.

        Raises:
            ValueError: If the dict has no name.
        """
        check_type("create_from_dict", "executor", executor, dict, "a dict")
        if "name" not in executor or "network" not in executor:
            raise ArgumentError(message("create_from_dict", "executor", "'name' and 'network'", ", ".join(executor)))
        made = ProtoExecutor(message_class("Executor")(name=executor["name"], network_name=executor["network"]))
        made.network_name = executor["network"]
        renamed = executor.get("remp", {})
        outputs = executor.get("output", {})
        if isinstance(outputs, dict):
            made.renaming = {v.name: name for name, v in outputs.items()}
        for key in ("no_image_normalization", "num_evaluations", "repeat_evaluation_type", "need_back_propagation"):
            if key in executor:
                setattr(made.proto, key, executor[key])
        for name in executor.get("data", []):
            made.proto.data_variable.add(variable_name=name, data_name=renamed.get(name, name))
        for name in outputs:
            made.proto.output_variable.add(variable_name=name, data_name=renamed.get(name, name))
        for name in executor.get("generator_variables", {}):
            made.proto.generator_variable.add(variable_name=name, type="Constant")
        for name in network.parameters:
            made.proto.parameter_variable.add(variable_name=name)
        return made

    def get_network_renaming(self) -> tuple[str | None, dict[str, str] | None]:
        """The network's name, and new names of its variables by the old ones."""
        return self.network_name, self.renaming

    def as_proto(self) -> Any:
        """The message."""
        return self.proto


class ProtoGraph:
    """Networks with their parameters, as a `.nnp` file has them. Networks are also attributes: `g.main`.

    Args:
        networks: Networks by name.
        parameter_scope: Dict that has the parameters; by default a new one.
    """

    def __init__(self, networks: Any = None, parameter_scope: Any = None) -> None:
        self.networks: OrderedDict[str, ProtoNetwork] = OrderedDict() if networks is None else networks
        self.executors: OrderedDict[str, ProtoExecutor] = OrderedDict()
        self.parameter_scope: Any = OrderedDict() if parameter_scope is None else parameter_scope
        self.global_variables: dict[str, Any] = {}  # inputs with initial values, which all networks share
        self._context: Any = None

    def __getattr__(self, item: str) -> Any:
        networks = self.__dict__.get("networks", {})
        if item in ("inputs", "outputs", "parameters", "functions", "variables") and networks:
            return getattr(self.default_graph(), item)
        if item in networks:
            return networks[item]
        raise AttributeError(f"the graph has no network '{item}'; it has {', '.join(networks) or 'none'}")

    def __getitem__(self, item: str) -> Any:
        return getattr(self, item)

    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, ProtoNetwork):
            self.networks[key] = value
        else:
            setattr(self, key, value)

    def __contains__(self, item: str) -> bool:
        return item in self.__dict__

    def get(self, key: str, value: Any = None) -> Any:
        """An attribute, or a value if there is none.

        Args:
            key: The attribute's name.
            value: The value.
        """
        return self.__dict__.get(key, value)

    def get_parameters(self, grad_only: bool = False) -> OrderedDict[str, Any]:
        """The parameters by name.

        Args:
            grad_only: Leave out those with `need_grad=False`.
        """
        with parameter_scope("", self.parameter_scope):
            return get_parameters(grad_only=grad_only)

    def set_parameter(self, key: str, param: Any) -> None:
        """Make a Variable a parameter.

        Args:
            key: Its name.
            param: The Variable.
        """
        with parameter_scope("", self.parameter_scope):
            set_parameter(key, param)

    def set_parameters(self, params: dict[str, Any]) -> None:
        """Make Variables parameters.

        Args:
            params: Variables by name.
        """
        for key, param in params.items():
            self.set_parameter(key, param)

    @property
    def current_context(self) -> Any:
        """The context in which graphs are made; by default the current one."""
        return get_current_context() if self._context is None else self._context

    @current_context.setter
    def current_context(self, ctx: Any) -> None:
        self._context = ctx

    def _in_context(self) -> Any:
        return contextlib.nullcontext() if self._context is None else context_scope(self._context)

    @staticmethod
    def from_proto(proto: Any, batch_size: int | None = None, param_scope: Any = None, rng: Any = None) -> ProtoGraph:
        """The networks and executors of a message `NNablaProtoBuf`.

        Args:
            proto: The message.
            batch_size: Samples in a batch; by default as many as the message says.
            param_scope: Dict that has the parameters.
            rng: Not used; initial values come from `nnrs.random`.
        """
        check_type("from_proto", "proto", proto, message_class("NNablaProtoBuf"), "a message NNablaProtoBuf")
        made = ProtoGraph(parameter_scope=param_scope)
        for n in proto.network:
            made.networks[n.name] = ProtoNetwork.from_proto(made, n, rng, batch_size)
        for e in proto.executor:
            made.executors[e.name] = ProtoExecutor.from_proto(e)
        return made

    def as_proto(
        self,
        include_parameter: bool = False,
        only_parameter: bool = False,
        networks: Any = None,
        variable_batch_size: bool = True,
    ) -> Any:
        """The graph as a message `NNablaProtoBuf`.

        Args:
            include_parameter: Whether the parameters are in it.
            only_parameter: Whether nothing else is.
            networks: The networks that are in it; by default all.
            variable_batch_size: Whether the batch's size is left open.

        Raises:
            ValueError: If the batch's size cannot be left open.
        """
        proto = message_class("NNablaProtoBuf")()
        if not only_parameter:
            renamings = dict(e.get_network_renaming() for e in self.executors.values())
            for n in self.networks.values() if networks is None else networks:
                made = n.as_proto(variable_batch_size=variable_batch_size)
                proto.network.append(_renamed(made, renamings.get(n.name) or {}))
            proto.executor.extend(e.as_proto() for e in self.executors.values())
        if include_parameter or only_parameter:
            params = self.get_parameters()
            proto.MergeFromString(_core.write_nnabla({}, list(params), list(params.values()), ".protobuf", ".h5", []))
        return proto

    def default_graph(self) -> ProtoNetwork:
        """The first network.

        Raises:
            ValueError: If there is none.
        """
        if not self.networks:
            raise ArgumentError(message("default_graph", None, "the graph has no network"))
        return next(iter(self.networks.values()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the graph of the first network: see `ProtoNetwork`."""
        return self.default_graph()(*args, **kwargs)

    def save(
        self, filename: Any, include_parameter: bool = False, variable_batch_size: bool = True, executors: Any = None
    ) -> None:
        """Write the networks to a file, as `nnrs.graph_def.save` does.

        Args:
            filename: Path, or a file open for writing.
            include_parameter: Whether '.nntxt' and '.protobuf' have the parameters; '.nnp' always has.
            variable_batch_size: Whether the batch's size is left open.
            executors: List of dicts: how networks are run.
        """
        from .graph_def import save

        save(filename, [self], include_parameter, variable_batch_size, executors=executors)

    def expand_loop_control(self) -> None:
        """Replace loops in all networks by their passes."""
        for name, n in list(self.networks.items()):
            self.networks[name] = n.expand_loop_control()
            self.networks[name]._kept = None


def _renamed(network: Message, renames: dict[str, str]) -> Message:
    for v in network.variable:
        v.name = renames.get(v.name, v.name)
    for f in network.function:
        f.input[:] = [renames.get(name, name) for name in f.input]
        f.output[:] = [renames.get(name, name) for name in f.output]
    return network
