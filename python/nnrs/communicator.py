"""Communicators under the name of the module in which NNabla has them."""

from __future__ import annotations

from .communicators import *  # noqa: F403
from .communicators import __all__ as __all__
