"""The cuDNN backend, as NNabla's `nnabla_ext.cudnn` presents itself: that of CUDA, by another name.

>>> import nnrs as nn
>>> try:
...     ctx = context(device_id="0", type_config="half")
... except RuntimeError:  # no GPU that can be used
...     ctx = nn.Context(["cpu:half", "cpu:float"])
>>> with nn.context_scope(ctx):
...     print(nn.get_current_context().backend[0].endswith(":half"))
True
"""

from __future__ import annotations

from typing import Any

from .._core import Context
from . import cuda
from .cuda import *  # noqa: F403
from .cuda import made

__all__: list[str] = []
__all__ += cuda.__all__


def context(device_id: str | int = "0", type_config: str = "float", **kw: Any) -> Context:  # type: ignore[no-redef]
    """The context that runs functions on a GPU; see `nnrs.ext.cuda.context`."""
    return made("cudnn", device_id, type_config)
