"""Hooks of all functions and of all solvers, as NNabla has them here, too.

>>> import nnrs as nn
>>> set_function_pre_hook is nn.set_function_pre_hook
True
"""

from __future__ import annotations

from ._modes import (
    set_function_post_hook,
    set_function_pre_hook,
    set_solver_post_hook,
    set_solver_pre_hook,
    unset_function_post_hook,
    unset_function_pre_hook,
    unset_solver_post_hook,
    unset_solver_pre_hook,
)

__all__ = [
    "set_function_post_hook",
    "set_function_pre_hook",
    "set_solver_post_hook",
    "set_solver_pre_hook",
    "unset_function_post_hook",
    "unset_function_pre_hook",
    "unset_solver_post_hook",
    "unset_solver_pre_hook",
]
