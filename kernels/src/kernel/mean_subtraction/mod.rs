//! A running mean subtracted.

use super::ops;
use crate::array::{Data, Output, Place, Walk};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::{Expr, Formula};
use crate::shape::Shape;
use crate::with_real;

/// How many batches it is with one more; a fraction of a batch is cut off.
fn next_count(t: &Expr) -> Expr {
    t.lt(0.0).select(t.ceil(), t.floor()) + 1.0
}

/// `y = x - mean`. The inputs are x, the running mean, and of how many batches it is.
pub struct MeanSubtraction {
    pub x: Shape,
    /// Axes that number the samples.
    pub lead: usize,
    /// Whether the batch moves the running mean before.
    pub update: bool,
}

impl MeanSubtraction {
    /// How many samples a batch's mean is over.
    pub fn rows(&self) -> usize {
        self.x.size_to(self.lead)
    }

    fn mean_size(&self) -> usize {
        self.x.size_from(self.lead)
    }

    /// The running mean with the batch in it: `mean + (batch mean - mean) / (t + 1)`.
    fn moved(&self, x: &View, mean: &Data, t: &Data) -> Result<Data> {
        let dtype = if mean.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let new = || Data::new_at(mean.place(), dtype, self.mean_size());
        let (sum, moved, over) = (new()?, new()?, 1.0 / self.rows() as f64);
        let mask: Vec<bool> = (0..self.x.ndim()).map(|axis| axis < self.lead).collect();
        ops::sum(x, &mask, &sum, Output::Write)?;
        let formula = Formula::new(3, |v| vec![Some(&v[0] + (&v[1] * over - &v[0]) / next_count(&v[2]))]);
        let given = [(mean, Walk::Dense), (&sum, Walk::Dense), (t, Walk::Splat)];
        ops::formula(&formula, &given, &moved, Output::Write)?;
        Ok(moved)
    }

    /// Writes what the batch has changed.
    fn keep(&self, run: &Run, moved: &Data, t: &Data) -> Result<()> {
        let n = moved.len();
        if let place @ Place::Gpu(_) = moved.place() {
            let next = Data::new_at(place, moved.dtype(), 1)?;
            let formula = Formula::new(1, |v| vec![Some(next_count(&v[0]))]);
            ops::formula(&formula, &[(t, Walk::Dense)], &next, Output::Write)?;
            ops::put(&run.input_to_update(1, place, n)?, moved, Output::Write)?;
            return ops::put(&run.whole_input_to_update(2, place, 1)?, &next, Output::Write);
        }
        with_real!(run.dtype, T => {
            run.update_input::<T>(1, n, |mean| mean.copy_from_slice(moved.as_slice()))?;
            run.update_whole_input(2, 1, |t| t[0] = t[0].saturating_add(1))
        })
    }
}

impl Call for MeanSubtraction {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if y[0].data.is_empty() {
            return Ok(());
        }
        // Run again, the mean has moved already.
        let moved = match self.update && !run.again {
            true => Some(self.moved(&x[0], &x[1].data, &x[2].data)?),
            false => None,
        };
        let mean = moved.as_ref().unwrap_or(&x[1].data);
        let ones = self.x.iter().enumerate().map(|(axis, &n)| if axis < self.lead { 1 } else { n });
        let walk = Walk::new(&ones.collect(), &self.x);
        let difference = Formula::new(2, |v| vec![Some(&v[0] - &v[1])]);
        ops::formula(&difference, &[(&x[0].data, Walk::Dense), (mean, walk)], &y[0].data, Output::Write)?;
        moved.as_ref().map_or(Ok(()), |moved| self.keep(run, moved, &x[2].data))
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        // Without an update the gradient is handed on, by the function's rule.
        (self.update && want[0]).then_some(Needs { x: 1 << 2, y: 0 })
    }

    /// `gx = gy (1 - 1 / (samples t))`
    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(t), Some(gy), Some(gx)) = (&x[2], &gy[0], &gx[0]) else { return Ok(()) };
        let factor = Data::new_at(gx.data.place(), gx.data.dtype(), 1)?;
        let samples = self.rows() as f64;
        let rest = Formula::new(1, |v| vec![Some(1.0 - 1.0 / (&v[0] * samples))]);
        ops::formula(&rest, &[(&t.data, Walk::Dense)], &factor, Output::Write)?;
        let scaled = Formula::new(2, |v| vec![Some(&v[0] * &v[1])]);
        ops::formula(&scaled, &[(&gy.data, Walk::Dense), (&factor, Walk::Splat)], &gx.data, gx.output)
    }
}
