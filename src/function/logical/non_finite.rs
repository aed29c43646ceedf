//! `isnan`, `isinf`, `reset_nan`, `reset_inf`: finding and replacing what is not a finite number.

use crate::function::table::formulas;

formulas! {
    /// 1 where x0 is NaN, else 0. No gradient.
    IsNaN isnan in Logical (x0: "N-D array.")
        |_, [x0]| x0.is_nan();

    /// 1 where x0 is infinite, of either sign, else 0. No gradient.
    IsInf isinf in Logical (x0: "N-D array.")
        |_, [x0]| x0.is_inf();

    /// x0 with a number in place of NaN, where the gradient is 0.
    ResetNaN reset_nan in Logical (x0: "N-D array.") [val: f64 = 0.0, "The number."]
        |f, [x0]| x0.is_nan().select(x0.constant(f.val), x0);

    /// x0 with a number in place of both infinities, where the gradient is 0.
    ResetInf reset_inf in Logical (x0: "N-D array.") [val: f64 = 0.0, "The number."]
        |f, [x0]| x0.is_inf().select(x0.constant(f.val), x0);
}
