"""Communicators under the name of the module in which NNabla has them."""

from __future__ import annotations

from typing import Any

from ._missing import missing_name
from .communicators import *  # noqa: F403
from .communicators import __all__ as __all__


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name)
