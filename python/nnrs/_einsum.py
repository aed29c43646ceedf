"""`einsum`: Einstein's summation convention, by matrix products, element-wise products, sums and transposes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ._core import NdArray, Variable
from ._errors import ArgumentError, ShapeError, check_type, message

__all__ = ["einsum"]

_TERM = r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rf"{_TERM}(?:,{_TERM})*(?:->{_TERM})?")

# An array with the label of each axis. Those of an ellipsis are "0", "1", .., counted from the last axis.
_Labelled = tuple[Any, list[str]]


def einsum(*x: Any, equation: str = "", n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Einstein's summation convention: products of elements, summed over the axes that the result does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> F.einsum(nn.Variable((2, 3)), nn.Variable((3, 4)), equation="ij,jk->ik").shape
    (2, 4)

    Args:
        *x: N-D arrays.
        equation: For each array the labels of its axes, letters, with commas between; after `->` those of the
            result, which by default are those that occur once, in alphabetic order. `...` stands for any number
            of axes, the same for all arrays that have it, of one size or of size 1. A label that occurs twice
            in an array is its diagonal.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array.

    Raises:
        ValueError: For an equation that is none, or does not fit the arrays.
    """
    for v in x:
        check_type("einsum", "x", v, (Variable, NdArray), "Variables or NdArrays")
    check_type("einsum", "equation", equation, (str,), "a str")
    from . import functions

    arrays, result = _labelled(x, equation)
    arrays = [_diagonal(a) for a in arrays]
    while len(arrays) > 1:
        kept = {*result, *(label for _, labels in arrays[2:] for label in labels)}
        a, b = arrays[:2]
        arrays[:2] = [_product(_summed(a, kept | {*b[1]}), _summed(b, kept | {*a[1]}), kept)]
    y, labels = _summed(arrays[0], {*result})
    y = _transposed(y, [labels.index(label) for label in result])
    # Where nothing is to be done, the result is an array of its own as well.
    return y if outputs is None and y is not x[0] else functions.identity(y, outputs=outputs)


def _labelled(x: Sequence[Any], equation: str) -> tuple[list[_Labelled], list[str]]:
    """The arrays with their labels, and those of the result."""
    bare = equation.replace(" ", "")
    if not _EQUATION.fullmatch(bare):
        expected = "letters, commas, '...' and one '->', as in 'ij,jk->ik'"
        raise ArgumentError(message("einsum", "equation", expected, repr(equation)))
    left, arrow, right = bare.partition("->")
    terms = left.split(",")
    if len(terms) != len(x):
        expected = f"a term for each of the {len(x)} arrays"
        raise ArgumentError(message("einsum", "equation", expected, f"{len(terms)} in {equation!r}"))
    arrays = [(v, _axes(v.shape, term, i)) for i, (v, term) in enumerate(zip(x, terms, strict=True))]
    more = max((len([label for label in labels if label.isdigit()]) for _, labels in arrays), default=0)
    ellipsis = [str(i) for i in reversed(range(more))]
    sizes = _sizes(arrays)
    if arrow:
        result = _expand(right, ellipsis)
    else:
        letters = left.replace(".", "").replace(",", "")
        result = [*ellipsis, *sorted(c for c in set(letters) if letters.count(c) == 1)]
    unknown = [label for label in result if label not in sizes]
    if unknown or len(set(result)) < len(result) or ("..." in right and "..." not in left):
        expected = "a result whose labels occur once in it and are those of arrays"
        raise ArgumentError(message("einsum", "equation", expected, repr(equation)))
    return [_without_ones(a, sizes) for a in arrays], result


def _axes(shape: tuple[int, ...], term: str, i: int) -> list[str]:
    n = len(shape) - len(term.replace("...", ""))
    if n < 0 or (n > 0 and "..." not in term):
        raise ShapeError(message("einsum", f"x[{i}]", f"an axis for each label of {term!r}", shape))
    return _expand(term, [str(k) for k in reversed(range(n))])


