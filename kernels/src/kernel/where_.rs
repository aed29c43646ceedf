//! One of two arrays, as a condition says.

use super::ops;
use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::expr::{Expr, Formula};
use crate::shape::Shape;
use crate::tile::Walk;

/// The second input where the first one, the condition, is not 0; the third elsewhere.
pub struct Where {
    /// The condition's shape as it broadcasts.
    pub condition: Shape,
    /// The others' shape.
    pub shape: Shape,
}

impl Call for Where {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let formula = Formula::new(3, |v| vec![Some(v[0].select(&v[1], &v[2]))]);
        let c = (&x[0].data, Walk::new(&self.condition, &self.shape));
        let inputs = [c, (&x[1].data, Walk::Dense), (&x[2].data, Walk::Dense)];
        ops::formula(&formula, &inputs, &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 1, y: 0 })
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(c), Some(gy)) = (&x[0], &gy[0]) else { return Ok(()) };
        for (i, gx) in gx.iter().enumerate() {
            let Some(gx) = gx else { continue };
            let part = |c: &Expr, g: &Expr| if i == 1 { c.select(g, 0.0) } else { c.select(c.constant(0.0), g) };
            let formula = Formula::new(2, |v| vec![Some(part(&v[0], &v[1]))]);
            let c = (&c.data, Walk::new(&self.condition, &self.shape));
            ops::formula(&formula, &[c, (&gy.data, Walk::Dense)], &gx.data, gx.output)?;
        }
        Ok(())
    }
}
