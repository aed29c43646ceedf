"""Networks that find objects in images."""

from __future__ import annotations

from .yolov2 import YoloV2

__all__ = ["YoloV2"]
