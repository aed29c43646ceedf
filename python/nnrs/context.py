"""Contexts under NNabla's module name: where functions run, and in what type.

>>> with context_scope(Context(["cpu:half", "cpu:float"])):
...     print(get_current_context().backend)
['cpu:half', 'cpu:float']
"""

from __future__ import annotations

from ._core import Context
from ._modes import context_scope, get_current_context, set_default_context

__all__ = ["Context", "context_scope", "get_current_context", "set_default_context"]
