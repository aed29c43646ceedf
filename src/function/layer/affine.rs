//! `affine`: the fully connected layer.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::affine as kernel;
use nnrs_kernels::shape::Shape;

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

impl Function for Affine {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (input, w) = (&x[0], &x[1]);
        let base = if self.base_axis < 0 { self.base_axis + input.ndim() as i64 } else { self.base_axis };
        if !(0..input.ndim() as i64).contains(&base) {
            return Err(Error::arg("base_axis", format!("an axis of x {input}")).actual(self.base_axis));
        }
        let base = base as usize;
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
        let y: Shape = input[..base].iter().chain(&w[1..]).copied().collect();
        let call = kernel::Affine { base_axis: base, m: input.size_to(base), k, n: w.size_from(1) };
        Ok(Resolved::one(y, call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let s = g.call::<kernel::Affine>();
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
