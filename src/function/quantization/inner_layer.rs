//! A layer whose weight is quantized: what a function has of the layer that it is over, with inputs of its own before the bias.

use crate::function::{ArgValue, Call, Described, Function, Grad, Setup, Shapes};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use std::sync::Arc;

/// A layer over x, weight, maybe bias; the function has `extra` inputs after the weight.
pub(super) struct InnerLayer<L> {
    pub layer: L,
    pub extra: usize,
}

impl<L: Function> InnerLayer<L> {
    /// The layer's of the function's inputs.
    fn of<T: Clone>(&self, all: &[T]) -> Vec<T> {
        all[..2].iter().chain(all.get(2 + self.extra)).cloned().collect()
    }

    pub fn resolve(&self, x: &[Shape]) -> Result<(Shapes, Box<dyn Call>)> {
        let resolved = self.layer.resolve(&self.of(x))?;
        Ok((resolved.shapes.clone(), resolved.into_call()?))
    }

    /// The arguments of `f`, those that the layer has too as the layer uses them.
    pub fn used(&self, f: &impl Described, call: &dyn Call) -> Vec<(&'static str, ArgValue)> {
        let layer = self.layer.used(Some(call));
        let of = |name, own| layer.iter().find(|(n, _)| *n == name).map_or(own, |(_, v)| v.clone());
        f.arguments().into_iter().map(|(name, own)| (name, of(name, own))).collect()
    }

    /// The gradients of the function's inputs, where the layer works with `weight`, which hands its gradient on.
    pub fn grad(&self, g: &Grad, weight: Variable) -> Result<Vec<Option<Variable>>> {
        let mut x = self.of(&g.x);
        x[1] = weight;
        let shapes: Vec<Shape> = x.iter().map(Variable::shape).collect();
        let setup = Arc::new(Setup::new(0, shapes.iter().cloned().collect(), self.layer.resolve(&shapes)?));
        let (y, gy, want) = (g.y.clone(), g.gy.clone(), self.of(&g.want));
        let mut grads = self.layer.grad(&Grad { x, y, gy, want, saved: None, context: g.context.clone(), setup })?;
        grads.splice(2..2, vec![None; self.extra]);
        Ok(grads)
    }
}

/// Input 2 has the shape of the weight.
pub(super) fn check_like_weight(x: &[Shape], name: &str) -> Result<()> {
    match x[1] == x[2] {
        true => Ok(()),
        false => Err(Error::shape(name, format!("shape {} as of weight", x[1])).actual(&x[2])),
    }
}
