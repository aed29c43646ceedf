//! `roi_align`: means of images over the bins of boxes.

use crate::function;
use crate::function::array::List;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, with_defaults};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::roi_align as kernel;
use nnrs_kernels::shape::Shape;

/// Bins of an axis at most, and samples of a bin.
const MOST: i64 = 1 << 16;

function! {
    /// Boxes of images, cut into bins of which each is the mean of samples of the image, interpolated between its elements (He et
    /// al., Mask R-CNN, 2017). Elements have their middles at 1/2; beyond the image by more than half an element all is 0.
    RoiAlign roi_align in Layer, any_device
    inputs {
        input: "Images of shape (N, C, H, W); (N, H, W, C) if channel_last.",
        boxes: "Boxes of shape (K, 5), as (number of the image, x1, y1, x2, y2). They get no gradient.",
    }
    args {
        output_size: List, "Bins of a box: rows and columns.";
        spatial_scale: Vec<f64> = vec![1.0, 1.0], "Elements that a unit of the boxes is: vertically and horizontally.";
        sampling_ratio: Option<i64> = None, "Samples of a bin along an axis; None, or 0 or less: as many as it has elements.";
        channel_last: Option<bool> = None, "Whether the channels are the last axis; None: no."
    }
    outputs { y: "Means of shape (K, C, rows, columns); (K, rows, columns, C) if channel_last." }
}

function! {
    /// Adds the gradients of bins to the elements that they are means of: the derivative of `roi_align`.
    RoiSpread roi_spread in Special, any_device
    inputs { gy: "Gradient of the bins.", boxes: "As of `roi_align`." }
    args {
        output_size: List, "As of `roi_align`.";
        spatial_scale: Vec<f64>, "As of `roi_align`.";
        sampling_ratio: Option<i64>, "As of `roi_align`.";
        channel_last: Option<bool>, "As of `roi_align`.";
        shape: List, "Shape of the images."
    }
    outputs { gx: "Gradient of the images." }
}

impl RoiAlign {
    /// All sizes, and the shape of the bins.
    fn sizes(&self, name: &str, x: &Shape, boxes: &Shape) -> Result<(kernel::RoiAlign, Shape)> {
        let last = self.channel_last.unwrap_or(false);
        if x.ndim() != 4 || x[1..].iter().zip([last, true, !last]).any(|(&n, spatial)| spatial && n == 0) {
            return Err(Error::shape(name, "shape (N, C, H, W) with elements").actual(x));
        }
        if boxes.ndim() != 2 || boxes[1] != 5 {
            return Err(Error::shape("boxes", "shape (K, 5)").actual(boxes));
        }
        let bins = match *self.output_size.0.as_slice() {
            [h, w] if (1..=MOST).contains(&h) && (1..=MOST).contains(&w) => [h as usize, w as usize],
            _ => {
                let expected = format!("two numbers from 1 to {MOST}");
                return Err(Error::arg("output_size", expected).actual(format!("{:?}", self.output_size.0)));
            }
        };
        let scale = match *self.spatial_scale.as_slice() {
            [y, x] if y.is_finite() && x.is_finite() => [y, x],
            _ => return Err(Error::arg("spatial_scale", "two numbers").actual(format!("{:?}", self.spatial_scale))),
        };
        let samples = self.sampling_ratio.unwrap_or(-1);
        if samples > MOST {
            return Err(Error::arg("sampling_ratio", format!("a number up to {MOST}")).actual(samples));
        }
        let (channels, size) = if last { (x[3], [x[1], x[2]]) } else { (x[1], [x[2], x[3]]) };
        let y = if last { [boxes[0], bins[0], bins[1], channels] } else { [boxes[0], channels, bins[0], bins[1]] };
        let call = kernel::RoiAlign {
            images: x[0],
            channels,
            size,
            channel_last: last,
            boxes: boxes[0],
            bins,
            scale,
            samples: samples.max(0) as usize,
        };
        Ok((call, Shape::from(&y[..]).checked()?))
    }
}

impl Function for RoiAlign {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (call, y) = self.sizes("input", &x[0], &x[1])?;
        Ok(Resolved::one(y, kernel::RoiGather(call)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        with_defaults(self, &[("sampling_ratio", ArgValue::Int(-1)), ("channel_last", ArgValue::Bool(false))])
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let RoiAlign { output_size, spatial_scale, sampling_ratio, channel_last } = self.clone();
        let shape = g.x[0].shape()[..].into();
        let back = RoiSpread { output_size, spatial_scale, sampling_ratio, channel_last, shape };
        Ok(vec![Some(roi_spread(&g.gy[0], &g.x[1], back)?), None])
    }
}

impl RoiSpread {
    fn align(&self) -> RoiAlign {
        let RoiSpread { output_size, spatial_scale, sampling_ratio, channel_last, .. } = self.clone();
        RoiAlign { output_size, spatial_scale, sampling_ratio, channel_last }
    }
}

impl Function for RoiSpread {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let shape: Shape = self.shape.iter().map(|&n| n.max(0) as usize).collect();
        let (call, y) = self.align().sizes("shape", &shape, &x[1])?;
        match y == x[0] {
            true => Ok(Resolved::one(shape, kernel::RoiScatter(call))),
            false => Err(Error::shape("gy", format!("shape {y}")).actual(&x[0])),
        }
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(roi_align(&g.gy[0], &g.x[1], self.align())?), None])
    }
}
