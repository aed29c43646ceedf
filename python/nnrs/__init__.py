"""nnrs: NNabla's computation graph on a Rust engine. `import nnrs as nn` runs NNabla's scripts."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from . import (
    _calls,
    _core,
    _dlpack,
    _environment,
    backward_functions,
    communicators,
    config,
    function,
    memory,
)
from ._contexts import (
    add_available_context,
    array_classes,
    available_contexts,
    prefer_cached_array,
    reset_array_preference,
)
from ._core import Context, Error, NdArray, Variable, get_num_threads
from ._missing import missing_name
from ._modes import (
    context_scope,
    forward_all,
    get_current_context,
    no_grad,
    set_default_context,
    set_exact_convolution,
    set_function_post_hook,
    set_function_pre_hook,
    set_fusion,
    set_num_threads,
    set_solver_post_hook,
    set_solver_pre_hook,
    unset_function_post_hook,
    unset_function_pre_hook,
    unset_solver_post_hook,
    unset_solver_pre_hook,
)
from ._version import __version__, show_versions
from .auto_forward import auto_forward, get_auto_forward, set_auto_forward
from .core.module import Module
from .core.sequential import Sequential
from .grad import grad
from .logger import logger
from .parameter import (
    clear_parameters,
    get_current_parameter_scope,
    get_parameters,
    load_parameters,
    parameter_scope,
    save_parameters,
)
from .random import seed
from .recompute import get_global_recompute, recompute, recompute_fn, set_global_recompute

__all__ = [
    "Context",
    "Error",
    "Module",
    "NdArray",
    "Sequential",
    "Variable",
    "__version__",
    "add_available_context",
    "array_classes",
    "auto_forward",
    "available_contexts",
    "backward_functions",
    "clear_parameters",
    "communicators",
    "config",
    "context_scope",
    "forward_all",
    "function",
    "get_auto_forward",
    "get_current_context",
    "get_current_parameter_scope",
    "get_global_recompute",
    "get_num_threads",
    "get_parameters",
    "grad",
    "load_parameters",
    "logger",
    "memory",
    "no_grad",
    "parameter_scope",
    "prefer_cached_array",
    "recompute",
    "recompute_fn",
    "reset_array_preference",
    "save_parameters",
    "seed",
    "set_auto_forward",
    "set_default_context",
    "set_function_post_hook",
    "set_function_pre_hook",
    "set_exact_convolution",
    "set_fusion",
    "set_global_recompute",
    "set_num_threads",
    "set_solver_post_hook",
    "set_solver_pre_hook",
    "show_versions",
    "unset_function_post_hook",
    "unset_function_pre_hook",
    "unset_solver_post_hook",
    "unset_solver_pre_hook",
]

if TYPE_CHECKING:
    from . import backward_function as backward_function
    from . import callback as callback
    from . import checkpoint as checkpoint
    from . import compat as compat
    from . import context as context
    from . import dtypes as dtypes
    from . import experimental as experimental
    from . import ext_utils as ext_utils
    from . import functions as functions
    from . import initializer as initializer
    from . import monitor as monitor
    from . import parametric_functions as parametric_functions
    from . import solver as solver
    from . import solvers as solvers
    from . import testing as testing
    from . import utils as utils
    from . import variable as variable
    from .core import graph_def as graph_def
    from .core.graph_def import ProtoVariable as ProtoVariable


# Modules that are imported when they are first asked for, as `nn.functions`.
_MODULES = """
_arithmetic_ops _computation_graph _indexing _init _nd_array _variable backward_function callback checkpoint compat
context dtypes experimental ext_utils function_bases functions initializer monitor parametric_functions solver solvers
testing utils variable
""".split()


def __getattr__(name: str) -> object:
    if name in ("graph_def", "ProtoVariable"):
        graph_def = importlib.import_module(f"{__name__}.core.graph_def")
        return graph_def if name == "graph_def" else graph_def.ProtoVariable
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise missing_name("nnrs", name)


_calls.check_methods(Variable)
_calls.check_methods(NdArray)
_dlpack.install()
_calls.check_methods(_core.Function)
_calls.check_methods(_core.Solver)
_environment.check()
