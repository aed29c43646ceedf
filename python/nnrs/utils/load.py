"""Networks of files with all that belongs to them: executors, optimizers, monitors, datasets. `load` links them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _core, _files, solvers
from .._borrowed import borrower
from .._errors import ArgumentError, check_batch_size, check_type, described_by_a_file, message
from .._messages import message_class
from .._modes import auto_forward, context_scope, forward_all, get_auto_forward, set_default_context
from ..core.graph_def import ProtoGraph
from ..parameter import get_current_parameter_scope
from ._links import freeze, link_components, linked, restore_optimizer_state
from ._load_contexts import context_of, default_context
from ._load_datasets import DatasetOpener
from ._loops import expand_loops
from ._staged_parameters import StagedParameters
from .communicator_util import current_communicator
from .save import _SOLVERS

__all__ = ["base_load", "link_components", "load", "restore_optimizer_state"]

__getattr__ = borrower(__name__)


def load(
    filenames: Any,
    prepare_data_iterator: bool | None = True,
    batch_size: int | None = None,
    exclude_parameter: bool = False,
    parameter_only: bool = False,
    extension: str = ".nntxt",
    context: str | None = None,
) -> Any:
    """Read files, and make and link all that they describe. Parameters go into the current scope.

    Args:
        filenames: Path, a list of paths, or a file open for binary reading.
        prepare_data_iterator: Whether datasets can be iterated over; None: if the training has epochs.
        batch_size: Samples in a batch; by default as many as the file says.
        exclude_parameter: Whether parameters are left out.
        parameter_only: Whether all else is.
        extension: The format of an open file.
        context: 'cpu', 'cudnn' or 'cudnn:1'; by default what the file says.

    Returns:
        Namespace with dicts by name: `networks` (ProtoNetworks, with their graphs in `variable_instance`), `executors`,
        `optimizers`, `monitors` and `datasets`; and `global_config`, `training_config`, `proto`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file's content is not what it should be.

    >>> import io, nnrs as nn, nnrs.functions as F
    >>> from nnrs.utils.save import save
    >>> x, file = nn.Variable((2, 3)), io.BytesIO()
    >>> net = {"name": "net", "batch_size": 2, "outputs": {"y": F.relu(x)}, "names": {"x": x}}
    >>> save(file, {"networks": [net], "executors": [{"name": "run", "network": "net"}]})
    >>> run = load(file, extension=".nnp").executors["run"]
    >>> [(v.name, data) for v, data in run.dataset_assign.items()], [v.name for v in run.output_assign]
    ([('x', 'x')], ['y'])
    """
    options = (prepare_data_iterator, batch_size, exclude_parameter, parameter_only, extension, context)
    return _load(filenames, *options, link=True)


def base_load(
    filenames: Any,
    prepare_data_iterator: bool | None = True,
    batch_size: int | None = None,
    exclude_parameter: bool = False,
    parameter_only: bool = False,
    extension: str = ".nntxt",
    context: str | None = None,
) -> Any:
    """As `load`, but executors, optimizers and monitors are not linked with their networks."""
    options = (prepare_data_iterator, batch_size, exclude_parameter, parameter_only, extension, context)
    return _load(filenames, *options, link=False)


def _load(
    filenames: Any,
    prepare_data_iterator: bool | None,
    batch_size: int | None,
    exclude_parameter: bool,
    parameter_only: bool,
    extension: str,
    context: str | None,
    *,
    link: bool,
) -> Any:
    here = "load"
    check_batch_size(here, batch_size)
    if context is not None:
        check_type(here, "context", context, str, "a name such as 'cudnn:1'")
    info = SimpleNamespace(prepare_data_iterator=prepare_data_iterator, batch_size=batch_size)
    info.exclude_parameter, info.parameter_only = exclude_parameter, parameter_only
    info.parameter_scope = get_current_parameter_scope()
    info.proto, records, info.optimizer_states_checkpoint = _read(here, filenames, extension, parameter_only)
    records = [] if exclude_parameter else records
    _core.check_parameter_names(here, "filenames", [name for name, *_ in records])
    info.default_context = default_context(info.proto, context)
    with context_scope(info.default_context), auto_forward(False):
        made = _made(info, records, link)
    if context is None and info.proto.HasField("global_config"):
        set_default_context(info.default_context)
    if get_auto_forward():
        _compute(info)
    return made


def _compute(info: Any) -> None:
    """Compute what functions make as they are applied, now that the parameters have the file's values."""
    made = [v.variable_instance for network in info.networks.values() for v in network.variables.values()]
    users = [*info.optimizers.values(), *info.monitors.values(), *info.executors.values()]
    made += [getattr(user, name, None) for user in users for name in ("target", "forward_target", "backward_target")]
    forward_all([v for v in made if v is not None and v.parent is not None])


