//! `adaptive_separable_convolution`: at each place a kernel of its own, the product of a column and a row.

use crate::function;
use crate::function::array::List;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::adaptive_separable_convolution::{SeparablePart, SeparableProduct, SeparableSizes};
use nnrs_kernels::shape::Shape;

function! {
    /// Convolution of images with a kernel of its own at each place, the product of a column and a row (Niklaus et al., Video Frame
    /// Interpolation via Adaptive Separable Convolution, 2017).
    AdaptiveSeparableConvolution adaptive_separable_convolution in Layer, any_device
    inputs {
        x: "Images of shape (N, C, H, W).",
        vertical_kernel: "Columns of shape (N, Kv, H', W'), H' and W' from the result's sizes on to the images'.",
        horizontal_kernel: "Rows of shape (N, Kh, H', W'), likewise.",
    }
    args {}
    outputs { y: "Images of shape (N, C, H - Kv + 1, W - Kh + 1)." }
}

function! {
    /// The gradient of an input of `adaptive_separable_convolution`.
    AdaptiveSeparableGradient adaptive_separable_gradient in Special, any_device
    inputs { a: "The first of the others.", b: "The second.", gy: "Gradient of the result." }
    args {
        input: i64, "Number of the input.";
        shape: List, "Its shape."
    }
    outputs { gx: "Gradient of the input." }
}

const PARTS: [SeparablePart; 3] = [SeparablePart::Images, SeparablePart::Columns, SeparablePart::Rows];

/// The sizes of a convolution of images by columns and rows.
fn sizes(x: &Shape, v: &Shape, h: &Shape) -> Result<SeparableSizes> {
    if x.ndim() != 4 {
        return Err(Error::shape("x", "shape (N, C, H, W)").actual(x));
    }
    let input = [x[2], x[3]];
    for (k, name, axis) in [(v, "vertical_kernel", 0), (h, "horizontal_kernel", 1)] {
        if k.ndim() != 4 || k[0] != x[0] || k[1] == 0 || k[1] > input[axis] {
            let expected = format!("shape ({}, taps, H, W) with 1 to {} taps", x[0], input[axis]);
            return Err(Error::shape(name, expected).actual(k));
        }
    }
    let output = [input[0] - v[1] + 1, input[1] - h[1] + 1];
    for (k, name) in [(v, "vertical_kernel"), (h, "horizontal_kernel")] {
        if (0..2).any(|a| !(output[a]..=input[a]).contains(&k[2 + a])) {
            let [[low, left], [high, right]] = [output, input];
            let expected = format!("a height from {low} to {high} and a width from {left} to {right}");
            return Err(Error::shape(name, expected).actual(k));
        }
    }
    let (columns, rows) = ([v[2], v[3]], [h[2], h[3]]);
    Ok(SeparableSizes { batch: x[0], channels: x[1], input, output, taps: [v[1], h[1]], columns, rows })
}

fn gradient(x: [&Variable; 3], input: usize, like: &Variable) -> Result<Variable> {
    let shape = like.shape()[..].into();
    adaptive_separable_gradient(x[0], x[1], x[2], AdaptiveSeparableGradient { input: input as i64, shape })
}

impl Function for AdaptiveSeparableConvolution {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let sizes = sizes(&x[0], &x[1], &x[2])?;
        let y = Shape::from([sizes.batch, sizes.channels, sizes.output[0], sizes.output[1]]);
        Ok(Resolved::one(y.checked()?, SeparableProduct { sizes, part: SeparablePart::Result }))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, gy) = (&g.x, &g.gy[0]);
        let others = [[1, 2], [0, 2], [0, 1]];
        let of = |i: usize| gradient([&x[others[i][0]], &x[others[i][1]], gy], i, &x[i]);
        (0..3).map(|i| g.want[i].then(|| of(i)).transpose()).collect()
    }
}

impl AdaptiveSeparableGradient {
    fn number(&self) -> usize {
        self.input.clamp(0, 2) as usize
    }

    /// What images, columns and rows are, of which one is given last or first.
    fn in_order<'a, V>(&self, own: &'a V, others: [&'a V; 2]) -> [&'a V; 3] {
        let [a, b] = others;
        [[own, a, b], [a, own, b], [a, b, own]][self.number()]
    }
}

impl Function for AdaptiveSeparableGradient {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let shape: Shape = self.shape.iter().map(|&n| n.max(0) as usize).collect();
        let [images, v, h] = self.in_order(&shape, [&x[0], &x[1]]);
        let sizes = sizes(images, v, h)?;
        let y = Shape::from([sizes.batch, sizes.channels, sizes.output[0], sizes.output[1]]);
        if y != x[2] {
            return Err(Error::shape("gy", format!("shape {y}")).actual(&x[2]));
        }
        Ok(Resolved::one(shape.clone(), SeparableProduct { sizes, part: PARTS[self.number()] }))
    }

    /// `back`, the gradient of this gradient, takes the place of its input.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (others, gy, back) = ([&g.x[0], &g.x[1]], &g.x[2], &g.gy[0]);
        let all = self.in_order(back, others);
        let numbers = [[1, 2], [0, 2], [0, 1]][self.number()];
        let of = |k: usize| {
            let i = numbers[k];
            let [a, b] = [[1, 2], [0, 2], [0, 1]][i].map(|n| all[n]);
            gradient([a, b, gy], i, others[k])
        };
        let by_gy = || adaptive_separable_convolution(all[0], all[1], all[2]);
        Ok(vec![
            g.want[0].then(|| of(0)).transpose()?,
            g.want[1].then(|| of(1)).transpose()?,
            g.want[2].then(by_gy).transpose()?,
        ])
    }
}
