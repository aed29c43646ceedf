//! `add_scalar`, `mul_scalar`, `pow_scalar` and the reversed `r_sub_scalar`, `r_div_scalar`, `r_pow_scalar`: arithmetic of
//! an array and a number, one formula a row.

use crate::function;
use crate::function::Elementwise;
use nnrs_kernels::expr::Expr;

macro_rules! formula {
    ($name:ident |$x:ident, $val:ident| $formula:expr) => {
        impl Elementwise for $name {
            fn formula(&self, x: &[Expr]) -> Expr {
                let ($x, $val) = (&x[0], self.val);
                $formula
            }
        }
    };
}

macro_rules! scalar {
    ($(#[doc = $doc:literal] $name:ident $snake:ident |$x:ident, $val:ident| $formula:expr;)*) => {$(
        function! {
            #[doc = $doc]
            $name $snake in Arithmetic, elementwise
            inputs { x: "N-D array." }
            args {
                val: f64 = 1.0, "The number.";
                inplace: bool = false, "Ignored: nnrs reuses the buffer where that cannot be observed."
            }
            outputs { y: "N-D array of x's shape." }
        }
        formula!($name |$x, $val| $formula);
    )*};
}

macro_rules! reversed {
    ($(#[doc = $doc:literal] $name:ident $snake:ident |$x:ident, $val:ident| $formula:expr;)*) => {$(
        function! {
            #[doc = $doc]
            $name $snake in Arithmetic, elementwise
            inputs { x: "N-D array." }
            args { val: f64 = 1.0, "The number." }
            outputs { y: "N-D array of x's shape." }
        }
        formula!($name |$x, $val| $formula);
    )*};
}

scalar! {
    #[doc = "Adds a number, `y = x + val`."]
    AddScalar add_scalar |x, val| x + val;
    #[doc = "Multiplies by a number, `y = x * val`."]
    MulScalar mul_scalar |x, val| x * val;
    #[doc = "Raises to a power, `y = x ** val`."]
    PowScalar pow_scalar |x, val| power(x, val);
}

reversed! {
    #[doc = "Subtracts from a number, `y = val - x`."]
    RSubScalar r_sub_scalar |x, val| val - x;
    #[doc = "Divides a number, `y = val / x`."]
    RDivScalar r_div_scalar |x, val| val / x;
    #[doc = "Raises a number to powers, `y = val ** x`."]
    RPowScalar r_pow_scalar |x, val| x.constant(val).pow(x);
}

/// Squares and roots have operations of their own.
fn power(x: &Expr, val: f64) -> Expr {
    match val {
        2.0 => x.square(),
        0.5 => x.sqrt(),
        -1.0 => x.recip(),
        _ => x.pow(val),
    }
}
