//! Vectors of one instruction set, as the convolution kernels need them.
//!
//! A kernel is a [`WithLanes`]: its body is generic over [`Lanes`] and inlined into a function that has the instruction set
//! switched on. `dispatch` picks the best set that the machine has.

use crate::dtype::Real;

/// Vectors of `N` numbers. The methods are safe to call only inside `enter`.
pub trait Lanes<T: Real>: 'static {
    type V: Copy;
    /// Some lanes.
    type M: Copy + Send + Sync;
    /// Numbers in a vector.
    const N: usize;
    /// Scalars a tile has at most, so that two vectors for each fit the registers.
    const ROWS: usize;
    /// Whether there are instructions that read and write some lanes.
    const MASKS: bool;
    unsafe fn splat(v: T) -> Self::V;
    unsafe fn load(p: *const T) -> Self::V;
    unsafe fn store(p: *mut T, v: Self::V);
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Lanes `from` to `to <= N`.
    unsafe fn mask(from: usize, to: usize) -> Self::M;
    /// Numbers of some lanes, zeros in the others, whose memory is not touched.
    unsafe fn load_masked(p: *const T, m: Self::M) -> Self::V;
    /// The numbers of some lanes alone. Where it is all of them it is a plain store, since a store with a mask takes some
    /// processors (AMD's with AVX2) as long as a dozen others.
    unsafe fn store_masked(p: *mut T, m: Self::M, v: Self::V);
    /// The first `n <= N` numbers, and zeros.
    #[inline(always)]
    unsafe fn load_part(p: *const T, n: usize) -> Self::V {
        // SAFETY: the caller has n numbers there.
        unsafe { Self::load_masked(p, Self::mask(0, n)) }
    }
    /// The first `n <= N` numbers alone.
    #[inline(always)]
    unsafe fn store_part(p: *mut T, v: Self::V, n: usize) {
        // SAFETY: the caller has room for n numbers there.
        unsafe { if n == Self::N { Self::store(p, v) } else { Self::store_masked(p, Self::mask(0, n), v) } }
    }
    /// Numbers 0, 2, .. of `a` and of `b`, in an order that [`Lanes::in_order`] puts right.
    unsafe fn evens(a: Self::V, b: Self::V) -> Self::V;
    /// Numbers 1, 3, .., likewise.
    unsafe fn odds(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn in_order(v: Self::V) -> Self::V;
    /// `p`, which the compiler must not read from before it has `v`: loads that it moved ahead would fill the registers.
    #[inline(always)]
    unsafe fn after(p: *const T, v: Self::V) -> *const T {
        let _ = v;
        p
    }
    /// Runs the job with the instruction set on; the machine must have it.
    unsafe fn enter<J: WithLanes<T>>(job: J);

    /// `dst[c][r] = src[r][c]`, or `+=`, for at most N rows and columns.
    #[inline(always)]
    unsafe fn transpose(b: TransposeBlock<T>, add: bool) {
        for c in 0..b.cols {
            for r in 0..b.rows {
                // SAFETY: the caller's block lies within its memory.
                unsafe {
                    let (v, to) = (*b.src.add(r * b.src_stride + c), b.dst.add(c * b.dst_stride + r));
                    *to = if add { *to + v } else { v };
                }
            }
        }
    }
}

/// As [`Lanes::transpose`], of any number of rows and columns; `dst` is overwritten.
///
/// # Safety
/// Inside `enter` of L; the block lies within its memory.
#[inline(always)]
pub unsafe fn transpose_all<T: Real, L: Lanes<T>>(b: TransposeBlock<T>) {
    // SAFETY: the caller's promise.
    unsafe { transpose_or_add::<T, L>(b, false) }
}

/// As [`Lanes::transpose`], of any number of rows and columns.
///
/// # Safety
/// Inside `enter` of L; the block lies within its memory.
#[inline(always)]
pub unsafe fn transpose_or_add<T: Real, L: Lanes<T>>(b: TransposeBlock<T>, add: bool) {
    for r in (0..b.rows).step_by(L::N) {
        for c in (0..b.cols).step_by(L::N) {
            let part = TransposeBlock {
                src: b.src.wrapping_add(r * b.src_stride + c),
                rows: L::N.min(b.rows - r),
                cols: L::N.min(b.cols - c),
                dst: b.dst.wrapping_add(c * b.dst_stride + r),
                ..b
            };
            // SAFETY: the caller's promise.
            unsafe { L::transpose(part, add) }
        }
    }
}

