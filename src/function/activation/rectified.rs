//! Activations with kinks, one formula a row: `relu`, `relu6`, `elu`, `selu`, `hard_sigmoid`, `hard_tanh`,
//! `binary_sigmoid`, `binary_tanh`.

use crate::function::table::formulas;
use nnrs_kernels::expr::Expr;

formulas! {
    /// Rectified linear unit, `y = max(x, 0)` (Nair and Hinton, 2010); 0 where x is NaN.
    ReLU relu in Activation (x: "N-D array.")
        [inplace: bool = false, "Ignored: nnrs reuses the buffer where that cannot be observed."]
        |_, [x]| x.max(0.0);

    /// Rectified linear unit that ends at 6, `y = min(max(x, 0), 6)` (Krizhevsky, 2010).
    ReLU6 relu6 in Activation (x: "N-D array.")
        |_, [x]| clip(x, 0.0, 6.0)
        => |[_x], y, g| [y.gt(0.0).and(y.lt(6.0)).select(g, 0.0)];

    /// Exponential linear unit, `y = x` where `x >= 0`, else `alpha (exp(x) - 1)` (Clevert et al., 2016).
    ELU elu in Activation (x: "N-D array.")
        [alpha: f64 = 1.0, "Minus the limit for very negative x."]
        |f, [x]| elu_formula(x, f.alpha)
        => |[x], y, g| [g * elu_slope(x, y, f.alpha)];

    /// Scaled exponential linear unit, `y = scale x` where `x > 0`, else `scale alpha (exp(x) - 1)` (Klambauer et al.,
    /// 2017).
    SELU selu in Activation (x: "N-D array.")
        [scale: f64 = 1.05070098735548, "Slope for positive values.";
         alpha: f64 = 1.673263242354377, "Minus the limit for very negative x, before scaling."]
        |f, [x]| x.gt(0.0).select(x * f.scale, not_positive(x).expm1() * (f.scale * f.alpha))
        => |[x], y, g| [g * selu_slope(f, x, y)];

    /// Piecewise linear sigmoid, `y = 0.2 x + 0.5` cut to 0 .. 1.
    HardSigmoid hard_sigmoid in Activation (x: "N-D array.")
        |_, [x]| clip(&(x * 0.2 + 0.5), 0.0, 1.0)
        => |[x], _y, g| [x.abs().le(2.5).select(g * 0.2, 0.0)];

    /// Piecewise linear tanh, x cut to -1 .. 1.
    HardTanh hard_tanh in Activation (x: "N-D array.")
        |_, [x]| clip(x, -1.0, 1.0)
        => |[x], _y, g| [x.abs().le(1.0).select(g, 0.0)];

    /// 1 where `x > 0`, else 0. The gradient is that of a straight line, `gy / 2` where `|x| < 1`, else 0 (Courbariaux et
    /// al., 2016).
    BinarySigmoid binary_sigmoid in Activation (x: "N-D array.")
        |_, [x]| x.gt(0.0)
        => |[x], _y, g| [x.abs().ge(1.0).select(0.0, g * 0.5)];

    /// 1 where `x > 0`, else -1. The gradient is that of a straight line, `gy` where `|x| < 1`, else 0 (Courbariaux et al.,
    /// 2016).
    BinaryTanh binary_tanh in Activation (x: "N-D array.")
        |_, [x]| x.gt(0.0).select(x.constant(1.0), -1.0)
        => |[x], _y, g| [x.abs().ge(1.0).select(0.0, g)];
}

/// x cut to `low .. high`; NaN stays (bounds first: `max` and `min` give their second operand for NaN).
fn clip(x: &Expr, low: f64, high: f64) -> Expr {
    x.constant(high).min(x.constant(low).max(x))
}

/// x where it is not positive, else 0: what exp may be taken of without overflow on the side that is not chosen.
pub(super) fn not_positive(x: &Expr) -> Expr {
    x.constant(0.0).min(x)
}

pub(super) fn elu_formula(x: &Expr, alpha: f64) -> Expr {
    x.ge(0.0).select(x, not_positive(x).expm1() * alpha)
}

/// Whether the sign of y, stored in any type, is that of x: a factor below 1 could make y 0.
pub(super) fn keeps_sign(factor: f64) -> bool {
    factor >= 1.0
}

/// From y alone where that tells the sides apart.
pub(super) fn elu_slope(x: &Expr, y: &Expr, alpha: f64) -> Expr {
    if keeps_sign(alpha) {
        return y.ge(0.0).select(1.0, y + alpha);
    }
    x.ge(0.0).select(1.0, not_positive(x).exp() * alpha)
}

/// As `elu_slope`, but at 0 the left side's.
fn selu_slope(f: &SELU, x: &Expr, y: &Expr) -> Expr {
    let limit = f.scale * f.alpha;
    if keeps_sign(f.scale) && limit > 0.0 {
        return y.gt(0.0).select(y.constant(f.scale), y + limit);
    }
    x.gt(0.0).select(x.constant(f.scale), not_positive(x).exp() * limit)
}
