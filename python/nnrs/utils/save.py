"""Networks, and what is done with them, to files: `save`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import _core, _files
from .._borrowed import borrower
from .._core import Variable
from .._errors import ArgumentError, ArgumentTypeError, check_integer, check_name, check_type, describe, message
from .._messages import Message, message_class
from ..logger import logger
from ..parameter import get_parameters

__all__ = ["create_proto", "save"]

__getattr__ = borrower(__name__)

_KINDS = (".nnp", ".nntxt", ".prototxt", ".protobuf")
_STATES = (".h5", ".protobuf")
_KEYS = ("global_config", "training_config", "networks", "datasets", "optimizers", "monitors", "executors")

_SOLVERS = {
    "Sgd": "sgd",
    "SgdW": "sgdw",
    "Momentum": "momentum",
    "Lars": "lars",
    "Nesterov": "nesterov",
    "Adadelta": "adadelta",
    "Adagrad": "adagrad",
    "AdaBelief": "adabelief",
    "RMSprop": "rmsprop",
    "RMSpropGraves": "rmsprop_graves",
    "Adam": "adam",
    "AdamW": "adamw",
    "AdaBound": "adabound",
    "Adamax": "adamax",
    "AMSGRAD": "amsgrad",
    "AMSBound": "amsbound",
    "Lamb": "lamb",
    "Lion": "lion",
}
"""The fields with the settings of solvers, by their names."""


def save(
    filename: Any,
    contents: dict[str, Any],
    include_params: bool = False,
    variable_batch_size: bool = True,
    extension: str = ".nnp",
    parameters: dict[str, Any] | None = None,
    parameter_format: str = ".h5",
    include_solver_state: bool = False,
    solver_state_format: str = ".h5",
) -> None:
    """Write networks, and how they are run and trained, to a file.

    Args:
        filename: Path that ends in '.nnp' (an archive of networks and parameters), '.nntxt' or '.prototxt' (text),
            '.protobuf' (bytes), or a file open for writing.
        contents: Dict with any of the lists `networks`, `executors`, `datasets`, `optimizers`, `monitors`, and the
            dicts `global_config` and `training_config`. A network is a dict of `name`, `batch_size`, `outputs` and
            `names` (dicts from names to Variables); an executor one of `name`, `network`, `data` and `output` (lists of
            names).
        include_params: Whether '.nntxt' and '.protobuf' have the parameters; '.nnp' always has.
        variable_batch_size: Whether the first size of all that has one for each sample is left open, so that the file
            can be loaded for batches of another size.
        extension: The format of an open file.
        parameters: Dict of the parameters of a '.nnp'; by default all of the current scope.
        parameter_format: '.h5' or '.protobuf': how a '.nnp' holds parameters.
        include_solver_state: Whether the states of the optimizers' solvers are written, too.
        solver_state_format: '.h5' or '.protobuf': how a '.nnp' holds those.

    Raises:
        ValueError: If a name in `contents` is not known, or the batch's size cannot be left open.
        TypeError: If a Variable is expected and something else is given.
        OSError: If the file cannot be written; an old one stays.

    >>> import io, nnrs as nn, nnrs.functions as F
    >>> x = nn.Variable((2, 3))
    >>> net = {"name": "net", "batch_size": 2, "outputs": {"y": F.relu(x)}, "names": {"x": x}}
    >>> run = {"name": "run", "network": "net", "data": ["x"], "output": ["y"]}
    >>> file = io.BytesIO()
    >>> save(file, {"networks": [net], "executors": [run]})
    >>> nn.load_parameters(file, extension=".nnp").executor[0].data_variable[0].variable_name
    'x'
    """
    here = "save"
    ext = _kind_of(here, filename, extension)
    is_nnp = ext == ".nnp"
    for argument, value in (("parameter_format", parameter_format), ("solver_state_format", solver_state_format)):
        if value not in _STATES:
            raise ArgumentError(message(here, argument, "'.h5' or '.protobuf'", describe(value)))
    if include_solver_state and "optimizers" not in contents:
        raise ArgumentError(message(here, "contents", "'optimizers', whose solvers' states are to be written", "none"))
    proto = create_proto(
        contents, include_params and not is_nnp, variable_batch_size, include_solver_state and not is_nnp
    )
    chosen = _chosen(parameters) if is_nnp else {}
    states = _states(contents, solver_state_format) if include_solver_state and is_nnp else []
    data = _core.write_nnabla(proto._dict(), list(chosen), list(chosen.values()), ext, parameter_format, states)
    _files.write_bytes(here, filename, ext, data, "filename")
    logger.info("Model file is saved as (%s): %s", ext, filename)


def _kind_of(function: str, filename: Any, extension: str) -> str:
    """The format; a name without one gets `extension`'s."""
    if _files.is_path(filename) and not os.path.splitext(os.fspath(filename))[1]:
        return _files.file_extension(function, f"a{extension}", None, _KINDS)
    return _files.file_extension(function, filename, extension, _KINDS)


