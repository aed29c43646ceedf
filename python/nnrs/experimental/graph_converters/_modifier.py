"""Graphs made anew from graphs: a converter walks over functions, a modifier says what stands in the place of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ... import function as function_makers
from ... import functions as F
from ..._core import Function, Variable, apply_again
from ..._errors import ArgumentTypeError, check_list, check_type, describe, message
from ..._modes import auto_forward, get_current_context
from ..._visits import functions_in_order
from ...parameter import get_parameter_or_create, get_parameters, parameter_scope

Key = tuple[Variable, int]
NORMALIZATIONS = ("BatchNormalization", "SyncBatchNormalization")


def key_of(v: Variable) -> Key:
    """What a variable is found by: its memory, and its place in the graph."""
    return v, v.rank


class FunctionModifier:
    """Base of modifiers: `modify` says what stands in the place of a function.

    A modifier is called with the functions of a graph, inputs before their users, and makes another graph over the same
    arrays. The graph that was there stays as it is.

    >>> import nnrs as nn
    >>> class Smooth(FunctionModifier):
    ...     def modify(self, f, inputs):
    ...         if f.info.type_name == "ReLU":
    ...             return F.softplus(inputs[0])
    >>> y = GraphConverter([Smooth()]).convert(F.relu(nn.Variable((2, 3))))
    >>> y.parent.info.type_name
    'SoftPlus'
    """

    def __init__(self) -> None:
        self.outputs: list[Variable] = []
        self._map_func_inputs: dict[Function, list[Variable | None]] = {}
        self._leaves: dict[Variable, Variable] = {}
        self._made: set[str] = set()

    def modify(self, f: Function, inputs: list[Variable]) -> Any:
        """What stands in the place of `f` over `inputs`: a variable, a list of them, or None for the same function.

        Args:
            f: Function of the graph that is there: `f.info.type_name`, `f.info.args`, `f.inputs`, `f.outputs`.
            inputs: What stands in the place of `f.inputs`.
        """
        return None

    def __finish__(self) -> None:
        """Called when a graph is finished: for what a modifier notes while it walks."""

    def init_map_func_inputs(self, f: Function, inputs: Sequence[Variable]) -> None:
        """Set what stands in the place of the first inputs of a function."""
        self._map_func_inputs[f] = list(inputs)

    def replace_leaf(self, leaf: Variable, other: Variable) -> None:
        """Set what stands in the place of an input of the graph, wherever it is read."""
        self._leaves[leaf] = other

    def get_parameter_scope(self, v: Variable) -> str:
        """The scope of a parameter, "" if `v` is none: that of conv/W is "conv"."""
        return next((name.rpartition("/")[0] for name, p in get_parameters(grad_only=False).items() if p == v), "")

    def new_parameter(self, near: Variable, name: str, values: np.ndarray, need_grad: bool = True) -> Variable:
        """A parameter with these values, in the scope of the parameter `near`; no parameter if that is none.

        A parameter of the name that is there from an earlier conversion gets the values; one of this conversion stays,
        and the new one gets a number.
        """
        path = next((path for path, p in get_parameters(grad_only=False).items() if p == near), None)
        if path is None:
            return Variable.from_numpy_array(values, need_grad=need_grad)
        scope = path.rpartition("/")[0]
        return self.parameter_in(scope, name, values, need_grad)

    def parameter_in(self, scope: str, name: str, values: np.ndarray, need_grad: bool = True) -> Variable:
        """A parameter with these values, in a scope; see `new_parameter`."""
        free, number = name, 0
        while f"{scope}/{free}" in self._made:
            number += 1
            free = f"{name}-{number}"
        self._made.add(f"{scope}/{free}")
        with parameter_scope(scope):
            parameter = get_parameter_or_create(free, values.shape, np.array(values, np.float32), need_grad)
        parameter.d = values
        return parameter

    def __call__(self, f: Function) -> None:
        inputs = self._inputs(f)
        made = self.modify(f, inputs)
        several = made if isinstance(made, (list, tuple)) else [made]
        if made is not None and not all(isinstance(v, Variable) for v in several):
            where, expected = f"{type(self).__name__}.modify", "None, a Variable or several as its result"
            raise ArgumentTypeError(message(where, None, expected, describe(made)))
        found: Any = self._modify_as_same(f, inputs) if made is None else made
        self.outputs = [found] if isinstance(found, Variable) else list(found)
        for old, new in zip(f.outputs, self.outputs, strict=False):
            self._hand_on(old, new)

    def _inputs(self, f: Function) -> list[Variable]:
        """What stands in the place of the inputs: results of earlier functions, leaves that were set, else the same."""
        old = f.inputs
        given = self._map_func_inputs.get(f)
        is_first = given is None and bool(old) and old[0].parent is None
        given = [*(given or []), *[None] * len(old)][: len(old)]
        return [self._input(v, new, is_first) for v, new in zip(old, given, strict=True)]

    def _input(self, old: Variable, new: Variable | None, is_first: bool) -> Variable:
        if new is not None:
            return new
        if old.parent is None and old in self._leaves:
            return self._leaves[old]
        return old.get_unlinked_variable(need_grad=old.need_grad) if is_first else old

    def _hand_on(self, old: Variable, new: Variable) -> None:
        key = key_of(old)
        for user in old.function_references:
            places = self._map_func_inputs.setdefault(user, [])
            places.extend([None] * (len(user.inputs) - len(places)))
            for i, v in enumerate(user.inputs):
                if key_of(v) == key:
                    places[i] = new

    def _modify_as_same(self, f: Function, inputs: Sequence[Variable]) -> Any:
        """The same function over other inputs; its results are kept where they were."""
        made = apply_again(f, inputs)
        for old, new in zip(f.outputs, made, strict=False):
            if old.persistent:
                new.persistent = True
        return made if len(made) > 1 else made[0]

    def _call_function(self, type_name: str, inputs: Sequence[Variable], args: Mapping[str, Any]) -> Any:
        """A function by the name of its type, with all its arguments, in the current context."""
        if type_name in NORMALIZATIONS:
            return batch_normalization(inputs, args)
        return getattr(function_makers, type_name)(get_current_context(), **args)(*inputs)

    def finish_up(self) -> None:
        """Forget the graph that was walked over."""
        self._map_func_inputs = {}
        self._made = set()
        self.__finish__()


class GraphConverter:
    """Makes a graph of another one by modifiers, one after the other.

    Args:
        modifiers: Modifiers, or lists of them.

    >>> import nnrs as nn
    >>> x = nn.Variable((2, 3))
    >>> y = GraphConverter([FunctionModifier()]).convert(F.relu(x))
    >>> y.parent.inputs[0] == x
    True
    """

    def __init__(self, modifiers: Sequence[Any] = ()) -> None:
        self._modifiers = _flat(modifiers)

    def convert(self, o: Any) -> Any:
        """The new graph.

        Args:
            o: Variable at the end of a graph, or a list of such.

        Returns:
            What stands in its place; a list where a list was given.
        """
        is_one = isinstance(o, Variable)
        outputs: list[Variable] = [o] if is_one else check_list("GraphConverter.convert", "o", o, Variable, "Variables")
        for modifier in self._modifiers:
            outputs = _converted(outputs, modifier)
        return outputs[0] if is_one else outputs


def _flat(modifiers: Sequence[Any]) -> list[Any]:
    check_type("GraphConverter", "modifiers", modifiers, (list, tuple), "a list of modifiers")
    found = []
    for modifier in modifiers:
        found += _flat(modifier) if isinstance(modifier, (list, tuple)) else [modifier]
    for modifier in found:
        check_type("GraphConverter", "modifiers", modifier, FunctionModifier, "a FunctionModifier")
    return found


def _converted(outputs: list[Variable], modifier: FunctionModifier) -> list[Variable]:
    with auto_forward(False):
        end = F.sink(*outputs)
        try:
            for f in functions_in_order(end):
                modifier(f)
            last = modifier.outputs[0].parent
            return list(last.inputs) if last is not None else outputs
        finally:
            modifier.outputs = []
            modifier.finish_up()


def batch_normalization(inputs: Sequence[Variable], args: Mapping[str, Any], **changed: Any) -> Any:
    """A normalization of a graph over other inputs, with some arguments changed; plain without batch_stat."""
    args = {**args, **changed}
    kept = {name: args[name] for name in ("axes", "decay_rate", "eps", "batch_stat")}
    parts = parts_of_batch_normalization(inputs, args)
    if "comm" in args and args["batch_stat"]:
        return F.sync_batch_normalization(*parts, args["comm"], args["group"], **kept)
    return F.batch_normalization(*parts, **kept)


def parts_of_batch_normalization(
    inputs: Sequence[Variable], args: Mapping[str, Any]
) -> tuple[Variable, Variable | None, Variable | None, Variable, Variable]:
    """x, beta, gamma, mean and variance; None for what such a function does not have."""
    rest = list(inputs[1:])
    beta = None if args.get("no_bias") else rest.pop(0)
    gamma = None if args.get("no_scale") else rest.pop(0)
    return inputs[0], beta, gamma, rest[0], rest[1]
