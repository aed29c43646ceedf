"""Arrays to and from other libraries by DLPack capsules, on the host.

Nothing is copied: both libraries read and write the same memory, which lives as long as one of them has it.
`np.from_dlpack` and `torch.from_dlpack` take an NdArray or Variable as it is, without a capsule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import Context, NdArray, Variable
from .._errors import ArgumentError, ArgumentTypeError, UnsupportedError, check_type, describe, message

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(a: NdArray, dtype: Any = None, ctx: Context | None = None) -> Any:
    """A DLPack capsule with the memory of an array, which lives as long as the capsule or what takes it.

    Args:
        a: NdArray; of a Variable v it is `v.data`.
        dtype: Convert `a` to this type, in place, before.
        ctx: Bring `a` to this context, in place, before. It has to be one of the host.

    Returns:
        Capsule that one other library may take, as `torch.utils.dlpack.from_dlpack`.

    Raises:
        TypeError: `a` is no NdArray, or DLPack does not have its type.

    >>> a = NdArray.from_numpy_array([1.0, 2.0])
    >>> from_dlpack(to_dlpack(a, dtype=np.int32)).data.tolist()
    [1, 2]
    """
    hint = "give v.data of a Variable v" if isinstance(a, Variable) else None
    if not isinstance(a, NdArray):
        raise ArgumentTypeError(message("to_dlpack", "a", "an NdArray", describe(a), hint))
    if ctx is not None:
        check_type("to_dlpack", "ctx", ctx, Context, "a Context")
        if not all(name.startswith("cpu") for name in ctx.backend):
            expected = "a context of the host: the memory of a GPU cannot be handed out"
            raise UnsupportedError(message("to_dlpack", "ctx", expected, ctx.backend))
    if dtype is not None or ctx is not None:
        a.cast(a.dtype if dtype is None else dtype, ctx)
    try:
        return a.data.__dlpack__()
    except (BufferError, TypeError) as error:
        raise ArgumentTypeError(message("to_dlpack", "a", "a type that DLPack has", str(a.dtype))) from error


def from_dlpack(dlp: Any, arr: NdArray | None = None) -> NdArray:
    """An array over the memory of a DLPack capsule.

    What one side writes, the other reads, until `fill`, `zero` or `cast` give the array memory of its own.

    Copied are booleans, what is not contiguous, what its library gives for reading only, and what is to go to an `arr`
    whose own memory is in use (a NumPy view of it, or it is a part of another array).

    Args:
        dlp: Capsule of another library, which is used up, or any object with `__dlpack__`. Its memory is the host's.
        arr: The array that gets the memory; it takes its shape and type.

    Returns:
        `arr`, or a new array.

    Raises:
        TypeError: `dlp` is no capsule, or holds a type that NumPy lacks.
        ValueError: The capsule was used before, or its memory is not the host's.

    >>> from_dlpack(np.arange(3.0).__dlpack__()).data.tolist()
    [0.0, 1.0, 2.0]
    """
    if arr is not None:
        check_type("from_dlpack", "arr", arr, NdArray, "an NdArray")
    values = _taken(dlp)
    if arr is None:
        arr = NdArray(values.shape)
    elif arr.shape != values.shape:
        _reshape(arr, values.shape)
    # A capsule of the older form does not say whether it may be written; NumPy takes it for one that may not.
    is_shared = values.flags.writeable or "dltensor_versioned" not in _name(dlp)
    if not (is_shared and arr._adopt(values)):
        arr.cast(values.dtype)
        arr.data = values
    return arr


def _name(dlp: Any) -> str:
    """The name in a capsule's repr; that of the newer form for an object that hands out capsules."""
    return repr(dlp) if type(dlp).__name__ == "PyCapsule" else "dltensor_versioned"


class _Capsule:
    """A capsule as an object of the protocol, for NumPy."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _taken(dlp: Any) -> np.ndarray:
    is_capsule = type(dlp).__name__ == "PyCapsule"
    if not is_capsule and not hasattr(dlp, "__dlpack__"):
        raise ArgumentTypeError(message("from_dlpack", "dlp", "a DLPack capsule", describe(dlp)))
    try:
        return np.from_dlpack(_Capsule(dlp) if is_capsule else dlp)
    except (ValueError, RuntimeError, BufferError) as error:
        expected = f"an unused DLPack capsule of the host's memory, and of a type that NumPy has: {error}"
        raise ArgumentError(message("from_dlpack", "dlp", expected)) from error


def _reshape(arr: NdArray, shape: tuple[int, ...]) -> None:
    """Give an array another shape: through a variable that has it, as scripts do."""
    v = Variable(arr.shape)
    v.data = arr
    v.reset_shape(shape, True)