/// A block to transpose.
#[derive(Clone, Copy)]
pub struct TransposeBlock<T> {
    pub src: *const T,
    pub src_stride: usize,
    pub rows: usize,
    pub cols: usize,
    pub dst: *mut T,
    pub dst_stride: usize,
}

/// Work that is generic over the instruction set.
pub trait WithLanes<T: Real> {
    /// # Safety
    /// Called inside `L::enter`; the memory that the job describes is valid.
    unsafe fn call<L: Lanes<T>>(self);
}

/// Work that is generic over the instruction set but does not itself run inside it.
pub trait Choose<T: Real> {
    fn with<L: Lanes<T>>(self);
}

/// Arrays of four: what the compiler makes of them, on any machine.
pub struct ScalarLanes;

impl<T: Real> Lanes<T> for ScalarLanes {
    type V = [T; 4];
    type M = (usize, usize);
    const N: usize = 4;
    const ROWS: usize = 4;
    const MASKS: bool = false;
    #[inline(always)]
    unsafe fn splat(v: T) -> [T; 4] {
        [v; 4]
    }
    #[inline(always)]
    unsafe fn load(p: *const T) -> [T; 4] {
        // SAFETY: the caller has four numbers there.
        unsafe { p.cast::<[T; 4]>().read() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut T, v: [T; 4]) {
        // SAFETY: the caller has four numbers there.
        unsafe { p.cast::<[T; 4]>().write(v) }
    }
    #[inline(always)]
    unsafe fn fma(a: [T; 4], b: [T; 4], c: [T; 4]) -> [T; 4] {
        std::array::from_fn(|i| c[i] + a[i] * b[i])
    }
    #[inline(always)]
    unsafe fn mask(from: usize, to: usize) -> (usize, usize) {
        (from, to)
    }
    #[inline(always)]
    unsafe fn load_masked(p: *const T, (from, to): (usize, usize)) -> [T; 4] {
        // SAFETY: the caller has numbers in these lanes.
        std::array::from_fn(|i| if (from..to).contains(&i) { unsafe { *p.wrapping_add(i) } } else { T::ZERO })
    }
    #[inline(always)]
    unsafe fn store_masked(p: *mut T, (from, to): (usize, usize), v: [T; 4]) {
        // SAFETY: the caller has room in these lanes.
        (from..to).for_each(|i| unsafe { *p.wrapping_add(i) = v[i] })
    }
    #[inline(always)]
    unsafe fn evens(a: [T; 4], b: [T; 4]) -> [T; 4] {
        [a[0], a[2], b[0], b[2]]
    }
    #[inline(always)]
    unsafe fn odds(a: [T; 4], b: [T; 4]) -> [T; 4] {
        [a[1], a[3], b[1], b[3]]
    }
    #[inline(always)]
    unsafe fn in_order(v: [T; 4]) -> [T; 4] {
        v
    }
    unsafe fn enter<J: WithLanes<T>>(job: J) {
        // SAFETY: nothing to switch on.
        unsafe { job.call::<ScalarLanes>() }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::asm;
    use std::arch::x86_64::*;

    macro_rules! lanes {
        ($name:ident, $t:ty, $v:ty, $n:expr, $rows:expr, $feature:literal, $reg:ident, $set1:ident, $load:ident, $store:ident, $fma:ident, $parts:ident $(, $transpose:path)?) => {
            // SAFETY, of every intrinsic below: the methods run inside `enter`, and pointers reach a whole vector.
            impl Lanes<$t> for $name {
                type V = $v;
                type M = $parts::M;
                const N: usize = $n;
                const ROWS: usize = $rows;
                const MASKS: bool = true;
                #[inline(always)]
                unsafe fn splat(v: $t) -> $v {
                    // SAFETY: see above.
                    unsafe { $set1(v) }
                }
                #[inline(always)]
                unsafe fn load(p: *const $t) -> $v {
                    // SAFETY: see above.
                    unsafe { $load(p) }
                }
                #[inline(always)]
                unsafe fn store(p: *mut $t, v: $v) {
                    // SAFETY: see above.
                    unsafe { $store(p, v) }
                }
                #[inline(always)]
                unsafe fn fma(a: $v, b: $v, c: $v) -> $v {
                    // SAFETY: see above.
                    unsafe { $fma(a, b, c) }
                }
                #[inline(always)]
                unsafe fn mask(from: usize, to: usize) -> $parts::M {
                    // SAFETY: see above.
                    unsafe { $parts::mask(from, to) }
                }
                #[inline(always)]
                unsafe fn load_masked(p: *const $t, m: $parts::M) -> $v {
                    // SAFETY: see above; no other number is read.
                    unsafe { $parts::load(p, m) }
                }
                #[inline(always)]
                unsafe fn store_masked(p: *mut $t, m: $parts::M, v: $v) {
                    // SAFETY: see above; no other number is written.
                    unsafe { $parts::store(p, m, v) }
                }
                #[inline(always)]
                unsafe fn evens(a: $v, b: $v) -> $v {
                    // SAFETY: see above.
                    unsafe { $parts::evens(a, b) }
                }
                #[inline(always)]
                unsafe fn odds(a: $v, b: $v) -> $v {
                    // SAFETY: see above.
                    unsafe { $parts::odds(a, b) }
                }
                #[inline(always)]
                unsafe fn in_order(v: $v) -> $v {
                    // SAFETY: see above.
                    unsafe { $parts::in_order(v) }
                }
                #[target_feature(enable = $feature)]
                #[inline]
                unsafe fn after(mut p: *const $t, v: $v) -> *const $t {
                    // SAFETY: no instruction at all, only an order for the compiler.
                    unsafe {
                        asm!("/* {p} {v} */", p = inout(reg) p, v = in($reg) v, options(pure, readonly, nostack, preserves_flags));
                    }
                    p
                }
                #[target_feature(enable = $feature)]
                unsafe fn enter<J: WithLanes<$t>>(job: J) {
                    // SAFETY: the features are on here.
                    unsafe { job.call::<$name>() }
                }
                $(#[inline(always)]
                unsafe fn transpose(b: TransposeBlock<$t>, add: bool) {
                    // SAFETY: see above.
                    unsafe { $transpose(b, add) }
                })?
            }
        };
    }

    /// Some lanes of a vector: other numbers in memory are left alone.
    macro_rules! parts {
        ($name:ident, $t:ty, $v:ty, $m:ty, $feature:literal, $mask:expr, $load:ident, $store:expr, $evens:expr, $odds:expr, $in_order:expr) => {
            mod $name {
                use std::arch::x86_64::*;
                pub type M = $m;
                #[target_feature(enable = $feature)]
                #[inline]
                pub unsafe fn mask(from: usize, to: usize) -> M {
                    $mask(from, to)
                }
                #[target_feature(enable = $feature)]
                #[inline]
                pub unsafe fn load(p: *const $t, m: M) -> $v {
                    // SAFETY: the caller has numbers in these lanes.
                    unsafe { parts!(@load $load p m) }
                }
                #[target_feature(enable = $feature)]
                #[inline]
                pub unsafe fn store(p: *mut $t, m: M, v: $v) {
                    // SAFETY: the caller has room in these lanes.
                    unsafe { $store(p, m, v) }
                }
                #[target_feature(enable = $feature)]
                #[inline]
                pub fn evens(a: $v, b: $v) -> $v {
                    $evens(a, b)
                }
                #[target_feature(enable = $feature)]
                #[inline]
                pub fn odds(a: $v, b: $v) -> $v {
                    $odds(a, b)
                }
                #[target_feature(enable = $feature)]
                #[inline]
                pub fn in_order(v: $v) -> $v {
                    $in_order(v)
                }
            }
        };
        (@load _mm512_maskz_loadu_ps $p:ident $m:ident) => { _mm512_maskz_loadu_ps($m, $p) };
        (@load _mm512_maskz_loadu_pd $p:ident $m:ident) => { _mm512_maskz_loadu_pd($m, $p) };
        (@load $load:ident $p:ident $m:ident) => { $load($p, $m) };
    }
    parts!(
        parts_256_f32,
        f32,
        __m256,
        __m256i,
        "avx2,fma",
        |from, to| {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let below = |n: usize| _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lanes);
            _mm256_andnot_si256(below(from), below(to))
        },
        _mm256_maskload_ps,
        |p, m, v| match _mm256_movemask_ps(_mm256_castsi256_ps(m)) {
            0xff => _mm256_storeu_ps(p, v),
            _ => _mm256_maskstore_ps(p, m, v),
        },
        |a, b| _mm256_shuffle_ps::<0b10_00_10_00>(a, b),
        |a, b| _mm256_shuffle_ps::<0b11_01_11_01>(a, b),
        |v| _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_castps_pd(v)))
    );
    parts!(
        parts_256_f64,
        f64,
        __m256d,
        __m256i,
        "avx2,fma",
        |from, to| {
            let lanes = _mm256_setr_epi64x(0, 1, 2, 3);
            let below = |n: usize| _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), lanes);
            _mm256_andnot_si256(below(from), below(to))
        },
        _mm256_maskload_pd,
        |p, m, v| match _mm256_movemask_pd(_mm256_castsi256_pd(m)) {
            0xf => _mm256_storeu_pd(p, v),
            _ => _mm256_maskstore_pd(p, m, v),
        },
        |a, b| _mm256_unpacklo_pd(a, b),
        |a, b| _mm256_unpackhi_pd(a, b),
        |v| _mm256_permute4x64_pd::<0b11_01_10_00>(v)
    );
    parts!(
        parts_512_f32,
        f32,
        __m512,
        __mmask16,
        "avx512f,avx2,fma",
        |from: usize, to: usize| (((1u32 << to) - 1) & !((1u32 << from) - 1)) as __mmask16,
        _mm512_maskz_loadu_ps,
        _mm512_mask_storeu_ps,
        |a, b| _mm512_shuffle_ps::<0b10_00_10_00>(a, b),
        |a, b| _mm512_shuffle_ps::<0b11_01_11_01>(a, b),
        |v| {
            let halves = _mm512_permutexvar_pd(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), _mm512_castps_pd(v));
            _mm512_castpd_ps(halves)
        }
    );
    parts!(
        parts_512_f64,
        f64,
        __m512d,
        __mmask8,
        "avx512f,avx2,fma",
        |from: usize, to: usize| (((1u32 << to) - 1) & !((1u32 << from) - 1)) as __mmask8,
        _mm512_maskz_loadu_pd,
        _mm512_mask_storeu_pd,
        |a, b| _mm512_unpacklo_pd(a, b),
        |a, b| _mm512_unpackhi_pd(a, b),
        |v| _mm512_permutexvar_pd(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v)
    );

    pub struct Avx2;
    pub struct Avx512;
    lanes!(
        Avx2,
        f32,
        __m256,
        8,
        6,
        "avx2,fma",
        ymm_reg,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_fmadd_ps,
        parts_256_f32
    );
    lanes!(
        Avx2,
        f64,
        __m256d,
        4,
        6,
        "avx2,fma",
        ymm_reg,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_fmadd_pd,
        parts_256_f64
    );
    lanes!(
        Avx512,
        f32,
        __m512,
        16,
        14,
        "avx512f,avx2,fma",
        zmm_reg,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_fmadd_ps,
        parts_512_f32,
        super::super::transpose16::transpose16
    );
    lanes!(
        Avx512,
        f64,
        __m512d,
        8,
        14,
        "avx512f,avx2,fma",
        zmm_reg,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_fmadd_pd,
        parts_512_f64,
        super::super::transpose8::transpose8
    );

    /// `L`, whose numbers are `U`, for a `T` that is the same type: generic code cannot say so otherwise.
    pub struct Same<U, L>(std::marker::PhantomData<(U, L)>);

    struct Renamed<J, T>(J, std::marker::PhantomData<T>);

    impl<T: Real, U: Real, J: WithLanes<T>> WithLanes<U> for Renamed<J, T> {
        #[inline(always)]
        unsafe fn call<L: Lanes<U>>(self) {
            // SAFETY: the caller's promise.
            unsafe { self.0.call::<Same<U, L>>() }
        }
    }

    // SAFETY, of every call below: the caller's promise; `dispatch` makes T and U the same type.
    impl<T: Real, U: Real, L: Lanes<U>> Lanes<T> for Same<U, L> {
        type V = L::V;
        type M = L::M;
        const N: usize = L::N;
        const ROWS: usize = L::ROWS;
        const MASKS: bool = L::MASKS;
        #[inline(always)]
        unsafe fn splat(v: T) -> L::V {
            // SAFETY: see above.
            unsafe { L::splat(std::mem::transmute_copy(&v)) }
        }
        #[inline(always)]
        unsafe fn load(p: *const T) -> L::V {
            // SAFETY: see above.
            unsafe { L::load(p.cast()) }
        }
        #[inline(always)]
        unsafe fn store(p: *mut T, v: L::V) {
            // SAFETY: see above.
            unsafe { L::store(p.cast(), v) }
        }
        #[inline(always)]
        unsafe fn fma(a: L::V, b: L::V, c: L::V) -> L::V {
            // SAFETY: see above.
            unsafe { L::fma(a, b, c) }
        }
        #[inline(always)]
        unsafe fn mask(from: usize, to: usize) -> L::M {
            // SAFETY: see above.
            unsafe { L::mask(from, to) }
        }
        #[inline(always)]
        unsafe fn load_masked(p: *const T, m: L::M) -> L::V {
            // SAFETY: see above.
            unsafe { L::load_masked(p.cast(), m) }
        }
        #[inline(always)]
        unsafe fn store_masked(p: *mut T, m: L::M, v: L::V) {
            // SAFETY: see above.
            unsafe { L::store_masked(p.cast(), m, v) }
        }
        #[inline(always)]
        unsafe fn evens(a: L::V, b: L::V) -> L::V {
            // SAFETY: see above.
            unsafe { L::evens(a, b) }
        }
        #[inline(always)]
        unsafe fn odds(a: L::V, b: L::V) -> L::V {
            // SAFETY: see above.
            unsafe { L::odds(a, b) }
        }
        #[inline(always)]
        unsafe fn in_order(v: L::V) -> L::V {
            // SAFETY: see above.
            unsafe { L::in_order(v) }
        }
        #[inline(always)]
        unsafe fn after(p: *const T, v: L::V) -> *const T {
            // SAFETY: see above.
            unsafe { L::after(p.cast(), v).cast() }
        }
        unsafe fn enter<J: WithLanes<T>>(job: J) {
            // SAFETY: see above.
            unsafe { L::enter(Renamed(job, std::marker::PhantomData)) }
        }
        #[inline(always)]
        unsafe fn transpose(b: TransposeBlock<T>, add: bool) {
            let TransposeBlock { src, src_stride, rows, cols, dst, dst_stride } = b;
            // SAFETY: see above.
            unsafe {
                L::transpose(
                    TransposeBlock { src: src.cast(), src_stride, rows, cols, dst: dst.cast(), dst_stride },
                    add,
                )
            }
        }
    }
}

