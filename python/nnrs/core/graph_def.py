"""Networks as descriptions: made by calls with `ProtoVariable`s or of a graph, saved, loaded, made into graphs.

>>> import nnrs as nn, nnrs.functions as F, nnrs.parametric_functions as PF
>>> with nn.graph_def.graph(name="net") as g:
...     y = F.relu(PF.affine(nn.ProtoVariable((16, 3), name="x"), 2))
>>> g.networks["net"].inputs, y.shape, [f.type for f in g.networks["net"].forward_sequence()]
(['x'], (16, 2), ['Affine', 'ReLU'])
>>> g(nn.Variable((5, 3))).shape
(5, 2)
>>> nn.clear_parameters()
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from .. import _core, _files, _stand_ins
from .._core import Variable
from .._errors import ArgumentError, ArgumentTypeError, check_batch_size, check_type, describe, message
from .._messages import message_class
from ..logger import logger
from ..parameter import get_parameters, parameter_scope
from ._proto_builder import FlatModule, LoopControlFunction, ProtoGraphBuilder, RepeatInfo
from ._proto_generator import ProtoGraphGenerator
from ._proto_graph import ProtoExecutor, ProtoGraph
from ._proto_network import ProtoNetwork
from ._proto_parts import ProtoFunction, ProtoVariable

__all__ = [
    "FlatModule",
    "LoopControlFunction",
    "ProtoExecutor",
    "ProtoFunction",
    "ProtoGraph",
    "ProtoGraphBuilder",
    "ProtoGraphGenerator",
    "ProtoNetwork",
    "ProtoVariable",
    "RepeatInfo",
    "create_graph_from_variable",
    "current_graph_builder",
    "current_module",
    "current_network",
    "get_default_graph",
    "get_default_graph_by_variable",
    "graph",
    "graph_name",
    "load",
    "module_scope",
    "reset_default_graph",
    "save",
]

for _kind in (
    FlatModule,
    LoopControlFunction,
    ProtoExecutor,
    ProtoFunction,
    ProtoGraph,
    ProtoGraphBuilder,
    ProtoGraphGenerator,
    ProtoNetwork,
    ProtoVariable,
    RepeatInfo,
):
    _kind.__module__ = __name__


_builder = ProtoGraphBuilder()


def _called(function: Any, args: Any, kwargs: Any) -> Any:
    """A function called with ProtoVariables."""
    path = _builder.get_module().get_path_name()
    return _builder._description().call(path, function, args, kwargs)


_stand_ins.call_by(ProtoVariable, _called)


def current_graph_builder() -> ProtoGraphBuilder:
    """Where calls with `ProtoVariable`s go."""
    return _builder


def current_network() -> ProtoNetwork:
    """The network that is being described."""
    return _builder.get_current()


def current_module() -> Any:
    """The module that is being called."""
    return _builder.get_module()


def reset_default_graph() -> None:
    """Forget all networks outside of `graph`."""
    global _builder
    _builder = ProtoGraphBuilder()


@contextlib.contextmanager
def graph(**kwargs: Any) -> Iterator[ProtoGraph]:
    """Let the block describe networks of a graph of its own, which `as` gives.

    Args:
        name: The network's name; by default "model".
        parameter_scope: Dict that gets the parameters.

    >>> import nnrs as nn, nnrs.functions as F
    >>> with graph(name="net") as g:
    ...     y = F.relu(nn.ProtoVariable((2, 3), name="x"))
    >>> g.net.inputs, g.net.outputs
    (['x'], ['@net/ReLU_out'])
    """
    global _builder
    before, _builder = _builder, ProtoGraphBuilder(**kwargs)
    try:
        yield _builder.get_graph()
        if _builder.is_dirty():
            _builder.commit_network()
    finally:
        _builder = before


@contextlib.contextmanager
def graph_name(name: str) -> Iterator[Any]:
    """Let the block describe a network in the current graph.

    Args:
        name: The network's name.

    >>> import nnrs as nn, nnrs.functions as F
    >>> reset_default_graph()
    >>> with graph_name("net"):
    ...     y = F.relu(nn.ProtoVariable((2, 3)))
    >>> list(get_default_graph().networks)
    ['net']
    """
    builder = _builder
    before, builder.graph_name = builder.graph_name, name
    try:
        yield builder.get_current()
        if builder.is_dirty():
            builder.commit_network()
    finally:
        builder.graph_name = before


@contextlib.contextmanager
def module_scope(pgb: ProtoGraphBuilder, module: Any) -> Iterator[ProtoNetwork]:
    """Let the block be a call of a module.

    Args:
        pgb: Where the calls go.
        module: The module.
    """
    yield pgb.begin_module(module)
    pgb.end_module()


def get_default_graph(*args: Any, **kwargs: Any) -> Any:
    """What was described outside of `graph`: the ProtoGraph, or with a name its network of that name, or None.

    >>> import nnrs as nn, nnrs.functions as F
    >>> reset_default_graph()
    >>> y = F.relu(nn.ProtoVariable((2, 3)))
    >>> list(get_default_graph().networks), y.name
    (['model'], 'ReLU_out')
    """
    if _builder.is_dirty():
        _builder.commit_network()
    name = args[0] if args and isinstance(args[0], str) else kwargs.get("name")
    return _builder.proto_graph if name is None else _builder.proto_graph.networks.get(name)


def get_default_graph_by_variable(proto_variable: ProtoVariable) -> ProtoNetwork:
    """The network that was described outside of `graph` and has this output.

    Args:
        proto_variable: The output.

    Raises:
        TypeError: If it is no ProtoVariable.
        ValueError: If there is none.

    >>> import nnrs as nn, nnrs.functions as F
    >>> reset_default_graph()
    >>> y = F.relu(nn.ProtoVariable((2, 3)))
    >>> get_default_graph_by_variable(y).name
    'model'
    """
    check_type("get_default_graph_by_variable", "proto_variable", proto_variable, ProtoVariable, "a ProtoVariable")
    for n in get_default_graph().networks.values():
        if any(n.variables[name] is proto_variable for name in n.outputs):
            return n  # type: ignore[no-any-return]
    raise ArgumentError(
        message("get_default_graph_by_variable", "proto_variable", "an output", describe(proto_variable))
    )


def create_graph_from_variable(
    name: str, variables: Any, names: dict[str, Any] | None = None, parameter_scope: Any = None
) -> ProtoGraph:
    """Describe the graph behind one or more Variables.

    Args:
        name: The network's name.
        variables: Variable, or list of Variables.
        names: Dict of names for Variables.
        parameter_scope: Dict of the parameters; by default those of the current scope.

    Raises:
        TypeError: If something else than Variables is given.
        ValueError: If no Variable is given, or two get one name.

    >>> import nnrs as nn, nnrs.functions as F
    >>> x = nn.Variable((2, 3))
    >>> y = F.relu(x)
    >>> g = create_graph_from_variable("net", y, names={"x": x, "y": y})
    >>> g.net.inputs, g.net.outputs
    (['x'], ['y'])
    """
    here = "create_graph_from_variable"
    check_type(here, "name", name, str, "the network's name")
    outputs = list(variables) if isinstance(variables, (list, tuple)) else [variables]
    if not outputs:
        raise ArgumentError(message(here, "variables", "one Variable at least", []))
    for v in [*outputs, *(names or {}).values()]:
        check_type(here, "variables", v, Variable, "Variables")
    made = ProtoGraph(parameter_scope=parameter_scope)
    parameters = made.get_parameters() if parameter_scope else get_parameters(grad_only=False)
    found = _core.record_network(here, name, 0, outputs, list((names or {}).items()), list(parameters.items()), False)
    network = made.networks[name] = ProtoNetwork.from_proto(made, message_class("Network")._of(found))
    network.batch_size = None  # not known before it is written
    for key, v in network.parameters.items():
        v.variable_instance = parameters[key]
        v.need_grad = parameters[key].need_grad
        made.set_parameter(key, parameters[key])
    return made


def load(
    filename: Any,
    batch_size: int | None = None,
    exclude_parameter: bool = False,
    parameter_only: bool = False,
    extension: str = ".nntxt",
    parameter_scope: Any = None,
    rng: Any = None,
) -> ProtoGraph:
    """Read networks and parameters from files.

    Args:
        filename: Path that ends in '.nnp', '.nntxt', '.prototxt', '.protobuf' or '.h5', a list of paths, or a file open
            for binary reading.
        batch_size: Samples in a batch; by default as many as the file says.
        exclude_parameter: Whether parameters are left out.
        parameter_only: Whether networks are.
        extension: The format of an open file.
        parameter_scope: Dict that gets the parameters; by default a new one.
        rng: Not used; initial values come from `nnrs.random`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file's content is not what it should be; then no parameter changes.

    >>> import io, nnrs as nn, nnrs.functions as F
    >>> with graph(name="net") as g:
    ...     y = F.relu(nn.ProtoVariable((2, 3), name="x"))
    >>> file = io.BytesIO()
    >>> save(file, [g], extension=".nnp")
    >>> load(io.BytesIO(file.getvalue()), extension=".nnp").net.inputs
    ['x']
    """
    here = "load"
    scope: Any = OrderedDict() if parameter_scope is None else parameter_scope
    check_type(here, "parameter_scope", scope, dict, "a dict of parameters")
    check_batch_size(here, batch_size)
    proto, records = message_class("NNablaProtoBuf")(), []
    for one in filename if isinstance(filename, (list, tuple)) else [filename]:
        found = _files.read_nnabla(here, one, extension, "filename")
        proto.MergeFrom(message_class("NNablaProtoBuf")._of(found.message))
        records += found.parameters
    made = ProtoGraph(parameter_scope=scope)
    if not parameter_only:
        made = ProtoGraph.from_proto(proto, batch_size, scope)
    if not exclude_parameter:
        _set_all(here, scope, list({name: (name, *rest) for name, *rest in records}.values()))
    return made


def _set_all(function: str, scope: Any, records: list[Any]) -> None:
    _core.check_parameter_names(function, "filename", [name for name, *_ in records])
    with parameter_scope("", scope):
        _core.set_parameters(function, records)


def save(
    filename: Any,
    content: Any,
    include_parameters: bool = False,
    variable_batch_size: bool = True,
    extension: str = ".nnp",
    executors: Any = None,
) -> None:
    """Write a graph or a network to a file.

    Args:
        filename: Path that ends in '.nnp', '.nntxt', '.prototxt' or '.protobuf', or a file open for writing.
        content: List with a ProtoGraph or a ProtoNetwork.
        include_parameters: Whether '.nntxt' and '.protobuf' have the parameters; '.nnp' always has.
        variable_batch_size: Whether the batch's size is left open.
        extension: The format of an open file.
        executors: List of dicts with `name`, `network`, `data` and `output`: how networks are run.

    Raises:
        TypeError: If `content` is something else.
        ValueError: If an executor's network is not there, or the batch's size cannot be left open.
        OSError: If the file cannot be written; an old one stays.
    """
    here = "save"
    ext = _files.file_extension(here, filename, extension, (".nnp", ".nntxt", ".prototxt", ".protobuf"))
    first = next(iter(content), None) if isinstance(content, (list, tuple)) else None
    if not isinstance(first, (ProtoGraph, ProtoNetwork)):
        raise ArgumentTypeError(
            message(here, "content", "a list with a ProtoGraph or a ProtoNetwork", describe(content))
        )
    owner = first if isinstance(first, ProtoGraph) else first._graph()
    networks = None if first is owner else [first]
    if executors is not None:
        known = owner.networks if networks is None else {first.name: first}
        owner.executors = OrderedDict((e.proto.name, e) for e in _executors(executors, known))
    is_nnp = ext == ".nnp"
    proto = owner.as_proto(include_parameters and not is_nnp, False, networks, variable_batch_size)
    params = owner.get_parameters() if is_nnp else {}
    data = _core.write_nnabla(proto._dict(), list(params), list(params.values()), ext, ".h5", [])
    _files.write_bytes(here, filename, ext, data, "filename")
    logger.info("Model file is saved as %s.", filename)


def _executors(executors: Any, networks: Any) -> Iterator[ProtoExecutor]:
    for e in [executors] if isinstance(executors, dict) else executors:
        check_type("save", "executors", e, dict, "a list of dicts")
        if e.get("network") not in networks:
            known = ", ".join(map(repr, networks))
            raise ArgumentError(
                message("save", "executors", f"one of the networks {known}", describe(e.get("network")))
            )
        yield ProtoExecutor.create_from_dict(e, networks[e["network"]])
