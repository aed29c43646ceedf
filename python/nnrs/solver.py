"""The base of all solvers: the engine's part, and states with their files."""

from __future__ import annotations

import functools
import inspect
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core, _files, _solver_subclasses
from ._borrowed import borrowed
from ._core import NdArray, Variable
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    ForeignStatesError,
    FormatError,
    GraphError,
    StateError,
    check_name,
    check_type,
    describe,
    is_of_user_code,
    message,
)
from .context import get_current_context


def __getattr__(name: str) -> Any:
    # The solvers themselves, and so what `import *` takes: NNabla has both modules under both names.
    from . import solvers

    if name in (*solvers.__all__, "__all__"):
        return getattr(solvers, name)
    return borrowed(__name__, name)


def solver_api(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function whose first argument is a context, so that it is called without: it gets the current one.

    Args:
        func: A function of a Context and more.

    >>> import nnrs as nn
    >>> @solver_api
    ... def made(ctx, rate):
    ...     return ctx.array_class, rate
    >>> made(0.5)[1]
    0.5
    """

    @functools.wraps(func)
    def with_context(*args: Any, **kwargs: Any) -> Any:
        return func(get_current_context(), *args, **kwargs)

    parameters = inspect.signature(func).parameters.values()
    with_context.__signature__ = inspect.Signature(list(parameters)[1:])  # type: ignore[attr-defined]
    return with_context


class SolverState:
    """The state of one parameter.

    Attributes:
        t: Updates done. The count ends at 2**63 - 1, which is the largest that files hold, and stays there.
        pstate: State arrays by name, as Variables.

    >>> SolverState().t, SolverState().pstate
    (0, {})
    """

    def __init__(self, t: int = 0, pstate: dict[str, Variable] | None = None) -> None:
        self.t = t
        self.pstate: dict[str, Variable] = {} if pstate is None else pstate

    def __repr__(self) -> str:
        return f"SolverState(t={self.t}, pstate={self.pstate})"


def _restored(
    kind: type[Solver],
    arguments: dict[str, Any],
    rate: float,
    parameters: Mapping[str, Variable],
    states: Mapping[str, SolverState],
    attributes: dict[str, Any],
) -> Solver:
    solver = kind.__new__(kind, **arguments)
    vars(solver).update(attributes)
    solver.set_parameters(parameters)
    solver.set_states(states)
    solver.set_learning_rate(rate)
    return solver


class Solver(_core.Solver):
    """Base of all solvers; `nnrs.solvers` makes them.

    >>> import nnrs as nn
    >>> import nnrs.solvers as S
    >>> w = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
    >>> solver = S.Sgd(lr=0.5)
    >>> solver.set_parameters({"w": w})
    >>> w.g = np.array([1.0, 1.0])
    >>> solver.update()
    >>> w.d.tolist()
    [0.5, 1.5]
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if _solver_subclasses.has_rule(cls):
            return super().__new__(cls, *args, **kwargs)
        if cls is Solver:
            raise ArgumentTypeError(message("Solver", None, "the base has no rule of update", hint="see nnrs.solvers"))
        return _solver_subclasses.stand_in(cls)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not _solver_subclasses.has_rule(cls):
            _solver_subclasses.guard(cls, Solver)

    def __reduce__(self) -> tuple[Any, ...]:
        """Deep copies and pickles have parameters and states of their own: get them by `get_parameters`."""
        return _restored, (
            type(self),
            self.info,
            self.learning_rate(),
            self.get_parameters(),
            self._copies(),
            vars(self),
        )

    def _copies(self) -> OrderedDict[str, SolverState]:
        def copied(v: Variable) -> Variable:
            return Variable.from_numpy_array(v.d.copy())

        states = self.get_states().items()
        return OrderedDict((k, SolverState(s.t, {n: copied(v) for n, v in s.pstate.items()})) for k, s in states)

    def setup(self, params: Any) -> None:
        """Not used; NNabla's old name of `set_parameters`.

        Raises:
            RuntimeError: Always, as NNabla.
        """
        raise StateError(message("setup", None, "setup is gone", hint="call set_parameters(param_dict)"))

    def get_states(self) -> OrderedDict[str, SolverState]:
        """The states by parameter. The Variables in `pstate` are the solver's own: writing to them changes it."""
        return OrderedDict((name, SolverState(t, dict(arrays))) for name, t, arrays in self._states())

    def set_states(self, states: Mapping[str, SolverState]) -> None:
        """Replace the states of parameters that the solver has.

        Args:
            states: SolverStates by parameter, as `get_states` gives them.

        Raises:
            RuntimeError: If a parameter is not there.
            ValueError: If a state has other names or shapes than the solver's; then no state changes.
        """
        here = "set_states"
        check_type(here, "states", states, Mapping, "a dict of str to SolverState")
        self._set_states(_state_tuples(here, states))

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Write the states to a file.

        Args:
            path: Path that ends in '.h5', '.protobuf' (both are NNabla's) or '.safetensors'. A '.protobuf' file holds
                float, and counts of updates below 2**32.

        Raises:
            ValueError: For another kind of file, or a state that it cannot hold.
        """
        here = "save_states"
        write = _FORMATS[_extension(here, path)][1]
        with _files.atomic_path(path, wait_for_disk=True) as temporary:
            write(here, temporary, self.get_states())

    def load_states(self, path: str | os.PathLike[str]) -> None:
        """Read the states from a file that `save_states` (or NNabla) wrote. `set_parameters` comes first.

        Args:
            path: Path that ends in '.h5', '.protobuf' or '.safetensors'.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is broken, its states are another solver's, or it has a parameter that the solver
                does not have (that is a RuntimeError, too, as in NNabla); then no state changes.
        """
        self._load_states("load_states", path, _extension("load_states", path))

    def _load_states(self, here: str, source: str | os.PathLike[str] | bytes, ext: str) -> None:
        """The same of a path, or of what a file holds, for a function of the name `here`."""
        read = _FORMATS[ext][0]

        def tuples(function: str, path: Any) -> list[_StateTuple]:
            return _state_tuples(function, read(function, path))

        states = _files.read_whole(here, source, ext, tuples)
        try:
            self._set_states(states)
        except GraphError as error:
            raise ForeignStatesError(message(here, "path", f"{_called(source)}: {error}")) from error

    def set_states_to_protobuf(self, optimizer_proto: Any) -> None:
        """Put the states into a message of NNabla's protobuf format.

        Args:
            optimizer_proto: An `Optimizer` of NNabla's `nnabla.proto`; its `solver.states` is filled.

        Raises:
            TypeError: If it is something else.
        """
        states = _proto_states("set_states_to_protobuf", optimizer_proto)
        for name, state in self.get_states().items():
            to = states[name]
            to.t = state.t
            for key, v in state.pstate.items():
                part = to.state_parameter[key]
                del part.shape.dim[:], part.data[:]
                part.shape.dim.extend(v.shape)
                part.data.extend(v.d.ravel().tolist())

    def set_states_from_protobuf(self, optimizer_proto: Any) -> None:
        """Take the states from a message of NNabla's protobuf format. `set_parameters` comes first.

        Args:
            optimizer_proto: An `Optimizer` of NNabla's `nnabla.proto`.

        Raises:
            TypeError: If it is something else.
            RuntimeError: If it has a parameter that the solver does not have.
            ValueError: If its states are another solver's, or do not fit their shapes; then no state changes.
        """
        here = "set_states_from_protobuf"
        states = {}
        for name, of in _proto_states(here, optimizer_proto).items():
            parts = {key: _proto_array(here, name, key, part) for key, part in of.state_parameter.items()}
            states[name] = SolverState(of.t, parts)
        self.set_states(states)


def _proto_states(function: str, optimizer_proto: Any) -> Any:
    states = getattr(getattr(optimizer_proto, "solver", None), "states", None)
    if states is None or not hasattr(states, "items"):
        raise ArgumentTypeError(
            message(
                function,
                "optimizer_proto",
                "an Optimizer message of NNabla's protobuf format",
                describe(optimizer_proto),
            )
        )
    return states


def _proto_array(function: str, name: str, key: str, part: Any) -> Variable:
    shape, data = tuple(part.shape.dim), np.array(list(part.data), np.float32)
    if any(n < 0 for n in shape) or int(np.prod(shape, dtype=object)) != data.size:
        where = f"solver.states['{name}'].state_parameter['{key}']"
        raise ArgumentError(message(function, where, f"the elements of shape {shape}", data.size))
    return Variable.from_numpy_array(data.reshape(shape))


_StateTuple = tuple[str, int, list[tuple[str, Variable]]]  # a parameter's name, its count of updates, its state arrays


def _state_tuples(function: str, states: Mapping[str, SolverState]) -> list[_StateTuple]:
    return [_state_tuple(function, name, state) for name, state in states.items()]


def _state_tuple(function: str, name: Any, state: Any) -> _StateTuple:
    check_name(function, "states", name, "names as str")
    if not isinstance(getattr(state, "pstate", None), Mapping) or not hasattr(state, "t"):
        raise ArgumentTypeError(message(function, f"states['{name}']", "a SolverState", describe(state)))
    try:
        t = int(state.t)
    except (TypeError, ValueError, OverflowError) as error:
        if is_of_user_code(error):
            raise
        raise ArgumentTypeError(message(function, f"states['{name}'].t", "an integer", describe(state.t))) from None
    if not 0 <= t < 2**63:
        raise ArgumentError(message(function, f"states['{name}'].t", "0 or more, and less than 2**63", t))
    for key, v in state.pstate.items():
        check_name(function, f"states['{name}'].pstate", key, "names as str")
        check_type(function, f"states['{name}'].pstate['{key}']", v, Variable, "a Variable")
    return name, t, list(state.pstate.items())


def _extension(function: str, path: Any) -> str:
    if not _files.is_path(path):
        raise ArgumentTypeError(message(function, "path", "a path", describe(path)))
    return _files.file_extension(function, path, None, list(_FORMATS))


def _called(source: str | os.PathLike[str] | bytes) -> str:
    return "the solver's file" if isinstance(source, bytes) else repr(os.fspath(source))


_MARK = "nnrs.states"  # says of a file that it holds states


# --- HDF5: a group for each parameter, in it `t` and the states -------------------------------------------------------


def _write_h5(function: str, path: str, states: Mapping[str, SolverState]) -> None:
    datasets: list[tuple[str, NdArray, int]] = []
    for name, state in states.items():
        datasets.append((f"{name}/t", NdArray.from_numpy_array(np.array(state.t, np.int64)), -1))
        datasets += [(f"{name}/{key}", _as_float(v), i) for i, (key, v) in enumerate(state.pstate.items())]
    groups = [(name, "index", i) for i, name in enumerate(states)]
    # Without states it could be an empty file of parameters.
    _core.write_hdf5(path, datasets, groups if states else [("", _MARK, 0)])


def _as_float(v: Variable) -> NdArray:
    return NdArray.from_numpy_array(v.d)


def _read_h5(function: str, path: Any) -> dict[str, SolverState]:
    datasets, groups = _core.read_hdf5(path)
    of: dict[str, list[tuple[float, str, NdArray]]] = {}
    for full, array, attributes in datasets:
        _files.check_depth(full)
        name, _, key = full.rpartition("/")
        of.setdefault(name, []).append((_index(full, attributes), key, array))
    found = [
        (_index(name, groups.get(name, {})), name, _h5_state(name, arrays))
        for name, arrays in of.items()
        if any(key == "t" for _, key, _ in arrays)
    ]
    if not found and _MARK not in groups.get("", {}):
        raise FormatError(message(function, "path", f"{_called(path)} holds no states of a solver"))
    return {name: state for _, name, state in sorted(found, key=lambda entry: entry[0])}


def _index(name: str, attributes: Mapping[str, float | None]) -> float:
    """The place among others; those that say none come last."""
    index = attributes.get("index", np.inf)
    if index is None:
        raise ValueError(f"attribute 'index' of '{name}' is no number")
    return index


def _h5_state(name: str, arrays: list[tuple[float, str, NdArray]]) -> SolverState:
    count = next(array for _, key, array in arrays if key == "t")
    if count.shape != ():
        raise ValueError(f"the step count of '{name}' has shape {count.shape}, expected one integer")
    parts = sorted((entry for entry in arrays if entry[1] != "t"), key=lambda entry: entry[0])
    return SolverState(int(count.data), {key: Variable.from_numpy_array(array.data) for _, key, array in parts})


# --- safetensors: tensors `parameter/state`; the counts are in the metadata -------------------------------------------


def _write_safetensors(function: str, path: str, states: Mapping[str, SolverState]) -> None:
    import json

    arrays = [(f"{name}/{key}", v.d) for name, state in states.items() for key, v in state.pstate.items()]
    tensors = [_files.raw_tensor(name, array) for name, array in arrays]
    counts = {name: [state.t, list(state.pstate)] for name, state in states.items()}
    _core.save_safetensors(path, tensors, {_MARK: json.dumps(counts)})


def _read_safetensors(function: str, path: Any) -> dict[str, SolverState]:
    import json

    tensors, metadata = _core.load_safetensors(os.fspath(path))
    if _MARK not in metadata:
        raise FormatError(message(function, "path", f"{path} holds no states of a solver"))
    for name, *_ in tensors:
        _files.check_depth(name)
    arrays = {name: _files.array_of(name, kind, shape, raw) for name, kind, shape, raw in tensors}
    counts = json.loads(metadata[_MARK])
    wrong = [name for name, (t, _) in counts.items() if type(t) is not int]
    if wrong:
        raise ValueError(f"the step count of {wrong[0]!a} is no integer")
    return {
        name: SolverState(t, {key: Variable.from_numpy_array(arrays[f"{name}/{key}"]) for key in keys})
        for name, (t, keys) in counts.items()
    }


# --- NNabla's protobuf: see src/io/states.rs --------------------------------------------------------------------------


def _write_protobuf(function: str, path: str, states: Mapping[str, SolverState]) -> None:
    _core.write_states(function, path, _state_tuples(function, states))


def _read_protobuf(function: str, path: Any) -> dict[str, SolverState]:
    found = _core.read_states(os.fspath(path))
    for name, *_ in found:
        _files.check_depth(name)
    return {name: SolverState(t, dict(arrays)) for name, t, arrays in found}


_FORMATS = {
    ".h5": (_read_h5, _write_h5),
    ".protobuf": (_read_protobuf, _write_protobuf),
    ".safetensors": (_read_safetensors, _write_safetensors),
}
