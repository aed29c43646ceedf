//! Noise of a given norm, and the gradient that it keeps.

use super::norm_normalization::NormNormalization;
use super::ops;
use crate::array::{Data, Output, Place, Walk};
use crate::call::{Call, Run, View, ViewMut};
use crate::error::Result;
use crate::expr::Formula;
use crate::with_real;

/// The first input over its norms.
pub struct VatNoise(pub NormNormalization);

impl Call for VatNoise {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.forward(run, &x[..1], y)
    }
}

/// Writes `eps` times the first input into the second one, and gives zeros.
pub struct KeepGradient {
    pub eps: f64,
}

impl Call for KeepGradient {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (gy, y) = (&x[0].data, &y[0].data);
        if run.again {
            return ops::fill(y, 0.0);
        }
        let times = Formula::new(1, |v| vec![Some(&v[0] * self.eps)]);
        let scaled = Data::new_at(y.place(), y.dtype(), gy.len())?;
        ops::formula(&times, &[(gy, Walk::Dense)], &scaled, Output::Write)?;
        match y.place() {
            Place::Gpu(_) => ops::put(&run.input_to_update(1, y.place(), gy.len())?, &scaled, Output::Write)?,
            Place::Host => with_real!(run.dtype, T => {
                run.update_input::<T>(1, gy.len(), |w| w.copy_from_slice(scaled.as_slice()))?
            }),
        }
        ops::fill(y, 0.0)
    }
}
