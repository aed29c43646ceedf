"""What has hooks for the functions of a run."""

from __future__ import annotations

from typing import Any


class FunctionHookCallbackBase:
    """Base of what has a `pre_hook` and a `post_hook`, for `function_pre_hook` and `function_post_hook` of a run.

    A subclass gives both; each is called with the function, or is None.

    >>> class Names(FunctionHookCallbackBase):
    ...     @property
    ...     def pre_hook(self):
    ...         return lambda f: print(f.name)
    >>> import nnrs as nn, nnrs.functions as F
    >>> F.relu(nn.Variable((2,))).forward(function_pre_hook=Names().pre_hook)
    ReLU
    """

    @property
    def pre_hook(self) -> Any:
        """Called before a function runs."""
        raise NotImplementedError(f"{type(self).__name__}.pre_hook is missing: it gives a callable, or None")

    @property
    def post_hook(self) -> Any:
        """Called after a function has run."""
        raise NotImplementedError(f"{type(self).__name__}.post_hook is missing: it gives a callable, or None")
