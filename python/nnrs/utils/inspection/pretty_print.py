"""A graph in text: each function with its arguments, shapes and, on request, statistics of values and gradients.

>>> import nnrs as nn, nnrs.functions as F
>>> pprint(F.sum(nn.Variable((2, 3)), axis=1))  # doctest: +NORMALIZE_WHITESPACE
Sum(Sum)
        Depth = 0
        Args: ['axes=[1]', 'keep_dims=False']
        Inputs: [(2, 3)]
        Outputs: [(2,)]
        Backward Inputs: [False]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core import Error, Function, NdArray, Variable
from ..._errors import check_type
from ..._visits import functions_in_order
from ...parameter import get_parameters

_STATISTICS: dict[str, Callable[[np.ndarray], Any]] = {
    "Med": np.median,
    "Ave": np.mean,
    "Std": np.std,
    "Min": np.min,
    "Max": np.max,
}


class PrettyPrinter:
    """Prints a function; as an argument of `Variable.visit`, those of a graph.

    Args:
        summary: Whether to print statistics of inputs and outputs too: None where a gradient was not kept.
        hidden: Whether to keep names, inputs and outputs in `functions`.
    """

    def __init__(self, summary: bool = False, hidden: bool = False) -> None:
        self._summary = summary
        self._hidden = hidden
        self._scopes = {v: name.rpartition("/")[0] for name, v in get_parameters().items()}
        self.functions: list[dict[str, Any]] = []
        """For each function a dict of `name`, `inputs` and `outputs`, if they are to be kept."""

    def get_scope_name(self, x: Variable) -> str | None:
        """The scope of a parameter; None if `x` is none."""
        return self._scopes.get(x)

    def __call__(self, f: Function) -> None:
        inputs, outputs = list(f.inputs), list(f.outputs)
        scope = self.get_scope_name(inputs[1]) if len(inputs) > 1 else None
        name = f"{scope}/" if scope else ""
        name += f"{f.name}({f.info.type_name})"
        lines = [
            name,
            f"\tDepth = {f.rank}",
            f"\tArgs: {[f'{key}={value}' for key, value in f.args.items()]}",
            f"\tInputs: {[v.shape for v in inputs]}",
            f"\tOutputs: {[v.shape for v in outputs]}",
            f"\tBackward Inputs: {[v.need_grad for v in inputs]}",
        ]
        if self._summary:
            for kind, member in (("Data", "data"), ("Grads", "grad")):
                lines += _statistics(f"Input {kind}", [_read(getattr(v, member)) for v in inputs])
                lines += _statistics(f"Output {kind}", [_read(getattr(v, member)) for v in outputs])
        print("\n".join(lines))
        if self._hidden:
            self.functions.append({"name": name, "inputs": inputs, "outputs": outputs})


def pprint(
    v: Variable,
    forward: bool = False,
    backward: bool = False,
    summary: bool = False,
    hidden: bool = False,
    printer: bool = False,
) -> PrettyPrinter | None:
    """Print the graph that ends at a variable, function by function.

    Args:
        v: The variable.
        forward: Whether to run it forward before.
        backward: Whether to run it backward before.
        summary: Whether to print statistics of inputs and outputs too; runs keep all values and gradients for that.
        hidden: Whether the printer keeps names, inputs and outputs of the functions.
        printer: Whether to return the printer.

    Returns:
        The `PrettyPrinter`, if it is asked for.
    """
    check_type("pprint", "v", v, Variable, "a Variable")
    kept: list[Variable] = []
    if summary:
        v.visit(lambda f: kept.extend([*f.inputs, *f.outputs]))
    if forward:
        v.forward()
    if backward:
        v.backward()
    made = PrettyPrinter(summary, hidden)
    for f in functions_in_order(v):
        made(f)
    return made if printer else None


def _read(array: NdArray) -> np.ndarray | None:
    """The values, which stay where they are; None if they were not kept."""
    try:
        return array.get_data("r")
    except Error:
        return None


def _statistics(title: str, arrays: Sequence[np.ndarray | None]) -> list[str]:
    rows = [f"\t\t{name}:  {[_number(of, a) for a in arrays]}" for name, of in _STATISTICS.items()]
    return [f"\t{title}:", *rows]


def _number(statistic: Callable[[np.ndarray], Any], array: np.ndarray | None) -> float | None:
    """A statistic with as many digits as its type has."""
    if array is None or array.size == 0:
        return None
    with np.errstate(all="ignore"):
        return float(str(statistic(array)))
