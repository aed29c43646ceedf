"""Contexts by an old name: use `nnrs.ext_utils.get_extension_context`.

>>> extension_context("cpu").backend
['cpu:float']
"""

from __future__ import annotations

from typing import Any

from .._core import Context
from ..ext_utils import get_extension_context
from ..logger import logger


def extension_context(extension_name: str = "cpu", **kw: Any) -> Context:
    """The context of a backend; the log says that the name is an old one.

    Args:
        extension_name: Name of the backend.
        **kw: Options, as `nnrs.ext_utils.get_extension_context` takes them.

    Raises:
        ModuleNotFoundError: If there is no such backend.

    >>> extension_context("cpu", type_config="half").backend
    ['cpu:half', 'cpu:float']
    """
    logger.warning("extension_context is deprecated: use nnrs.ext_utils.get_extension_context")
    return get_extension_context(extension_name, **kw)
