"""What a checkpoint holds of a training, taken and brought back: all of it, or nothing where something does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _core, _random_state
from ._core import NdArray, Variable
from ._errors import (
    Error,
    FormatError,
    ParameterError,
    check_integer,
    check_number,
    check_type,
    is_of_user_code,
    message,
)
from .parameter import get_parameters
from .solver import SolverState
from .utils import _positions

_SCRIPT = "the script that resumes has to build the same network and solvers first"


class TrainingState:
    """The objects that a training changes.

    Args:
        solvers: Solvers by names.
        iterators: Data iterators by names.
        generators: Random generators by names.
        graphs: Outputs of graphs by names.
        parameters: Variables by names; None for those of the current scope.
    """

    def __init__(
        self,
        solvers: dict[str, Any],
        iterators: dict[str, Any],
        generators: dict[str, Any],
        graphs: dict[str, Any],
        parameters: Mapping[str, Any] | None,
    ) -> None:
        for name, solver in solvers.items():
            check_type("Checkpoints", f"solvers[{name!r}]", solver, _core.Solver, "a solver")
        for generator in generators.values():
            _random_state.state_of(generator)
        for name, y in graphs.items():
            check_type("Checkpoints", f"graphs[{name!r}]", y, Variable, "a Variable")
        _positions.check_iterators("Checkpoints", iterators)
        if parameters is not None:
            check_type("Checkpoints", "parameters", parameters, Mapping, "a dict from names to Variables")
            for name, v in parameters.items():
                check_type("Checkpoints", f"parameters[{name!r}]", v, Variable, "a Variable")
        self._solvers = solvers
        self._iterators = iterators
        self._generators = generators
        self._graphs = graphs
        self._given = parameters

    def _parameters(self) -> Mapping[str, Any]:
        return get_parameters(grad_only=False) if self._given is None else self._given

    def _check_kept(self, function: str, kept: Mapping[str, Any]) -> None:
        """An error if a solver has other parameters: its states would be brought back without them."""
        arrays = {v.data for v in kept.values()}
        for name, solver in self._solvers.items():
            for parameter, v in solver.get_parameters().items():
                if v.data not in arrays:
                    where = "the current scope" if self._given is None else "the dict of parameters"
                    hint = "Checkpoints(..., parameters=module.get_parameters(grad_only=False)) keeps a module's"
                    expected = f"a solver whose parameters are all in {where}"
                    text = message(function, f"solvers[{name!r}]", expected, f"one with '{parameter}'", hint)
                    raise ParameterError(text)

    # --- taking -------------------------------------------------------------------------------------------------------

    def common(self) -> dict[str, Any]:
        """What is the same on all ranks."""
        parameters = self._parameters()
        self._check_kept("save", parameters)
        return {
            "parameters": {name: (v.data, bool(v.need_grad)) for name, v in parameters.items()},
            "solvers": {name: _solver_state(solver) for name, solver in self._solvers.items()},
        }

    def parts(self) -> dict[tuple[str, ...], NdArray | float]:
        """The arrays and numbers of `common`, by where they are in it."""
        common = self.common()
        found: dict[tuple[str, ...], NdArray | float] = {}
        for name, (array, need_grad) in common["parameters"].items():
            found |= {("parameters", name): array, ("need_grad", name): need_grad}
        for name, solver in common["solvers"].items():
            found["rate", name] = solver["rate"]
            for parameter, (t, arrays) in solver["states"].items():
                found["t", name, parameter] = t
                found.update({("solvers", name, parameter, key): array for key, array in arrays.items()})
        return found

    def own(self) -> dict[str, Any]:
        """What is a rank's own."""
        positions = _positions.positions_of(self._iterators)  # first: threads may draw random numbers until then
        generators = {name: _random_state.state_of(generator) for name, generator in self._generators.items()}
        draws = {name: _random_state.draws_of(y) for name, y in self._graphs.items()}
        state = {"generators": generators, "random": _random_state.all_state(), "draws": draws}
        return {"iterators": positions, **state}

    # --- bringing back ------------------------------------------------------------------------------------------------

    def checked(self, contents: Mapping[str, Any], positions: bool) -> Callable[[], None]:
        """What sets everything to what a checkpoint holds, if all of it fits."""
        try:
            parameters, solvers = contents["parameters"], contents["solvers"]
            own = contents["own"] if positions else None
            for path, value in contents.get("differing", ()):
                _put(path, value, parameters, solvers)
            self._check_parameters(parameters)
            self._check_solvers(solvers)
            if own is not None:
                self._check_own(own)
        except (Error, MemoryError):
            raise
        except Exception as error:
            if is_of_user_code(error):
                raise
            text = f"a checkpoint of this version of nnrs: {type(error).__name__} {error}"
            raise FormatError(message("load", "path", text)) from error
        return lambda: self._bring_back(parameters, solvers, own)

    def _bring_back(
        self, parameters: Mapping[str, Any], solvers: Mapping[str, Any], own: Mapping[str, Any] | None
    ) -> None:
        if own is None:
            self._set_common(parameters, solvers)
            return
        before = _positions.positions_of(self._iterators)
        _positions.go_to(self._iterators, own["iterators"])
        try:
            self._set_common(parameters, solvers)
        except BaseException:
            _positions.go_to(self._iterators, before)
            raise
        for name, generator in self._generators.items():
            _random_state.set_state(generator, own["generators"][name])
        for name, y in self._graphs.items():
            _random_state.set_draws(y, own["draws"][name])
        _random_state.set_all(own["random"])

    def _check_parameters(self, found: Mapping[str, Any]) -> None:
        mine = self._parameters()
        for name, (array, need_grad) in found.items():
            check_type("load", f"parameters[{name!r}]", array, NdArray, "an array")
            check_type("load", f"parameters[{name!r}]", need_grad, bool, "need_grad")
        for name, v in mine.items():
            if name not in found:
                text = f"the checkpoint has no parameter '{name}'"
                raise ParameterError(message("load", "path", text, hint=_SCRIPT))
            if found[name][0].shape != v.shape:
                expected = f"parameter '{name}' of shape {v.shape}"
                raise ParameterError(message("load", "path", expected, found[name][0].shape, _SCRIPT))
        more = [name for name in found if name not in mine]
        if self._given is not None and more:
            raise ParameterError(message("load", "path", f"there is no parameter '{more[0]}' here", hint=_SCRIPT))
        self._check_kept("load", mine)

    def _check_solvers(self, found: Mapping[str, Any]) -> None:
        if set(found) != set(self._solvers):
            expected = f"solvers {sorted(self._solvers)}"
            raise ParameterError(message("load", "path", expected, f"{sorted(found)} in the checkpoint", _SCRIPT))
        for name, solver in self._solvers.items():
            here, there = _solver_shape(_solver_state(solver)), _solver_shape(found[name])
            if here != there:
                expected, got = _first_difference(here, there)
                raise ParameterError(message("load", f"solvers[{name!r}]", expected, got, _SCRIPT))
            check_number("load", f"solvers[{name!r}]", found[name]["rate"])
            for t, arrays in found[name]["states"].values():
                check_integer("load", f"solvers[{name!r}]", t, 0)
                for array in arrays.values():
                    check_type("load", f"solvers[{name!r}]", array, NdArray, "arrays")

    def _check_own(self, own: Mapping[str, Any]) -> None:
        _positions.check_positions(self._iterators, own["iterators"])
        if set(own["generators"]) != set(self._generators):
            expected = f"generators {sorted(self._generators)}"
            raise FormatError(message("load", "path", expected, f"{sorted(own['generators'])} in the checkpoint"))
        for name, generator in self._generators.items():
            _random_state.check_state("load", generator, own["generators"][name], f"generators[{name!r}]")
        for name, y in self._graphs.items():
            _random_state.check_draws("load", y, own["draws"].get(name, []), f"graphs[{name!r}]")
        _random_state.check_all("load", own["random"])

    def _set_common(self, parameters: Mapping[str, Any], solvers: Mapping[str, Any]) -> None:
        if self._given is None:
            _core.set_parameters("load", [(name, array, grad) for name, (array, grad) in parameters.items()])
        else:
            for name, (array, grad) in parameters.items():
                self._given[name].data.copy_from(array)
                self._given[name].need_grad = grad
        for name, solver in self._solvers.items():
            _set_solver(solver, solvers[name])


