//! `add2`, `sub2`, `mul2`, `div2`, `pow2`, `bc_add2`: arithmetic of two arrays, one formula a row.

use crate::function;
use crate::function::Elementwise;
use nnrs_kernels::expr::Expr;

macro_rules! binary {
    ($(#[doc = $doc:literal] $name:ident $snake:ident |$a:ident, $b:ident| $formula:expr;)*) => {$(
        function! {
            #[doc = $doc]
            /// Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.
            $name $snake in Arithmetic, elementwise
            inputs { x0: "N-D array.", x1: "N-D array." }
            args { inplace: bool = false, "Ignored: nnrs reuses the buffer where that cannot be observed." }
            outputs { y: "N-D array of the broadcast shape." }
        }

        impl Elementwise for $name {
            fn formula(&self, x: &[Expr]) -> Expr {
                let ($a, $b) = (&x[0], &x[1]);
                $formula
            }
        }
    )*};
}

binary! {
    #[doc = "Sum of two arrays, `y = x0 + x1`."]
    Add2 add2 |a, b| a + b;
    #[doc = "Difference of two arrays, `y = x0 - x1`."]
    Sub2 sub2 |a, b| a - b;
    #[doc = "Product of two arrays, element by element, `y = x0 * x1`."]
    Mul2 mul2 |a, b| a * b;
    #[doc = "Quotient of two arrays, `y = x0 / x1`."]
    Div2 div2 |a, b| a / b;
    #[doc = "Power of two arrays, `y = x0 ** x1`, as C's `pow`."]
    Pow2 pow2 |a, b| a.pow(b);
    #[doc = "Sum of two arrays, `y = x0 + x1`: an old name of `add2`."]
    BcAdd2 bc_add2 |a, b| a + b;
}
