"""What a file says is to be done with its networks, made by `nnrs.utils.load`, and how its variables are fed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..._errors import ArgumentError, message
from ._arguments import read_as
from .utility import let_data_to_variable


def open_experiment(
    command: str,
    config: str,
    param: str | None = None,
    batch_size: int | None = None,
    exclude_parameter: bool = False,
    with_data: bool | None = True,
    context: str | None = None,
    argument: str = "config",
) -> Any:
    """Make the networks of a file with all that is done with them.

    Args:
        command: Name of the command, for errors.
        config: Path of the file.
        param: Path of a file with parameters, which count more than those of the first one.
        batch_size: Samples of a batch; by default as many as the file says.
        exclude_parameter: Whether the file's parameters are left out, so that training starts anew.
        with_data: Whether datasets can be opened; None: if there are epochs.
        context: 'cpu', 'cudnn' or 'cudnn:DEVICE'; by default what the file says, the CPU where that is not there.
        argument: Name of the command's argument with the file, for errors.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If the files contradict themselves.
    """
    from ... import load_parameters
    from ..load import load
    from .utility import check_context

    check_context(command, context)
    with read_as(command, argument):
        info = load(config, with_data, batch_size, exclude_parameter=exclude_parameter, context=context)
    if not info.networks:
        raise ArgumentError(message(command, argument, "a file with a network", repr(config)))
    if param:
        with read_as(command, "param"):
            load_parameters(param)
    if not hasattr(info, "training_config"):
        info.training_config = SimpleNamespace(max_epoch=0, iter_per_epoch=0, save_best=False, monitor_interval=10)
    return info


def check_optimizers(command: str, info: Any) -> None:
    """Refuse files without an optimizer, and optimizers without a loss."""
    if not info.optimizers:
        raise ArgumentError(message(command, "config", "a file with an optimizer", "none"))
    for name, o in info.optimizers.items():
        if not o.loss_variables:
            raise ArgumentError(message(command, "config", f"the optimizer {name!r} has no loss"))


def read_batch(iterators: Sequence[Any]) -> dict[str, np.ndarray]:
    """The next arrays of all iterators, by variable."""
    return {name: array for i in iterators for name, array in zip(i.variables, i.next(), strict=False)}


def feed(
    command: str,
    task: Any,
    data: Mapping[str, np.ndarray],
    reserved: Callable[[str], float | None] = lambda name: None,
) -> None:
    """Fill the variables of an optimizer, monitor or executor.

    Args:
        command: Name of the command, for errors.
        task: Whose variables.
        data: Arrays by variable of the datasets.
        reserved: Gives the value of a name that is no variable of them.

    Raises:
        ValueError: If a variable is not there, or its shape does not fit.
    """
    for v, name in task.dataset_assign.items():
        if name in data:
            let_data_to_variable(v.variable_instance, data[name], data_name=name, variable_name=v.name)
        elif (value := reserved(name)) is not None:
            v.variable_instance.data.fill(value)
        else:
            known = ", ".join(map(repr, data)) or "none"
            text = f"a variable {name!r} in the data of {task.proto.name!r}"
            raise ArgumentError(message(command, "config", text, f"variables {known}"))
    for v, generate in task.generator_assign.items():
        values = np.asarray(generate(v.variable_instance.shape))
        let_data_to_variable(v.variable_instance, values, variable_name=v.name)


def backward(o: Any, reduces: Any = None) -> None:
    """Run an optimizer's graph back from its losses, each of which is the mean of its elements.

    Args:
        o: The optimizer.
        reduces: A communicator's callback for the gradients, or None.
    """
    losses = [v.variable_instance for v in o.loss_variables]
    for loss in losses if len(losses) > 1 else ():
        loss.grad.fill(1.0 / max(loss.size, 1))
    o.target.backward(grad=1.0 / max(losses[0].size, 1), clear_buffer=True, communicator_callbacks=reduces)


def mean_of(variables: Sequence[Any]) -> float:
    """The sum of the variables' means."""
    return sum(float(np.mean(v.variable_instance.d)) for v in variables)