def _chosen(parameters: Any) -> dict[str, Any]:
    if parameters is None:
        return get_parameters(grad_only=False)
    check_type("save", "parameters", parameters, dict, "a dict from names to Variables")
    for name, v in parameters.items():
        check_name("save", "parameters", name, "names as str")
        check_type("save", f"parameters['{name}']", v, Variable, "a Variable")
    _core.check_parameter_names("save", "parameters", list(parameters))
    return parameters


def create_proto(
    contents: dict[str, Any],
    include_params: bool = False,
    variable_batch_size: bool = True,
    save_solver_in_proto: bool = False,
) -> Any:
    """What `save` writes, as the message `NNablaProtoBuf`.

    Args:
        contents: As `save` takes it.
        include_params: Whether the parameters of the current scope are in it.
        variable_batch_size: Whether the batch's size is left open.
        save_solver_in_proto: Whether the states of solvers are in it.

    Raises:
        ValueError: If a name in `contents` is not known, or the batch's size cannot be left open.
    """
    check_type("create_proto", "contents", contents, dict, "a dict")
    _check_keys(contents)
    proto = message_class("NNablaProtoBuf")()
    if "global_config" in contents:
        _fill_context(
            proto.global_config.default_context, _of(contents["global_config"], "default_context", "global_config")
        )
    if "training_config" in contents:
        _fill(
            proto.training_config, contents["training_config"], "training_config", "max_epoch iter_per_epoch save_best"
        )
    networks = {}
    for net in _dicts(contents, "networks"):
        made = _network(net, variable_batch_size)
        networks[made.name] = _Ports(made)
        proto.network.append(made)
    for d in _dicts(contents, "datasets"):
        proto.dataset.append(_dataset(d))
    datasets = [d.name for d in proto.dataset]
    for o in _dicts(contents, "optimizers"):
        proto.optimizer.append(_optimizer(o, networks, datasets, save_solver_in_proto))
    for m in _dicts(contents, "monitors"):
        proto.monitor.append(_monitor(m, networks, datasets))
    for e in _dicts(contents, "executors"):
        proto.executor.append(_executor(e, networks))
    if include_params:
        _add_parameters(proto)
    return proto


def _check_keys(contents: dict[str, Any]) -> None:
    """A misspelt key would leave its part out of the file in silence."""
    unknown = [key for key in contents if key not in _KEYS]
    if unknown:
        expected = "keys among " + ", ".join(f"'{key}'" for key in _KEYS)
        raise ArgumentError(message("create_proto", "contents", expected, ", ".join(map(repr, unknown))))


def _dicts(contents: dict[str, Any], key: str) -> Iterable[dict[str, Any]]:
    if isinstance(contents.get(key), (Mapping, str)):  # which can be gone through, too
        raise ArgumentTypeError(
            message("create_proto", f"contents['{key}']", "a list of dicts", describe(contents[key]))
        )
    for item in contents.get(key, []):
        check_type("create_proto", f"contents['{key}']", item, dict, "a list of dicts")
        yield item


def _of(item: Any, key: str, where: str) -> Any:
    """What a dict of `contents` must have."""
    check_type("create_proto", f"contents['{where}']", item, dict, "a dict")
    if key not in item:
        raise ArgumentError(
            message("create_proto", f"contents['{where}']", f"the key '{key}'", ", ".join(map(str, item)))
        )
    return item[key]


def _fill(to: Message, item: dict[str, Any], where: str, keys: str) -> None:
    for key in keys.split():
        setattr(to, key, _of(item, key, where))


