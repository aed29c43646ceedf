"""NNabla's iterator over pipelines of NVIDIA's DALI, which nnrs does not run."""

from __future__ import annotations

from typing import Any

from ...._errors import UnsupportedError, message

__all__ = ["DaliIterator"]


class DaliIterator:
    """Batches of a DALI pipeline.

    Raises:
        RuntimeError: Always.

    >>> try:
    ...     DaliIterator(pipeline=None)
    ... except RuntimeError as error:
    ...     print(str(error).splitlines()[0])
    DaliIterator: nnrs does not run DALI's pipelines
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        hint = "nnrs.utils.data_iterator makes batches in threads; from_dlpack takes arrays of other libraries"
        raise UnsupportedError(message("DaliIterator", None, "nnrs does not run DALI's pipelines", hint=hint))
