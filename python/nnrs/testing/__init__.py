"""Help for tests of networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import clear_called_flag_recorder

__all__ = ["assert_allclose", "clear_called_flag_recorder"]


def assert_allclose(
    actual: Any,
    desired: Any,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    equal_nan: bool = True,
    err_msg: str = "",
    verbose: bool = True,
) -> None:
    """Raise AssertionError unless `|actual - desired| <= atol + rtol |desired|` everywhere.

    Args:
        actual: Array, Variable or number.
        desired: What it should be.
        rtol: Relative tolerance.
        atol: Absolute tolerance; not 0 as NumPy's.
        equal_nan: Whether NaN equals NaN.
        err_msg: Text for the error.
        verbose: Whether the error shows the values.

    >>> assert_allclose([1.0, 2.0], [1.0, 2.000001])
    """
    np.testing.assert_allclose(
        np.asarray(actual), np.asarray(desired), rtol, atol, equal_nan, err_msg=err_msg, verbose=verbose
    )
