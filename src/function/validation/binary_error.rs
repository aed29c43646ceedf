//! `binary_error`: whether a score and a label fall on different sides of one half.

use crate::function::table::formulas;

formulas! {
    /// 1 where just one of x and target is 0.5 or more, else 0. No gradient.
    BinaryError binary_error in Validation, equal
        (x: "N-D array of probabilities.", target: "N-D array of labels, of x's shape.")
        |_, [x, target]| x.ge(0.5).not_equal(target.ge(0.5));
}
