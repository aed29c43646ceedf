"""Kinds of arrays and contexts that there are: NNabla's switches between them."""

from __future__ import annotations

from . import _calls
from ._errors import check_type
from .ext.cpu import array_classes

__all__ = [
    "add_available_context",
    "array_classes",
    "available_contexts",
    "prefer_cached_array",
    "reset_array_preference",
]

available_contexts: list[str] = ["cpu"]
"""Names of the contexts that there are: 'cuda' and 'cudnn' come when one of theirs has been made."""


def add_available_context(ctx: str) -> None:
    """Note another context's name in `available_contexts`: what a backend does when it is imported."""
    check_type("add_available_context", "ctx", ctx, str, "a name")
    if ctx not in available_contexts:
        available_contexts.append(ctx)


def prefer_cached_array(prefer: bool) -> None:
    """Say which arrays are preferred. NNabla's: the memory of all arrays of nnrs is cached, so nothing changes.

    Args:
        prefer: True or False.
    """
    check_type("prefer_cached_array", "prefer", prefer, (bool, int), "True or False")


def reset_array_preference() -> None:
    """Undo `prefer_cached_array`."""


_calls.check_functions(globals())
