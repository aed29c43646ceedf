//! Sums of rows that lie one behind the other. Each is what [`simd::sum`](crate::simd::sum) gives, bit for bit, but the last
//! lanes of as many rows as a vector has numbers are turned, and added up together.

// Loops run over vectors side by side.
#![allow(clippy::needless_range_loop)]

use crate::array::Output;
use crate::dtype::Real;
use crate::simd::lanes::{Lanes, TransposeBlock, WithLanes, enter};
use crate::simd::reduce::{BLOCK, LANES};

/// Elements of a row at most: longer ones are summed in blocks.
pub const LONGEST: usize = BLOCK;
/// Elements of rows that are turned as they are.
const NARROW: usize = 6;
/// Lanes of a vector at most.
const SIDE: usize = 16;

/// The sums of rows of `n` elements.
pub fn sum_rows<T: Real>(x: &[T], n: usize, y: &mut [T], output: Output) {
    assert!(x.len() == y.len() * n && (1..=LONGEST).contains(&n), "sizes do not fit");
    // SAFETY: the slices are as long as the job says.
    unsafe { enter(SumRows { x, n, y, add: output == Output::Accumulate }) };
}

struct SumRows<'a, T> {
    x: &'a [T],
    n: usize,
    y: &'a mut [T],
    add: bool,
}

impl<T: Real> WithLanes<T> for SumRows<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let n = self.n;
        // SAFETY: L's features are on; all vectors lie in the arrays.
        unsafe {
            let last = L::mask(0, (n - 1) % L::N + 1);
            let (zero, one) = (L::splat(T::ZERO), L::splat(T::ONE));
            let (mut rows, mut lanes) = ([T::ZERO; SIDE * SIDE], [T::ZERO; SIDE * SIDE]);
            for (x, y) in self.x.chunks(n * L::N).zip(self.y.chunks_mut(L::N)) {
                let dst = lanes.as_mut_ptr();
                let width = if n <= NARROW && y.len() == L::N {
                    let src = x.as_ptr();
                    let all = TransposeBlock { src, src_stride: n, rows: L::N, cols: n, dst, dst_stride: L::N };
                    L::transpose(all, false);
                    n
                } else {
                    for (r, x) in x.chunks_exact(n).enumerate() {
                        let v = if n <= L::N { L::load_masked(x.as_ptr(), last) } else { folded::<T, L>(x, last) };
                        L::store(rows.as_mut_ptr().add(r * L::N), v);
                    }
                    let src = rows.as_ptr();
                    let all = TransposeBlock { src, src_stride: L::N, rows: L::N, cols: L::N, dst, dst_stride: L::N };
                    L::transpose(all, false);
                    L::N
                };
                let mut sums = [zero; SIDE];
                for k in 0..width {
                    sums[k] = L::load(dst.add(k * L::N));
                }
                let mut width = width.next_power_of_two();
                while width > 1 {
                    width /= 2;
                    for k in 0..width {
                        sums[k] = L::fma(sums[k], one, sums[k + width]);
                    }
                }
                let before = if self.add { L::load_part(y.as_ptr(), y.len()) } else { zero };
                L::store_part(y.as_mut_ptr(), L::fma(sums[0], one, before), y.len());
            }
        }
    }
}

/// The sums of all lanes that one vector has in the end. `last` are the lanes of the row's last vector.
#[inline(always)]
unsafe fn folded<T: Real, L: Lanes<T>>(x: &[T], last: L::M) -> L::V {
    let count = LANES / L::N;
    let (p, whole) = (x.as_ptr(), (x.len() - 1) / L::N);
    // SAFETY: the caller is inside `enter`; all vectors lie in x.
    unsafe {
        let (zero, one) = (L::splat(T::ZERO), L::splat(T::ONE));
        let mut sums = [zero; LANES / 4];
        let mut k = 0;
        while k + count <= whole {
            for i in 0..count {
                sums[i] = L::fma(L::load(p.add((k + i) * L::N)), one, sums[i]);
            }
            k += count;
        }
        for i in 0..count {
            if k + i < whole {
                sums[i] = L::fma(L::load(p.add((k + i) * L::N)), one, sums[i]);
            } else if k + i == whole {
                sums[i] = L::fma(L::load_masked(p.add(whole * L::N), last), one, sums[i]);
            }
        }
        let mut width = count;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                sums[i] = L::fma(sums[i], one, sums[i + width]);
            }
        }
        sums[0]
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use crate::simd::{self, SimdReal};

    fn check<T: SimdReal>(rows: usize, n: usize) {
        let x: Vec<T> = (0..rows * n).map(|i| T::from_f64(((i * 7919 % 1009) as f64 - 500.0) / 7.0)).collect();
        let want: Vec<T> = x.chunks(n).map(simd::sum).collect();
        let mut y = vec![T::ONE; rows];
        sum_rows(&x, n, &mut y, Output::Write);
        assert_eq!(y, want, "{rows} x {n}");
        sum_rows(&x, n, &mut y, Output::Accumulate);
        assert!(y.iter().zip(want).all(|(y, w)| *y == w + w), "{rows} x {n}");
    }

    unit_test!(sums_have_the_bits_of_one_row);
    fn sums_have_the_bits_of_one_row() {
        for n in [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 200, 1023, 1024] {
            for rows in [1, 3, 16, 35] {
                check::<f32>(rows, n);
                check::<f64>(rows, n);
            }
        }
    }

    unit_test!(zeros_have_no_sign);
    fn zeros_have_no_sign() {
        for n in [1, 3, 40] {
            let mut y = [1f32; 5];
            sum_rows(&vec![-0.0; 5 * n], n, &mut y, Output::Write);
            assert!(y.iter().all(|y| y.to_bits() == simd::sum(&vec![-0.0f32; n]).to_bits()), "{n}");
        }
    }
}
