//! `interpolate`: the last axes of an array resampled to other sizes.

use super::resampled::{self, Line};
use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::resample::{Forward, Sampling, Way};
use nnrs_kernels::shape::Shape;

function! {
    /// Resamples the last axes to other sizes, by linear interpolation or with the nearest element. Element j of an axis of n that
    /// becomes m is at the place `j n / m`; with align_corners at `j (n - 1) / (m - 1)`, with half_pixel at `(j + 1/2) n / m - 1/2`.
    /// The nearest element is the one before that place.
    Interpolate interpolate in Signal, any_device
    inputs { x: "N-D array; its last axes (before the channels, if channel_last) are resampled." }
    args {
        output_size: Vec<i64>, "New sizes of the last axes.";
        mode: String, "'linear' or 'nearest'.";
        align_corners: bool = true, "Whether the first and the last elements stay what they are.";
        half_pixel: bool = false, "Whether places are those of the middles of elements.";
        half_pixel_for_nn: bool = false, "For 'nearest': the place is `(j + 1/2) n / m`, whatever else is said.";
        channel_last: bool = false, "Whether the channels are the last axis."
    }
    outputs { y: "N-D array of the new sizes." }
}

impl Interpolate {
    /// The first axis that is resampled.
    fn first(&self, x: &Shape) -> Result<usize> {
        let axes = self.output_size.len() + self.channel_last as usize;
        if self.output_size.is_empty() {
            return Err(Error::arg("output_size", "one number at least").actual("()"));
        }
        x.ndim().checked_sub(axes).ok_or_else(|| {
            let given = format!("{:?}", self.output_size);
            Error::shape("x", format!("{axes} axes at least for output_size {given}")).actual(x)
        })
    }

    fn way(&self) -> Result<Way> {
        match &*self.mode {
            "linear" => Ok(Way::Linear),
            "nearest" => Ok(Way::Floor),
            mode => Err(Error::arg("mode", "'linear' or 'nearest'").actual(format!("'{mode}'"))),
        }
    }

    fn line(&self, n: usize, m: usize) -> Line {
        let (old, new) = (n as f64, m as f64);
        match (self.mode == "nearest" && self.half_pixel_for_nn, self.align_corners, self.half_pixel) {
            (true, ..) => Line::new(2.0 * old, old, 2.0 * new),
            (_, true, _) => Line::corners(n, m),
            (_, _, true) if m > 1 => Line::middles(n, m),
            (_, _, true) => Line::START,
            _ => Line::new(old, 0.0, new),
        }
    }
}

impl Function for Interpolate {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if self.align_corners && self.half_pixel {
            let e = Error::arg("half_pixel", "False where align_corners is True");
            return Err(e.actual("True").hint("they are two answers to one question"));
        }
        let (first, way) = (self.first(&x[0])?, self.way()?);
        let sizes = resampled::sizes("output_size", &self.output_size)?;
        let sampling = |(n, m): (&usize, &usize)| -> Sampling { self.line(*n, *m).sampling(*n, *m, way) };
        let axes = x[0][first..].iter().zip(&sizes).map(sampling).collect();
        let (y, call) = resampled::resample(&x[0], first, axes, 0.0)?;
        Ok(Resolved::one(y, Forward(call)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        resampled::gradient(g, self.first(&g.x[0].shape())?)
    }
}
