"""Looks into graphs: what they are made of (`pprint`), how long they take, where NaN and infinities come from."""

from __future__ import annotations

from .base import FunctionHookCallbackBase
from .pretty_print import pprint
from .profile import CpuTimerCallback, TimeProfiler
from .value_trace import NanInfTracer

__all__ = ["CpuTimerCallback", "FunctionHookCallbackBase", "NanInfTracer", "TimeProfiler", "pprint"]
