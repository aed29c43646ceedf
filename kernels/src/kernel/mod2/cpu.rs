//! On the host: arrays of one shape, by loops that the compiler makes vectors of.

use crate::dtype::DType;
use crate::pool::tasks;
use crate::simd::{self, Body, SimdReal, Vector};

/// Elements of a task.
const TASK: usize = 1 << 14;
/// Elements that are tried together.
const BLOCK: usize = 32;

/// The rest with the sign of a divisor that is asked for.
#[inline(always)]
pub(super) fn signed<T: Rest>(floor: bool, rest: T, b: T) -> T {
    let turn = floor && rest != T::ZERO && (rest < T::ZERO) != (b < T::ZERO);
    if turn { rest + b } else { rest }
}

pub(super) trait Rest: SimdReal + std::ops::Rem<Output = Self> {}

impl Rest for f32 {}
impl Rest for f64 {}

/// `y = a % b`, or the rest with b's sign.
pub(super) fn rests<T: Rest>(floor: bool, a: &[T], b: &[T], y: &mut [T]) {
    tasks::parts(y, TASK, |task, y| {
        let at = task * TASK..task * TASK + y.len();
        let job = Rests { floor, a: &a[at.clone()], b: &b[at], y: tasks::Shared(y.as_mut_ptr()) };
        // SAFETY: y has as many elements as a and b, and is this task's.
        unsafe { simd::run::<T>(&job) };
    });
}

struct Rests<'a, T> {
    floor: bool,
    a: &'a [T],
    b: &'a [T],
    y: tasks::Shared<T>,
}

impl<T: Rest> Body<T> for Rests<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        // SAFETY: the caller's promise.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.0, self.a.len()) };
        for ((y, a), b) in y.chunks_mut(BLOCK).zip(self.a.chunks(BLOCK)).zip(self.b.chunks(BLOCK)) {
            if T::DTYPE == DType::F64 || !quick(a, b, y) {
                y.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| *y = a % b);
            }
            y.iter_mut().zip(b).for_each(|(y, &b)| *y = signed(self.floor, *y, b));
        }
    }
}

/// The rests of f32 numbers, by a division in double, unless that is not sure for one of them. The quotient of two of them is no
/// whole number by 2^-24 at least or not at all: below 2^28 its rounding to 53 bits does not pass one, and its product with b and
/// the difference are exact.
#[inline(always)]
fn quick<T: Rest>(a: &[T], b: &[T], y: &mut [T]) -> bool {
    let mut sure = true;
    for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
        let (a, b) = (a.to_f64(), b.to_f64());
        let whole = (a / b).trunc();
        // Neither 0 nor NaN nor infinity as b: their quotients or their products are none of these.
        sure &= (whole.abs() < (1 << 28) as f64) & (b.abs() < f64::INFINITY);
        *y = T::from_f64((a - whole * b).copysign(a));
    }
    sure
}

/// A distance that is none.
pub(super) fn negative(by: &[i64]) -> Option<i64> {
    let any = by.iter().fold(0, |any, by| any | by) < 0;
    if any { by.iter().copied().find(|by| *by < 0) } else { None }
}

/// How bits are moved.
#[derive(Clone, Copy)]
pub(super) struct Bits {
    pub width: u32,
    pub signed: bool,
    pub left: bool,
}

impl Bits {
    /// Moves the lowest `width` bits by 0 or more; a number of a type with a sign keeps it.
    #[inline(always)]
    pub(super) fn moved(&self, x: i64, by: i64) -> i64 {
        let rest = 64 - self.width;
        match (self.left, self.signed) {
            (true, true) => to_left(x, by).wrapping_shl(rest).wrapping_shr(rest),
            (true, false) => low(to_left(x, by), rest) as i64,
            (false, true) => x.wrapping_shr(by.min(63) as u32),
            (false, false) => {
                let moved = low(x, rest).wrapping_shr(by as u32);
                if by < 64 { moved as i64 } else { 0 }
            }
        }
    }
}

#[inline(always)]
fn to_left(x: i64, by: i64) -> i64 {
    let moved = x.wrapping_shl(by as u32);
    if by < 64 { moved } else { 0 }
}

