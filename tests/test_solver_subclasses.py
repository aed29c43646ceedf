"""Classes of a script over `Solver` that hand calls on to another one, as nnabla-rl's wrappers do."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import nnrs as nn
import nnrs.solvers as S
from nnrs.solver import Solver


class Wrapper(Solver):
    """Hands on what it is made with, under names of its own."""

    def __init__(self, solver: Solver, decay: float = 0.0) -> None:
        super().__init__()
        self._solver, self._decay = solver, decay

    def set_parameters(self, parameters, reset=True, retain_state=False):
        self._solver.set_parameters(parameters, reset=reset, retain_state=retain_state)

    def weight_decay(self, rate):
        self._solver.weight_decay(rate)

    def update(self, update_pre_hook=None, update_post_hook=None):
        self._solver.update(update_pre_hook, update_post_hook)

    @property
    def name(self):
        return self._solver.name


class Decaying(Wrapper):
    def update(self):
        self.weight_decay(self._decay)
        super().update()


def parameter() -> nn.Variable:
    w = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    w.g = 1
    return w


def test_a_wrapper_hands_on() -> None:
    w = parameter()
    solver = Decaying(S.Sgd(0.5), decay=2.0)
    solver.set_parameters({"w": w})
    solver.update()
    assert isinstance(solver, Solver) and solver.name == "Sgd"
    assert w.d.tolist() == [-0.5, -0.5]  # w - 0.5 (1 + 2 w)


def test_what_a_wrapper_lacks_is_an_error_that_says_so() -> None:
    solver = Wrapper(S.Sgd())
    for name in ("zero_grad", "learning_rate", "get_states", "get_parameters"):
        with pytest.raises(RuntimeError, match=f"{name}: Wrapper has no rule of update"):
            getattr(solver, name)()
    with pytest.raises(RuntimeError, match="info: Wrapper has no rule"):
        _ = solver.info
    with pytest.raises(RuntimeError, match="no rule of update"):
        copy.deepcopy(solver)


def test_the_base_itself_is_no_solver() -> None:
    with pytest.raises(TypeError, match="Solver: the base has no rule of update"):
        Solver()


def test_classes_over_a_solver_keep_its_rule() -> None:
    class Slow(S.Momentum):
        def update(self, *hooks):
            self.scale_grad(0.5)
            super().update(*hooks)

    w = parameter()
    solver = Slow(1.0, 0.0)
    solver.set_parameters({"w": w})
    solver.update()
    assert w.d.tolist() == [0.5, 1.5] and solver.name == "Momentum" and copy.copy(solver).learning_rate() == 1
