"""`nnrs compare_with_cpu` and `compare_params`: how far two trainings' steps, or two files' parameters, are apart."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._errors import ArgumentError, message
from ..._monitor_files import make_folder
from ...logger import logger
from ._arguments import add_parser, read_as
from ._experiment import backward, check_optimizers, feed, open_experiment, read_batch
from .profile import write_table


def calc_norm_diff(data1: np.ndarray, data2: np.ndarray) -> tuple[float, float, float, float]:
    """The deviation of the difference over the larger deviation of both; both deviations; that of the difference.

    >>> calc_norm_diff(np.array([1.0, 3.0]), np.array([1.0, 3.0]))
    (0.0, 1.0, 1.0, 0.0)
    """
    one, two = (np.asarray(x, np.float64).ravel() for x in (data1, data2))
    if not one.size:
        return 0.0, 0.0, 0.0, 0.0
    with np.errstate(invalid="ignore"):
        deviations = float(np.std(one)), float(np.std(two))
        apart = float(np.std(one - two))
    most = max(deviations)
    return (apart / most if most > 0 else 0.0, *deviations, apart)


def compare_with_cpu_command(args: Any) -> None:
    """Run a step of each optimizer of two files from the same parameters and data, and write how far they are apart."""
    from ... import parameter_scope

    with parameter_scope("", {}):
        first = open_experiment("compare_with_cpu", args.config)
    with parameter_scope("", {}):
        second = open_experiment("compare_with_cpu", args.config2, argument="config2")
    for info in (first, second):
        check_optimizers("compare_with_cpu", info)
    context, other = first.default_context, second.default_context
    pairs = list(zip(first.optimizers.values(), second.optimizers.values(), strict=False))
    if len(first.optimizers) != len(second.optimizers):
        counts = f"{len(first.optimizers)} and {len(second.optimizers)}"
        raise ArgumentError(message("compare_with_cpu", "config2", "as many optimizers as config has", counts))
    make_folder("compare_with_cpu", args.outdir)
    columns = {}
    for one, two in pairs:
        title = f"optimizer '{one.name}'"
        logger.log(99, "Comparing %s ...", title)
        logger.log(99, "process(variable), norm_diff, current_context_std, cpu_std, diff_std")
        columns[title] = dict(_compared(first, one, context, two, other))
    write_table(os.path.join(args.outdir, "compare_with_cpu.csv"), "1-Correl", columns)
    logger.log(99, "Compare with CPU Completed.")


def _compared(x: Any, one: Any, context: Any, two: Any, other: Any) -> Iterator[tuple[str, float]]:
    """The differences after a step, by what is compared."""
    for name, v in one.parameters.items():
        if name not in two.parameters or two.parameters[name].shape != v.shape:
            text = f"a parameter {name!r} of shape {v.shape} in both files"
            raise ArgumentError(message("compare_with_cpu", "config2", text))
        two.parameters[name].d = v.d
    data = _data(x, one)
    for o, where in ((one, context), (two, other)):
        _run(o, where, data)
    for name, v in one.network.variables.items():
        other_v = two.network.variables.get(name)
        if other_v is not None and other_v.variable_instance.shape == v.variable_instance.shape:
            yield from _difference(f"data ({name})", v.variable_instance, other_v.variable_instance, "d")
    for name in one.parameters:
        yield from _difference(f"gradient ({name})", one.parameters[name], two.parameters[name], "g")
    for o, where in ((one, context), (two, other)):
        _update(o, where)
    for name in one.parameters:
        yield from _difference(f"update ({one.solver.name}, {name})", one.parameters[name], two.parameters[name], "d")


def _difference(title: str, one: Any, two: Any, which: str) -> Iterator[tuple[str, float]]:
    found = calc_norm_diff(getattr(one, which), getattr(two, which))
    logger.log(99, "%s, %f, %f, %f, %f", title, *found)
    yield title, found[0]


def _data(x: Any, o: Any) -> dict[str, np.ndarray]:
    with contextlib.ExitStack() as files:
        iterators = [files.enter_context(x.datasets[name].data_iterator()) for name in o.proto.dataset_name]
        found = {name: np.array(a) for name, a in read_batch(iterators).items()}
    return found


def _run(o: Any, context: Any, data: dict[str, np.ndarray]) -> None:
    """Forward and backward. Both files get the same data, the same generated values too."""
    from ... import context_scope, seed

    seed(0)
    feed("compare_with_cpu", o, data)
    with context_scope(context):
        o.target.forward()
        o.solver.zero_grad()
        backward(o)


def _update(o: Any, context: Any) -> None:
    from ... import context_scope

    with context_scope(context):
        if o.weight_decay > 0:
            o.solver.weight_decay(o.weight_decay)
        o.solver.update()


def compare_params_command(args: Any) -> bool:
    """Print how far the parameters of two files are apart; done if they are the same within the tolerance."""
    one, two = (_parameters(name, getattr(args, name)) for name in ("first", "second"))
    if not one and not two:
        expected = "files with parameters"
        raise ArgumentError(message("compare_params", None, expected, f"none in {args.first!r} and {args.second!r}"))
    same = True
    for name in dict.fromkeys([*one, *two]):
        text, good = _parameter_difference(one.get(name), two.get(name), args.tolerance)
        same &= good
        print(f"{name}: {text}")
    return same


def _parameters(argument: str, path: str) -> dict[str, np.ndarray]:
    from ...parameter import get_parameters, load_parameters, parameter_scope

    with parameter_scope("", {}), read_as("compare_params", argument):
        load_parameters(path)
        return {name: v.d.copy() for name, v in get_parameters(grad_only=False).items()}


def _parameter_difference(one: np.ndarray | None, two: np.ndarray | None, tolerance: float) -> tuple[str, bool]:
    if one is None or two is None:
        return f"only in the {'second' if one is None else 'first'} file", False
    if one.shape != two.shape:
        return f"shapes {one.shape} and {two.shape}", False
    x, y = one.astype(np.float64), two.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
    most = float(apart.max(initial=0.0))
    return f"largest difference {most:g}, norm_diff {calc_norm_diff(x, y)[0]:g}", bool(most <= tolerance)


def add_compare_with_cpu_command(subparsers: Any) -> None:
    """Add the command `compare_with_cpu`."""
    example = "example:\n  nnrs compare_with_cpu -c gpu.nntxt -c2 cpu.nntxt -o differences"
    name = "compare_with_cpu"
    parser = add_parser(subparsers, name, "compare a training step of two files, as on GPU and CPU", examples=example)
    parser.add_argument("-c", "--config", required=True, help=".nntxt or .nnp file")
    parser.add_argument("-c2", "--config2", required=True, help="the same with another context")
    parser.add_argument("-o", "--outdir", required=True, help="folder for the results")
    parser.set_defaults(func=compare_with_cpu_command)


def add_compare_params_command(subparsers: Any) -> None:
    """Add the command `compare_params`."""
    more = "The status is 0 if all are the same within the tolerance, 1 if not."
    parser = add_parser(subparsers, "compare_params", "compare the parameters of two files", more)
    parser.add_argument("first", metavar="FILE", help="file with parameters (.h5, .nnp, ...)")
    parser.add_argument("second", metavar="FILE", help="another one")
    parser.add_argument("-t", "--tolerance", type=float, default=0.0, help="largest difference allowed (default: 0)")
    parser.set_defaults(func=compare_params_command)
