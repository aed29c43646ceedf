//! x where not negative, a slope times x elsewhere.

use super::ops;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::expr::Formula;
use crate::pool::tasks;
use crate::shape::Shape;
use crate::simd::{self, Body, SimdReal, Vector};
use crate::tile::Walk;
use crate::with_real;

/// `y = max(x, 0) + w min(x, 0)`
pub struct PReLU {
    /// x's shape.
    pub shape: Shape,
    /// The slopes' shape as it broadcasts against x.
    pub slopes: Shape,
}

fn formula() -> Formula {
    Formula::new(2, |v| vec![Some(v[0].ge(0.0).select(&v[0], &v[1] * &v[0]))])
}

/// The gradient of x, from x, slopes and y's gradient.
pub fn x_gradient() -> Formula {
    Formula::new(3, |v| vec![Some(v[0].ge(0.0).select(&v[2], &v[1] * &v[2]))])
}

/// The slopes' gradient before the sum, from x and y's gradient.
pub fn slope_gradient() -> Formula {
    Formula::new(2, |v| vec![Some(v[0].lt(0.0).select(&v[1] * &v[0], 0.0))])
}

/// Neighbours with one slope, from which on they are a loop of their own.
const RUN: usize = 64;
/// Elements of a task.
const TASK: usize = 1 << 14;

/// Neighbours with the same slope.
struct SlopeRun<'a, T> {
    x: &'a [T],
    slope: T,
    y: tasks::Shared<T>,
}

impl<T: SimdReal> Body<T> for SlopeRun<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        // SAFETY: the caller's promise.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.0, self.x.len()) };
        y.iter_mut().zip(self.x).for_each(|(y, &x)| *y = if x >= T::ZERO { x } else { self.slope * x });
    }
}

/// On the host, for runs of `run` elements with one slope.
fn runs<T: SimdReal>(run: usize, x: &[T], slopes: &[T], y: &mut [T]) {
    tasks::parts(y, TASK, |task, y| {
        let (mut at, end) = (task * TASK, task * TASK + y.len());
        let mut y = y;
        while at < end {
            let to = (at / run * run + run).min(end);
            let (now, later) = y.split_at_mut(to - at);
            let slope = slopes[at / run % slopes.len()];
            let job = SlopeRun { x: &x[at..to], slope, y: tasks::Shared(now.as_mut_ptr()) };
            // SAFETY: `now` has as many elements as x, and is this task's.
            unsafe { simd::run::<T>(&job) };
            (at, y) = (to, later);
        }
    });
}

impl PReLU {
    /// How many neighbours have one slope.
    fn run(&self) -> usize {
        match self.slopes.is_empty() {
            true => self.shape.size(),
            false => self.shape.size_from(self.shape.ndim() - self.slopes.ndim() + 1),
        }
    }
}

impl Call for PReLU {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if y[0].data.place() == Place::Host && self.run() >= RUN {
            with_real!(run.dtype, T => runs::<T>(self.run(), x[0].slice(), x[1].slice(), y[0].slice()));
            return Ok(());
        }
        let w = (&x[1].data, Walk::new(&self.slopes, &self.shape));
        ops::formula(&formula(), &[(&x[0].data, Walk::Dense), w], &y[0].data, Output::Write)
    }

    /// The slopes' gradient, before it is summed.
    fn backward_scratch(&self, want: &[bool]) -> usize {
        if want[1] { self.shape.size() } else { 0 }
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        Some(Needs { x: if want[0] { 0b11 } else { 0b01 }, y: 0 })
    }

    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(x0), Some(gy)) = (&x[0], &gy[0]) else { return Ok(()) };
        let (data, g) = ((&x0.data, Walk::Dense), (&gy.data, Walk::Dense));
        if let (Some(gx), Some(w)) = (&gx[0], &x[1]) {
            let w = (&w.data, Walk::new(&self.slopes, &self.shape));
            ops::formula(&x_gradient(), &[data.clone(), w, g.clone()], &gx.data, gx.output)?;
        }
        // The slopes' gradient: products of all elements, then their sums.
        if let Some(gw) = &gx[1] {
            let parts = Data::new_at(x0.data.place(), run.dtype, self.shape.size())?;
            ops::formula(&slope_gradient(), &[data, g], &parts, Output::Write)?;
            ops::sum_to(&parts, &self.shape, &gw.data, &self.slopes, gw.output)?;
        }
        Ok(())
    }
}
