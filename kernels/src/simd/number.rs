//! What a solver's rule is written in.

use super::Vector;
use crate::expr::Expr;
use std::ops::{Add, Div, Mul, Sub};

/// What a formula is written in: vectors of numbers, for the CPU's loop, or expressions, for all else.
pub trait Number: Clone + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    /// The square root.
    fn sqrt(&self) -> Self;
    /// The number times itself.
    fn square(&self) -> Self;
}

impl Number for Expr {
    fn sqrt(&self) -> Expr {
        Expr::sqrt(self)
    }
    fn square(&self) -> Expr {
        Expr::square(self)
    }
}

impl<V: Vector> Number for V {
    #[inline(always)]
    fn sqrt(&self) -> V {
        Vector::sqrt(*self)
    }
    #[inline(always)]
    fn square(&self) -> V {
        *self * *self
    }
}
