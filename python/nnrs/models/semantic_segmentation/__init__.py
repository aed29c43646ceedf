"""Networks that tell of each pixel what it belongs to."""

from __future__ import annotations

from .deeplabv3plus import DeepLabV3plus

__all__ = ["DeepLabV3plus"]
