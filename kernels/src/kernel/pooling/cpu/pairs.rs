//! Windows of 2 x 2 with stride 2: for one row of them their maxima with the places, and the gradient, in vectors of 16 windows where
//! the machine has AVX-512, since compilers make a long scalar loop of it.

use super::planes::Planes;
use super::turned::NARROW;
use super::{Divisor, Pooling, PoolingTask, WindowIndex, larger, wins};
use crate::array::Output;
use crate::dtype::Real;

impl Pooling {
    /// Whether windows are 2 x 2 with stride 2, without padding, in planes of one channel.
    pub(super) fn pairs(&self) -> bool {
        let out = self.output();
        let whole = [1, 2].into_iter().all(|i| 2 * out[i] <= self.input[i]);
        self.inner == 1 && self.kernel == [1, 2, 2] && self.stride == [1, 2, 2] && self.pad == [0; 3] && whole
    }

    /// Whether a task goes by them. Few maxima side by side hardly fill vectors.
    pub(super) fn pairs_of(&self, task: PoolingTask) -> bool {
        let keeps = matches!(task, PoolingTask::Max | PoolingTask::MaxKeeping | PoolingTask::MaxBackwardTo(_));
        self.pairs() && (!keeps || self.output()[2] > NARROW)
    }
}

impl Planes {
    /// The rows of the output, and where the first of the two input rows begins that each is made of.
    #[inline(always)]
    fn row_pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let row = self.axes[2].input;
        self.rows().map(move |(r, d, h)| (r, (d.from * self.axes[1].input + h.from) * row))
    }

    /// What windows see of two rows.
    #[inline(always)]
    fn pair<'a, T>(&self, x: &'a [T], at: usize) -> [&'a [T]; 2] {
        let n = 2 * self.width();
        [&x[at..][..n], &x[at + self.axes[2].input..][..n]]
    }

    #[inline(always)]
    fn pair_mut<'a, T>(&self, x: &'a mut [T], at: usize) -> [&'a mut [T]; 2] {
        let (n, row) = (2 * self.width(), self.axes[2].input);
        let (a, b) = x[at..at + row + n].split_at_mut(row);
        [&mut a[..n], &mut b[..n]]
    }

    /// Zeros in a gradient to be written, if it has places that no pair reaches.
    #[inline(always)]
    fn begin_pairs<T: Real>(&self, gx: &mut [T], output: Output) {
        let [_, h, w] = &self.axes;
        if output == Output::Write && (w.input != 2 * self.width() || h.input != 2 * h.windows.len()) {
            gx.fill(T::ZERO);
        }
    }

    #[inline(always)]
    pub fn max_pairs<T: Real>(&self, x: &[T], y: &mut [T]) {
        let width = self.width();
        for (r, at) in self.row_pairs() {
            let [a, b] = self.pair(x, at);
            let y = &mut y[r * width..][..width];
            for ((a, b), y) in a.as_chunks::<2>().0.iter().zip(b.as_chunks::<2>().0).zip(y) {
                *y = larger(larger(larger(a[0], a[1]), b[0]), b[1]);
            }
        }
    }

    /// All windows are whole; numbers are added in the order of `sum`.
    #[inline(always)]
    pub(super) fn sum_pairs<T: Real>(&self, x: &[T], y: &mut [T], divisor: Divisor) {
        let width = self.width();
        let count = T::from_f64(if divisor == Divisor::One { 1.0 } else { 4.0 });
        for (r, at) in self.row_pairs() {
            let [a, b] = self.pair(x, at);
            let y = &mut y[r * width..][..width];
            for ((a, b), y) in a.as_chunks::<2>().0.iter().zip(b.as_chunks::<2>().0).zip(y) {
                *y = (T::ZERO + (a[0] + b[0]) + (a[1] + b[1])) / count;
            }
        }
    }

    #[inline(always)]
    pub(super) fn max_pairs_keeping<T: Real, I: WindowIndex>(&self, x: &[T], y: &mut [T], places: &mut [I]) {
        let width = self.width();
        for (r, at) in self.row_pairs() {
            let part = r * width..(r + 1) * width;
            let (y, places) = (&mut y[part.clone()], &mut places[part]);
            Maxima { x: self.pair(x, at), y, places }.find();
        }
    }

    #[inline(always)]
    pub(super) fn max_pairs_backward_to<T: Real, I: WindowIndex>(
        &self,
        gy: &[T],
        places: &[I],
        gx: &mut [T],
        output: Output,
    ) {
        self.begin_pairs(gx, output);
        let plane = PlaneGradients { places, gy, gx, width: self.width(), row: self.axes[2].input };
        plane.share(self.row_pairs(), output);
    }

    #[inline(always)]
    pub(super) fn max_pairs_backward<T: Real>(&self, gy: &[T], x: &[T], gx: &mut [T], output: Output) {
        let width = self.width();
        self.begin_pairs(gx, output);
        for (r, at) in self.row_pairs() {
            let (gx, gy) = (self.pair_mut(gx, at), &gy[r * width..][..width]);
            RowPair { x: self.pair(x, at), gx, gy }.share(output);
        }
    }
}

