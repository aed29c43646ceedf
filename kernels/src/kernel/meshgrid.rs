//! Vectors repeated along the axes of a grid.

use super::ops;
use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::shape::Shape;

/// Each input along an axis of its own, repeated along all others.
pub struct Meshgrid {
    /// The axis of each input.
    pub axes: Vec<usize>,
    /// The grid.
    pub y: Shape,
}

impl Meshgrid {
    /// The shape of an input as it broadcasts to the grid.
    fn line(&self, i: usize) -> Shape {
        (0..self.y.ndim()).map(|a| if a == self.axes[i] { self.y[a] } else { 1 }).collect()
    }
}

impl Call for Meshgrid {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let mut pairs = x.iter().zip(y).enumerate();
        pairs.try_for_each(|(i, (x, y))| ops::broadcast(&x.data, &self.line(i), &y.data, &self.y, Output::Write))
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        for (i, gx) in gx.iter().enumerate().filter_map(|(i, gx)| Some((i, gx.as_ref()?))) {
            match &gy[i] {
                Some(gy) => ops::sum_to(&gy.data, &self.y, &gx.data, &self.line(i), gx.output)?,
                None if gx.output == Output::Write => ops::fill(&gx.data, 0.0)?,
                None => {}
            }
        }
        Ok(())
    }
}
