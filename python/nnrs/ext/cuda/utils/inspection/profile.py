"""The clock of `nnrs.utils.inspection.TimeProfiler` on a GPU."""

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