/// Two input rows of `2 n` numbers, their gradients, and the gradients of `n` windows.
pub(super) struct RowPair<'a, T> {
    pub x: [&'a [T]; 2],
    pub gx: [&'a mut [T]; 2],
    pub gy: &'a [T],
}

impl<T: Real> RowPair<'_, T> {
    /// Each number of gy goes to the first largest number of its window.
    #[inline(always)]
    pub fn share(self, output: Output) {
        let n = self.gy.len();
        assert!(self.x.iter().all(|x| x.len() == 2 * n) && self.gx.iter().all(|g| g.len() == 2 * n));
        #[cfg(target_arch = "x86_64")]
        if T::DTYPE == crate::dtype::DType::F32 && avx512::is_there() {
            // SAFETY: T is f32, the lengths were checked, and the machine has the instructions.
            return unsafe { avx512::share(self, output == Output::Accumulate) };
        }
        self.share_one_by_one(output);
    }

    #[inline(always)]
    fn share_one_by_one(self, output: Output) {
        let [a, b] = self.x.map(|x| x.as_chunks::<2>().0);
        let [ga, gb] = self.gx.map(|g| g.as_chunks_mut::<2>().0);
        for ((((a, b), ga), gb), &g) in a.iter().zip(b).zip(ga).zip(gb).zip(self.gy) {
            let v = first_largest([a[0], a[1], b[0], b[1]], g);
            (*ga, *gb) = match output {
                Output::Write => ([v[0], v[1]], [v[2], v[3]]),
                Output::Accumulate => ([ga[0] + v[0], ga[1] + v[1]], [gb[0] + v[2], gb[1] + v[3]]),
            };
        }
    }
}

/// Two input rows of `2 n` numbers, the maxima of `n` windows, and where these are: 0, 1 above, 2, 3 below.
pub(super) struct Maxima<'a, T, I> {
    pub x: [&'a [T]; 2],
    pub y: &'a mut [T],
    pub places: &'a mut [I],
}

impl<T: Real, I: WindowIndex> Maxima<'_, T, I> {
    #[inline(always)]
    pub fn find(self) {
        let n = self.y.len();
        assert!(self.x.iter().all(|x| x.len() == 2 * n) && self.places.len() == n);
        #[cfg(target_arch = "x86_64")]
        if T::DTYPE == crate::dtype::DType::F32 && size_of::<I>() == 1 && avx512::is_there() {
            // SAFETY: T is f32, I one byte, the lengths were checked, and the machine has the instructions.
            return unsafe { avx512::find(self) };
        }
        let [a, b] = self.x.map(|x| x.as_chunks::<2>().0);
        for (((a, b), y), place) in a.iter().zip(b).zip(self.y).zip(self.places) {
            let m = larger(a[0], a[1]);
            let low = larger(m, b[0]);
            let upper = wins(a[1], a[0]) as u32;
            let first = if wins(b[0], m) { 2 } else { upper };
            *place = I::new(if wins(b[1], low) { 3 } else { first });
            *y = larger(low, b[1]);
        }
    }
}

/// The places of a plane's maxima, their gradients, and those of its rows of `row` numbers.
pub(super) struct PlaneGradients<'a, T, I> {
    pub places: &'a [I],
    pub gy: &'a [T],
    pub gx: &'a mut [T],
    /// Windows side by side.
    pub width: usize,
    pub row: usize,
}

