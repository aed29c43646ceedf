//! `sink`: one root for several variables, so that one backward run starts from all of them.

use crate::array::{Data, Place};
use crate::error::{Error, Result};
use crate::function::{Function, Grad, GradMut, Needs, OnGpu, Output, Run, Shapes, View, ViewMut, kernels};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, functions as f};
use smallvec::smallvec;

function! {
    /// A number, 0, that depends on all inputs: `forward` and `backward` of it run the graphs behind all of them.
    Sink sink in Special
    inputs { x [variadic]: "N-D arrays; without `one_input_grad` as many arrays of gradients follow." }
    args { one_input_grad: bool = true, "Whether the gradient of each input is 1; else it is the array given with it." }
    outputs { y: "0, of shape ()." }
}

impl Sink {
    /// How many inputs are variables, and not gradients.
    fn count(&self, inputs: usize) -> usize {
        if self.one_input_grad { inputs } else { inputs / 2 }
    }
}

impl Function for Sink {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let n = self.count(x.len());
        match (0..x.len() - n).find(|&i| x[n + i] != x[i]) {
            Some(i) => Err(Error::shape("x", format!("a gradient of shape {}", x[i])).actual(&x[n + i])),
            None => Ok(smallvec![Shape::default()]),
        }
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Both
    }

    fn forward(&self, _run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        kernels::fill(&y[0].data, 0.0)
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let n = self.count(want.len());
        let given = (n..want.len()).fold(0, |mask, i| mask | 1u32 << i.min(31));
        Some(Needs { x: given, y: 0 })
    }

    fn backward(
        &self,
        _run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        _gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let n = self.count(gx.len());
        for (i, gx) in gx[..n].iter_mut().enumerate().filter_map(|(i, gx)| Some((i, gx.as_mut()?))) {
            match x.get(n + i).and_then(Option::as_ref) {
                None => put_ones(gx)?,
                Some(g) => kernels::put(&gx.data, &given(g, gx)?, gx.output)?,
            }
        }
        Ok(())
    }

    fn differentiable(&self, _i: usize) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let n = self.count(g.x.len());
        let one = |x: &Variable| {
            let shape = x.shape().iter().map(|&n| n as i64).collect();
            f::constant(f::Constant { val: 1.0, shape })
        };
        let part = |i: usize| if self.one_input_grad { one(&g.x[i]) } else { f::identity(&g.x[n + i]) };
        (0..g.x.len()).map(|i| (i < n && g.want[i]).then(|| part(i)).transpose()).collect()
    }
}

/// The gradient `g`, apart from the memory that is written.
fn given(g: &View, gx: &GradMut) -> Result<Data> {
    match g.data.place() {
        Place::Host if g.data.ptr() == gx.data.ptr() => g.data.converted(g.dtype()),
        _ => Ok(g.data.clone()),
    }
}

fn put_ones(gx: &GradMut) -> Result<()> {
    if gx.output == Output::Write {
        return kernels::fill(&gx.data, 1.0);
    }
    let one = Data::new_at(gx.data.place(), gx.data.dtype(), 1)?;
    kernels::fill(&one, 1.0)?;
    kernels::broadcast(&one, &Shape::default(), &gx.data, gx.shape, gx.output)
}
