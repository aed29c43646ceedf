"""What a file says is to be done with its networks, ready to be done: datasets, optimizers, monitors, executors.

The attributes are those that NNabla's `load` gives, but that variables are Variables themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._core import Variable
from ..._errors import ArgumentError, Error, UnsupportedError, message
from ...logger import logger
from ._networks import read_networks
from ._schedules import schedule


@dataclass
class Dataset:
    """Where samples come from. `data_iterator` opens it."""

    uri: str
    cache_dir: str
    normalize: bool
    data_iterator: Callable[[], Any]


@dataclass
class Task:
    """What all uses of a network have: who feeds which of its variables."""

    name: str
    network: dict[str, Variable]
    batch_size: int
    dataset_assign: dict[Variable, str] = field(default_factory=dict)
    generator_assign: dict[Variable, Any] = field(default_factory=dict)
    datasets: list[str] = field(default_factory=list)
    names: dict[Variable, str] = field(default_factory=dict)


@dataclass
class Optimizer(Task):
    """A training of a network's parameters."""

    solver: Any = None
    scheduler: Any = None
    weight_decay: float = 0.0
    update_interval: int = 1
    start_iter: int = 0
    end_iter: int = 0
    loss_variables: list[Variable] = field(default_factory=list)
    parameters: dict[str, Variable] = field(default_factory=dict)
    target: Any = None


@dataclass
class MonitorTask(Task):
    """A measurement, such as the error of a validation."""

    monitor_variables: list[Variable] = field(default_factory=list)
    target: Any = None


@dataclass
class Executor(Task):
    """A use of a trained network."""

    output_assign: dict[Variable, tuple[str, str]] = field(default_factory=dict)
    num_evaluations: int = 1
    repeat_evaluation_type: str = ""
    need_back_propagation: bool = False
    no_image_normalization: bool = False
    forward_target: Any = None
    backward_target: Any = None


