//! `sigmoid_cross_entropy` and `binary_cross_entropy`: losses of two classes, one formula a row.

use crate::function::table::formulas;
use nnrs_kernels::expr::Expr;

/// The smallest normal f32: what stands for 0 under a logarithm.
pub(super) const TINY: f64 = f32::MIN_POSITIVE as f64;

formulas! {
    /// Cross entropy of sigmoid(x) and labels, `y = -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x))`, without overflow.
    /// Labels are cut to whole numbers, and get no gradient.
    SigmoidCrossEntropy sigmoid_cross_entropy in Loss, equal
        (x: "N-D array of scores.", target: "N-D array of labels, 0 or 1, of x's shape.")
        |_, [x, target]| x.max(0.0) - x * cut(target) + (-x.abs()).exp().log1p()
        => |[x, target], _y, g| [Some(g * (x.sigmoid() - cut(target))), None];

    /// Cross entropy of probabilities and labels, `y = -t log(x) - (1 - t) log(1 - x)`. Logarithms are of 1.2e-38 at
    /// least.
    BinaryCrossEntropy binary_cross_entropy in Loss, equal
        (x: "N-D array of probabilities.", target: "N-D array of labels from 0 to 1, of x's shape.")
        |_, [x, target]| -(target * log(x) + (1.0 - target) * log(&(1.0 - x)))
        => |[x, target], _y, g| {
            let gx = g * (x - target) / at_least_tiny(&(x * (1.0 - x)));
            [gx, g * (log(&(1.0 - x)) - log(x))]
        };
}

/// Towards zero.
fn cut(t: &Expr) -> Expr {
    t.lt(0.0).select(t.ceil(), t.floor())
}

/// NaN stays.
pub(super) fn at_least_tiny(x: &Expr) -> Expr {
    x.constant(TINY).max(x)
}

fn log(x: &Expr) -> Expr {
    at_least_tiny(x).log()
}
