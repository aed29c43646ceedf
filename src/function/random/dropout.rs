//! `dropout`: elements are dropped at random. The mask is never stored: backward makes it again from the draw.

use super::seed::Numbered;
use crate::function;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut, call_one};
use crate::graph::Variable;
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::philox;
use nnrs_kernels::cuda;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::random::{LastDraw, Numbers, Seed, Source};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Drops elements with probability p and divides the others by 1 - p (Srivastava et al., 2014).
    ///
    /// Each run drops other elements; its backward pass drops the same ones.
    Dropout dropout in Random, any_device
    inputs { x: "N-D array." }
    args {
        p: f64 = 0.5, "Probability of an element to be dropped, at least 0 and less than 1.";
        seed: Seed = Seed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "N-D array of x's shape." }
}

/// Drops elements of `x` on their way to `y`.
fn drop_out(run: &Run, numbers: Numbers, p: f64, y: &Data, x: &Data, output: Output) -> Result<()> {
    if let Place::Gpu(_) = y.place() {
        return cuda::random::dropout(numbers, p, y, x, output);
    }
    let (draw, add) = (numbers.known()?, output == Output::Accumulate);
    with_real!(run.dtype, T => philox::dropout(draw, p, y.as_mut_slice::<T>(), x.as_slice(), add));
    Ok(())
}

impl Function for Dropout {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        // 1 - p must not vanish in the narrowest type that computes.
        if !(0.0..1.0).contains(&self.p) || self.p as f32 >= 1.0 {
            return Err(Error::arg("p", "a number of at least 0 and less than 1").actual(self.p));
        }
        Ok(smallvec![x[0].clone()])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        drop_out(run, self.seed.numbers(run)?, self.p, &y[0].data, &x[0].data, Output::Write)
    }

    fn has_state(&self) -> bool {
        true
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        drop_out(run, Source::Saved.numbers(run)?, self.p, &gx.data, &gy.data, gx.output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let again = DropoutAgain { p: self.p, draw: self.seed.last() };
        Ok(vec![Some(call_one(again, &[&g.gy[0], &g.y[0]])?)])
    }
}

function! {
    /// Drops the elements that a dropout dropped when it last ran: its derivative.
    DropoutAgain dropout_again in Special, forward_on_any_device
    inputs { x: "N-D array.", after: "The dropout's output: it runs first." }
    args {
        p: f64 = 0.5, "As of `dropout`.";
        draw: LastDraw, "What was dropped."
    }
    outputs { y: "N-D array of x's shape." }
}

impl Function for DropoutAgain {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![x[0].clone()])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        drop_out(run, Source::Last(self.draw.clone()).numbers(run)?, self.p, &y[0].data, &x[0].data, Output::Write)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(call_one(self.clone(), &[&g.gy[0], &g.x[1]])?), None])
    }
}
