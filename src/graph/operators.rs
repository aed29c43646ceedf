//! Operators on variables: `+`, `-`, `*`, `/` of two variables, or of a variable and a number, and `-x`. As the functions
//! that they stand for they give a `Result`, so that wrong shapes are an error and not a panic.

use super::variable::Variable;
use crate::functions as f;
use nnrs_kernels::error::Result;
use std::ops::{Add, Div, Mul, Neg, Sub};

fn plus(x: &Variable, val: f64) -> Result<Variable> {
    f::add_scalar(x, f::AddScalar { val, inplace: false })
}

fn times(x: &Variable, val: f64) -> Result<Variable> {
    f::mul_scalar(x, f::MulScalar { val, inplace: false })
}

/// For each operator: its sign; what it is of two variables, of a variable and a number, of a number and a variable.
macro_rules! operators {
    ($($tr:ident $method:ident $sign:literal, $two:expr, $right:expr, $left:expr;)*) => {$(
        operators! { @one $tr $method $sign, &Variable, &Variable, $two }
        operators! { @one $tr $method $sign, &Variable, f64, $right }
        operators! { @one $tr $method $sign, f64, &Variable, $left }
        operators! { @one $tr $method $sign, &Variable, Variable, |a: &Variable, b: Variable| a.$method(&b) }
        operators! { @one $tr $method $sign, Variable, &Variable, |a: Variable, b: &Variable| (&a).$method(b) }
        operators! { @one $tr $method $sign, Variable, Variable, |a: Variable, b: Variable| (&a).$method(&b) }
        operators! { @one $tr $method $sign, Variable, f64, |a: Variable, b: f64| (&a).$method(b) }
        operators! { @one $tr $method $sign, f64, Variable, |a: f64, b: Variable| a.$method(&b) }
    )*};
    (@one $tr:ident $method:ident $sign:literal, $left:ty, $right:ty, $make:expr) => {
        impl $tr<$right> for $left {
            type Output = Result<Variable>;
            #[doc = concat!("`a ", $sign, " b`, element by element; shapes broadcast as in NumPy, or are an error.")]
            fn $method(self, other: $right) -> Result<Variable> {
                ($make)(self, other)
            }
        }
    };
}

operators! {
    Add add "+", |a, b| f::add2(a, b, f::Add2::default()), plus, |a, b| plus(b, a);
    Sub sub "-", |a, b| f::sub2(a, b, f::Sub2::default()), |a, b: f64| plus(a, -b),
        |val, x| f::r_sub_scalar(x, f::RSubScalar { val });
    Mul mul "*", |a, b| f::mul2(a, b, f::Mul2::default()), times, |a, b| times(b, a);
    Div div "/", |a, b| f::div2(a, b, f::Div2::default()), |a, b| times(a, 1.0 / b),
        |val, x| f::r_div_scalar(x, f::RDivScalar { val });
}

impl Neg for &Variable {
    type Output = Result<Variable>;
    /// `-x` element by element.
    fn neg(self) -> Result<Variable> {
        times(self, -1.0)
    }
}

impl Neg for Variable {
    type Output = Result<Variable>;
    /// `-x` element by element.
    fn neg(self) -> Result<Variable> {
        -&self
    }
}
