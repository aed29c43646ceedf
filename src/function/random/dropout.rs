//! `dropout`: elements are dropped at random. The mask is never stored: backward makes it again from the draw.

use crate::array::{Data, Place};
use crate::cpu::philox;
use crate::cuda;
use crate::error::{Error, Result};
use crate::function::{Function, Grad, GradMut, Needs, OnGpu, Output, Run, Shapes, View, ViewMut, call_one};
use crate::graph::Variable;
use crate::random::{Draw, LastDraw, Seed};
use crate::shape::Shape;
use crate::{function, with_real};
use smallvec::smallvec;

function! {
    /// Drops elements with probability p and divides the others by 1 - p (Srivastava et al., 2014).
    ///
    /// Each run drops other elements; its backward pass drops the same ones.
    Dropout dropout in Random
    inputs { x: "N-D array." }
    args {
        p: f64 = 0.5, "Probability of an element to be dropped, at least 0 and less than 1.";
        seed: Seed = Seed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "N-D array of x's shape." }
}

/// Drops elements of `x` on their way to `y`.
fn drop_out(run: &Run, draw: Draw, p: f64, y: &Data, x: &Data, output: Output) -> Result<()> {
    if let Place::Gpu(_) = y.place() {
        return cuda::random::dropout(draw, p, y, x, output);
    }
    let add = output == Output::Accumulate;
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
        let draw = self.seed.draw(run);
        drop_out(run, draw, self.p, &y[0].data, &x[0].data, Output::Write)
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Both
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
        let draw = *run.saved::<Draw>().ok_or_else(no_forward)?;
        drop_out(run, draw, self.p, &gx.data, &gy.data, gx.output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let again = DropoutAgain { p: self.p, draw: self.seed.last() };
        Ok(vec![Some(call_one(again, &[&g.gy[0], &g.y[0]])?)])
    }
}

fn no_forward() -> Error {
    Error::graph("backward of dropout before its forward").hint("run forward first: it draws what is dropped")
}

function! {
    /// Drops the elements that a dropout dropped when it last ran: its derivative.
    DropoutAgain dropout_again in Special
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
        let draw = self.draw.get().ok_or_else(no_forward)?;
        drop_out(run, draw, self.p, &y[0].data, &x[0].data, Output::Write)
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Forward
    }

    fn varies(&self) -> bool {
        true
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(call_one(self.clone(), &[&g.gy[0], &g.x[1]])?), None])
    }
}
