"""Records which arrays are cleared while graphs run, and when: NNabla's recorder.

Between `activate_clear_called_flag_recorder` and `deactivate_clear_called_flag_recorder`, each function that runs
leaves a list with a pair for each input, and one for each output: whether the data and the gradient have been cleared,
as it is before the next function runs. While it is active, functions run one by one.

>>> import nnrs as nn, nnrs.functions as F
>>> y = F.exp(F.log(nn.Variable((2,))))
>>> activate_clear_called_flag_recorder()
>>> y.forward(clear_no_need_grad=True)
>>> get_input_clear_called_flags(), get_output_clear_called_flags()
([[(False, False)], [(True, False)]], [[(False, False)], [(False, False)]])
>>> deactivate_clear_called_flag_recorder()
"""

from __future__ import annotations

from typing import Any

from .._modes import (
    set_function_post_hook,
    set_function_pre_hook,
    unset_function_post_hook,
    unset_function_pre_hook,
)

__all__ = [
    "activate_clear_called_flag_recorder",
    "deactivate_clear_called_flag_recorder",
    "get_input_clear_called_flags",
    "get_output_clear_called_flags",
]

Flags = list[list[tuple[bool, bool]]]
_KEY = "nnrs.testing.clear_called_flag_recorder"

_inputs: Flags = []
_outputs: Flags = []
_last: list[Any] = []  # the function that ran last, whose flags are not taken yet


def _take(_: Any = None) -> None:
    if _last:
        f = _last.pop()
        _inputs.append(_flags(f.inputs))
        _outputs.append(_flags(f.outputs))


def _flags(variables: list[Any]) -> list[tuple[bool, bool]]:
    return [v._clear_called() for v in variables]


def activate_clear_called_flag_recorder() -> None:
    """Start recording, with empty lists."""
    deactivate_clear_called_flag_recorder()
    set_function_pre_hook(_KEY, _take)
    set_function_post_hook(_KEY, _last.append)


def deactivate_clear_called_flag_recorder() -> None:
    """Stop recording and forget what was recorded."""
    unset_function_pre_hook(_KEY)
    unset_function_post_hook(_KEY)
    for kept in (_inputs, _outputs, _last):
        kept.clear()


def get_input_clear_called_flags() -> Flags:
    """For each function that ran, in order: a pair (data, gradient) for each input, True where it has been cleared."""
    _take()
    return list(_inputs)


def get_output_clear_called_flags() -> Flags:
    """For each function that ran, in order: a pair (data, gradient) for each output, True where it has been cleared."""
    _take()
    return list(_outputs)
