//! Triangles of matrices, and matrices with ones on a diagonal.

mod cuda;

use super::ops;
use crate::array::scratch::Scratch;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::moves::Moves;
use crate::pool::tasks;
use crate::simd::{self, SimdReal};
use crate::with_real;

/// The triangles of matrices that end with diagonal `k`.
pub struct Trilu {
    pub rows: usize,
    pub columns: usize,
    pub k: i64,
    pub upper: bool,
}

/// Elements of a task.
const TASK: usize = 1 << 16;
/// Rows, and columns, of small matrices at most; elements of a mask over these, at least.
const NARROW: usize = 32;
const PERIOD: usize = 1 << 10;

impl Trilu {
    /// The columns of row `i` that stay.
    fn kept(&self, i: usize) -> std::ops::Range<usize> {
        let place = |at: i64| at.clamp(0, self.columns as i64) as usize;
        let diagonal = (i as i64).saturating_add(self.k);
        if self.upper { place(diagonal)..self.columns } else { 0..place(diagonal.saturating_add(1)) }
    }

    fn triangles<T: SimdReal>(&self, x: &[T], y: &mut [T], output: Output) {
        let n = self.columns;
        if n <= NARROW && self.rows <= NARROW && y.len() >= PERIOD {
            return self.small_triangles(x, y, output);
        }
        let rows = (TASK / n.max(1)).max(1);
        tasks::parts(y, rows * n, |task, y| {
            for (r, y) in y.chunks_mut(n).enumerate().map(|(r, y)| (task * rows + r, y)) {
                let (x, kept) = (&x[r * n..][..n], self.kept(r % self.rows));
                match output {
                    Output::Accumulate => simd::add_assign(&mut y[kept.clone()], &x[kept]),
                    Output::Write => {
                        y[..kept.start].fill(T::ZERO);
                        y[kept.clone()].copy_from_slice(&x[kept.clone()]);
                        y[kept.end..].fill(T::ZERO);
                    }
                }
            }
        });
    }

    /// Of matrices whose rows are too short for copies: a mask over many of them.
    fn small_triangles<T: SimdReal>(&self, x: &[T], y: &mut [T], output: Output) {
        let (n, size) = (self.columns, self.rows * self.columns);
        let one = |i: usize| if self.kept(i / n % self.rows).contains(&(i % n)) { T::ONE } else { T::ZERO };
        let kept = Scratch::each(PERIOD.next_multiple_of(size), one);
        let part = kept.len() * (TASK / kept.len());
        tasks::parts(y, part, |task, y| {
            let x = &x[task * part..][..y.len()];
            for (x, y) in x.chunks(kept.len()).zip(y.chunks_mut(kept.len())) {
                match output {
                    Output::Write => write_kept(x, y, &kept),
                    Output::Accumulate => add_kept(x, y, &kept),
                }
            }
        });
    }

    fn run(&self, x: &Data, y: &Data, output: Output) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        if let Place::Gpu(_) = y.place() {
            return cuda::trilu(self, x, y, output);
        }
        with_real!(y.dtype(), T => self.triangles(x.as_slice::<T>(), y.as_mut_slice(), output));
        Ok(())
    }
}

fn write_kept<T: SimdReal>(x: &[T], y: &mut [T], kept: &[T]) {
    for ((y, &x), &kept) in y.iter_mut().zip(x).zip(kept) {
        *y = if kept == T::ZERO { T::ZERO } else { x };
    }
}

fn add_kept<T: SimdReal>(x: &[T], y: &mut [T], kept: &[T]) {
    for ((y, &x), &kept) in y.iter_mut().zip(x).zip(kept) {
        *y = if kept == T::ZERO { *y } else { *y + x };
    }
}

impl Call for Trilu {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.run(&x[0].data, &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        self.run(&gy.data, &gx.data, gx.output)
    }
}

/// Ones on diagonal `k`.
pub struct Eye {
    pub rows: usize,
    pub columns: usize,
    pub k: i64,
}

impl Eye {
    /// Where the diagonal begins, and its length.
    fn diagonal(&self) -> (usize, usize) {
        let (down, right) = ((-self.k.max(-i64::MAX)).max(0) as usize, self.k.max(0) as usize);
        let length = self.rows.saturating_sub(down).min(self.columns.saturating_sub(right));
        (if length > 0 { down * self.columns + right } else { 0 }, length)
    }
}

impl Eye {
    /// Ones go to rows while these are still in the cache.
    fn matrix<T: SimdReal>(&self, y: &mut [T]) {
        let (first, length) = self.diagonal();
        let (next, after) = (self.columns + 1, first + length * (self.columns + 1));
        tasks::parts(y, TASK, |task, y| {
            y.fill(T::ZERO);
            let from = task * TASK;
            // The first of the diagonal from here on.
            let one = first + from.saturating_sub(first).div_ceil(next) * next;
            let end = after.min(from + y.len());
            (one..end).step_by(next).for_each(|i| y[i - from] = T::ONE);
        });
    }
}

impl Call for Eye {
    fn forward(&self, _run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (y, (first, length)) = (&y[0].data, self.diagonal());
        if let Place::Host = y.place() {
            with_real!(y.dtype(), T => self.matrix(y.as_mut_slice::<T>()));
            return Ok(());
        }
        ops::fill(y, 0.0)?;
        if length == 0 {
            return Ok(());
        }
        let one = Data::new_at(y.place(), y.dtype(), 1)?;
        ops::fill(&one, 1.0)?;
        ops::moves(Moves::new(first, 0).axis(length, self.columns as isize + 1, 0), y, &one, Output::Write)
    }
}
