"""Tests that walk over the cases of functions: one item a function, with all its cases in it.

An item costs more than most cases do. What fails is told with the name of its case, and the others still run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

import leaks
from function_harness import F, Target, nn

Test = Callable[[Target], None]


def each_case(found: Iterable[Target]) -> Callable[[Test], Any]:
    """Makes of a test of one case one that is parametrised by functions and runs all their cases that are given."""
    functions: dict[str, list[Target]] = {}
    for target in found:
        functions.setdefault(target.name, []).append(target)

    def decorate(test: Test) -> Any:
        def walker(cases: list[Target]) -> None:
            run_all(test, cases)

        walker.__name__, walker.__doc__, walker.__module__ = test.__name__, test.__doc__, test.__module__
        return pytest.mark.parametrize("cases", functions.values(), ids=functions)(walker)

    return decorate


def run_all(test: Test, cases: list[Target]) -> None:
    """Runs the test on all cases; then fails with what failed, or skips if each of them did."""
    if not hasattr(F, cases[0].name):
        pytest.skip(f"there is no F.{cases[0].name}")  # it fails once, in test_exists
    wrong: list[tuple[str, Exception]] = []
    skipped = []
    for target in cases:
        try:
            run_one(test, target)
        except pytest.skip.Exception as e:
            skipped.append(str(e))
        except (Exception, pytest.fail.Exception) as e:
            wrong.append((target.id, e))
    if wrong:
        text = "\n".join(f"{case}: {type(e).__name__}: {e}" for case, e in wrong)
        raise AssertionError(f"{len(wrong)} of {len(cases)} cases failed\n{text}") from wrong[0][1]
    if len(skipped) == len(cases):
        pytest.skip(skipped[0])


def run_one(test: Test, target: Target) -> None:
    """One case, which gives back what it took."""
    before = leaks.alive()
    test(target)
    nn.clear_parameters()
    leaks.check(before)
