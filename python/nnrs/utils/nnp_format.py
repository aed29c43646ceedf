"""The version of `.nnp` files."""

from __future__ import annotations

__all__ = ["nnp_version"]


def nnp_version() -> str:
    """The version that `.nnp` files of this package say they have.

    >>> nnp_version()
    '0.1'
    """
    return "0.1"