def _expand(term: str, ellipsis: list[str]) -> list[str]:
    before, dots, after = term.partition("...")
    return [*before, *(ellipsis if dots else []), *after]


def _sizes(arrays: list[_Labelled]) -> dict[str, int]:
    """The size of each label. Axes of an ellipsis may have size 1 instead."""
    sizes: dict[str, int] = {}
    for i, (v, labels) in enumerate(arrays):
        for label, n in zip(labels, v.shape, strict=True):
            known = sizes.setdefault(label, n)
            if label.isdigit() and known == 1:
                sizes[label] = n
            elif n != known and not (label.isdigit() and n == 1):
                name = "an axis of '...'" if label.isdigit() else f"label {label!r}"
                raise ShapeError(message("einsum", f"x[{i}]", f"size {known} for {name}", v.shape))
    return sizes


def _without_ones(a: _Labelled, sizes: dict[str, int]) -> _Labelled:
    """Without the axes of an ellipsis that are stretched: the product repeats what does not have them."""
    v, labels = a
    stays = [n == sizes[label] for label, n in zip(labels, v.shape, strict=True)]
    if all(stays):
        return a
    shape = [n for n, stay in zip(v.shape, stays, strict=True) if stay]
    return _reshaped(v, shape), [label for label, stay in zip(labels, stays, strict=True) if stay]


def _diagonal(a: _Labelled) -> _Labelled:
    """With each label once."""
    from . import functions as F

    v, labels = a
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            others = [i for i in range(len(labels)) if i not in (first, second)]
            v = F.matrix_diag_part(_transposed(v, [*others, first, second]))
            labels = [*(labels[i] for i in others), label]
    return v, labels


def _summed(a: _Labelled, kept: set[str]) -> _Labelled:
    """Without the labels that nothing else has."""
    from . import functions as F

    v, labels = a
    axes = [i for i, label in enumerate(labels) if label not in kept]
    return (F.sum(v, axes) if axes else v), [label for label in labels if label in kept]


def _product(a: _Labelled, b: _Labelled, kept: set[str]) -> _Labelled:
    """The product of two arrays, summed over what both have and nothing else wants."""
    from . import functions as F

    both = [label for label in a[1] if label in b[1] and label in kept]
    summed = [label for label in a[1] if label in b[1] and label not in kept]
    rows = [label for label in a[1] if label not in b[1]]
    columns = [label for label in b[1] if label not in a[1]]
    left = _transposed(a[0], [a[1].index(label) for label in [*both, *rows, *summed]])
    right = _transposed(b[0], [b[1].index(label) for label in [*both, *summed, *columns]])
    size = dict(zip(a[1], a[0].shape, strict=True)) | dict(zip(b[1], b[0].shape, strict=True))

    def shape(labels: list[str]) -> list[int]:
        return [size[label] for label in labels]

    if not summed:
        left = _reshaped(left, [*shape(both), *shape(rows), *(1 for _ in columns)])
        right = _reshaped(right, [*shape(both), *(1 for _ in rows), *shape(columns)])
        return F.mul2(left, right), [*both, *rows, *columns]
    lead = [math.prod(shape(both))] if both else []
    k = math.prod(shape(summed))
    left = _reshaped(left, [*lead, math.prod(shape(rows)), k])
    right = _reshaped(right, [*lead, k, math.prod(shape(columns))])
    y = F.batch_matmul(left, right)
    return _reshaped(y, [*shape(both), *shape(rows), *shape(columns)]), [*both, *rows, *columns]


def _reshaped(v: Any, shape: Sequence[int]) -> Any:
    from . import functions as F

    return v if tuple(shape) == v.shape else F.reshape(v, tuple(shape), inplace=False)


def _transposed(v: Any, axes: list[int]) -> Any:
    from . import functions as F

    return v if axes == list(range(len(axes))) else F.transpose(v, axes)
