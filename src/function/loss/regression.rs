//! Losses of the difference of two arrays, one formula a row: `squared_error`, `absolute_error`, `huber_loss`,
//! `epsilon_insensitive_loss`.

use crate::function::table::formulas;
use nnrs_kernels::expr::Expr;

formulas! {
    /// Squared error, `y = (x0 - x1)^2`, element by element.
    SquaredError squared_error in Loss (x0: "N-D array.", x1: "N-D array.")
        |_, [x0, x1]| (x0 - x1).square();

    /// Absolute error, `y = |x0 - x1|`, element by element; where they are equal the gradient of x0 is -1.
    AbsoluteError absolute_error in Loss (x0: "N-D array.", x1: "N-D array.")
        |_, [x0, x1]| (x0 - x1).abs()
        => |[x0, x1], _y, g| both((x0 - x1).gt(0.0).select(g, -g));

    /// Huber loss (Huber, 1964): with `d = x0 - x1`, `y = d^2` where `|d| < delta`, else `delta (2 |d| - delta)`.
    HuberLoss huber_loss in Loss (x0: "N-D array.", x1: "N-D array.")
        [delta: f64 = 1.0, "Where the square ends."]
        |f, [x0, x1]| huber(&(x0 - x1), f.delta)
        => |[x0, x1], _y, g| both(g * huber_slope(&(x0 - x1), f.delta));

    /// Epsilon-insensitive loss, `y = max(|x0 - x1| - epsilon, 0)`.
    EpsilonInsensitiveLoss epsilon_insensitive_loss in Loss (x0: "N-D array.", x1: "N-D array.")
        [epsilon: f64, "Differences up to this cost nothing."]
        |f, [x0, x1]| outside(&(x0 - x1), f.epsilon).select((x0 - x1).abs() - f.epsilon, 0.0)
        => |[x0, x1], _y, g| both(epsilon_gradient(&(x0 - x1), f.epsilon, g));
}

/// Gradients of x0 and x1 from that of their difference.
fn both(gd: Expr) -> [Expr; 2] {
    [gd.clone(), -gd]
}

fn huber(d: &Expr, delta: f64) -> Expr {
    // What is cut is |d| below delta, where this is its square to the bit.
    let (far, cut) = (d.abs() * 2.0, d.abs().min(delta));
    &cut * (far - &cut)
}

fn huber_slope(d: &Expr, delta: f64) -> Expr {
    let far = d.gt(0.0).select(d.constant(2.0 * delta), -2.0 * delta);
    d.abs().lt(delta).select(d * 2.0, far)
}

fn outside(d: &Expr, epsilon: f64) -> Expr {
    d.abs().gt(epsilon)
}

fn epsilon_gradient(d: &Expr, epsilon: f64, g: &Expr) -> Expr {
    outside(d, epsilon).select(d.lt(0.0).select(-g, g), 0.0)
}
