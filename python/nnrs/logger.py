"""The logger of nnrs: named 'nnrs', silent until the program sets up logging."""

from __future__ import annotations

import logging

logger: logging.Logger = logging.getLogger("nnrs")
"""Standard logger of the package.

>>> logger.name
'nnrs'
"""
logger.addHandler(logging.NullHandler())
