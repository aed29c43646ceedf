//! `sink`: one root for several variables, so that one backward run starts from all of them.

use crate::error::{Error, Result};
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, functions as f, with_real};
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

    fn forward(&self, run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        with_real!(run.dtype, T => y[0].slice::<T>().fill(0.0));
        Ok(())
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let n = self.count(want.len());
        let given = (n..want.len()).fold(0, |mask, i| mask | 1u32 << i.min(31));
        Some(Needs { x: given, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        _gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let n = self.count(gx.len());
        for (i, gx) in gx[..n].iter_mut().enumerate().filter_map(|(i, gx)| Some((i, gx.as_mut()?))) {
            let output = gx.output;
            match x.get(n + i).and_then(Option::as_ref) {
                None => with_real!(run.dtype, T => accumulate(gx.slice::<T>(), std::iter::repeat(1.0), output)),
                Some(g) => with_real!(run.dtype, T => {
                    let given = g.slice::<T>().to_vec(); // it may be the very memory that is written
                    accumulate(gx.slice::<T>(), given.into_iter(), output);
                }),
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

fn accumulate<T: Copy + std::ops::AddAssign>(y: &mut [T], values: impl Iterator<Item = T>, output: Output) {
    for (y, v) in y.iter_mut().zip(values) {
        match output {
            Output::Write => *y = v,
            Output::Accumulate => *y += v,
        }
    }
}
