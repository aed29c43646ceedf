"""NNabla's scheduler of swaps between GPU and host, which is in `nnrs.lms`."""

from __future__ import annotations

from ...lms import SwapInOutScheduler

__all__ = ["SwapInOutScheduler"]
