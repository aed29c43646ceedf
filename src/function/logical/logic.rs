//! `logical_and`, `logical_or`, `logical_xor`, `logical_not`: whatever is not 0 is true, NaN too. They have no gradient.

use crate::function::table::formulas;

macro_rules! logic {
    ($(#[doc = $doc:literal] $name:ident $snake:ident $scalar:ident $scalar_snake:ident $method:ident;)*) => {
        formulas! {$(
            #[doc = $doc]
            /// 1 where that is true, else 0; whatever is not 0 is true, NaN too. No gradient.
            $name $snake in Logical (x0: "N-D array.", x1: "N-D array.")
                |_, [x0, x1]| x0.$method(x1);
        )*}
        formulas! {$(
            #[doc = $doc]
            /// Here x1 is `val`. 1 where that is true, else 0; whatever is not 0 is true, NaN too. No gradient.
            $scalar $scalar_snake in Logical (x0: "N-D array.") [val: bool, "The other truth."]
                |f, [x0]| x0.$method(f.val as u8 as f64);
        )*}
    };
}

logic! {
    #[doc = "Whether x0 and x1 are both true, element by element."]
    LogicalAnd logical_and LogicalAndScalar logical_and_scalar and;
    #[doc = "Whether x0 or x1 is true, element by element."]
    LogicalOr logical_or LogicalOrScalar logical_or_scalar or;
    #[doc = "Whether just one of x0 and x1 is true, element by element."]
    LogicalXor logical_xor LogicalXorScalar logical_xor_scalar xor;
}

formulas! {
    /// 1 where x0 is 0, else 0. No gradient.
    LogicalNot logical_not in Logical (x0: "N-D array.")
        |_, [x0]| x0.not();
}
