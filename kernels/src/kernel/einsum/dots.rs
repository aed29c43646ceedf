//! Sums of products of neighbours.

use crate::array::scratch::Scratch;
use crate::kernel::vector_sums::{self, VectorAccumulator};
use crate::pool::tasks;
use crate::simd::SimdReal;
use crate::simd::lanes::{Lanes, WithLanes, enter};

/// Elements of both arrays that a task goes over.
const PART: usize = 1 << 14;
/// Products that are added up before their sum goes to the total: keeps the rounding error small.
const BLOCK: usize = 1 << 10;

/// For each number of y the sum of `n` products.
pub(super) fn dots<T: SimdReal>(a: &[T], b: &[T], n: usize, y: &mut [T]) {
    if n <= PART {
        let rows = PART / n.max(1);
        return tasks::parts(y, rows, |task, y| {
            let at = task * rows * n..(task * rows + y.len()) * n;
            // SAFETY: nothing but slices.
            unsafe { enter(Dots { a: &a[at.clone()], b: &b[at], n, y }) };
        });
    }
    let parts = n.div_ceil(PART);
    let mut sums = Scratch::filled(y.len() * parts, T::ZERO);
    tasks::parts(&mut sums, 1, |task, sum| {
        let (first, row) = (task % parts * PART, task / parts * n);
        let at = row + first..row + n.min(first + PART);
        // SAFETY: as above.
        unsafe { enter(Dots { a: &a[at.clone()], b: &b[at.clone()], n: at.len(), y: sum }) };
    });
    for (y, sums) in y.iter_mut().zip(sums.chunks_exact(parts)) {
        *y = T::from_f64(sums.iter().map(|v| v.to_f64()).sum());
    }
}

/// Some sums of products of neighbours.
struct Dots<'a, T> {
    a: &'a [T],
    b: &'a [T],
    n: usize,
    y: &'a mut [T],
}

impl<T: SimdReal> WithLanes<T> for Dots<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        for (i, y) in self.y.iter_mut().enumerate() {
            let (a, b) = (&self.a[i * self.n..][..self.n], &self.b[i * self.n..][..self.n]);
            let mut total = 0.0;
            for from in (0..self.n).step_by(BLOCK) {
                let at = from..self.n.min(from + BLOCK);
                // SAFETY: inside `enter`.
                unsafe {
                    let mut sum = VectorAccumulator::new::<T, L>();
                    vector_sums::dot::<T, L>(&a[at.clone()], &b[at], &mut sum);
                    total += sum.total::<T, L>().to_f64();
                }
            }
            *y = T::from_f64(total);
        }
    }
}
