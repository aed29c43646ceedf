"""Learning rates are those of NNabla 1.39, which gave the numbers below."""

from __future__ import annotations

import pytest

import nnrs as nn
from nnrs.utils import learning_rate_scheduler as L

ITERATIONS = [0, 1, 2, 5, 6, 7, 29, 30, 60, 89, 90, 100]
# fmt: off
RATES = {
    "PolynomialScheduler(0.1, 100, 2)": [
        0.1, 0.09801, 0.09604, 0.09025, 0.08836, 0.08649, 0.05041, 0.048999999999999995, 0.016000000000000004, 0.00121,
        0.0009999999999999996, 0.0],
    "PolynomialScheduler(0.3, 7, 0.9)": [
        0.3, 0.2611374410577478, 0.22161850588486717, 0.09715384985748834, 0.052063459030245736, 0.0],
    "CosineScheduler(0.1, 100)": [
        0.1, 0.09997532801828658, 0.09990133642141358, 0.0993844170297569, 0.09911436253643445, 0.09879583809693737,
        0.08064535268264883, 0.07938926261462366, 0.03454915028125263, 0.0029559615522887273, 0.0024471741852423235,
        0.0],
    "ExponentialScheduler(0.1, 0.97, 3)": [
        0.1, 0.1, 0.1, 0.097, 0.09409000000000001, 0.09409000000000001, 0.07602310586545652, 0.07374241268949282,
        0.0543794342926747, 0.041340934901356444, 0.04010070685431575, 0.036598832426848915],
    "ExponentialScheduler(1, 2)": [1, 2, 4, 32, 64, 128, 536870912, 1073741824, 2**60, 2**89, 2**90, 2**100],
    "StepScheduler(0.1, 0.1, [20, 5, 60])": [
        0.1, 0.1, 0.1, *[0.010000000000000002] * 3, *[0.0010000000000000002] * 2, *[0.00010000000000000003] * 4],
    "LinearWarmupScheduler(CosineScheduler(0.3, 90), 30)": [
        0.01, 0.019993908270190958, 0.029963460753897365, 0.059544232590366244, 0.0692351660256832,
        0.07881182905103985, 0.22948788963498074, 0.22499999999999998, 0.07500000000000002, 9.137594713563568e-05, 0.0,
        0.009046106882113736],
    "LinearWarmupScheduler(StepScheduler(1, 0.5, (5,)), 0)": [1, 1, 1, *[0.5] * 9],
}
# fmt: on


@pytest.mark.parametrize("code", RATES)
def test_rates(code):
    scheduler = eval(code, vars(L))
    mine = [scheduler.get_learning_rate(i) for i in ITERATIONS[: len(RATES[code])]]
    assert mine == pytest.approx(RATES[code], rel=1e-14, abs=0)
    assert all(type(rate) is float for rate in mine)


def test_a_polynomial_ends_at_zero():
    """NNabla's rises again, or is a complex number."""
    assert [L.PolynomialScheduler(0.3, 7, p).get_learning_rate(i) for p in (0.9, 2) for i in (7, 8, 90)] == [0] * 6


def test_a_solver_takes_them():
    solver = nn.solvers.Sgd(1)
    solver.set_learning_rate(L.StepScheduler(1, 0.5, [3]).get_learning_rate(3))
    assert solver.learning_rate() == 0.5


def test_a_class_of_ones_own():
    class Constant(L.BaseLearningRateScheduler):
        pass

    with pytest.raises(NotImplementedError, match="Constant.get_learning_rate is missing"):
        L.LinearWarmupScheduler(Constant(), 3).get_learning_rate(0)


@pytest.mark.parametrize(
    ("code", "kind", "match"),
    [
        ("CosineScheduler('a', 3)", TypeError, "CosineScheduler: argument 'init_lr'"),
        ("CosineScheduler(0.1, 0)", ValueError, "argument 'max_iter': expected a number above 0, got 0"),
        ("ExponentialScheduler(0.1, 2, 0)", ValueError, "argument 'iter_interval'"),
        ("StepScheduler(0.1, 0.5, 3)", TypeError, "argument 'iter_steps': expected a list of iterations"),
        ("LinearWarmupScheduler(0.1, 3)", TypeError, "argument 'scheduler': expected a scheduler"),
    ],
)
def test_wrong_arguments(code, kind, match):
    with pytest.raises(kind, match=match) as e:
        eval(code, vars(L))
    assert isinstance(e.value, nn.Error)
