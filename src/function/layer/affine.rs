//! `affine`: the fully connected layer.

use crate::function::kernels::{self, Matrix};
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Fully connected layer, `y = x A + b`: the axes of `x` from `base_axis` on are taken as one vector.
    Affine affine in Layer, any_device
    inputs {
        x: "Input of shape (M_0, .., M_{B-1}, D_B, .., D_N), B = base_axis.",
        weight: "Weight of shape (D_B * .. * D_N, L_0, .., L_I).",
        bias [optional]: "Bias of shape (L_0, .., L_I).",
    }
    args { base_axis: i64 = 1, "First axis that belongs to the vector; may count from the end." }
    outputs { y: "Output of shape (M_0, .., M_{B-1}, L_0, .., L_I)." }
}

/// Rows, inner and columns of the product.
struct Sizes {
    m: usize,
    k: usize,
    n: usize,
}

impl Affine {
    fn base(&self, x: &Shape) -> Result<usize> {
        let n = x.ndim() as i64;
        let base = if self.base_axis < 0 { self.base_axis + n } else { self.base_axis };
        match (0..n).contains(&base) {
            true => Ok(base as usize),
            false => Err(Error::arg("base_axis", format!("an axis of x {x}")).actual(self.base_axis)),
        }
    }

    fn sizes(&self, x: &Shape, w: &Shape) -> Result<Sizes> {
        let base = self.base(x)?;
        Ok(Sizes { m: x.size_to(base), k: x.size_from(base), n: w.size_from(1) })
    }
}

impl Function for Affine {
    fn multiplications(&self, x: &[Shape]) -> f64 {
        x[0].size() as f64 * (x[1].size() / x[1][0].max(1)) as f64
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let (input, w) = (&x[0], &x[1]);
        let base = self.base(input)?;
        let k = input.size_from(base);
        if w.ndim() < 2 {
            return Err(Error::shape("weight", "2 or more axes").actual(w).hint("shape (inputs, outputs)"));
        }
        if w[0] != k {
            return Err(Error::shape("weight", format!("{k} rows, the size of x {input} from axis {base} on"))
                .actual(format!("shape {w}"))
                .hint("the first axis of the weight must be the number of inputs; see base_axis"));
        }
        if let Some(b) = x.get(2).filter(|b| ***b != w[1..]) {
            return Err(Error::shape("bias", format!("shape {}", Shape::from(&w[1..]))).actual(b));
        }
        Ok(smallvec![input[..base].iter().chain(&w[1..]).copied().collect()])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let s = self.sizes(x[0].shape, x[1].shape)?;
        let y = &y[0].data;
        let output = match x.get(2) {
            Some(b) => {
                kernels::broadcast(&b.data, &Shape::from([s.n]), y, &Shape::from([s.m, s.n]), Output::Write)?;
                Output::Accumulate
            }
            None => Output::Write,
        };
        kernels::matmul(1, Matrix::new(&x[0].data, s.m, s.k), Matrix::new(&x[1].data, s.k, s.n), y, output)
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        Some(Needs { x: (want[0] as u32) << 1 | want[1] as u32, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let Some(gy) = &gy[0] else { return Ok(()) };
        let s = self.sizes(run.shape(0), run.shape(1))?;
        let g = Matrix::new(&gy.data, s.m, s.n);
        if let (Some(gx), Some(w)) = (&gx[0], &x[1]) {
            kernels::matmul(1, g, Matrix::new(&w.data, s.k, s.n).t(), &gx.data, gx.output)?;
        }
        if let (Some(gw), Some(x)) = (&gx[1], &x[0]) {
            kernels::matmul(1, Matrix::new(&x.data, s.m, s.k).t(), g, &gw.data, gw.output)?;
        }
        if let Some(Some(gb)) = gx.get(2) {
            kernels::sum(&gy.data, &Shape::from([s.m, s.n]), &[true, false], &gb.data, gb.output)?;
        }
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let s = self.sizes(&x.shape(), &w.shape())?;
        let flat = |v: &Variable, a: usize, b: usize| {
            f::reshape(v, f::Reshape { shape: vec![a as i64, b as i64], inplace: true })
        };
        let back = |v: Variable, like: &Variable| f::reshape(&v, f::Reshape::to(&like.shape()));
        let gy2 = flat(gy, s.m, s.n)?;
        let product = |a: &Variable, b: &Variable, transpose_a, transpose_b| {
            f::batch_matmul(a, b, f::BatchMatmul { transpose_a, transpose_b })
        };
        let gx = g.want[0].then(|| back(product(&gy2, &flat(w, s.k, s.n)?, false, true)?, x)).transpose()?;
        let gw = g.want[1].then(|| back(product(&flat(x, s.m, s.k)?, &gy2, true, false)?, w)).transpose()?;
        let mut grads = vec![gx, gw];
        if let Some(b) = g.x.get(2) {
            let sum = |v: &Variable| f::sum(v, f::Sum { axis: Some(vec![0]), keepdims: false });
            grads.push(g.want[2].then(|| back(sum(&gy2)?, b)).transpose()?);
        }
        Ok(grads)
    }
}