impl<T: Real, I: WindowIndex> PlaneGradients<'_, T, I> {
    /// Each number of gy goes to the place of its maximum. `rows`: numbers of rows of windows, and where their two rows of gx begin.
    #[inline(always)]
    pub fn share(self, rows: impl Iterator<Item = (usize, usize)>, output: Output) {
        #[cfg(target_arch = "x86_64")]
        if T::DTYPE == crate::dtype::DType::F32 && size_of::<I>() == 1 && avx512::is_there() {
            // SAFETY: T is f32, I one byte, and the machine has the instructions.
            return unsafe { avx512::share_to(self, rows, output == Output::Accumulate) };
        }
        for (r, at) in rows {
            let (windows, n) = (r * self.width..(r + 1) * self.width, 2 * self.width);
            let (ga, gb) = self.gx[at..at + self.row + n].split_at_mut(self.row);
            let [ga, gb] = [&mut ga[..n], &mut gb[..n]].map(|g| g.as_chunks_mut::<2>().0);
            for (((place, ga), gb), &g) in self.places[windows.clone()].iter().zip(ga).zip(gb).zip(&self.gy[windows]) {
                let at = |k: u32| if place.get() == k { g } else { T::ZERO };
                (*ga, *gb) = match output {
                    Output::Write => ([at(0), at(1)], [at(2), at(3)]),
                    Output::Accumulate => ([ga[0] + at(0), ga[1] + at(1)], [gb[0] + at(2), gb[1] + at(3)]),
                };
            }
        }
    }
}

