//! Several blocks at a time: words in the low halves of 64-bit lanes, where one instruction multiplies 32 by 32 bits.

use super::{BLOCKS, Draw, GROUP, MULTIPLIERS, ROUNDS, WEYL};

/// A vector of 64-bit lanes. Only the low halves have a meaning between rounds.
///
/// # Safety
/// The methods may be called only on a CPU that has the instruction set.
pub(super) trait WordLanes: Copy {
    const N: usize;
    unsafe fn splat(v: u32) -> Self;
    /// `first`, `first + 1`, and so on.
    unsafe fn count(first: u32) -> Self;
    /// The low halves' products, 64 bits each.
    unsafe fn mul(self, o: Self) -> Self;
    /// The high halves, moved down.
    unsafe fn high(self) -> Self;
    unsafe fn xor(self, o: Self) -> Self;
    /// Writes the low halves, `N` words.
    unsafe fn store(self, p: *mut u32);
}

/// Words of one group.
///
/// # Safety
/// The CPU must have the instruction set of V.
#[inline(always)]
pub(super) unsafe fn group<V: WordLanes>(d: &Draw, group: u64, words: &mut [u32; GROUP]) {
    let first = group * BLOCKS as u64;
    let mut i = 0;
    while i < BLOCKS {
        // SAFETY: i + 2 N <= BLOCKS, for N is 16 at most; the caller's promise.
        unsafe { pair::<V>(d, first, i, words.as_mut_ptr()) };
        i += 2 * V::N;
    }
}

/// Two vectors of blocks, whose long chains of multiplications run beside each other.
///
/// # Safety
/// As for `group`; words must have room for a group, and 2 N blocks must be left from block i on.
#[inline(always)]
unsafe fn pair<V: WordLanes>(d: &Draw, first: u64, i: usize, words: *mut u32) {
    // SAFETY: the caller's promise.
    unsafe {
        // The first block of a group is a multiple of 32: counting within a group never carries.
        let low = first as u32 + i as u32;
        let rest = [V::splat((first >> 32) as u32), V::splat(d.number as u32), V::splat((d.number >> 32) as u32)];
        let mut x = [V::count(low), rest[0], rest[1], rest[2]];
        let mut z = [V::count(low + V::N as u32), rest[0], rest[1], rest[2]];
        let m = [V::splat(MULTIPLIERS[0]), V::splat(MULTIPLIERS[1])];
        let mut key = [d.key as u32, (d.key >> 32) as u32];
        for _ in 0..ROUNDS {
            let k = [V::splat(key[0]), V::splat(key[1])];
            x = round(x, m, k);
            z = round(z, m, k);
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        for w in 0..4 {
            x[w].store(words.add(w * BLOCKS + i));
            z[w].store(words.add(w * BLOCKS + i + V::N));
        }
    }
}

/// # Safety
/// As for `group`.
#[inline(always)]
unsafe fn round<V: WordLanes>(x: [V; 4], m: [V; 2], k: [V; 2]) -> [V; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        let (p, q) = (x[0].mul(m[0]), x[2].mul(m[1]));
        [q.high().xor(x[1]).xor(k[0]), q, p.high().xor(x[3]).xor(k[1]), p]
    }
}

/// Without vector instructions.
#[derive(Clone, Copy)]
pub(super) struct ScalarWords([u64; 4]);