def _fill_context(to: Message, ctx: Any) -> None:
    if not hasattr(ctx, "array_class"):
        expected = "a Context"
        raise ArgumentTypeError(
            message("create_proto", "contents['global_config']['default_context']", expected, describe(ctx))
        )
    to.backends.extend(ctx.backend)
    to.array_class, to.device_id = ctx.array_class, ctx.device_id


class _Ports:
    """A network's message, and the names of what goes in and out."""

    def __init__(self, network: Message) -> None:
        self.network = network
        made = {name for f in network.function for name in f.output}
        read = {name for f in network.function for name in f.input}
        buffers = [v.name for v in network.variable if v.type != "Parameter"]
        self.variables = buffers
        self.parameters = [v.name for v in network.variable if v.type == "Parameter"]
        self.inputs = [name for name in buffers if name in read and name not in made]
        self.outputs = [name for name in buffers if name in made and name not in read]


def _network(net: dict[str, Any], variable_batch_size: bool) -> Message:
    name = check_name("create_proto", "contents['networks']", _of(net, "name", "networks"), "names as str")
    outputs = _variables(net, "outputs")
    names = {**_variables(net, "names"), **outputs}
    batch_size = check_integer(
        "create_proto", f"batch_size of the network '{name}'", _of(net, "batch_size", "networks"), 0
    )
    parameters = list(get_parameters(grad_only=False).items())
    found = _core.record_network(
        "create_proto",
        name,
        batch_size,
        list(outputs.values()),
        list(names.items()),
        parameters,
        bool(variable_batch_size),
    )
    made = message_class("Network")._of(found)
    if not made.function:
        where = "contents['networks']['outputs']"
        raise ArgumentError(message("create_proto", where, "a Variable that a function makes", "none"))
    made.batch_size = batch_size
    return made


def _variables(net: dict[str, Any], key: str) -> dict[str, Any]:
    found = _of(net, key, "networks")
    check_type("create_proto", f"contents['networks']['{key}']", found, Mapping, "a dict from names to Variables")
    for name, v in found.items():
        check_name("create_proto", f"contents['networks']['{key}']", name, "names as str")
        check_type("create_proto", f"contents['networks']['{key}']['{name}']", v, Variable, "a Variable")
    return dict(found)


def _dataset(d: dict[str, Any]) -> Message:
    made = message_class("Dataset")()
    _fill(made, d, "datasets", "name uri shuffle batch_size no_image_normalization")
    if d.get("cache_dir") is not None:
        made.cache_dir = os.fspath(d["cache_dir"])
    made.variable.extend(_of(d, "variables", "datasets"))
    return made


def _known(found: Mapping[str, Any] | Iterable[str], name: Any, what: str) -> Any:
    """Raise ValueError unless `name` is one of those; of a dict, what it has."""
    if name not in found:  # type: ignore[operator]
        known = ", ".join(map(repr, found)) or "none"
        raise ArgumentError(message("create_proto", "contents", f"one of the {what} {known}", describe(name)))
    return found[name] if isinstance(found, Mapping) else name


def _dataset_names(given: Any, datasets: list[str], strict: bool) -> list[str]:
    if isinstance(given, (list, tuple)):
        return [_known(datasets, name, "datasets") for name in given]
    if strict:
        return [_known(datasets, given, "datasets")]
    return [given] if isinstance(given, str) and given in datasets else []


def _optimizer(o: dict[str, Any], networks: dict[str, _Ports], datasets: list[str], with_states: bool) -> Message:
    made = message_class("Optimizer")()
    solver = _of(o, "solver", "optimizers")
    if not hasattr(solver, "get_parameters"):
        raise ArgumentTypeError(
            message("create_proto", "contents['optimizers']['solver']", "a Solver", describe(solver))
        )
    ports = _known(networks, _of(o, "network", "optimizers"), "networks") if networks else None
    made.name = _of(o, "name", "optimizers")
    made.network_name = ports.network.name if ports else "None"
    made.dataset_name.extend(_dataset_names(_of(o, "dataset", "optimizers"), datasets, strict=False))
    _fill(made, o, "optimizers", "update_interval")
    _fill_solver(made.solver, solver)
    _fill(made.solver, o, "optimizers", "weight_decay lr_decay lr_decay_interval")
    for variable, data in o.get("data_variables", {}).items():
        made.data_variable.add(variable_name=variable, data_name=data)
    for name in o.get("loss_variables", ports.outputs) if ports else []:
        made.loss_variable.add(variable_name=name)
    trained = solver.get_parameters()
    for name in ports.parameters if ports else get_parameters():
        made.parameter_variable.add(variable_name=name, learning_rate_multiplier=float(name in trained))
    _add_generators(made, o)
    if with_states:
        solver.set_states_to_protobuf(made)
    return made