@described_by_a_file("load")
def _made(info: Any, records: list[_files.Parameter], link: bool) -> Any:
    """What the message of `info` describes."""
    staged = StagedParameters("load", records)
    info.global_config = SimpleNamespace(default_context=info.default_context)
    if info.proto.HasField("training_config"):
        info.training_config = _training(info.proto.training_config)
    wanted = info.prepare_data_iterator
    epochs = info.proto.training_config.max_epoch if wanted is None else wanted
    info.datasets = OrderedDict((d.name, _dataset(d, i, bool(epochs))) for i, d in enumerate(info.proto.dataset))
    info.graph = ProtoGraph.from_proto(info.proto, param_scope=staged.scope)
    info.proto_graph, info.renamed_variables = info.graph, expand_loops(info.graph)
    info.networks = info.graph.networks
    for network in info.networks.values():
        network(ctx=info.default_context, batch_size=info.batch_size)
    info.optimizers = OrderedDict((o.name, _optimizer(info, o)) for o in info.proto.optimizer)
    info.monitors = OrderedDict((m.name, SimpleNamespace(proto=m, network=None)) for m in info.proto.monitor)
    info.executors = OrderedDict((e.name, _executor(e)) for e in info.proto.executor)
    frozen = linked(info) if link else []
    staged.commit()
    parameters = info.graph.get_parameters()
    trained = [item for o in info.optimizers.values() for item in o.parameters.items()] if link else []
    for name, _ in trained:  # whatever the file of the parameters says
        parameters[name].need_grad = True
    for network in info.networks.values():
        for name, p in network.parameters.items():
            if p.variable_instance is not None and name in parameters:
                p.variable_instance.need_grad = parameters[name].need_grad and p.need_grad
    freeze(frozen)
    info.graph.parameter_scope = info.parameter_scope
    return info


def _read(function: str, filenames: Any, extension: str, parameter_only: bool) -> tuple[Any, list[Any], dict[str, Any]]:
    """The message of all files, their parameters, and the states of solvers by the optimizers' names."""
    kind = message_class("NNablaProtoBuf")
    proto, states = kind(), OrderedDict[str, Any]()
    records: dict[str, Any] = {}
    for one in filenames if isinstance(filenames, (list, tuple)) else [filenames]:
        found = _files.read_nnabla(function, one, extension, "filenames")
        if not parameter_only:
            proto.MergeFrom(kind._of(found.message))
        records.update({r[0]: r for r in found.parameters})
        for name, data in found.states:
            states.update(_checkpoints(name, data))
    return proto, list(records.values()), states


def _checkpoints(name: str, data: bytes) -> Iterable[tuple[str, tuple[str, Any]]]:
    """The states of solvers in a file of an archive: by optimizer, the format and what holds them."""
    if name.endswith(".protobuf.optimizer"):
        found = message_class("NNablaProtoBuf").FromString(data)
        return [(o.name, (".protobuf", o)) for o in found.optimizer]  # type: ignore[attr-defined]
    return [("_".join(name.split("_")[:-2]), (".h5", data))]


