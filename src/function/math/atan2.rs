//! `atan2`: the angle of a point.

use crate::function::table::formulas;

formulas! {
    /// Angle of the point (x1, x0), `y = atan2(x0, x1)`, as C's.
    ATan2 atan2 in Math (x0: "N-D array of ordinates.", x1: "N-D array of abscissas.")
        |_, [x0, x1]| x0.atan2(x1);
}
