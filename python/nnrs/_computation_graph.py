"""`forward_all`, as NNabla has it here, too."""

from __future__ import annotations

from ._modes import forward_all

__all__ = ["forward_all"]
