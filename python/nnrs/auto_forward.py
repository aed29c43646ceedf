"""Dynamic graphs, whose functions run as they are applied, under NNabla's module name."""

from __future__ import annotations

from ._modes import auto_forward, get_auto_forward, set_auto_forward

__all__ = ["auto_forward", "get_auto_forward", "set_auto_forward"]