/// Calls `choose` with the best lanes that the machine has for `T`.
pub fn dispatch<T: Real, C: Choose<T>>(choose: C) {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::dtype::DType;
        use crate::simd::{Isa, isa};
        match (T::DTYPE, isa()) {
            (_, Isa::Portable) => choose.with::<ScalarLanes>(),
            (DType::F32, Isa::Avx512) => choose.with::<x86::Same<f32, x86::Avx512>>(),
            (DType::F32, Isa::Avx2) => choose.with::<x86::Same<f32, x86::Avx2>>(),
            (_, Isa::Avx512) => choose.with::<x86::Same<f64, x86::Avx512>>(),
            (_, Isa::Avx2) => choose.with::<x86::Same<f64, x86::Avx2>>(),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    choose.with::<ScalarLanes>()
}

/// Runs a job inside the best instruction set that the machine has.
///
/// # Safety
/// The memory that the job describes is valid.
pub unsafe fn enter<T: Real, J: WithLanes<T>>(job: J) {
    struct Entered<J>(J);

    impl<T: Real, J: WithLanes<T>> Choose<T> for Entered<J> {
        fn with<L: Lanes<T>>(self) {
            // SAFETY: L is what the machine has; `enter`'s caller promised the rest.
            unsafe { L::enter(self.0) }
        }
    }

    dispatch(Entered(job));
}
