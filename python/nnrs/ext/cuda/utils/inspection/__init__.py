"""Measuring times on a GPU."""

from __future__ import annotations

from .profile import CudaEventTimerCallback

__all__ = ["CudaEventTimerCallback"]
