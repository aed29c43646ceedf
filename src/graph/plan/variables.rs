//! Runs functions that work on whole variables ([`OnVariables`]): they are given stand-ins over the plan's arrays.

use super::backward::{Backward, Call, Target};
use super::build::PlanNode;
use crate::array::NdArray;
use crate::error::{Error, Result};
use crate::function::{OnVariables, Output};
use crate::graph::variable::{VarNode, VarRef, Variable};
use crate::shape::Shape;
use smallvec::SmallVec;

/// Variables over some arrays.
pub(crate) fn stand_ins<'a>(arrays: impl IntoIterator<Item = &'a NdArray>) -> Vec<Variable> {
    arrays.into_iter().map(|a| Variable::from_array(a.clone())).collect()
}

pub(super) fn forward(f: &dyn OnVariables, x: &[&NdArray], y: &[&NdArray]) -> Result<()> {
    let (xs, ys) = (stand_ins(x.iter().copied()), stand_ins(y.iter().copied()));
    let arrays: SmallVec<[(&NdArray, Shape); 4]> = x.iter().chain(y).map(|&a| (a, a.shape())).collect();
    let done = f.forward(&xs, &ys);
    settle(&arrays, xs.iter().chain(&ys).map(Variable::raw_data))?;
    done
}

/// After user code: arrays have their shapes again, and hold what was put in their place.
pub(crate) fn settle(arrays: &[(&NdArray, Shape)], now: impl Iterator<Item = NdArray>) -> Result<()> {
    let mut changed = None;
    for ((array, shape), now) in arrays.iter().zip(now) {
        let other = array.shape();
        if other != *shape {
            array.reset_shape(shape.clone(), true)?;
            changed = Some((shape.clone(), other));
        } else if !now.is(array) {
            array.copy_from(&now)?;
        }
    }
    let Some((shape, other)) = changed else { return Ok(()) };
    let e = Error::graph(format!("a function changed the shape of an array from {shape} to {other} while it ran"));
    Err(e.hint("shapes are decided by setup; forward and backward keep them"))
}

impl Backward {
    /// The variables that the plan keeps alive, as often as it has them.
    #[cfg(feature = "python")]
    pub(crate) fn owned(&self) -> impl Iterator<Item = &VarRef> {
        self.watch.owned().chain(self.vars.iter().flatten())
    }

    /// The gradient by a function over variables.
    pub(super) fn variables(&self, node: &PlanNode, c: &Call, f: &dyn OnVariables, seed: &NdArray) -> Result<()> {
        let (inputs, outputs) = (node.f.inputs(), node.f.outputs());
        let gy = |(&v, &arrives): (&u32, &bool)| match arrives {
            true => self.grad(v, seed),
            false => NdArray::new(self.slots[v as usize].shape.clone()),
        };
        let gx = |(&v, t): (&u32, &Option<Target>)| match t {
            Some(t) => self.grads[t.slot as usize].clone(),
            None => NdArray::new(self.slots[v as usize].shape.clone()),
        };
        let gx: Vec<NdArray> = node.x.iter().zip(&c.targets).map(gx).collect();
        let gy: Vec<NdArray> = node.y.iter().zip(&c.arrives).map(gy).collect();
        let want: Vec<bool> = c.targets.iter().map(Option::is_some).collect();
        let accumulate = self.accumulate(&c.targets);
        let x: Vec<Variable> = inputs.iter().zip(&gx).map(|(v, g)| stand_in(v, g)).collect();
        let y: Vec<Variable> = outputs.iter().zip(&gy).map(|(v, g)| stand_in(v, g)).collect();
        let shapes = |v: &u32| self.slots[*v as usize].shape.clone();
        let grads: Vec<(&NdArray, Shape)> = gx.iter().chain(&gy).zip(node.x.iter().chain(&node.y).map(shapes)).collect();
        let data: Vec<(&NdArray, Shape)> =
            node.x.iter().chain(&node.y).map(|v| (&self.slots[*v as usize].data, shapes(v))).collect();
        let done = f.backward(&x, &y, &want, &accumulate);
        settle(&data, data.iter().map(|(a, _)| (*a).clone()))?;
        settle(&grads, x.iter().chain(&y).map(Variable::grad))?;
        done
    }

    /// Which gradients are added to; where an input is given twice, its first part is written.
    fn accumulate(&self, targets: &[Option<Target>]) -> Vec<bool> {
        let slot = |t: &Option<Target>| t.map(|t| t.slot);
        let seen = |i: usize, t: &Option<Target>| targets[..i].iter().any(|other| t.is_some() && slot(other) == slot(t));
        let adds = |t: &Target| self.output(t) == Output::Accumulate;
        targets.iter().enumerate().map(|(i, t)| t.as_ref().is_some_and(adds) || seen(i, t)).collect()
    }
}

/// A variable over the data of `v` and the gradient `grad`. Data that was not kept is computed again when it is read.
fn stand_in(v: &VarRef, grad: &NdArray) -> Variable {
    Variable::handle(VarNode::stand_in(v, grad.clone()))
}