class Experiment:
    """Networks and all that is done with them.

    Args:
        command: Name of the command, for errors.
        files: Paths of files with networks, and of parameters.
        batch_size: Samples of a batch; by default as many as the files say.
        exclude_parameter: Whether the files' parameters are left out, so that training starts anew.
        context: Name of the context ('cpu', 'cudnn:0'); by default what the files say, the CPU where that is not there.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If the files contradict themselves.
    """

    def __init__(
        self,
        command: str,
        files: Sequence[str],
        batch_size: int | None = None,
        exclude_parameter: bool = False,
        context: str | None = None,
    ) -> None:
        from ... import load_parameters, set_default_context

        self.command = command
        self.proto = read_networks(command, files)
        set_default_context(self._context(context))
        if not exclude_parameter:
            for file in files:
                load_parameters(file)
        config = self.proto.training_config
        self.max_epoch, self.iter_per_epoch = config.max_epoch, config.iter_per_epoch
        self.save_best, self.monitor_interval = config.save_best, config.monitor_interval or 10
        self._networks = {n.name: self._build(n, batch_size) for n in self.proto.network}
        self.datasets = {d.name: self._dataset(i, d) for i, d in enumerate(self.proto.dataset)}
        self.optimizers = {o.name: self._optimizer(o) for o in self.proto.optimizer}
        self.monitors = {m.name: self._monitor(m) for m in self.proto.monitor}
        self.executors = {e.name: self._executor(e) for e in self.proto.executor}

    def _context(self, name: str | None) -> Any:
        from ...ext_utils import get_extension_context
        from .utility import context_of

        if name is not None:
            return context_of(self.command, name)
        said = self.proto.global_config.default_context
        names = list(said.backends) or [s.strip() for s in f"{said.compute_backend}|{said.backend}".split("|")]
        kind, _, type_config = (names[0] if names else "cpu").partition(":")
        if kind in ("", "default"):
            kind = "cuda" if "cuda" in names else "cpu"
        try:
            return get_extension_context(kind, device_id=said.device_id or "0", type_config=type_config or "float")
        except Error as error:
            logger.warning("the file asks for the context %r, the CPU is used: %s", kind, str(error).splitlines()[0])
            return get_extension_context("cpu")

    def _build(self, network: Any, batch_size: int | None) -> tuple[dict[str, Variable], int]:
        from ..nnp_graph import NnpNetwork

        return NnpNetwork(network, batch_size, None).variables, batch_size or network.batch_size

    def _dataset(self, index: int, d: Any) -> Dataset:
        normalize = not d.no_image_normalization

        def opened() -> Any:
            return open_dataset(self.command, d, np.random.RandomState(index))

        return Dataset(d.uri, d.cache_dir, normalize, opened)

    def _task(self, proto: Any) -> dict[str, Any]:
        if proto.network_name not in self._networks:
            raise self._wrong(f"{proto.name!r} is to use a network {proto.network_name!r}, which the files do not have")
        network, batch_size = self._networks[proto.network_name]
        task: dict[str, Any] = {"name": proto.name, "network": network, "batch_size": batch_size}
        assigned = [(self._find(network, d.variable_name), d) for d in proto.data_variable]
        generated = [(self._find(network, g.variable_name), g) for g in proto.generator_variable]
        task["dataset_assign"] = {v: d.data_name for v, d in assigned}
        task["generator_assign"] = {v: self._generator(g) for v, g in generated}
        task["names"] = {v: d.variable_name for v, d in assigned + generated}
        task["datasets"] = list(getattr(proto, "dataset_name", []))
        for name in task["datasets"]:
            if name not in self.datasets:
                raise self._wrong(f"{proto.name!r} is to use a dataset {name!r}, which the files do not have")
        return task

    def _find(self, network: dict[str, Variable], name: str) -> Variable:
        if name not in network:
            raise self._wrong(f"there is no variable {name!r} in the network that is to have it")
        return network[name]

    def _wrong(self, why: str) -> ArgumentError:
        return ArgumentError(message(self.command, "config", why))

    def _generator(self, g: Any) -> Any:
        from ... import initializer as I

        kinds: dict[str, Callable[[float], Any]] = {
            "Normal": I.NormalInitializer,
            "Uniform": lambda m: I.UniformInitializer((-m, m)),
            "Range": lambda m: I.RangeInitializer(start=0, step=m),
            "Constant": I.ConstantInitializer,
        }
        if g.type not in kinds:
            raise self._wrong(f"data of {g.variable_name!r}: expected one of {', '.join(kinds)}, got {g.type!r}")
        return kinds[g.type](g.multiplier)

    def _optimizer(self, o: Any) -> Optimizer:
        solver, rate = self._solver(o.solver)
        task = self._task(o)
        found = Optimizer(**task, solver=solver, scheduler=schedule(self.command, o.solver, rate))
        found.weight_decay = o.solver.weight_decay
        found.update_interval = max(o.update_interval, 1)
        found.start_iter, found.end_iter = o.start_iter, o.end_iter
        found.loss_variables = [self._find(found.network, v.variable_name) for v in o.loss_variable]
        if not found.loss_variables:
            raise self._wrong(f"optimizer {o.name!r} has no loss")
        for p in o.parameter_variable:
            for name in self._matching(found.network, p.variable_name):
                if p.learning_rate_multiplier > 0:
                    found.parameters[name] = found.network[name]
                else:
                    found.network[name].need_grad = False
        found.parameters = dict(sorted(found.parameters.items()))
        solver.set_parameters(found.parameters)
        if o.solver.states:
            solver.set_states_from_protobuf(o)
        found.target = _target(found.loss_variables, one_input_grad=False)
        return found

    def _matching(self, network: dict[str, Variable], name: str) -> list[str]:
        """The variables that a name means; `{..}` in it stands for any step of a loop."""
        if name in network:
            return [name]
        pattern = re.compile(r"\[\d+\]".join(map(re.escape, re.split(r"\{[^}]*\}", name))))
        found = [other for other in network if pattern.fullmatch(other)]
        if not found:
            raise self._wrong(f"there is no parameter {name!r}")
        return found

    def _solver(self, said: Any) -> tuple[Any, float]:
        """The solver and its learning rate at the beginning."""
        from ... import solvers as S
        from ..save import _SOLVERS

        kind = "Sgd" if said.type == "SGD" else said.type
        if kind not in _SOLVERS:
            raise self._wrong(f"expected a solver of {', '.join(_SOLVERS)}, got {said.type!r}")
        settings = getattr(said, f"{_SOLVERS[kind]}_param")
        given = {name: getattr(settings, name) for name in settings._fields}
        rate = next(given[name] for name in ("lr", "alpha", "eta") if name in given)
        return getattr(S, kind)(**given), rate

    def _monitor(self, m: Any) -> MonitorTask:
        found = MonitorTask(**self._task(m))
        found.monitor_variables = [self._find(found.network, v.variable_name) for v in m.monitor_variable]
        found.target = _target(found.monitor_variables)
        return found

    def _executor(self, e: Any) -> Executor:
        found = Executor(**self._task(e))
        found.output_assign = {
            self._find(found.network, o.variable_name): (o.type, o.data_name) for o in e.output_variable
        }
        found.num_evaluations = max(e.num_evaluations, 1)
        found.repeat_evaluation_type = e.repeat_evaluation_type
        found.no_image_normalization = e.no_image_normalization
        found.forward_target = _target(found.output_assign)
        found.need_back_propagation = e.need_back_propagation
        if e.need_back_propagation:
            found.backward_target = _target([self._find(found.network, v.variable_name) for v in e.loss_variable])
        return found