def _put(path: Sequence[str], value: Any, parameters: dict[str, Any], solvers: Mapping[str, Any]) -> None:
    """Take a rank's own array or number for the first one's."""
    match path:
        case ("parameters", name):
            parameters[name] = (value, parameters[name][1])
        case ("need_grad", name):
            parameters[name] = (parameters[name][0], value)
        case ("rate", name):
            solvers[name]["rate"] = value
        case ("t", name, parameter):
            states = solvers[name]["states"]
            states[parameter] = (value, states[parameter][1])
        case ("solvers", name, parameter, key):
            solvers[name]["states"][parameter][1][key] = value
        case _:
            raise ValueError(f"a value for {path!r}")


def _solver_state(solver: Any) -> dict[str, Any]:
    states = {name: (s.t, {k: v.data for k, v in s.pstate.items()}) for name, s in solver.get_states().items()}
    return {"name": solver.name, "rate": solver.learning_rate(), "states": states}


def _solver_shape(state: Mapping[str, Any]) -> dict[str, str]:
    """What has to be the same where states are set, as texts."""
    found = {"its kind": str(state["name"])}
    for name, (_, arrays) in state["states"].items():
        found[f"the state of '{name}'"] = str({key: array.shape for key, array in arrays.items()})
    return found


def _first_difference(here: Mapping[str, str], there: Mapping[str, str]) -> tuple[str, str]:
    key = next(key for key in {**here, **there} if here.get(key) != there.get(key))
    return f"as {key} {here.get(key, 'nothing')}", there.get(key, "nothing")


def _set_solver(solver: Any, state: Mapping[str, Any]) -> None:
    states = {}
    for name, (t, arrays) in state["states"].items():
        states[name] = SolverState(t, {key: _variable(array) for key, array in arrays.items()})
    solver.set_states(states)
    solver.set_learning_rate(state["rate"])


def _variable(array: NdArray) -> Variable:
    v = Variable(array.shape)
    v.data = array
    return v
