//! x where not negative, a slope times x elsewhere.

use super::ops;
use crate::array::{Data, Output};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::expr::Formula;
use crate::shape::Shape;
use crate::tile::Walk;

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

impl Call for PReLU {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
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