def _solver_name(solver: Any) -> str:
    return re.sub("Cuda$", "", str(solver.name))


def _fill_solver(to: Message, solver: Any) -> None:
    to.type = _solver_name(solver)
    field = _SOLVERS.get(to.type)
    if field is None:
        return
    settings = getattr(to, f"{field}_param")
    settings.SetInParent()
    for name in settings._fields:
        if name in solver.info:
            setattr(settings, name, solver.info[name])


def _add_generators(to: Message, item: dict[str, Any]) -> None:
    for name in item.get("generator_variables", []):
        to.generator_variable.add(variable_name=name, type="Constant")


def _monitor(m: dict[str, Any], networks: dict[str, _Ports], datasets: list[str]) -> Message:
    ports = _known(networks, _of(m, "network", "monitors"), "networks")
    made = message_class("Monitor")(name=_of(m, "name", "monitors"), network_name=m["network"])
    made.dataset_name.extend(_dataset_names(_of(m, "dataset", "monitors"), datasets, strict=True))
    for variable, data in m.get("data_variables", {}).items():
        made.data_variable.add(variable_name=variable, data_name=data)
    for name in m.get("monitor_variables", ports.outputs):
        made.monitor_variable.add(variable_name=name, type="Error")
    _add_generators(made, m)
    return made


def _executor(e: dict[str, Any], networks: dict[str, _Ports]) -> Message:
    ports = _known(networks, _of(e, "network", "executors"), "networks")
    made = message_class("Executor")(name=_of(e, "name", "executors"), network_name=ports.network.name)
    for key in ("no_image_normalization", "num_evaluations", "repeat_evaluation_type", "need_back_propagation"):
        if e.get(key) is not None:
            setattr(made, key, e[key])
    renamed = e.get("remp", {})
    check_type("create_proto", "contents['executors']['remp']", renamed, Mapping, "a dict from names to names")
    for add, names in (
        (made.data_variable.add, e.get("data", ports.inputs)),
        (made.output_variable.add, e.get("output", ports.outputs)),
    ):
        for name in names:
            _known(ports.variables, name, f"variables of the network '{ports.network.name}'")
            add(variable_name=name, data_name=renamed.get(name, name))
    for name in ports.parameters:
        made.parameter_variable.add(variable_name=name)
    _add_generators(made, e)
    return made


def _add_parameters(proto: Message) -> None:
    parameters = get_parameters(grad_only=False)
    data = _core.write_nnabla({}, list(parameters), list(parameters.values()), ".protobuf", ".h5", [])
    proto.MergeFromString(data)


def _states(contents: dict[str, Any], kind: str) -> list[tuple[str, bytes]]:
    """The files of a `.nnp` with the states of solvers."""
    optimizers = list(_dicts(contents, "optimizers"))
    if kind == ".protobuf":
        return [("optimizer.protobuf.optimizer", _proto_states(optimizers))]
    return [
        (f"{o['name']}_{_solver_name(o['solver'])}_optimizer.h5.optimizer", _bytes_of(o["solver"].save_states, ".h5"))
        for o in optimizers
    ]


def _proto_states(optimizers: list[dict[str, Any]]) -> bytes:
    proto = message_class("NNablaProtoBuf")()
    for o in optimizers:
        made = proto.optimizer.add(name=o["name"])
        _fill_solver(made.solver, o["solver"])
        o["solver"].set_states_to_protobuf(made)
    return proto.SerializeToString()


def _bytes_of(write: Callable[[str], Any], kind: str) -> bytes:
    """What `write` writes to the path that it is given."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"states{kind}")
        write(path)
        with open(path, "rb") as f:
            return f.read()
