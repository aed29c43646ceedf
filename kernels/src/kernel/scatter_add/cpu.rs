//! On the host: neighbouring lines together, some columns of them at a time, so that what indices name stays in a cache.

use super::Scatter;
use crate::array::Output;
use crate::pool::tasks::{Shared, share};
use crate::simd::SimdReal;

/// Columns of a task.
const COLUMNS: usize = 64;

/// Where all elements of x1 have indices, and x0 has no others along the other axes: sizes before and behind the axis, and along it.
#[derive(Clone, Copy)]
pub(super) struct ScatterLines {
    outer: usize,
    inner: usize,
    /// Of x0, and of the indices.
    n: usize,
    picks: usize,
}

/// A task's part of the arrays: columns of one position before the axis.
struct ScatterColumns {
    /// Where they begin, in x0 and in the indices.
    x0: usize,
    x1: usize,
    width: usize,
}

impl ScatterLines {
    pub fn of(s: &Scatter) -> Option<ScatterLines> {
        let fits = |a: usize| a == s.axis || s.indices[a] == s.x0[a];
        let is_whole = s.indices == s.x1 && (0..s.x0.ndim()).all(fits);
        let (outer, inner) = (s.x0.size_to(s.axis), s.x0.size_from(s.axis + 1));
        is_whole.then(|| ScatterLines { outer, inner, n: s.x0[s.axis], picks: s.indices[s.axis] })
    }

    fn each(&self, f: impl Fn(ScatterColumns) + Sync) {
        let &ScatterLines { outer, inner, n, picks } = self;
        let blocks = inner.div_ceil(COLUMNS);
        share(outer * blocks, outer * inner * n.max(picks), |task| {
            let (o, first) = (task / blocks, task % blocks * COLUMNS);
            let (x0, x1) = (o * n * inner + first, o * picks * inner + first);
            f(ScatterColumns { x0, x1, width: COLUMNS.min(inner - first) });
        });
    }

    /// `y = x0`, and x1 added in the order along the axis. The indices have been checked.
    pub fn add<T: SimdReal>(&self, x0: &[T], indices: &[i64], x1: &[T], y: &mut [T]) {
        let (&ScatterLines { outer, inner, n, picks }, shared) = (self, Shared(y.as_mut_ptr()));
        let shared = &shared;
        if inner == 1 {
            return share(outer, outer * n.max(picks), move |o| {
                // SAFETY: a line of this task's own.
                let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(o * n), n) };
                y.copy_from_slice(&x0[o * n..][..n]);
                let each = indices[o * picks..][..picks].iter().zip(&x1[o * picks..][..picks]);
                each.for_each(|(&i, &v)| y[i as usize] += v);
            });
        }
        self.each(move |c| {
            for at in (0..n).map(|i| c.x0 + i * inner) {
                // SAFETY: columns of this task's own.
                unsafe { std::slice::from_raw_parts_mut(shared.0.add(at), c.width) }
                    .copy_from_slice(&x0[at..][..c.width]);
            }
            for at in (0..picks).map(|i| c.x1 + i * inner) {
                let each = indices[at..][..c.width].iter().zip(&x1[at..][..c.width]).enumerate();
                for (j, (&i, &v)) in each {
                    debug_assert!((i as usize) < n);
                    // SAFETY: as above; the index is one of the places along the axis.
                    unsafe { *shared.0.add(c.x0 + i as usize * inner + j) += v };
                }
            }
        });
    }

    /// Writes or adds the elements of x0 that indices name. The indices have been checked.
    pub fn pick<T: SimdReal>(&self, x0: &[T], indices: &[i64], y: &mut [T], output: Output) {
        let (&ScatterLines { outer, inner, n, picks }, shared) = (self, Shared(y.as_mut_ptr()));
        let shared = &shared;
        if inner == 1 {
            return share(outer, outer * n.max(picks), move |o| {
                // SAFETY: a line of this task's own.
                let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(o * picks), picks) };
                let x0 = &x0[o * n..][..n];
                for (y, &i) in y.iter_mut().zip(&indices[o * picks..][..picks]) {
                    let v = x0[i as usize];
                    *y = if output == Output::Write { v } else { *y + v };
                }
            });
        }
        self.each(move |c| {
            let x0 = &x0[c.x0..];
            for at in (0..picks).map(|i| c.x1 + i * inner) {
                // SAFETY: columns of this task's own.
                let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(at), c.width) };
                for (j, (y, &i)) in y.iter_mut().zip(&indices[at..][..c.width]).enumerate() {
                    let v = x0[i as usize * inner + j];
                    *y = if output == Output::Write { v } else { *y + v };
                }
            }
        });
    }
}
