//! Many small planes: turned, they are one with as many channels last, and loops run across the planes.

use super::{NO_PLACES, Pooling, PoolingTask};
use crate::array::{Output, scratch};
use crate::kernel::short_rows::{FEW, are_short, each_group};
use crate::pool::tasks::SendPtr;
use crate::simd::SimdReal;

/// So few windows side by side hardly fill vectors along them; numbers of a plane whose sums are turned then, at most.
pub(super) const NARROW: usize = 8;
const PLANE: usize = 1 << 10;

impl Pooling {
    /// Whether planes are turned. Maxima whose places are kept have ways of their own.
    pub(super) fn is_turned(&self, task: PoolingTask) -> bool {
        let is_sum = matches!(task, PoolingTask::Sum(_) | PoolingTask::SumBackward(..));
        if self.inner != 1 || self.outer < FEW || !is_sum && !matches!(task, PoolingTask::MaxBackward(_)) {
            return false;
        }
        let is_narrow = is_sum && self.output()[2] <= NARROW && self.plane() <= PLANE;
        is_narrow || are_short(self.outer, self.plane())
    }

    /// Numbers of an input plane or of an output plane, of the larger one.
    fn plane(&self) -> usize {
        self.input_len().max(self.output_len()) / self.outer
    }

    fn turned(&self, planes: usize) -> Pooling {
        Pooling { outer: 1, inner: planes, ..self.clone() }
    }

    /// As `run`.
    pub(super) fn run_turned<T: SimdReal>(&self, from: &[T], to: &mut [T], x: &[T], task: PoolingTask) {
        let (task, output) = task.written();
        let (input, result) = (from.len() / self.outer, to.len() / self.outer);
        let to = SendPtr(to.as_mut_ptr());
        each_group(self.outer, self.plane(), |g| {
            let searched = if matches!(task, PoolingTask::MaxBackward(_)) {
                g.of_width(self.input_len() / self.outer)
            } else {
                g.of_width(0)
            };
            scratch::with(searched.size(), |turned_x| {
                searched.turn(&x[searched.range()], turned_x);
                let (from_at, to_at) = (g.of_width(input).range(), g.of_width(result).range());
                // SAFETY: each group has planes of its own.
                let to = unsafe { to.slice(to_at.start, to_at.len()) };
                g.through(&from[from_at], to, output, |from, to| {
                    self.turned(g.rows).run(from, to, turned_x, NO_PLACES, task);
                });
            });
        });
    }
}

impl PoolingTask {
    /// The task that writes, and what is to be done with its results.
    fn written(self) -> (PoolingTask, Output) {
        match self {
            PoolingTask::MaxBackward(o) => (PoolingTask::MaxBackward(Output::Write), o),
            PoolingTask::SumBackward(divisor, o) => (PoolingTask::SumBackward(divisor, Output::Write), o),
            forward => (forward, Output::Write),
        }
    }
}
