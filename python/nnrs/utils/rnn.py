"""Sequences of several lengths: padded to one length, or packed without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import functions as F
from .._core import NdArray, Variable
from .._errors import ArgumentError, ArgumentTypeError, ShapeError, message

__all__ = ["PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence"]


class PackedSequence:
    """Packed sequences.

    Attributes:
        data: The steps: the first ones of all sequences, then all second ones and so on.
        batch_sizes: How many sequences have each step.
        sorted_indices: The order, from the longest down, in which the sequences are packed; None: as they were
            given.
        unsorted_indices: The way back.

    >>> import nnrs as nn
    >>> pack_sequence([nn.Variable((3, 2)), nn.Variable((1, 2))])
    PackedSequence(data=(4, 2), batch_sizes=(3,))
    """

    def __init__(self) -> None:
        """Without anything."""
        self.data: Any = None
        self.batch_sizes: Any = None
        self.sorted_indices: Any = None
        self.unsorted_indices: Any = None
        # How many there are, where it is known before the graph runs.
        self._sequences: int | None = None

    def __repr__(self) -> str:
        shown = {
            name: getattr(array, "shape", None) for name, array in self.__dict__.items() if not name.startswith("_")
        }
        parts = (f"{name}={shape}" for name, shape in shown.items() if shape is not None)
        return f"PackedSequence({', '.join(parts)})"


def pad_sequence(sequences: Sequence[Any], batch_first: bool = False, padding_value: float = 0.0) -> Any:
    """Pad sequences to the length of the longest one.

    >>> import nnrs as nn
    >>> pad_sequence([nn.Variable((3, 2)), nn.Variable((1, 2))]).shape
    (3, 2, 2)

    Args:
        sequences: Variables or NdArrays of shape (length, ..), alike but for the first axis.
        batch_first: Whether the first axis of the result is that of the sequences.
        padding_value: What stands behind the end of a sequence.

    Returns:
        Array of shape (T, B, ..), or (B, T, ..) if batch_first.

    Raises:
        TypeError: If something else is given than Variables and NdArrays.
        ValueError: If there is none, or the axes behind the first one differ.
    """
    _check(sequences, "pad_sequence")
    most = max(x.shape[0] for x in sequences)
    padded = [_padded(x, most - x.shape[0], padding_value) for x in sequences]
    return F.stack(*padded, axis=0 if batch_first else 1)


def _check(sequences: Sequence[Any], function: str) -> None:
    if len(sequences) == 0:
        raise ArgumentError(message(function, "sequences", "one at least", "none"))
    for i, x in enumerate(sequences):
        if not isinstance(x, (Variable, NdArray)):
            raise ArgumentTypeError(message(function, f"sequences[{i}]", "a Variable or NdArray", type(x).__name__))
        if not x.shape or x.shape[1:] != sequences[0].shape[1:]:
            expected = f"shape (length, ..) with the axes of sequences[0] {sequences[0].shape} behind"
            raise ShapeError(message(function, f"sequences[{i}]", expected, x.shape))


def _padded(x: Any, more: int, value: float) -> Any:
    widths = (0, more) + (0, 0) * (len(x.shape) - 1)
    return F.pad(x, widths, constant_value=value) if more else x


def pack_sequence(sequences: Sequence[Any], batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences.

    Args:
        sequences: Variables or NdArrays of shape (length, ..), alike but for the first axis.
        batch_first: Changes nothing; NNabla's.
        enforce_sorted: Whether they must be sorted, from the longest down; if not, they are packed in that order.

    Returns:
        The packed sequences.

    Raises:
        TypeError: If something else is given than Variables and NdArrays.
        ValueError: If there is none, or the axes behind the first one differ, or the order is another one.

    >>> import nnrs as nn
    >>> short, long = (nn.NdArray.from_numpy_array(np.full((n, 1), n)) for n in (1, 3))
    >>> packed = pack_sequence([short, long], enforce_sorted=False)
    >>> packed.data.data.ravel().tolist(), packed.batch_sizes.data.tolist()
    ([3.0, 1.0, 3.0, 3.0], [2, 1, 1])
    """
    _check(sequences, "pack_sequence")
    lengths = np.array([x.shape[0] for x in sequences])
    return pack_padded_sequence(pad_sequence(sequences), _like(sequences[0], lengths), False, enforce_sorted)


def _like(x: Any, numbers: np.ndarray) -> Any:
    """The numbers as a Variable or NdArray, as x is one."""
    return NdArray.from_numpy_array(numbers) if isinstance(x, NdArray) else Variable.from_numpy_array(numbers)


def pack_padded_sequence(
    padded_sequence: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences.

    Args:
        padded_sequence: Variable or NdArray of shape (T, B, ..), or (B, T, ..) if batch_first.
        lengths: The lengths of the sequences, of shape (B,): Variable, NdArray or list. They are read when this
            is called.
        batch_first: Whether the first axis is that of the sequences.
        enforce_sorted: Whether they must be sorted, from the longest down; if not, they are packed in that order.

    Returns:
        The packed sequences.

    >>> import nnrs as nn
    >>> pack_padded_sequence(nn.Variable((3, 2, 5)), [3, 1])
    PackedSequence(data=(4, 5), batch_sizes=(3,))
    """
    numbers = np.asarray(lengths).astype(np.int64)
    packed = PackedSequence()
    if not enforce_sorted:
        order = np.argsort(-numbers, kind="stable")
        packed.sorted_indices = _like(padded_sequence, order.astype(np.uint64))
        packed.unsorted_indices = _like(padded_sequence, np.argsort(order).astype(np.uint64))
        padded_sequence = F.gather(padded_sequence, packed.sorted_indices, axis=0 if batch_first else 1)
        numbers = numbers[order]
    packed._sequences = len(numbers)
    packed.data, packed.batch_sizes = F.pack_padded_sequence(
        padded_sequence, _like(padded_sequence, numbers), batch_first
    )
    return packed


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """Undo `pack_padded_sequence` and `pack_sequence`.

    Args:
        sequence: Packed sequences.
        batch_first: Whether the first axis of the result is that of the sequences.
        padding_value: What stands behind the end of a sequence.
        total_length: Steps of the result; None: as many as the longest sequence has.

    Returns:
        Array of shape (T, B, ..), or (B, T, ..) if batch_first; and the lengths, of shape (B,).

    Raises:
        ValueError: If total_length is less than the longest sequence.

    >>> import nnrs as nn
    >>> padded, lengths = pad_packed_sequence(pack_padded_sequence(nn.Variable((3, 2, 5)), [3, 1]), batch_first=True)
    >>> padded.shape, lengths.shape
    ((2, 3, 5), (2,))
    """
    steps = sequence.batch_sizes.shape[0]
    if total_length is not None and total_length < steps:
        expected = f"at least {steps}, the steps of the longest sequence"
        raise ArgumentError(message("pad_packed_sequence", "total_length", expected, total_length))
    args = (sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length)
    known = sequence._sequences
    padded, lengths = F.pad_packed_sequence(*args) if known is None else F._pad_packed_sequence(*args, known)
    if sequence.unsorted_indices is not None:
        padded = F.gather(padded, sequence.unsorted_indices, axis=0 if batch_first else 1)
        lengths = F.gather(lengths, sequence.unsorted_indices)
    return padded, lengths
