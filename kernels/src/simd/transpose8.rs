//! Blocks of at most 8 x 8 numbers in double precision, turned in AVX-512's registers.

// Loops over registers.
#![allow(clippy::needless_range_loop)]

use super::lanes::TransposeBlock;
use std::arch::x86_64::*;

const SIDE: usize = 8;

/// As `Lanes::transpose`.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
pub(super) unsafe fn transpose8(b: TransposeBlock<f64>, add: bool) {
    let (load, store) = (!0u8 >> (SIDE - b.cols), !0u8 >> (SIDE - b.rows));
    // Numbers of turns that the compiler knows: so all stays in registers.
    let mut r = [_mm512_setzero_pd(); SIDE];
    for i in 0..SIDE {
        if i < b.rows {
            // SAFETY: row i of the block has `cols` numbers; the mask hides the others.
            r[i] = unsafe { _mm512_maskz_loadu_pd(load, b.src.add(i * b.src_stride)) };
        }
    }
    let t = exchange(r);
    for i in 0..SIDE {
        if i < b.cols {
            // SAFETY: row i of the destination has `rows` numbers; the mask hides the others.
            unsafe {
                let to = b.dst.add(i * b.dst_stride);
                let v = if add { _mm512_add_pd(t[i], _mm512_maskz_loadu_pd(store, to)) } else { t[i] };
                _mm512_mask_storeu_pd(to, store, v);
            }
        }
    }
}

/// Three rounds of pairwise exchange.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
fn exchange(r: [__m512d; SIDE]) -> [__m512d; SIDE] {
    let (mut a, mut b) = (r, r);
    for i in 0..4 {
        a[2 * i] = _mm512_unpacklo_pd(r[2 * i], r[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_pd(r[2 * i], r[2 * i + 1]);
    }
    // Now a[2p + k] holds, in its 128-bit lane l, column 2l + k of rows 2p and 2p + 1.
    for k in 0..2 {
        let lo = _mm512_shuffle_f64x2::<0x88>(a[k], a[2 + k]);
        let hi = _mm512_shuffle_f64x2::<0x88>(a[4 + k], a[6 + k]);
        let lo_odd = _mm512_shuffle_f64x2::<0xDD>(a[k], a[2 + k]);
        let hi_odd = _mm512_shuffle_f64x2::<0xDD>(a[4 + k], a[6 + k]);
        b[k] = _mm512_shuffle_f64x2::<0x88>(lo, hi);
        b[4 + k] = _mm512_shuffle_f64x2::<0xDD>(lo, hi);
        b[2 + k] = _mm512_shuffle_f64x2::<0x88>(lo_odd, hi_odd);
        b[6 + k] = _mm512_shuffle_f64x2::<0xDD>(lo_odd, hi_odd);
    }
    b
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(blocks_in_double_precision);
    fn blocks_in_double_precision() {
        if crate::simd::isa() != crate::simd::Isa::Avx512 {
            return;
        }
        for rows in 1..=SIDE {
            for cols in 1..=SIDE {
                let (src_stride, dst_stride) = (cols + 3, rows + 2);
                let src: Vec<f64> = (0..rows * src_stride).map(|i| i as f64).collect();
                let mut dst = vec![0.5; cols * dst_stride];
                let block =
                    TransposeBlock { src: src.as_ptr(), src_stride, rows, cols, dst: dst.as_mut_ptr(), dst_stride };
                // SAFETY: the arrays have these sizes, and the machine the instructions.
                unsafe {
                    transpose8(block, false);
                    transpose8(block, true);
                }
                for (i, v) in dst.iter().enumerate() {
                    let (c, r) = (i / dst_stride, i % dst_stride);
                    let want = if r < rows { 2.0 * src[r * src_stride + c] } else { 0.5 };
                    assert_eq!(*v, want, "{rows} x {cols}");
                }
            }
        }
    }
}
