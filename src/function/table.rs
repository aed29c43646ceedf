//! `formulas!`: tables of element-wise functions, one formula a row, and where NNabla's gradient is not the formula's
//! derivative, that too.

/// Rows are
///
/// ```ignore
/// /// Documentation.
/// HuberLoss huber_loss in Loss (x0: "N-D array.", x1: "N-D array.")
///     [delta: f64 = 1.0, "Where the square ends."]
///     |f, [x0, x1]| formula
///     => |[x0, x1], y, g| [gradient of x0, gradient of x1];
/// ```
/// `f` is the function with its arguments, `g` the output's gradient. `in Loss, equal`: the inputs do not broadcast.
macro_rules! formulas {
    ($($(#[doc = $doc:literal])* $name:ident $snake:ident in $group:ident $(, $equal:ident)?
        ($($input:ident $([$kind:ident])? : $input_doc:literal),+) $([$($args:tt)*])?
        |$f:pat_param, $x:pat_param| $formula:expr
        $(=> |$gx:pat_param, $y:pat_param, $g:pat_param| $gradient:expr)?;)*) => {$(
        $crate::function! {
            $(#[doc = $doc])*
            $name $snake in $group, elementwise
            inputs { $($input $([$kind])? : $input_doc),+ }
            args { $($($args)*)? }
            outputs { y: "N-D array of the inputs' joint shape." }
        }

        impl $crate::function::Elementwise for $name {
            fn formula(&self, x: &[$crate::expr::Expr]) -> $crate::expr::Expr {
                let $f = self;
                let $x = x else { unreachable!("the engine checks the number of inputs") };
                $formula
            }

            $(
            #[allow(unused_variables)]
            fn gradient(
                &self,
                x: &[$crate::expr::Expr],
                y: &$crate::expr::Expr,
                g: &$crate::expr::Expr,
            ) -> Option<Vec<Option<$crate::expr::Expr>>> {
                let $f = self;
                let $gx = x else { unreachable!("the engine checks the number of inputs") };
                let ($y, $g) = (y, g);
                Some($gradient.map(Into::into).into())
            }
            )?

            fn broadcasts(&self) -> bool {
                $crate::function::table::formulas!(@broadcasts $($equal)?)
            }
        }
    )*};
    (@broadcasts) => { true };
    (@broadcasts equal) => { false };
}

pub(crate) use formulas;
