//! Runs functions that work on whole variables ([`OnVariables`]): they are given stand-ins over the plan's arrays.

use super::backward::{Backward, Call, How, Target};
use super::build::PlanNode;
use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::OnVariables;
use crate::graph::variable::{VarNode, VarRef, Variable};
use crate::shape::Shape;
use smallvec::SmallVec;

/// Variables over some arrays.
pub(crate) fn stand_ins<'a>(arrays: impl IntoIterator<Item = &'a NdArray>) -> Vec<Variable> {
    arrays.into_iter().map(|a| Variable::from_array(a.clone())).collect()
}

pub(super) fn forward(f: &dyn OnVariables, x: &[&NdArray], y: &[&NdArray], dtype: DType) -> Result<()> {
    let (xs, ys) = (stand_ins(x.iter().copied()), stand_ins(y.iter().copied()));
    let arrays: SmallVec<[(&NdArray, Shape); 4]> = x.iter().chain(y).map(|&a| (a, a.shape())).collect();
    let done = f.forward(&xs, &ys);
    settle(&arrays, xs.iter().chain(&ys).map(Variable::raw_data))?;
    done?;
    y.iter().try_for_each(|y| in_type(y, dtype))
}

/// Real numbers in the type of the function's context, whatever user code wrote; whole numbers stay.
fn in_type(a: &NdArray, dtype: DType) -> Result<()> {
    let now = a.dtype();
    if now == dtype || !now.is_float() || a.storage().constant().is_some() { Ok(()) } else { a.cast(dtype) }
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
        let accumulate = self.accumulate(&c.targets)?;
        let x: Vec<Variable> = inputs.iter().zip(&gx).map(|(v, g)| stand_in(v, g)).collect();
        let y: Vec<Variable> = outputs.iter().zip(&gy).map(|(v, g)| stand_in(v, g)).collect();
        let shapes = |v: &u32| self.slots[*v as usize].shape.clone();
        let grads: Vec<(&NdArray, Shape)> =
            gx.iter().chain(&gy).zip(node.x.iter().chain(&node.y).map(shapes)).collect();
        let data: Vec<(&NdArray, Shape)> =
            node.x.iter().chain(&node.y).map(|v| (&self.slots[*v as usize].data, shapes(v))).collect();
        let done = f.backward(&x, &y, &want, &accumulate);
        settle(&data, data.iter().map(|(a, _)| (*a).clone()))?;
        settle(&grads, x.iter().chain(&y).map(Variable::grad))?;
        done?;
        let written = gx.iter().zip(&want).filter(|(_, want)| **want);
        written.map(|(g, _)| in_type(g, node.f.context.dtype())).collect()
    }

    /// Which gradients are added to, as NNabla says it: those of leaves unless they are zeroed, others after their first
    /// part, and those of an input that is given several times (user code may write them in any order).
    fn accumulate(&self, targets: &[Option<Target>]) -> Result<Vec<bool>> {
        let given = |slot: u32| targets.iter().flatten().filter(|t| t.slot == slot).count();
        let adds = |t: &Target| match t.how {
            How::Leaf => !self.grads[t.slot as usize].storage().is_zero(),
            How::Write => false,
            How::Add => true,
        };
        let mut list: Vec<bool> = targets.iter().map(|t| t.as_ref().is_some_and(adds)).collect();
        for (i, t) in targets.iter().enumerate() {
            let Some(t) = t.filter(|t| given(t.slot) > 1) else { continue };
            if !list[i] {
                self.grads[t.slot as usize].zero()?;
            }
            targets
                .iter()
                .zip(&mut list)
                .filter(|(other, _)| other.is_some_and(|o| o.slot == t.slot))
                .for_each(|(_, add)| *add = true);
        }
        Ok(list)
    }
}

/// A variable over the data of `v` and the gradient `grad`. Data that was not kept is computed again when it is read.
fn stand_in(v: &VarRef, grad: &NdArray) -> Variable {
    Variable::handle(VarNode::stand_in(v, grad.clone()))
}
