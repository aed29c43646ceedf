"""A function of your own in Python: a loss that outliers do not spoil, with gradients of any order.

A `PythonFunction` has forward and backward on NumPy arrays. For `nn.grad` its gradient is also registered as a graph,
and as that graph holds the function itself, it can be differentiated again. A line is then fitted to points of which
some are far off, in a static graph and in a dynamic one.

    python examples/custom_function.py [--steps 150]
"""

from __future__ import annotations

import argparse

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs import backward_functions
from nnrs.function import PythonFunction

A = 0.1  # where the loss turns from a parabola into a line


class Charbonnier(PythonFunction):
    """sqrt(x^2 + A^2) - A; its derivative is x / (y + A)."""

    name = "Charbonnier"

    def min_outputs(self) -> int:
        return 1

    def setup_impl(self, inputs: list[nn.Variable], outputs: list[nn.Variable]) -> None:
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: list[nn.Variable], outputs: list[nn.Variable]) -> None:
        outputs[0].d = np.sqrt(inputs[0].d ** 2 + A * A) - A

    def backward_impl(
        self, inputs: list[nn.Variable], outputs: list[nn.Variable], propagate_down: list[bool], accum: list[bool]
    ) -> None:
        if propagate_down[0]:
            g = outputs[0].g * inputs[0].d / (outputs[0].d + A)
            inputs[0].g = inputs[0].g + g if accum[0] else g

    # Data that backward does not read would be dropped in forward; this one reads both.
    def grad_depends_input_data(self, i: int, j: int) -> bool:
        return True

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        return True


def charbonnier_gradient(grad_inputs, inputs, input_shapes, outputs, output_shapes, **arguments):
    """The gradient as a graph. `outputs[0]` is made by Charbonnier, so the derivative of this is known as well."""
    return grad_inputs[0] * inputs[0] / (outputs[0] + A)


def largest_error() -> float:
    """How far the first and second derivatives are from their formulas."""
    values = np.linspace(-1, 1, 21)
    x = nn.Variable.from_numpy_array(values, need_grad=True)
    y = Charbonnier()(x)
    (first,) = nn.grad([y], [x])
    (second,) = nn.grad([first], [x])
    nn.forward_all([first, second])
    x.grad.zero()
    y.forward()
    y.backward()
    root = np.sqrt(values**2 + A * A)
    pairs = [(first.d, values / root), (x.g, values / root), (second.d, A * A / root**3)]
    return max(float(np.max(np.abs(got - expected) / np.abs(expected).max())) for got, expected in pairs)


def points(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Points of the line 2 x - 1, every fifth of them far above it."""
    x = np.linspace(-1, 1, n)[:, None]
    return x, 2 * x - 1 + 5 * (np.arange(n)[:, None] % 5 == 0)


def fit_line(steps: int, dynamic: bool = False) -> tuple[float, float]:
    """Slope and height of the line that the loss finds."""
    nn.clear_parameters()
    nn.seed(313)
    x, t = (nn.Variable.from_numpy_array(v) for v in points())
    distance, solver = Charbonnier(), S.Adam(0.1)

    def loss() -> nn.Variable:
        return F.mean(distance(PF.affine(x, 1) - t))

    with nn.auto_forward(dynamic):
        y = loss()
        solver.set_parameters(nn.get_parameters())
        for step in range(steps):
            solver.set_learning_rate(0.1 * (1 - step / steps))
            if dynamic:
                y = loss()  # computed at once
            else:
                y.forward(clear_no_need_grad=True)
            solver.zero_grad()
            y.backward(clear_buffer=True)
            solver.update()
    w, b = (float(v.d.ravel()[0]) for v in nn.get_parameters().values())
    nn.clear_parameters()
    return w, b


def run(steps: int = 150) -> None:
    """Checks the derivatives, and fits the line in both modes."""
    backward_functions.register("Charbonnier", charbonnier_gradient)
    error = largest_error()
    static, dynamic = fit_line(steps), fit_line(steps, dynamic=True)
    backward_functions.unregister("Charbonnier")
    print(f"first and second derivative: relative error at most {error:.1e}")
    x, t = (v.ravel() for v in points())
    print("the true line         2.000 x - 1.000")
    for name, (w, b) in {"least squares": np.polyfit(x, t, 1), "static": static, "dynamic": dynamic}.items():
        print(f"{name:<20}  {w:.3f} x {'-' if b < 0 else '+'} {abs(b):.3f}")
    if error > 1e-4:
        raise SystemExit("a derivative is wrong")
    if not np.allclose([static, dynamic], [2, -1], atol=0.1):
        raise SystemExit("the line was not found")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150)
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
