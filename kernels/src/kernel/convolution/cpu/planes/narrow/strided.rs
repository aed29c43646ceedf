//! Forward with a stride of 2 along rows: numbers of a row are read in pairs of vectors, of which one tap takes the even ones
//! and the next the odd ones.

use super::NarrowRows;
use crate::dtype::Real;
use crate::kernel::convolution::cpu::Conv;
use crate::simd::lanes::{Lanes, WithLanes};

/// Bytes of a plane that stays in the first cache.
const SMALL: usize = 1 << 14;

/// Vectors of results of a row, with what each pair of taps reads.
pub(super) struct StridedRows<M> {
    /// Results of a row.
    columns: usize,
    vectors: Vec<StridedVector<M>>,
}

struct StridedVector<M> {
    /// The first result; the last vector may begin within the one before, where what both make is written twice.
    place: usize,
    /// Where its first tap reads in a row of the source.
    from: isize,
    /// Whether all that its taps read lies in the row.
    is_inside: bool,
    /// For each pair of taps the lanes that lie in the row, of both vectors; the results that there are.
    masks: Vec<[M; 2]>,
    end: M,
}

impl<M: Copy> StridedRows<M> {
    /// Nothing where another stride or a dilation is asked for.
    pub(super) fn new<T: Real, L: Lanes<T, M = M>>(c: &Conv) -> Option<StridedRows<M>> {
        (c.stride[2] == 2 && c.dilation[2] == 1).then_some(())?;
        let (columns, width, taps) = (c.output()[2], c.input[2] as isize, c.kernel[2]);
        let lane = |at: isize| at.clamp(0, L::N as isize) as usize;
        // SAFETY: L is what the machine has.
        let mask = |first: isize| unsafe { L::mask(lane(-first).min(lane(width - first)), lane(width - first)) };
        let vector = |v: usize| {
            let place = (v * L::N).min(columns.saturating_sub(L::N));
            let from = 2 * place as isize - c.pad[2] as isize;
            let pairs = (0..taps.div_ceil(2)).map(|p| from + 2 * p as isize);
            StridedVector {
                place,
                from,
                is_inside: from >= 0 && from + 2 * (L::N + taps.div_ceil(2) - 1) as isize <= width,
                masks: pairs.map(|first| [mask(first), mask(first + L::N as isize)]).collect(),
                // SAFETY: as above.
                end: unsafe { L::mask(0, L::N.min(columns - place)) },
            }
        };
        Some(StridedRows { columns, vectors: (0..columns.div_ceil(L::N)).map(vector).collect() })
    }
}

/// Results of all rows, one row after another.
pub(super) struct StridedCorrelation<'a, T, M> {
    pub(super) rows: &'a NarrowRows<M>,
    pub(super) strided: &'a StridedRows<M>,
    pub(super) source: *const T,
    pub(super) w: &'a [T],
    pub(super) start: T,
    pub(super) to: *mut T,
}

impl<T: Real, M: Copy> WithLanes<T> for StridedCorrelation<'_, T, M> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.rows.shifts.len() {
                3 => self.run::<L, 3>(),
                5 => self.run::<L, 5>(),
                _ => unreachable!("a kernel has one of COLUMNS"),
            }
        }
    }
}

impl<T: Real, M: Copy> StridedCorrelation<'_, T, M> {
    /// Small planes two vectors by two, whose masks stay in registers; others row by row, as they lie in memory.
    #[inline(always)]
    unsafe fn run<L: Lanes<T>, const K: usize>(self) {
        let (r, (pairs, last)) = (self.rows, self.strided.vectors.as_chunks::<2>());
        debug_assert!(r.reads.iter().all(|(_, k)| (k + 1) * K <= self.w.len()), "a weight for each tap");
        let is_small = r.source[0] * r.source[1] * size_of::<T>() <= SMALL;
        let (turns, each) = if is_small { (pairs.len() + last.len(), 1) } else { (1, usize::MAX) };
        // Loops, not iterators: what is in a closure is not compiled for the instruction set. SAFETY: the caller's promise.
        unsafe {
            for turn in 0..turns {
                for i in 0..r.rows() {
                    for pair in pairs.iter().skip(turn).take(each) {
                        self.some::<L, K, 2>(i, pair);
                    }
                    if let ([last], true) = (last, !is_small || turn == pairs.len()) {
                        self.some::<L, K, 1>(i, std::array::from_ref(last));
                    }
                }
            }
        }
    }

    /// Some vectors of row `i`.
    #[allow(clippy::needless_range_loop)] // as in `NarrowCorrelation::run`
    #[inline(always)]
    unsafe fn some<L: Lanes<T>, const K: usize, const V: usize>(&self, i: usize, vectors: &[StridedVector<M>; V]) {
        let (r, columns) = (self.rows, self.strided.columns);
        assert!(size_of::<M>() == size_of::<L::M>(), "the masks of L");
        assert!(vectors.iter().all(|v| v.masks.len() == K.div_ceil(2)), "masks for each two taps");
        // SAFETY: what the masks cover lies in the rows; they are L's, which has one type for them.
        unsafe {
            let mut sums = [L::splat(self.start); V];
            for &(row, k) in &r.reads[r.starts[i]..r.starts[i + 1]] {
                let (from, w) = (self.source.wrapping_add(row * r.width), self.w.as_ptr().add(k * K));
                for p in 0..K.div_ceil(2) {
                    let even = L::splat(*w.add(2 * p));
                    let odd = L::splat(*w.add((2 * p + 1).min(K - 1)));
                    for j in 0..V {
                        let v = &vectors[j];
                        let x = from.wrapping_offset(v.from).wrapping_add(2 * p);
                        let (a, b) = if v.is_inside {
                            (L::load(x), L::load(x.wrapping_add(L::N)))
                        } else {
                            let [first, second] = *v.masks.as_ptr().cast::<[L::M; 2]>().add(p);
                            (L::load_masked(x, first), L::load_masked(x.wrapping_add(L::N), second))
                        };
                        sums[j] = L::fma(L::evens(a, b), even, sums[j]);
                        if 2 * p + 1 < K {
                            sums[j] = L::fma(L::odds(a, b), odd, sums[j]);
                        }
                    }
                }
            }
            for j in 0..V {
                let (v, sum) = (&vectors[j], L::in_order(sums[j]));
                let at = i * columns + v.place;
                // What hangs over into the next row is written there afterwards.
                match at + L::N <= r.rows() * columns {
                    true => L::store(self.to.add(at), sum),
                    false => L::store_masked(self.to.add(at), (&raw const v.end).cast::<L::M>().read(), sum),
                }
            }
        }
    }
}
