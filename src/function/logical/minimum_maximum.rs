//! `minimum2`, `maximum2`, `minimum_scalar`, `maximum_scalar`, one formula a row.

use crate::function::table::formulas;

formulas! {
    /// The smaller one of two elements; x1 where they are equal or one is NaN.
    Minimum2 minimum2 in Logical (x0: "N-D array.", x1: "N-D array.")
        |_, [x0, x1]| x0.min(x1)
        => |[x0, x1], _y, g| [x0.lt(x1).select(g, 0.0), x1.le(x0).select(g, 0.0)];

    /// The larger one of two elements; x1 where they are equal or one is NaN.
    Maximum2 maximum2 in Logical (x0: "N-D array.", x1: "N-D array.")
        |_, [x0, x1]| x0.max(x1)
        => |[x0, x1], _y, g| [x0.gt(x1).select(g, 0.0), x1.ge(x0).select(g, 0.0)];

    /// The smaller one of x and a number; the number where x is NaN.
    MinimumScalar minimum_scalar in Logical (x: "N-D array.") [val: f64 = 1.0, "The number."]
        |f, [x]| x.min(f.val);

    /// The larger one of x and a number; the number where x is NaN.
    MaximumScalar maximum_scalar in Logical (x: "N-D array.") [val: f64 = 1.0, "The number."]
        |f, [x]| x.max(f.val);
}
