"""The version, and what a bug report should say."""

from __future__ import annotations

__version__ = "0.1.0"


def show_versions() -> None:
    """Print the versions of nnrs, Python and NumPy, and the number of threads.

    >>> show_versions()  # doctest: +ELLIPSIS
    nnrs ...
    """
    import platform

    import numpy

    from ._core import get_num_threads

    print(f"nnrs {__version__}")
    print(f"Python {platform.python_version()} on {platform.platform()}")
    print(f"NumPy {numpy.__version__}")
    print(f"threads {get_num_threads()}")
