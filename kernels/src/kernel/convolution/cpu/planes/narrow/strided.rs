//! Forward with a stride of 2 along rows: numbers of a row are read in pairs of vectors, of which one tap takes the even ones
//! and the next the odd ones.

use super::NarrowRows;
use crate::dtype::Real;
use crate::kernel::convolution::cpu::Conv;
use crate::simd::lanes::{Lanes, WithLanes};

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
    #[inline(always)]
    unsafe fn run<L: Lanes<T>, const K: usize>(self) {
        let r = self.rows;
        assert!(size_of::<M>() == size_of::<L::M>(), "the masks of L");
        assert!(r.reads.iter().all(|(_, k)| (k + 1) * K <= self.w.len()), "a weight for each tap");
        assert!(self.strided.vectors.iter().all(|v| v.masks.len() == K.div_ceil(2)), "masks for each pair of taps");
        // SAFETY: what the masks cover lies in the rows; they are L's, which has one type for them.
        unsafe {
            for i in 0..r.rows() {
                let reads = &r.reads[r.starts[i]..r.starts[i + 1]];
                for v in &self.strided.vectors {
                    let masks: *const [L::M; 2] = v.masks.as_ptr().cast();
                    let mut sum = L::splat(self.start);
                    for &(row, k) in reads {
                        let from = self.source.wrapping_add(row * r.width).wrapping_offset(v.from);
                        let w = self.w.as_ptr().add(k * K);
                        for p in 0..K.div_ceil(2) {
                            let x = from.wrapping_add(2 * p);
                            let (a, b) = if v.is_inside {
                                (L::load(x), L::load(x.wrapping_add(L::N)))
                            } else {
                                let [first, second] = *masks.add(p);
                                (L::load_masked(x, first), L::load_masked(x.wrapping_add(L::N), second))
                            };
                            sum = L::fma(L::evens(a, b), L::splat(*w.add(2 * p)), sum);
                            if 2 * p + 1 < K {
                                sum = L::fma(L::odds(a, b), L::splat(*w.add(2 * p + 1)), sum);
                            }
                        }
                    }
                    let to = self.to.add(i * self.strided.columns + v.place);
                    L::store_masked(to, (&raw const v.end).cast::<L::M>().read(), L::in_order(sum));
                }
            }
        }
    }
}
