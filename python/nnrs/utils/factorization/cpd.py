"""Canonical polyadic decomposition: an array as a sum of outer products of vectors."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..._errors import (
    ArgumentError,
    ArgumentTypeError,
    OutOfMemoryError,
    check_number,
    check_type,
    describe,
    message,
)

__all__ = ["ALS"]

HERE = "ALS.solve"
_SOLVABLE = "an array whose decomposition has finite numbers (not zeros, nor too large ones)"
_FEW_TERMS = 1024


def most_terms(shape: tuple[int, ...]) -> int:
    """How many outer products an array of this shape may be given: as many as any such array needs, or a few more."""
    return max(math.prod(shape) // max(*shape, 1), _FEW_TERMS)


def _array(X: Any) -> np.ndarray:
    """X as an array of finite numbers."""
    try:
        made = np.asarray(X)
    except (TypeError, ValueError):
        raise ArgumentError(message(HERE, "X", "an array of two axes or more", describe(X))) from None
    if made.ndim < 2:
        raise ArgumentError(message(HERE, "X", "an array of two axes or more", made.shape))
    if made.dtype.kind not in "biuf":
        raise ArgumentTypeError(message(HERE, "X", "an array of real numbers", f"dtype {made.dtype}"))
    if made.size == 0 or not np.isfinite(made).all():
        raise ArgumentError(message(HERE, "X", "finite numbers, one at least", f"an array of shape {made.shape}"))
    return made


def _float_type(dtype: Any) -> np.dtype[Any]:
    try:
        made = np.dtype(dtype)
    except (TypeError, ValueError):
        made = np.dtype(object)
    if made.kind != "f":
        raise ArgumentTypeError(message(HERE, "dtype", "a type of floating-point numbers", describe(dtype)))
    return made


class ALS:
    """Canonical polyadic decomposition by alternating least squares (Kolda and Bader, 2009).

    Each step solves for one of the matrices with the others fixed, which is a linear problem.

    >>> import numpy as np
    >>> x = np.multiply.outer(np.multiply.outer([1.0, 2.0], [1.0, 0.5]), [3.0, 1.0, 2.0])
    >>> als = ALS()
    >>> matrices, weights = als.solve(x, 1)
    >>> [m.shape for m in matrices], bool(np.allclose(als.approximate_tensor(matrices, weights), x))
    ([(2, 1), (2, 1), (3, 1)], True)
    """

    def solve(
        self,
        X: Any,
        rank: int,
        max_iter: int = 500,
        stopping_criterion: float = 1e-5,
        lambda_reg: float = 0.0,
        dtype: DTypeLike = np.float32,
        rng: np.random.RandomState | None = None,
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Decompose an array.

        Args:
            X: Array of two axes or more.
            rank: Number of outer products.
            max_iter: Steps over all matrices, at most.
            stopping_criterion: The least change of the explained share of the squares that goes on; below 0 it is not
                looked at, which saves time.
            lambda_reg: Weight of the penalty on large numbers.
            dtype: Type of the numbers to begin with.
            rng: Random generator for these; None: one with seed 313.

        Returns:
            A matrix (size of the axis, rank) for each axis of X, and the weights of the outer products.

        Raises:
            ValueError: For an array or numbers that do not fit.
        """
        X = _array(X)
        for name, n in (("rank", rank), ("max_iter", max_iter)):
            check_type("ALS.solve", name, n, (int, np.integer), "int")
            if n < 1:
                raise ArgumentError(message("ALS.solve", name, "1 or more", n))
        if rank > most_terms(X.shape):
            raise ArgumentError(message(HERE, "rank", f"a number from 1 to {most_terms(X.shape)}", rank))
        stopping_criterion = check_number(HERE, "stopping_criterion", stopping_criterion)
        lambda_reg = check_number(HERE, "lambda_reg", lambda_reg)
        if not np.isfinite(lambda_reg):
            raise ArgumentError(message(HERE, "lambda_reg", "a finite number", lambda_reg))
        if rng is not None:
            check_type(HERE, "rng", rng, np.random.RandomState, "a numpy.random.RandomState, or None")
        rng = np.random.RandomState(313) if rng is None else rng
        try:
            with np.errstate(all="ignore"):
                A, weights = self._steps(
                    X, int(rank), int(max_iter), stopping_criterion, lambda_reg, _float_type(dtype), rng
                )
        except np.linalg.LinAlgError:
            raise ArgumentError(message(HERE, "X", _SOLVABLE, f"one of shape {X.shape}")) from None
        except MemoryError:
            raise OutOfMemoryError(message(HERE, None, f"there is no memory for rank {rank} of {X.shape}")) from None
        if not all(np.isfinite(a).all() for a in (*A, weights)):
            raise ArgumentError(message(HERE, "X", _SOLVABLE, f"one of shape {X.shape}"))
        return A, weights

    def _steps(
        self,
        X: np.ndarray,
        rank: int,
        max_iter: int,
        stopping_criterion: float,
        lambda_reg: float,
        dtype: np.dtype[Any],
        rng: np.random.RandomState,
    ) -> tuple[list[np.ndarray], np.ndarray]:
        A = [np.empty((X.shape[0], rank))]
        A += [np.asarray(rng.rand(n, rank), dtype) for n in X.shape[1:]]
        weights = np.ones(rank)
        explained = 0.0
        for step in range(max_iter):
            for n in range(X.ndim):
                A[n], weights = self._solved(X, A, n, lambda_reg, first=step == 0)
            if stopping_criterion < 0:
                continue
            before, explained = explained, self._explained(X, self.approximate_tensor(A, weights))
            if step > 0 and abs(before - explained) < stopping_criterion:
                break
        return A, weights

    def _solved(
        self, X: np.ndarray, A: list[np.ndarray], n: int, lambda_reg: float, first: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The matrix of axis `n` with columns of about length 1, and the weights."""
        others = [i for i in range(X.ndim) if i != n]
        gram = self.hadamard_products_of_gramians(A, n)
        gram = gram + np.eye(len(gram)) * lambda_reg
        products = np.tensordot(X, self.khatrirao_products(A, n), axes=(others, np.arange(X.ndim - 1)[::-1]))
        solved = products.dot(_pseudo_inverse(gram))
        weights = np.sqrt((solved**2).sum(axis=0)) if first else np.maximum(solved.max(axis=0), 1)
        return solved / weights, weights

    @staticmethod
    def _explained(X: np.ndarray, made: np.ndarray) -> float:
        """The share of the sum of squares that an approximation has."""
        squares = np.sum(X**2)
        rest = squares + np.sum(made**2) - 2 * np.sum(X * made)
        return float(1.0 - rest / squares)

    def khatrirao_product(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """The outer product of each column of X with that of Y.

        Args:
            X: Array (.., I, K).
            Y: Array (J, K).

        Returns:
            Array (.., I, J, K).

        >>> ALS().khatrirao_product(np.ones((2, 4)), np.ones((3, 4))).shape
        (2, 3, 4)
        """
        # Double, so that the sums over it are, whatever type the first matrices have.
        columns = [np.multiply.outer(X[..., k], Y[..., k]) for k in range(X.shape[-1])]
        return np.stack(columns, axis=-1).astype(np.float64, copy=False)

    def khatrirao_products(self, A: list[np.ndarray], n: int, reverse: bool = True) -> np.ndarray:
        """Khatri-Rao products of all matrices but one.

        Args:
            A: Matrices (size of the axis, rank).
            n: Number of the one that is left out.
            reverse: Whether from the last to the first.
        """
        order = [i for i in range(len(A)) if i != n]
        return reduce(self.khatrirao_product, [A[i] for i in (order[::-1] if reverse else order)])

    def hadamard_products_of_gramians(self, A: list[np.ndarray], n: int) -> np.ndarray:
        """The element-wise product of `a' a` of all matrices but one, (rank, rank).

        Args:
            A: Matrices (size of the axis, rank).
            n: Number of the one that is left out.
        """
        grams = [np.dot(a.T, a) for i, a in enumerate(A) if i != n]
        return reduce(np.multiply, grams)

    def approximate_tensor(self, A: list[np.ndarray], lmbda: np.ndarray) -> np.ndarray:
        """The sum of the outer products of the matrices' columns, times their weights: the array that was decomposed.

        Args:
            A: Matrices (size of the axis, rank).
            lmbda: Weights (rank,).
        """
        made = np.zeros([len(a) for a in A])
        for k, weight in enumerate(lmbda):
            made += weight * reduce(np.multiply.outer, [a[:, k] for a in A])
        return made


def _pseudo_inverse(a: np.ndarray) -> np.ndarray:
    """As SciPy's `pinv`: singular values that rounding may have made are left out."""
    u, s, v = np.linalg.svd(a, full_matrices=False)
    rank = int(np.sum(s > s.max(initial=0) * max(a.shape) * np.finfo(u.dtype).eps))
    return ((u[:, :rank] / s[:rank]) @ v[:rank]).conj().T