def _target(variables: Iterable[Variable], **options: Any) -> Any:
    """The variable whose forward and backward are those of all."""
    from ... import functions as F

    found = list(variables)
    return found[0] if len(found) == 1 else F.sink(*found, **options) if found else None


def open_dataset(command: str, d: Any, rng: Any) -> Any:
    """The data iterator of a dataset.

    Args:
        command: Name of the command, for errors.
        d: The message `Dataset`.
        rng: Random generator for the order of samples.
    """
    from ..data_iterator import data_iterator_cache, data_iterator_csv_dataset

    if d.batch_size < 1:
        raise ArgumentError(
            message(command, "config", f"batch_size of the dataset {d.name!r} of 1 or more", d.batch_size)
        )
    options = {"rng": rng, "normalize": not d.no_image_normalization}
    if d.cache_dir and d.create_cache_explicitly:
        _create_cache(d, rng)
        options["rng"] = np.random.RandomState(rng.get_state()[1][0])
    if d.uri.rstrip("/").endswith(".cache"):
        return data_iterator_cache(d.uri, d.batch_size, d.shuffle, **options)
    if d.cache_dir and _is_filled(d.cache_dir) and not (d.overwrite_cache and not d.create_cache_explicitly):
        return data_iterator_cache(d.cache_dir, d.batch_size, d.shuffle, **options)
    return data_iterator_csv_dataset(d.uri, d.batch_size, d.shuffle, cache_dir=d.cache_dir or None, **options)


def _is_filled(folder: str) -> bool:
    return os.path.isdir(folder) and bool(os.listdir(folder))


def _create_cache(d: Any, rng: Any) -> None:
    from ..create_cache import CreateCache

    if os.path.exists(os.path.join(d.cache_dir, "cache_index.csv")) and not d.overwrite_cache:
        return
    if "://" in d.uri:
        raise UnsupportedError(message("create_cache", "uri", "a cache is made of files on this machine", repr(d.uri)))
    logger.log(99, 'Creating cache data for "%s"', d.uri)
    CreateCache(d.uri, rng=rng, shuffle=d.shuffle).create(d.cache_dir, normalize=False)
