//! The gradient by functions that work on whole variables: they are given stand-ins over data and gradients.

use super::{BackwardCall, BackwardPlan, GradientTarget, GradientWrite};
use crate::function::OnVariables;
use crate::graph::mode;
use crate::graph::plan::build::PlanNode;
use crate::graph::plan::on_variables::{in_type, settle};
use crate::graph::variable::{VarNode, VarRef, Variable};
use nnrs_kernels::array::{NdArray, Unset};
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use std::sync::Arc;

impl BackwardPlan {
    /// What the plan keeps alive beside its functions.
    #[cfg(feature = "python")]
    pub(crate) fn watch(&self) -> &crate::graph::plan::Watch {
        &self.watch
    }

    /// The gradient by a function over variables.
    pub(super) fn variables(
        &self,
        node: &PlanNode,
        c: &BackwardCall,
        f: &dyn OnVariables,
        seed: &NdArray,
    ) -> Result<()> {
        let gx = self.arrays(&node.x, |i| c.targets[i].map(|t| self.grads[t.slot as usize].clone()));
        let _unset = Unset::new(gx.iter());
        let gy = self.arrays(&node.y, |i| c.arrives[i].then(|| self.grad(node.y[i], seed).clone()));
        let x: Vec<Variable> = node.f.inputs().iter().zip(&gx).map(|(v, g)| stand_in(v, g)).collect();
        let y: Vec<Variable> = node.f.outputs().iter().zip(&gy).map(|(v, g)| stand_in(v, g)).collect();
        let want: Vec<bool> = c.targets.iter().map(Option::is_some).collect();
        let accumulate = self.accumulate(&c.targets)?;
        let done = mode::stored_in(node.f.context.dtype(), || f.backward(&x, &y, &want, &accumulate));
        self.settle(node, gx.iter().chain(&gy), x.iter().chain(&y))?;
        done?;
        let mut written = gx.iter().zip(&want).filter(|(_, want)| **want);
        written.try_for_each(|(g, _)| in_type(g, node.f.context.dtype()))
    }

    /// The gradients of some slots; new arrays where there is none.
    fn arrays(&self, slots: &[u32], own: impl Fn(usize) -> Option<NdArray>) -> Vec<NdArray> {
        let new = |v: &u32| NdArray::of_engine(self.slots[*v as usize].shape.clone());
        slots.iter().enumerate().map(|(i, v)| own(i).unwrap_or_else(|| new(v))).collect()
    }

    /// After the user's code: data and gradients have their shapes, and gradients hold what was put in their place.
    fn settle<'a>(
        &self,
        node: &PlanNode,
        grads: impl Iterator<Item = &'a NdArray>,
        now: impl Iterator<Item = &'a Variable>,
    ) -> Result<()> {
        let slots = || node.x.iter().chain(&node.y).map(|&v| &self.slots[v as usize]);
        let grads = grads.zip(slots()).map(|(g, s)| (g, s.shape.clone()));
        let arrays: Vec<(&NdArray, Shape)> = slots().map(|s| (&s.data, s.shape.clone())).chain(grads).collect();
        settle(&arrays, slots().map(|s| s.data.clone()).chain(now.map(Variable::grad)))
    }

    /// Which gradients are added to, as NNabla says it: those of leaves unless they are zeroed, others after their first
    /// part, and those of an input that is given several times, be it as a copy that shares the gradient (user code may
    /// write them in any order).
    fn accumulate(&self, targets: &[Option<GradientTarget>]) -> Result<Vec<bool>> {
        let memory = |t: &GradientTarget| Arc::as_ptr(&self.grads[t.slot as usize].storage()) as usize;
        let at: Vec<Option<usize>> = targets.iter().map(|t| t.as_ref().map(memory)).collect();
        let adds = |t: &GradientTarget| match t.how {
            GradientWrite::Leaf => !self.grads[t.slot as usize].storage().is_zero(),
            GradientWrite::Write => false,
            GradientWrite::Add | GradientWrite::Own => true,
        };
        let mut list: Vec<bool> = targets.iter().map(|t| t.as_ref().is_some_and(adds)).collect();
        for (i, t) in targets.iter().enumerate() {
            let Some(t) = t.filter(|_| at.iter().filter(|a| **a == at[i]).count() > 1) else { continue };
            if !list[i] {
                self.grads[t.slot as usize].zero()?;
            }
            at.iter().zip(&mut list).filter(|(a, _)| **a == at[i]).for_each(|(_, add)| *add = true);
        }
        Ok(list)
    }
}

/// A variable over the data of `v` and the gradient `grad`. Data that was not kept is computed again when it is read.
fn stand_in(v: &VarRef, grad: &NdArray) -> Variable {
    Variable::handle(VarNode::stand_in(v, grad.clone()))
}
