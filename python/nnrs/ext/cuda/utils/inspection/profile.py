"""The clock of `nnrs.utils.inspection.TimeProfiler` on a GPU.

>>> import nnrs as nn, nnrs.functions as F
>>> try:
...     timer = CudaEventTimerCallback("cudnn", device_id="0")
... except RuntimeError:  # no GPU that can be used: the CPU's
...     timer = CpuTimerCallback("cpu", device_id="0")
>>> y = F.relu(nn.Variable((2, 3)))
>>> y.forward(function_pre_hook=timer.pre_hook, function_post_hook=timer.post_hook)
>>> timer.calc_elapsed_time()
>>> [(f.name, result["num"]) for f, result in timer.average().items()]
[('ReLU', 1)]
"""

from __future__ import annotations

from .....utils.inspection.profile import CpuTimerCallback
from ..._streams import _open


class CudaEventTimerCallback(CpuTimerCallback):
    """Measures functions on a GPU, each of which is waited for.

    Args:
        ext_name: 'cuda' or 'cudnn'.
        device_id: Number of the GPU.

    Raises:
        RuntimeError: If there is no GPU that can be used.
    """

    def __init__(self, ext_name: str, device_id: str | int) -> None:
        super().__init__(ext_name, str(_open("CudaEventTimerCallback", device_id)))
