//! `exp`, `log`, `sin` and their like: functions of one array, one formula a row.

use crate::function::table::formulas;

macro_rules! functions {
    ($(#[doc = $doc:literal] $name:ident $snake:ident;)*) => {
        formulas! {$(
            #[doc = $doc]
            $name $snake in Math (x: "N-D array.") |_, [x]| x.$snake();
        )*}
    };
}

functions! {
    #[doc = "Exponential function, `y = exp(x)`."]
    Exp exp;
    #[doc = "Natural logarithm, `y = log(x)`; -inf at 0, NaN below."]
    Log log;
    #[doc = "Sine, `y = sin(x)`."]
    Sin sin;
    #[doc = "Cosine, `y = cos(x)`."]
    Cos cos;
    #[doc = "Tangent, `y = tan(x)`."]
    Tan tan;
    #[doc = "Hyperbolic sine, `y = sinh(x)`."]
    Sinh sinh;
    #[doc = "Hyperbolic cosine, `y = cosh(x)`."]
    Cosh cosh;
    #[doc = "Arcus sine, `y = asin(x)`; NaN outside of -1 .. 1."]
    ASin asin;
    #[doc = "Arcus cosine, `y = acos(x)`; NaN outside of -1 .. 1."]
    ACos acos;
    #[doc = "Arcus tangent, `y = atan(x)`."]
    ATan atan;
    #[doc = "Inverse hyperbolic sine, `y = asinh(x)`."]
    ASinh asinh;
    #[doc = "Inverse hyperbolic cosine, `y = acosh(x)`; NaN below 1."]
    ACosh acosh;
    #[doc = "Inverse hyperbolic tangent, `y = atanh(x)`; NaN outside of -1 .. 1."]
    ATanh atanh;
    #[doc = "Error function, `y = 2 / sqrt(pi) int_0^x exp(-t^2) dt`."]
    Erf erf;
}

macro_rules! straight_through {
    ($(#[doc = $doc:literal] $name:ident $snake:ident;)*) => {
        formulas! {$(
            #[doc = $doc]
            /// The gradient passes straight through.
            $name $snake in Math (x: "N-D array.") |_, [x]| x.$snake() => |[_x], _y, g| [g.clone()];
        )*}
    };
}

straight_through! {
    #[doc = "The nearest integer, halves away from zero."]
    Round round;
    #[doc = "The smallest integer that is not less."]
    Ceil ceil;
    #[doc = "The largest integer that is not greater."]
    Floor floor;
}

formulas! {
    /// Absolute value, `y = |x|`; its gradient at 0 is 1.
    Abs abs in Math (x: "N-D array.")
        |_, [x]| x.abs()
        => |[x], _y, g| [x.lt(0.0).select(-g, g)];
}
