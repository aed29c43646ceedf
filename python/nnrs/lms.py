"""NNabla's scheduler of swaps between GPU and host.

nnrs swaps nothing: on the CPU there is nothing to swap, and on a GPU `SwapInOutScheduler` says so in a warning. What
saves memory there is to compute values again: `nnrs.memory.fit` keeps a graph below a number of bytes.
"""

from __future__ import annotations

import warnings
from typing import Any

from ._core import Context, Function
from ._errors import ArgumentError, check_number, check_type, message


class SwapInOutScheduler:
    """For scripts that use it: a block in which they run as they do without it.

    Args:
        h_ctx: Context of the host.
        d_ctx: Context of the device. A GPU's is a RuntimeWarning: all arrays stay there.
        size: Bytes of the device's memory that NNabla would use.
        prefetch_size: Bytes that NNabla would fetch ahead.
        save_host_mem: Whether NNabla would free the host's memory after a swap.
        save_host_mem_no_abort: Whether NNabla would go on where an array to be swapped has been freed.

    >>> import nnrs as nn, nnrs.functions as F
    >>> cpu = nn.ext_utils.get_extension_context("cpu")
    >>> y = F.exp(nn.Variable((1,)))
    >>> with SwapInOutScheduler(cpu, cpu, size=10**6):
    ...     y.forward()
    >>> float(y.d[0])
    1.0
    """

    def __init__(
        self,
        h_ctx: Context,
        d_ctx: Context,
        size: float,
        prefetch_size: float | None = None,
        save_host_mem: bool = True,
        save_host_mem_no_abort: bool = False,
    ) -> None:
        here = "SwapInOutScheduler"
        for argument, context in (("h_ctx", h_ctx), ("d_ctx", d_ctx)):
            check_type(here, argument, context, Context, "a Context")
        for argument, value in (("size", size), ("prefetch_size", prefetch_size)):
            if (value is not None or argument == "size") and not check_number(here, argument, value) >= 0:  # 6e9, too
                raise ArgumentError(message(here, argument, "0 or more", value))
        if any(not backend.startswith("cpu") for backend in d_ctx.backend):
            text = f"nnrs: {here} swaps nothing between GPU and host; nnrs.memory.fit keeps a graph below a size"
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def __enter__(self) -> SwapInOutScheduler:
        self.start_scheduling()
        return self

    def __exit__(self, *error: object) -> None:
        self.end_scheduling()

    def start_scheduling(self) -> None:
        """Begin a block, as `with` does."""

    def end_scheduling(self) -> None:
        """End a block, as `with` does."""

    def function_pre_hook(self, func: Function) -> None:
        """For `function_pre_hook` of a run; there is nothing to be done."""

    def function_post_hook(self, func: Function) -> None:
        """For `function_post_hook` of a run; there is nothing to be done."""

    def update_pre_hook(self, *args: Any) -> None:
        """For hooks before a solver's methods; there is nothing to be done."""

    def update_post_hook(self, *args: Any) -> None:
        """For hooks after a solver's methods; there is nothing to be done."""
