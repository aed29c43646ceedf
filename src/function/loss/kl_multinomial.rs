//! `kl_multinomial`: how far one multinomial distribution is from another.

#![allow(non_snake_case)] // NNabla calls the output `D`.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::kl_multinomial as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Kullback-Leibler divergence of multinomial distributions, `D = sum p (log(p + e) - log(q + e))`, e = 1e-8.
    KLMultinomial kl_multinomial in Loss, forward_on_any_device
    inputs {
        p: "N-D array of probabilities: those of one distribution from base_axis on.",
        q: "Probabilities of the other ones, of p's shape."
    }
    args { base_axis: i64 = 1, "First axis of the probabilities; may count from the end." }
    outputs { D: "Array of shape p.shape[:base_axis] + (1,)." }
}

impl Function for KLMultinomial {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0] != x[1] {
            return Err(Error::shape("q", format!("shape {}, as p", x[0])).actual(&x[1]));
        }
        let axis = x[0].axis(self.base_axis, "base_axis")?;
        let y: Shape = x[0][..axis].iter().copied().chain([1]).collect();
        Ok(Resolved::one(y, kernel::KLMultinomial { shape: x[0].clone(), axis }))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (p, q, axis) = (&g.x[0], &g.x[1], g.call::<kernel::KLMultinomial>().axis);
        let shape = p.shape();
        let wide: Shape = shape.iter().enumerate().map(|(a, &n)| if a < axis { n } else { 1 }).collect();
        let gy = f::reshape(&g.gy[0], f::Reshape::to(&wide))?;
        let safe = |v: &Variable| f::add_scalar(v, f::AddScalar { val: kernel::EPSILON, inplace: false });
        let times = |v: &Variable| f::mul2(v, &gy, f::Mul2::default());
        let gp = || {
            let logs = f::sub2(&f::log(&safe(p)?)?, &f::log(&safe(q)?)?, f::Sub2::default())?;
            let share = f::div2(p, &safe(p)?, f::Div2::default())?;
            times(&f::add2(&logs, &share, f::Add2::default())?)
        };
        let gq = || {
            let ratio = f::div2(p, &safe(q)?, f::Div2::default())?;
            times(&f::mul_scalar(&ratio, f::MulScalar { val: -1.0, inplace: false })?)
        };
        Ok(vec![g.want[0].then(gp).transpose()?, g.want[1].then(gq).transpose()?])
    }
}
