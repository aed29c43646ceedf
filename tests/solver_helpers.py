"""What the tests of solvers share."""

from __future__ import annotations

import numpy as np

import nnrs as nn
import nnrs.solvers as S
from nnrs import _core

ALL = [getattr(S, solver["name"]) for solver in _core.solver_registry()]
NORMED = [S.Lars, S.Lamb]  # their steps depend on norms over the whole parameter


def parameter(values, gradient=None):
    w = nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=True)
    if gradient is not None:
        w.g = np.broadcast_to(np.asarray(gradient, np.float32), w.shape)
    return w


def solver_of(kind, **params):
    solver = kind()
    solver.set_parameters(params)
    return solver


def steps(solver):
    return {name: state.t for name, state in solver.get_states().items()}
