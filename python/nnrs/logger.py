"""The logger of nnrs: named 'nnrs', silent until the program sets up logging.

>>> logger.name
'nnrs'
"""

from __future__ import annotations

import logging

logger: logging.Logger = logging.getLogger("nnrs")
"""Standard logger of the package."""
logger.addHandler(logging.NullHandler())
