//! `equal`, `less` and their like: comparisons of two arrays, and of an array and a number. They have no gradient.

use crate::function::table::formulas;

macro_rules! comparisons {
    ($(#[doc = $doc:literal] $name:ident $snake:ident $scalar:ident $scalar_snake:ident $method:ident;)*) => {
        formulas! {$(
            #[doc = $doc]
            /// 1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.
            $name $snake in Logical (x0: "N-D array.", x1: "N-D array.")
                |_, [x0, x1]| x0.$method(x1);
        )*}
        formulas! {$(
            #[doc = $doc]
            /// Here x1 is the number `val`. 1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.
            $scalar $scalar_snake in Logical (x0: "N-D array.") [val: f64 = 1.0, "The number."]
                |f, [x0]| x0.$method(f.val);
        )*}
    };
}

comparisons! {
    #[doc = "`x0 == x1`, element by element."]
    Equal equal EqualScalar equal_scalar equal;
    #[doc = "`x0 != x1`, element by element."]
    NotEqual not_equal NotEqualScalar not_equal_scalar not_equal;
    #[doc = "`x0 >= x1`, element by element."]
    GreaterEqual greater_equal GreaterEqualScalar greater_equal_scalar ge;
    #[doc = "`x0 > x1`, element by element."]
    Greater greater GreaterScalar greater_scalar gt;
    #[doc = "`x0 <= x1`, element by element."]
    LessEqual less_equal LessEqualScalar less_equal_scalar le;
    #[doc = "`x0 < x1`, element by element."]
    Less less LessScalar less_scalar lt;
}
