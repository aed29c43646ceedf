//! Where numbers belong in sorted lines.

mod cuda;

use crate::array::Place;
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::Real;
use crate::error::Result;
use crate::pool::tasks;
use crate::with_real;

/// Numbers of a task.
const TASK: usize = 1 << 12;

/// How many elements of a line of `n` are less than each of `each` numbers; or not greater.
pub struct SearchSorted {
    pub n: usize,
    pub each: usize,
    pub right: bool,
}

/// NaN is the largest.
fn less<T: Real>(a: T, b: T) -> bool {
    a < b || (b.is_nan() && !a.is_nan())
}

impl Call for SearchSorted {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let &SearchSorted { n, each, right } = self;
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::searchsorted(self, &x[0].data, &x[1].data, &y[0].data);
        }
        with_real!(run.dtype, T => {
            let (lines, values) = (x[0].slice::<T>(), x[1].slice::<T>());
            tasks::parts(y[0].slice::<T>(), TASK, |task, y| {
                for (i, y) in y.iter_mut().enumerate().map(|(i, y)| (task * TASK + i, y)) {
                    let (line, v) = (&lines[i / each * n..][..n], values[i]);
                    let at = line.partition_point(|&a| if right { !less(v, a) } else { less(a, v) });
                    *y = at as T;
                }
            });
        });
        Ok(())
    }
}
