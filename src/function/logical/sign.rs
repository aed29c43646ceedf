//! `sign`: 1, -1, or a given number at 0.

use crate::function::table::formulas;

formulas! {
    /// 1 where x is positive, -1 where it is negative, alpha at 0 and NaN. The gradient passes straight through.
    Sign sign in Logical (x: "N-D array.") [alpha: f64 = 1.0, "The value at 0."]
        |f, [x]| {
            let not_positive = if f.alpha == 1.0 { x.constant(1.0) } else { x.gt(0.0).select(1.0, f.alpha) };
            x.lt(0.0).select(-1.0, not_positive)
        }
        => |[_x], _y, g| [g.clone()];
}
