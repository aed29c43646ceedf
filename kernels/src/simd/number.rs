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
    /// Without its sign.
    fn abs(&self) -> Self;
    /// 1, -1 or 0, which NaN has too.
    fn sign(&self) -> Self;
    /// The number where it is above `other`, else `other`: that is what becomes of NaN.
    fn max(&self, other: &Self) -> Self;
    /// The number where it is below `other`, else `other`.
    fn min(&self, other: &Self) -> Self;
}

impl Number for Expr {
    fn sqrt(&self) -> Expr {
        Expr::sqrt(self)
    }
    fn square(&self) -> Expr {
        Expr::square(self)
    }
    fn abs(&self) -> Expr {
        Expr::abs(self)
    }
    fn sign(&self) -> Expr {
        self.gt(0.0) - self.lt(0.0)
    }
    fn max(&self, other: &Expr) -> Expr {
        Expr::max(self, other)
    }
    fn min(&self, other: &Expr) -> Expr {
        Expr::min(self, other)
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
    #[inline(always)]
    fn abs(&self) -> V {
        Vector::abs(*self)
    }
    #[inline(always)]
    fn sign(&self) -> V {
        let zero = V::splat(0.0);
        V::truth(self.gt(zero)) - V::truth(self.lt(zero))
    }
    #[inline(always)]
    fn max(&self, other: &V) -> V {
        Vector::max(*self, *other)
    }
    #[inline(always)]
    fn min(&self, other: &V) -> V {
        Vector::min(*self, *other)
    }
}
