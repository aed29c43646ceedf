//! Blocks of at most 16 x 16 numbers, turned in AVX-512's registers.

// Loops over registers.
#![allow(clippy::needless_range_loop)]

use super::lanes::TransposeBlock;
use std::arch::x86_64::*;

const SIDE: usize = 16;

/// As `Lanes::transpose`.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
pub(super) unsafe fn transpose16(b: TransposeBlock<f32>, add: bool) {
    let dense = (b.src_stride == b.cols && b.rows == SIDE, b.dst_stride == b.rows && b.cols == SIDE);
    // SAFETY: the caller's promise.
    unsafe {
        match (dense, b.cols, b.rows) {
            ((true, _), 2, _) => return apart::<2>(b, add),
            ((true, _), 3, _) => return apart::<3>(b, add),
            ((true, _), 4, _) => return apart::<4>(b, add),
            ((true, _), 5, _) => return apart::<5>(b, add),
            ((true, _), 6, _) => return apart::<6>(b, add),
            ((_, true), _, 2) => return together::<2>(b, add),
            ((_, true), _, 3) => return together::<3>(b, add),
            ((_, true), _, 4) => return together::<4>(b, add),
            ((_, true), _, 5) => return together::<5>(b, add),
            ((_, true), _, 6) => return together::<6>(b, add),
            _ => {}
        }
    }
    let all = !0u16;
    let (load, store) = (all >> (SIDE - b.cols), all >> (SIDE - b.rows));
    // Numbers of turns that the compiler knows: so all stays in registers.
    let mut r = [_mm512_setzero_ps(); SIDE];
    for i in 0..SIDE {
        if i < b.rows {
            // SAFETY: row i of the block has `cols` numbers; the mask hides the others.
            r[i] = unsafe { _mm512_maskz_loadu_ps(load, b.src.add(i * b.src_stride)) };
        }
    }
    let t = exchange(r);
    for i in 0..SIDE {
        if i < b.cols {
            // SAFETY: row i of the destination has `rows` numbers; the mask hides the others.
            unsafe { put(b.dst.add(i * b.dst_stride), store, t[i], add) };
        }
    }
}

/// Writes some lanes, or adds them.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
unsafe fn put(to: *mut f32, lanes: __mmask16, v: __m512, add: bool) {
    // SAFETY: the caller has numbers in these lanes.
    unsafe {
        let v = if add { _mm512_add_ps(v, _mm512_maskz_loadu_ps(lanes, to)) } else { v };
        _mm512_mask_storeu_ps(to, lanes, v);
    }
}

/// Four rounds of pairwise exchange.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
fn exchange(r: [__m512; 16]) -> [__m512; 16] {
    let (mut a, mut b) = (r, r);
    for i in 0..8 {
        a[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for q in 0..4 {
        let p = [a[4 * q], a[4 * q + 1], a[4 * q + 2], a[4 * q + 3]].map(|v| _mm512_castps_pd(v));
        b[4 * q] = _mm512_castpd_ps(_mm512_unpacklo_pd(p[0], p[2]));
        b[4 * q + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(p[0], p[2]));
        b[4 * q + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(p[1], p[3]));
        b[4 * q + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(p[1], p[3]));
    }
    // Now b[4q + j] holds, in its 128-bit lane l, column 4l + j of rows 4q..4q + 4.
    for j in 0..4 {
        let lo = _mm512_shuffle_f32x4::<0x88>(b[j], b[4 + j]);
        let hi = _mm512_shuffle_f32x4::<0x88>(b[8 + j], b[12 + j]);
        let lo_odd = _mm512_shuffle_f32x4::<0xDD>(b[j], b[4 + j]);
        let hi_odd = _mm512_shuffle_f32x4::<0xDD>(b[8 + j], b[12 + j]);
        a[j] = _mm512_shuffle_f32x4::<0x88>(lo, hi);
        a[8 + j] = _mm512_shuffle_f32x4::<0xDD>(lo, hi);
        a[4 + j] = _mm512_shuffle_f32x4::<0x88>(lo_odd, hi_odd);
        a[12 + j] = _mm512_shuffle_f32x4::<0xDD>(lo_odd, hi_odd);
    }
    a
}

/// 16 rows of `C` numbers each, one behind the other, which are `C` vectors.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
unsafe fn apart<const C: usize>(b: TransposeBlock<f32>, add: bool) {
    // SAFETY: the caller's block has so many numbers.
    unsafe {
        let v = std::array::from_fn(|k| _mm512_loadu_ps(b.src.add(k * SIDE)));
        let t = shuffled(v, const { &columns::<C>() });
        for (k, &v) in t.iter().enumerate() {
            put(b.dst.add(k * b.dst_stride), !0, v, add);
        }
    }
}

/// The way back.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
unsafe fn together<const C: usize>(b: TransposeBlock<f32>, add: bool) {
    // SAFETY: the caller's block has so many numbers.
    unsafe {
        let v = std::array::from_fn(|k| _mm512_loadu_ps(b.src.add(k * b.src_stride)));
        let t = shuffled(v, const { &rows::<C>() });
        for (k, &v) in t.iter().enumerate() {
            put(b.dst.add(k * SIDE), !0, v, add);
        }
    }
}

/// Where each number of a result is in `C` vectors.
type ShufflePlaces<const C: usize> = [[i32; SIDE]; C];

const fn columns<const C: usize>() -> ShufflePlaces<C> {
    let (mut places, mut i) = ([[0; SIDE]; C], 0);
    while i < C * SIDE {
        places[i % C][i / C] = i as i32;
        i += 1;
    }
    places
}

const fn rows<const C: usize>() -> ShufflePlaces<C> {
    let (mut places, mut i) = ([[0; SIDE]; C], 0);
    while i < C * SIDE {
        places[i / SIDE][i % SIDE] = (i % C * SIDE + i / C) as i32;
        i += 1;
    }
    places
}

/// Vectors of the numbers at these places: out of each pair of vectors those that it has.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
fn shuffled<const C: usize>(v: [__m512; C], places: &ShufflePlaces<C>) -> [__m512; C] {
    let mut out = v;
    for (out, places) in out.iter_mut().zip(places) {
        // SAFETY: 16 numbers.
        let at = unsafe { _mm512_loadu_si512(places.as_ptr().cast()) };
        *out = _mm512_permutex2var_ps(v[0], at, v[1]);
        let mut k = 2;
        while k < C {
            let here = _mm512_cmpeq_epi32_mask(_mm512_srli_epi32::<5>(at), _mm512_set1_epi32(k as i32 / 2));
            let found = _mm512_permutex2var_ps(v[k], at, v[if k + 1 < C { k + 1 } else { k }]);
            *out = _mm512_mask_mov_ps(*out, here, found);
            k += 2;
        }
    }
    out
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(blocks_of_all_sizes);
    fn blocks_of_all_sizes() {
        if crate::simd::isa() != crate::simd::Isa::Avx512 {
            return;
        }
        for rows in 1..=SIDE {
            for cols in 1..=SIDE {
                for (src_stride, dst_stride) in [(cols, rows), (cols + 3, rows + 2)] {
                    let src: Vec<f32> = (0..rows * src_stride).map(|i| i as f32).collect();
                    let mut dst = vec![0.5; cols * dst_stride];
                    let block =
                        TransposeBlock { src: src.as_ptr(), src_stride, rows, cols, dst: dst.as_mut_ptr(), dst_stride };
                    // SAFETY: the arrays have these sizes, and the machine the instructions.
                    unsafe {
                        transpose16(block, false);
                        transpose16(block, true);
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
}
