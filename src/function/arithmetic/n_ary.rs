//! `add_n`, `mul_n`: sum and product of any number of arrays.

use crate::function::table::formulas;
use nnrs_kernels::expr::Expr;

formulas! {
    /// Sum of any number of arrays of one shape, `y = x_1 + x_2 + ...`.
    AddN add_n in Arithmetic, equal (x [variadic]: "N-D arrays of one shape.")
        |_, x @ [_, ..]| join(x, |a, b| a + b);

    /// Product of any number of arrays of one shape, element by element, `y = x_1 x_2 ...`.
    MulN mul_n in Arithmetic, equal (x [variadic]: "N-D arrays of one shape.")
        |_, x @ [_, ..]| join(x, |a, b| a * b);
}

/// From the first to the last.
fn join(x: &[Expr], f: fn(Expr, &Expr) -> Expr) -> Expr {
    x[1..].iter().fold(x[0].clone(), f)
}
