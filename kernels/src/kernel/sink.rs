//! A number that depends on many arrays.

use super::ops;
use crate::array::{Data, Output};
use crate::call::{Call, GradMut, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::shape::Shape;

/// 0; the gradients are 1.
pub struct Sink;

impl Call for Sink {
    fn forward(&self, _run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::fill(&y[0].data, 0.0)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gx, .. }: Gradients) -> Result<()> {
        gx.iter().flatten().try_for_each(put_ones)
    }
}

fn put_ones(gx: &GradMut) -> Result<()> {
    if gx.output == Output::Write {
        return ops::fill(&gx.data, 1.0);
    }
    let one = Data::new_at(gx.data.place(), gx.data.dtype(), 1)?;
    ops::fill(&one, 1.0)?;
    ops::broadcast(&one, &Shape::default(), &gx.data, gx.shape, gx.output)
}