/// Without the highest `rest` bits.
#[inline(always)]
fn low(x: i64, rest: u32) -> u64 {
    x as u64 & (u64::MAX.wrapping_shr(rest))
}

/// Moves the bits of all of `x`.
pub(super) fn shifts(bits: Bits, x: &[i64], by: &[i64], y: &mut [i64]) {
    tasks::parts(y, TASK, |task, y| {
        let at = task * TASK..task * TASK + y.len();
        let job = BitShifts { bits, x: &x[at.clone()], by: &by[at], y: tasks::Shared(y.as_mut_ptr()) };
        // SAFETY: y has as many elements as x and by, and is this task's.
        unsafe { simd::run::<f64>(&job) };
    });
}

struct BitShifts<'a> {
    bits: Bits,
    x: &'a [i64],
    by: &'a [i64],
    y: tasks::Shared<i64>,
}

/// Vectors of whole numbers: those that the compiler makes, with the instructions that it may use here.
impl Body<f64> for BitShifts<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = f64>>(&self) {
        let Bits { width, signed, left } = self.bits;
        // SAFETY: the caller's promise.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.0, self.x.len()) };
        let all = y.iter_mut().zip(self.x).zip(self.by);
        // A loop for each case.
        macro_rules! each {
            ($signed:literal, $left:literal) => {
                all.for_each(|((y, &x), &by)| *y = Bits { width, signed: $signed, left: $left }.moved(x, by))
            };
        }
        match (signed, left) {
            (true, true) => each!(true, true),
            (true, false) => each!(true, false),
            (false, true) => each!(false, true),
            (false, false) => each!(false, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(floor: bool) {
        let odd = [0.0, -0.0, 1.0, -1.0, 0.3, 7.5, 1e-45, -1e-40, 3e38, 16777215.0, f32::INFINITY, f32::NAN, 1e9, -0.7];
        let made = |k: u32| f32::from_bits(k.wrapping_mul(0x9E37_79B9) ^ k << 7);
        let near = (1..2000).map(|k| (made(k * 3 + 1), made(k * 7 + 5))).chain((1..2000).map(|k| (k as f32, 0.1)));
        let edges = odd.iter().flat_map(|&a| odd.iter().map(move |&b| (a, b)));
        let (a, b): (Vec<f32>, Vec<f32>) = edges.chain(near).unzip();
        let mut y = vec![0.0; a.len()];
        rests(floor, &a, &b, &mut y);
        for ((&y, &a), &b) in y.iter().zip(&a).zip(&b) {
            let want = signed(floor, a % b, b);
            assert!(y.to_bits() == want.to_bits() || y.is_nan() && want.is_nan(), "{a:e} % {b:e}: {y:e}, not {want:e}");
        }
    }

    #[test]
    fn rests_are_exact() {
        check(false);
        check(true);
    }

    #[test]
    fn bits_leave_the_width() {
        let of = |width, signed, left| Bits { width, signed, left };
        assert_eq!(of(8, false, true).moved(0x81, 1), 2);
        assert_eq!(of(8, true, true).moved(0x41, 1), -126);
        assert_eq!(of(8, false, false).moved(0x81, 1), 0x40);
        assert_eq!(of(16, true, false).moved(-4, 1), -2);
        assert_eq!(of(64, true, true).moved(1, 63), i64::MIN);
        assert_eq!(of(64, true, false).moved(-1, 1 << 40), -1);
        for (signed, left) in [(true, true), (false, true), (false, false)] {
            assert_eq!(of(32, signed, left).moved(5, 64), 0);
            assert_eq!(of(32, signed, left).moved(5, 1 << 40), 0);
            let (bits, mut y) = (of(32, signed, left), [0; 40]);
            let x: Vec<i64> = (0..40).map(|i| i * 0x0123_4567).collect();
            let by: Vec<i64> = (0..40).collect();
            shifts(bits, &x, &by, &mut y);
            assert!((0..40).all(|i| y[i] == bits.moved(x[i], by[i])));
        }
        assert_eq!(negative(&[3, -2, -1]), Some(-2));
        assert_eq!(negative(&[]), None);
    }
}
