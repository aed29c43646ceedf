//! Smooth activations, one formula a row: `sigmoid`, `tanh`, `gelu`, `swish`, `mish`, `softplus`, `log_sigmoid`,
//! `tanh_shrink`, `sinc`. Where the derivative can be had from y alone it is, so that x need not be kept.

use crate::function::table::formulas;
use nnrs_kernels::expr::Expr;
use std::f64::consts::FRAC_2_PI;

formulas! {
    /// Logistic sigmoid, `y = 1 / (1 + exp(-x))`.
    Sigmoid sigmoid in Activation (x: "N-D array.")
        |_, [x]| x.sigmoid();

    /// Hyperbolic tangent, `y = tanh(x)`.
    Tanh tanh in Activation (x: "N-D array.")
        |_, [x]| x.tanh();

    /// Gaussian error linear unit by its tanh formula, `y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`
    /// (Hendrycks and Gimpel, 2016).
    GELU gelu in Activation (x: "N-D array.")
        |_, [x]| gelu_formula(x);

    /// Swish or SiLU, `y = x sigmoid(x)` (Ramachandran et al., 2017).
    Swish swish in Activation (x: "N-D array.")
        |_, [x]| x * x.sigmoid();

    /// Mish, `y = x tanh(log(1 + exp(x)))` (Misra, 2019).
    Mish mish in Activation (x: "N-D array.")
        |_, [x]| mish_formula(x);

    /// Softplus, `y = log(1 + exp(beta x)) / beta`: a smooth `relu`.
    SoftPlus softplus in Activation (x: "N-D array.")
        [beta: f64 = 1.0, "Sharpness of the bend."]
        |f, [x]| log_one_plus_exp(&(x * f.beta)) / f.beta
        => |[_x], y, g| [-(g * (y * -f.beta).expm1())];

    /// Logarithm of the sigmoid, `y = -log(1 + exp(-x))`, without overflow.
    LogSigmoid log_sigmoid in Activation (x: "N-D array.")
        |_, [x]| -log_one_plus_exp(&-x)
        => |[_x], y, g| [-(g * y.expm1())];

    /// Tanh shrink, `y = x - tanh(x)`.
    TanhShrink tanh_shrink in Activation (x: "N-D array.")
        |_, [x]| x - x.tanh()
        => |[x], _y, g| [g * x.tanh().square()];

    /// Unnormalized sinc, `y = sin(x) / x`, 1 at 0.
    Sinc sinc in Activation (x: "N-D array.")
        |_, [x]| x.select(x.sin() / x, 1.0)
        => |[x], y, g| [g * sinc_slope(x, y)];
}

/// `1 + tanh(u) = 2 sigmoid(2 u)`: one function less, and no cancellation for negative x. Beyond 30 the sigmoid is 0 or 1
/// exactly; cutting there keeps the cube finite in the derivative. (The bound comes first, so that NaN stays NaN.)
fn gelu_formula(x: &Expr) -> Expr {
    let u = x.constant(-30.0).max(x.constant(30.0).min(x));
    let v = (u.square() * 0.044715 + 1.0) * &u * (2.0 * FRAC_2_PI.sqrt());
    x * v.sigmoid()
}

/// `tanh(log(1 + e)) = n / (n + 2)` with `n = e (e + 2)`; beyond 30 that is 1.
fn mish_formula(x: &Expr) -> Expr {
    let e = x.constant(30.0).min(x).exp();
    let n = (&e + 2.0) * &e;
    x * (&n / (&n + 2.0))
}

/// `log(1 + exp(x))`, stable on both sides. (Its derivative as a formula is wrong at 0: give one.)
fn log_one_plus_exp(x: &Expr) -> Expr {
    x.max(0.0) + (-x.abs()).exp().log1p()
}

/// `(cos(x) - y) / x`; near 0, where that cancels, its series: the sum of `(-1)^k 2k x^(2k-1) / (2k+1)!`.
fn sinc_slope(x: &Expr, y: &Expr) -> Expr {
    const TERMS: [f64; 7] = [3.0, 30.0, 840.0, 45360.0, 3991680.0, 518918400.0, 93405312000.0];
    let near = x.abs().lt(0.5);
    let divisor = near.select(1.0, x);
    let z = x.square();
    let series = TERMS.iter().rev().fold(x.constant(0.0), |sum, t| 1.0 / t - sum * &z);
    near.select(-(series * x), (x.cos() - y) / divisor)
}