impl WordLanes for ScalarWords {
    const N: usize = 4;
    #[inline(always)]
    unsafe fn splat(v: u32) -> Self {
        ScalarWords([v as u64; 4])
    }
    #[inline(always)]
    unsafe fn count(first: u32) -> Self {
        let v = first as u64;
        ScalarWords([v, v + 1, v + 2, v + 3])
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        let mut y = self.0;
        for (y, o) in y.iter_mut().zip(o.0) {
            *y = (*y as u32 as u64) * (o as u32 as u64);
        }
        ScalarWords(y)
    }
    #[inline(always)]
    unsafe fn high(self) -> Self {
        ScalarWords(self.0.map(|v| v >> 32))
    }
    #[inline(always)]
    unsafe fn xor(self, o: Self) -> Self {
        let mut y = self.0;
        for (y, o) in y.iter_mut().zip(o.0) {
            *y ^= o;
        }
        ScalarWords(y)
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u32) {
        for (i, v) in self.0.into_iter().enumerate() {
            // SAFETY: the caller's promise: room for 4 words.
            unsafe { p.add(i).write(v as u32) };
        }
    }
}

/// One instruction set: its lanes, and the loops compiled for it.
#[cfg(target_arch = "x86_64")]
macro_rules! instruction_set {
    ($module:ident, $features:literal, $raw:ident, $n:literal, $splat:ident, $mul:ident, $shift:ident, $xor:ident,
     |$v:ident, $p:ident| $store:expr, $iota:expr, $add:ident) => {
        pub(super) mod $module {
            use super::{Draw, GROUP, WordLanes};
            use crate::random::philox::numbers::{DropoutMask, Float};
            use std::arch::x86_64::*;

            #[derive(Clone, Copy)]
            struct VectorWords($raw);

            // SAFETY (all methods): the CPU has the features, says the trait's contract.
            impl WordLanes for VectorWords {
                const N: usize = $n;
                #[inline(always)]
                unsafe fn splat(v: u32) -> Self {
                    // SAFETY: as above.
                    VectorWords(unsafe { $splat(v as i64) })
                }
                #[inline(always)]
                unsafe fn count(first: u32) -> Self {
                    // SAFETY: as above.
                    VectorWords(unsafe { $add($splat(first as i64), $iota) })
                }
                #[inline(always)]
                unsafe fn mul(self, o: Self) -> Self {
                    // SAFETY: as above.
                    VectorWords(unsafe { $mul(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn high(self) -> Self {
                    // SAFETY: as above.
                    VectorWords(unsafe { $shift::<32>(self.0) })
                }
                #[inline(always)]
                unsafe fn xor(self, o: Self) -> Self {
                    // SAFETY: as above.
                    VectorWords(unsafe { $xor(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn store(self, $p: *mut u32) {
                    let $v = self.0;
                    // SAFETY: as above; there is room for N words.
                    unsafe { $store }
                }
            }

            /// # Safety
            /// The CPU must have the features.
            #[target_feature(enable = $features)]
            pub unsafe fn group(d: &Draw, group: u64, words: &mut [u32; GROUP]) {
                // SAFETY: the caller's promise.
                unsafe { super::group::<VectorWords>(d, group, words) }
            }

            /// # Safety
            /// The CPU must have the features.
            #[target_feature(enable = $features)]
            pub unsafe fn dropout<T: Float>(f: &DropoutMask<T>, group: u64, y: &mut [T], x: &[T]) {
                // SAFETY: the caller's promise.
                unsafe { f.run::<VectorWords>(group, y, x) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
instruction_set!(
    avx2,
    "avx2,fma",
    __m256i,
    4,
    _mm256_set1_epi64x,
    _mm256_mul_epu32,
    _mm256_srli_epi64,
    _mm256_xor_si256,
    |v, p| {
        let even = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
        _mm_storeu_si128(p.cast(), _mm256_castsi256_si128(even))
    },
    _mm256_setr_epi64x(0, 1, 2, 3),
    _mm256_add_epi64
);

#[cfg(target_arch = "x86_64")]
instruction_set!(
    avx512,
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma",
    __m512i,
    8,
    _mm512_set1_epi64,
    _mm512_mul_epu32,
    _mm512_srli_epi64,
    _mm512_xor_si512,
    |v, p| _mm256_storeu_si256(p.cast(), _mm512_cvtepi64_epi32(v)),
    _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
    _mm512_add_epi64
);
