"""Looks over the environment variables that nnrs reads: a value that it cannot use is warned of, once, at import."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable


def _is_count(text: str) -> bool:
    first = text.split(",")[0].strip()  # OpenMP's own variable may be a list
    return first.isascii() and first.isdigit() and int(first) > 0


_VARIABLES: dict[str, tuple[Callable[[str], bool], str]] = {
    "NNRS_NUM_THREADS": (_is_count, "a number of threads, 1 or more"),
    "NNRS_SIMD": (lambda text: text in ("avx512", "avx2", "portable"), "'avx512', 'avx2' or 'portable'"),
    "NNRS_EXACT_CONVOLUTION": (lambda text: text in ("0", "1"), "'0' or '1'"),
    "NNRS_TUNED": (lambda text: text in ("0", "1"), "'0' or '1'"),
    "NNRS_KEEP_WEIGHTS": (lambda text: text in ("0", "1"), "'0' or '1'"),
    "NNRS_FUSION": (lambda text: text in ("0", "1"), "'0' or '1'"),
}


def check() -> None:
    """Warn of each variable of nnrs with a value that it ignores."""
    for name, (fits, expected) in _VARIABLES.items():
        text = os.environ.get(name)
        if text and not fits(text):
            said = f"the environment variable {name} is ignored: expected {expected}, got {text!r}"
            warnings.warn(said, RuntimeWarning, stacklevel=3)