/// `g` at the first largest of four numbers, zeros at the others.
#[inline(always)]
fn first_largest<T: Real>(v: [T; 4], g: T) -> [T; 4] {
    let one = wins(v[1], v[0]);
    let m = larger(v[0], v[1]);
    let two = wins(v[2], m);
    let three = wins(v[3], larger(m, v[2]));
    let at = |here: bool| if here { g } else { T::ZERO };
    [at(!one & !two & !three), at(one & !two & !three), at(two & !three), at(three)]
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{Maxima, PlaneGradients, RowPair};
    use crate::simd::{Isa, isa};
    use std::arch::x86_64::*;

    #[inline(always)]
    pub fn is_there() -> bool {
        isa() == Isa::Avx512
    }

    /// # Safety
    /// T is f32; the machine has the instructions; rows of x and gx are twice as long as gy.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn share<T>(mut row: RowPair<T>, add: bool) {
        let [a, b] = row.x.map(|x| x.as_ptr().cast::<f32>());
        let [ga, gb] = row.gx.each_mut().map(|g| g.as_mut_ptr().cast::<f32>());
        let gy = row.gy.as_ptr().cast::<f32>();
        for i in (0..row.gy.len()).step_by(16) {
            let n = (row.gy.len() - i).min(16);
            // SAFETY: the masks keep to the `n` windows from `i` on.
            unsafe {
                let (a, b) = (load(a.add(2 * i), n), load(b.add(2 * i), n));
                let g = _mm512_maskz_loadu_ps(ones(n), gy.add(i));
                let [va, vb] = first_largest(a, b, g);
                store(ga.add(2 * i), n, va, add);
                store(gb.add(2 * i), n, vb, add);
            }
        }
    }

    /// # Safety
    /// T is f32, I one byte; the machine has the instructions; rows of x are twice as long as y and places.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn find<T, I>(row: Maxima<T, I>) {
        let [a, b] = row.x.map(|x| x.as_ptr().cast::<f32>());
        let (y, places) = (row.y.as_mut_ptr().cast::<f32>(), row.places.as_mut_ptr().cast::<i8>());
        for i in (0..row.y.len()).step_by(16) {
            let n = (row.y.len() - i).min(16);
            // SAFETY: the masks keep to the `n` windows from `i` on.
            unsafe {
                let (a, b) = (load(a.add(2 * i), n), load(b.add(2 * i), n));
                let (m, [one, two, three]) = maxima(a, b);
                let place = _mm512_maskz_set1_epi32(one, 1);
                let place = _mm512_mask_set1_epi32(place, two, 2);
                let place = _mm512_mask_set1_epi32(place, three, 3);
                _mm512_mask_storeu_ps(y.add(i), ones(n), m);
                _mm512_mask_cvtepi32_storeu_epi8(places.add(i).cast(), ones(n), place);
            }
        }
    }

    /// All rows in one call, which cannot be inlined where it is called.
    ///
    /// # Safety
    /// T is f32, I one byte; the machine has the instructions.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub unsafe fn share_to<T, I>(p: PlaneGradients<T, I>, rows: impl Iterator<Item = (usize, usize)>, add: bool) {
        let (gx, gy, places) =
            (p.gx.as_mut_ptr().cast::<f32>(), p.gy.as_ptr().cast::<f32>(), p.places.as_ptr().cast::<i8>());
        for (r, at) in rows {
            let (n, first) = (p.width, r * p.width);
            let is_inside = first + n <= p.gy.len().min(p.places.len()) && at + p.row + 2 * n <= p.gx.len();
            assert!(is_inside && 2 * n <= p.row, "rows of the plane");
            let mut i = 0;
            while i < n {
                let count = match n - i {
                    8.. => 8,
                    4.. => 4,
                    few => few,
                };
                // SAFETY: so many windows are left in the row, and inside all arrays.
                unsafe {
                    let g = _mm256_maskz_loadu_ps(ones(count) as u8, gy.add(first + i));
                    let place = _mm_maskz_loadu_epi8(ones(count), places.wrapping_add(first + i));
                    let (to, place) = (gx.add(at + 2 * i), _mm512_cvtepu8_epi32(_mm_unpacklo_epi8(place, place)));
                    let twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
                    let g = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(g));
                    let side = _mm512_setr_epi32(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1);
                    let below = _mm512_or_si512(side, _mm512_set1_epi32(2));
                    put(to, count, _mm512_cmpeq_epi32_mask(place, side), g, add);
                    put(to.add(p.row), count, _mm512_cmpeq_epi32_mask(place, below), g, add);
                }
                i += count;
            }
        }
    }

    /// Writes what is won of 2 n numbers, and zeros, or adds it to what is there. As far as it can without masks: what is loaded next
    /// may lie under a mask's zeros, and would wait for the store.
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn put(p: *mut f32, n: usize, won: __mmask16, g: __m512, add: bool) {
        let all = ones(2 * n);
        // SAFETY: 2 n numbers, to which the mask keeps.
        unsafe {
            let v = match add {
                true => {
                    let old = match n {
                        8 => _mm512_loadu_ps(p),
                        4 => _mm512_castps256_ps512(_mm256_loadu_ps(p)),
                        _ => _mm512_maskz_loadu_ps(all, p),
                    };
                    _mm512_mask_add_ps(old, won, old, g)
                }
                false => _mm512_maskz_mov_ps(won, g),
            };
            match n {
                8 => _mm512_storeu_ps(p, v),
                4 => _mm256_storeu_ps(p, _mm512_castps512_ps256(v)),
                _ => _mm512_mask_storeu_ps(p, all, v),
            }
        }
    }

    /// The even and the odd ones of 32 numbers.
    type Pairs = (__m512, __m512);

    /// The maxima of windows, and whether the second number, the third, the fourth are larger than what is before them.
    #[target_feature(enable = "avx512f")]
    fn maxima(a: Pairs, b: Pairs) -> (__m512, [__mmask16; 3]) {
        let (m, one) = larger(a.0, a.1);
        let (m, two) = larger(m, b.0);
        let (m, three) = larger(m, b.1);
        (m, [one, two, three])
    }

    /// As [`super::larger`], and [`super::wins`].
    #[target_feature(enable = "avx512f")]
    fn larger(m: __m512, v: __m512) -> (__m512, __mmask16) {
        let wins = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(v, m) | _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v);
        (_mm512_mask_mov_ps(m, wins, v), wins)
    }

    #[target_feature(enable = "avx512f")]
    fn first_largest(a: Pairs, b: Pairs, g: __m512) -> [Pairs; 2] {
        let (_, [one, two, three]) = maxima(a, b);
        let at = |k: __mmask16| _mm512_maskz_mov_ps(k, g);
        [(at(!one & !two & !three), at(one & !two & !three)), (at(two & !three), at(three))]
    }

    #[inline(always)]
    fn ones(n: usize) -> __mmask16 {
        if n >= 16 { u16::MAX } else { (1 << n) - 1 }
    }

    /// 2 n numbers, n <= 16.
    #[target_feature(enable = "avx512f")]
    unsafe fn load(p: *const f32, n: usize) -> Pairs {
        // SAFETY: the masks hide what lies behind the 2 n numbers.
        let (low, high) = unsafe {
            (
                _mm512_maskz_loadu_ps(ones(2 * n), p),
                _mm512_maskz_loadu_ps(ones((2 * n).saturating_sub(16)), p.wrapping_add(16)),
            )
        };
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        (_mm512_permutex2var_ps(low, even, high), _mm512_permutex2var_ps(low, odd, high))
    }

    /// Writes 2 n numbers, or adds them to what is there.
    #[target_feature(enable = "avx512f")]
    unsafe fn store(p: *mut f32, n: usize, v: Pairs, add: bool) {
        let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        let parts = [(low, 0, ones(2 * n)), (high, 16, ones((2 * n).saturating_sub(16)))];
        for (order, at, mask) in parts {
            let p = p.wrapping_add(at);
            let v = _mm512_permutex2var_ps(v.0, order, v.1);
            // SAFETY: as in `load`.
            unsafe {
                let v = if add { _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, p)) } else { v };
                _mm512_mask_storeu_ps(p, mask, v);
            }
        }
    }
}