def _shared(steps: int, least: int = 0) -> int:
    """How many steps it are for each of the processes that train together, as NNabla counts them."""
    comm = current_communicator()
    return steps if comm is None else max(steps // comm.size, least)


def _training(proto: Any) -> SimpleNamespace:
    return SimpleNamespace(
        max_epoch=proto.max_epoch,
        iter_per_epoch=proto.iter_per_epoch,
        save_best=proto.save_best,
        monitor_interval=proto.monitor_interval if proto.monitor_interval > 0 else 10,
    )


def _dataset(d: Any, index: int, prepare: bool) -> SimpleNamespace:
    """A dataset; its `data_iterator` is a function that opens it, which nothing does before."""
    made = SimpleNamespace(uri=d.uri, cache_dir=d.cache_dir, normalize=not d.no_image_normalization, data_iterator=None)
    if prepare:
        made.data_iterator = DatasetOpener(d, index, made.normalize)
    return made


def _create_dataset(
    uri: str,
    batch_size: int,
    shuffle: bool,
    no_image_normalization: bool,
    cache_dir: str,
    overwrite_cache: bool,
    create_cache_explicitly: bool,
    prepare_data_iterator: bool,
    dataset_index: int,
) -> SimpleNamespace:
    """A dataset of no file's, as `load` makes them: `data_iterator()` opens it. Others than NNabla call it, too."""
    d = SimpleNamespace(
        uri=uri,
        batch_size=batch_size,
        shuffle=shuffle,
        no_image_normalization=no_image_normalization,
        cache_dir=cache_dir or "",
        overwrite_cache=overwrite_cache,
        create_cache_explicitly=create_cache_explicitly,
    )
    return _dataset(d, dataset_index, prepare_data_iterator)


def _executor(e: Any) -> SimpleNamespace:
    return SimpleNamespace(
        proto=e,
        network=None,
        num_evaluations=e.num_evaluations if e.num_evaluations > 0 else 1,
        repeat_evaluation_type=e.repeat_evaluation_type,
        need_back_propagation=e.need_back_propagation,
        no_image_normalization=e.no_image_normalization,
    )


def _optimizer(info: Any, o: Any) -> SimpleNamespace:
    made = SimpleNamespace(proto=o, name=o.name, order=o.order, network=None, comm=current_communicator())
    made.start_iter, made.end_iter = (_shared(n - 1) + 1 if n > 0 else 0 for n in (o.start_iter, o.end_iter))
    made.update_interval = o.update_interval if o.update_interval > 0 else 1
    made.weight_decay = o.solver.weight_decay
    made.lr_decay = o.solver.lr_decay if o.solver.lr_decay > 0 else 1.0
    made.lr_decay_interval = o.solver.lr_decay_interval if o.solver.lr_decay_interval > 0 else 1
    context = context_of(o.solver.context) if o.solver.context.backends else info.default_context
    with context_scope(context):
        made.solver = _solver(o.solver)
    made.scheduler = _scheduler(o.solver, made)
    if o.name in info.optimizer_states_checkpoint:
        made.solver_checkpoint = info.optimizer_states_checkpoint[o.name]
    return made


def _solver(proto: Any) -> Any:
    name = {"SGD": "Sgd"}.get(proto.type, proto.type)
    if name not in _SOLVERS:
        raise ArgumentError(message("load", "solver", f"one of {', '.join(_SOLVERS)}", repr(proto.type)))
    settings = getattr(proto, f"{_SOLVERS[name]}_param")
    return getattr(solvers, name)(**{key: _exact(getattr(settings, key)) for key in settings._fields})


def _exact(value: Any) -> Any:
    """A float of a file as the number that it was made of, most likely."""
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _scheduler(proto: Any, optimizer: Any) -> Any:
    """The learning rate by the step."""
    from . import learning_rate_scheduler as schedulers  # type: ignore[attr-defined, unused-ignore]

    rate, kind = optimizer.solver.learning_rate(), proto.lr_scheduler_type
    made: Any
    if kind == "Polynomial":
        p = proto.polynomial_scheduler_param
        made = schedulers.PolynomialScheduler(rate, _shared(p.max_iter), p.power)
    elif kind == "Cosine":
        made = schedulers.CosineScheduler(rate, _shared(proto.cosine_scheduler_param.max_iter))
    elif kind == "Exponential":
        p = proto.exponential_scheduler_param
        made = schedulers.ExponentialScheduler(rate, p.gamma, _shared(max(p.iter_interval, 1), least=1))
    elif kind == "Step":
        p = proto.step_scheduler_param
        made = schedulers.StepScheduler(rate, p.gamma, [_shared(n) for n in p.iter_steps])
    elif kind == "":
        made = schedulers.ExponentialScheduler(rate, optimizer.lr_decay, _shared(optimizer.lr_decay_interval, least=1))
    else:
        known = "Polynomial, Cosine, Exponential or Step"
        raise ArgumentError(message("load", "lr_scheduler_type", known, repr(kind)))
    warmup = _shared(proto.linear_warmup_scheduler_param.warmup_iter)
    if proto.lr_warmup_scheduler_type == "Linear" and warmup > 0:
        made = schedulers.LinearWarmupScheduler(made, warmup)
    return made
