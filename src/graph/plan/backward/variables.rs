//! The gradient by functions that work on whole variables: they are given stand-ins over data and gradients.

use super::{Backward, Call, How, Target};
use crate::array::NdArray;
use crate::error::Result;
use crate::function::OnVariables;
use crate::graph::plan::build::PlanNode;
use crate::graph::plan::variables::{in_type, settle};
use crate::graph::variable::{VarNode, VarRef, Variable};
use crate::shape::Shape;

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
