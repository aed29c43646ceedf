//! On the host: arrays of one shape, by loops that the compiler makes vectors of.

use crate::array::Data;
use crate::dtype::{DType, Element};
use crate::pool::tasks;
use crate::simd::{self, Body, SimdReal, Vector};
use std::ops::Add;

/// Elements of a task.
const TASK: usize = 1 << 14;
/// Elements that are tried together.
const BLOCK: usize = 32;

/// The rest with the sign of a divisor that is asked for.
#[inline(always)]
pub(super) fn signed<T: Copy + Default + PartialOrd + Add<Output = T>>(floor: bool, rest: T, b: T) -> T {
    let zero = T::default();
    let turn = floor && rest != zero && (rest < zero) != (b < zero);
    if turn { rest + b } else { rest }
}

/// The rest of whole numbers; 0 where the divisor is 0.
pub(super) fn whole_rest(floor: bool, is_signed: bool, a: i64, b: i64) -> i64 {
    match (b, is_signed) {
        (0, _) => 0,
        (_, false) => (a as u64 % b as u64) as i64,
        _ => signed(floor, a.wrapping_rem(b), b),
    }
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
pub(super) fn negative<T: Whole>(by: &[T]) -> Option<i64> {
    let is_negative = |by: &T| *by < T::default();
    let any = by.iter().fold(false, |any, by| any | is_negative(by));
    if any { by.iter().copied().find(is_negative).map(|by| by.to_f64() as i64) } else { None }
}

/// Whole numbers whose bits are moved within their own type.
pub(super) trait Whole: Element + PartialOrd {
    /// By 0 or more.
    fn moved<const LEFT: bool>(self, by: Self) -> Self;
}

macro_rules! whole {
    ($($t:ty)*) => {$(
        impl Whole for $t {
            #[inline(always)]
            #[allow(unused_comparisons)] // types without a sign
            fn moved<const LEFT: bool>(self, by: $t) -> $t {
                let (is_far, sign) = (by >= <$t>::BITS as $t, if !LEFT && self < 0 { !0 } else { 0 });
                let moved = if LEFT { self.wrapping_shl(by as u32) } else { self.wrapping_shr(by as u32) };
                if is_far { sign } else { moved }
            }
        }
    )*};
}
whole!(i8 u8 i16 u16 i32 u32 i64 u64);

/// Moves the bits of all of `x`, where all three are of one type of whole numbers; a negative distance is the error.
pub(super) fn shifted(left: bool, x: &Data, by: &Data, y: &Data) -> Result<(), i64> {
    macro_rules! of_type {
        ($($dtype:ident $t:ty),*) => {
            match y.dtype() {
                $(DType::$dtype => shifted_of::<$t>(left, x.as_slice(), by.as_slice(), y.as_mut_slice()),)*
                dtype => unreachable!("{dtype} is no type of whole numbers"),
            }
        };
    }
    of_type!(I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64)
}

fn shifted_of<T: Whole>(left: bool, x: &[T], by: &[T], y: &mut [T]) -> Result<(), i64> {
    if let Some(by) = negative(by) {
        return Err(by);
    }
    tasks::parts(y, TASK, |task, y| {
        let at = task * TASK..task * TASK + y.len();
        let job = ShiftedPart { left, x: &x[at.clone()], by: &by[at], y: tasks::Shared(y.as_mut_ptr()) };
        // SAFETY: y has as many elements as x and by, and is this task's.
        unsafe { simd::run::<f64>(&job) };
    });
    Ok(())
}

struct ShiftedPart<'a, T> {
    left: bool,
    x: &'a [T],
    by: &'a [T],
    y: tasks::Shared<T>,
}

/// Vectors of whole numbers: those that the compiler makes, with the instructions that it may use here.
impl<T: Whole> Body<f64> for ShiftedPart<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = f64>>(&self) {
        // SAFETY: the caller's promise.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.0, self.x.len()) };
        let all = y.iter_mut().zip(self.x).zip(self.by);
        match self.left {
            true => all.for_each(|((y, &x), &by)| *y = x.moved::<true>(by)),
            false => all.for_each(|((y, &x), &by)| *y = x.moved::<false>(by)),
        }
    }
}

/// How bits are moved.
#[derive(Clone, Copy)]
pub(super) struct Bits {
    pub width: u32,
    pub signed: bool,
    pub left: bool,
}

impl Bits {
    pub fn of(dtype: DType, left: bool) -> Bits {
        let signed = !matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64);
        Bits { width: 8 * dtype.size() as u32, signed, left }
    }

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

#[cfg(feature = "emulate")]
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

    unit_test!(rests_are_exact);
    fn rests_are_exact() {
        check(false);
        check(true);
    }

    unit_test!(bits_leave_the_width);
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
        assert_eq!(negative::<u8>(&[]), None);
    }

    fn check_type<T: Whole>() {
        for left in [true, false] {
            let bits = Bits::of(T::DTYPE, left);
            let all: Vec<[i64; 2]> = (-70..70).flat_map(|x| (0..90).map(move |by| [x, by])).collect();
            let of = |k: usize| all.iter().map(|v| T::from_f64(v[k] as f64)).collect::<Vec<T>>();
            let (x, by) = (of(0), of(1));
            let mut y = vec![T::default(); all.len()];
            assert_eq!(shifted_of(left, &x, &by, &mut y), Ok(()));
            for (y, (x, by)) in y.iter().zip(x.iter().zip(&by)) {
                let [x, by] = [x, by].map(|v| v.to_f64() as i128 as i64);
                assert_eq!(y.to_f64() as i128 as i64, T::from_f64(bits.moved(x, by) as f64).to_f64() as i128 as i64);
            }
        }
    }

    unit_test!(types_move_their_own_bits);
    fn types_move_their_own_bits() {
        check_type::<i8>();
        check_type::<u8>();
        check_type::<i16>();
        check_type::<u16>();
        check_type::<i32>();
        check_type::<u32>();
        assert_eq!(shifted_of(true, &[1i8, 2], &[1, -2], &mut [0; 2]), Err(-2));
    }
}
