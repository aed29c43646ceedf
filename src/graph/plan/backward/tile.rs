//! Runs the backward pass of an element-wise unit as one program over tiles.

use super::{BackwardPlan, BackwardStep, BackwardTile, GradientTarget};
use crate::function::Output;
use crate::graph::plan::invoke::{read, steal};
use crate::graph::plan::program::Input;
use nnrs_kernels::array::{Data, NdArray, Place, ReadContent};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::ops;
use nnrs_kernels::tile::{AnyProgram, Operands, Walk};
use smallvec::SmallVec;
use std::sync::Arc;

/// Inputs whose memory a gradient takes over: the input, the gradient's slot.
type Stolen = SmallVec<[(Input, u32); 1]>;

impl BackwardPlan {
    pub(super) fn tile(&self, t: &BackwardTile, seed: &NdArray, step: &BackwardStep) -> Result<()> {
        t.remade.iter().try_for_each(|&(v, n)| self.check_input(v, &self.nodes[n as usize]))?;
        let reduced: SmallVec<[bool; 2]> = t.targets.iter().map(|to| self.is_apart(t, to)).collect();
        let mut adds: SmallVec<[bool; 4]> =
            t.targets.iter().zip(&reduced).map(|(x, &r)| !r && self.output(x) == Output::Accumulate).collect();
        for k in 0..adds.len() {
            adds[k] |= reduced[k] && self.sum_passed(t, k, seed)?;
        }
        if adds.iter().zip(&reduced).all(|(add, r)| *add && *r) {
            return Ok(());
        }
        let (program, inputs) = t.program(&adds, &reduced);
        let fresh = t.targets.iter().zip(adds.iter().zip(&reduced)).filter(|(_, (add, r))| !**add && !**r);
        let stolen = match self.key.hooked {
            true => Stolen::new(), // a hook may look at all gradients
            false => self.stolen(t, step, fresh.map(|(x, _)| x.slot), &inputs),
        };
        let mut operands = Operands::new(t.site, t.shape.size());
        for &input in inputs.iter() {
            self.read(t, input, &stolen, seed, &mut operands)?;
        }
        let mut temps: SmallVec<[(GradientTarget, Data); 2]> = SmallVec::new();
        for ((x, &add), &r) in t.targets.iter().zip(&adds).zip(&reduced).filter(|((_, add), r)| !(**add && **r)) {
            let target = &self.grads[x.slot as usize];
            let data = match (r, add) {
                (true, _) => Data::new_at(t.site.place, t.site.compute_dtype(), t.shape.size())?,
                (_, true) => target.modify_at(t.site.place, t.site.dtype)?,
                (_, false) => target.overwrite_at(t.site.place, t.site.dtype)?,
            };
            if r {
                temps.push((*x, data.clone()));
            }
            operands.write(data)?;
        }
        operands.run(&program)?;
        temps.iter().try_for_each(|(x, data)| self.reduce(*x, data, t))
    }

    /// The gradient is made beside its array and then added: it must be summed first, or the array is another target's too
    /// (copies of one variable that share it).
    pub(crate) fn is_apart(&self, t: &BackwardTile, to: &GradientTarget) -> bool {
        to.twice || self.slots[to.slot as usize].shape != t.shape
    }

    /// An input of the program, from where it is now.
    fn read(
        &self,
        t: &BackwardTile,
        input: Input,
        stolen: &Stolen,
        seed: &NdArray,
        operands: &mut Operands,
    ) -> Result<()> {
        let (own, shape) = match input {
            Input::Data(v) if let Some(w) = self.views.get(v as usize).and_then(Option::as_deref) => {
                let slot = &self.slots[w.source as usize];
                return read(operands, &slot.data, slot.shape.size(), t.site, || Walk::over(&w.how, &t.shape));
            }
            Input::Data(v) => (&self.slots[v as usize].data, &self.slots[v as usize].shape),
            Input::Grad(v) => (self.grad(v, seed), self.grad_shape(v)),
        };
        let now = stolen.iter().find(|(from, _)| *from == input).map(|(_, to)| *to);
        let array = now.map_or(own, |to| &self.grads[to as usize]);
        read(operands, array, shape.size(), t.site, || Walk::new(shape, &t.shape))
    }

    /// Sums an arriving gradient, where one is handed on as it stands, without a copy, on the host; whether it did.
    fn sum_passed(&self, t: &BackwardTile, k: usize, seed: &NdArray) -> Result<bool> {
        let passed = t.unit.passed(k).filter(|_| t.site.place == Place::Host && !t.targets.iter().any(|to| to.twice));
        let Some(v) = passed.filter(|&v| *self.grad_shape(v) == t.shape) else { return Ok(false) };
        let (x, dtype) = (t.targets[k], t.site.compute_dtype());
        let (gy, shape) = (self.grad(v, seed), &self.slots[x.slot as usize].shape);
        let part = Data::new(dtype, shape.size())?;
        match gy.find(Place::Host)? {
            ReadContent::Constant(v) => {
                let one = Data::new(dtype, 1)?;
                ops::fill(&one, v)?;
                ops::sum_constant(&one, &t.shape, &part, shape, Output::Write)?;
            }
            _ => ops::sum_to(&gy.read(dtype)?.of(t.shape.size())?, &t.shape, &part, shape, Output::Write)?,
        }
        self.deliver(x, &part, t.site.dtype)?;
        Ok(true)
    }

    /// Sums a full-size gradient down to its variable's shape.
    fn reduce(&self, x: GradientTarget, full: &Data, t: &BackwardTile) -> Result<()> {
        let shape = &self.slots[x.slot as usize].shape;
        let compute = full.dtype();
        let part = Data::new_at(full.place(), compute, shape.size())?;
        ops::sum_to(full, &t.shape, &part, shape, Output::Write)?;
        self.deliver(x, &part, t.site.dtype)
    }

    /// Lets gradients that begin here (`fresh`) take the memory of what is read and ends here: gradients, then data.
    fn stolen(
        &self,
        t: &BackwardTile,
        step: &BackwardStep,
        fresh: impl Iterator<Item = u32>,
        inputs: &[Input],
    ) -> Stolen {
        let mut ending: SmallVec<[Input; 4]> = t.ending(self, step).filter(|i| inputs.contains(i)).collect();
        let steal = |to: u32| {
            let sink = &self.grads[to as usize];
            if !sink.is_nothing() {
                return None;
            }
            let array = |i: &Input| match *i {
                Input::Data(v) => &self.slots[v as usize].data,
                Input::Grad(v) => &self.grads[v as usize],
            };
            let at = ending.iter().position(|i| steal(array(i), sink, t.site.dtype))?;
            Some((ending.remove(at), to))
        };
        fresh.filter_map(steal).collect()
    }
}

impl BackwardTile {
    /// What ends with its step and is as large as what it makes, so that a gradient may take the memory: gradients first,
    /// then data that is not read in another shape.
    pub(crate) fn ending<'a>(
        &self,
        plan: &'a BackwardPlan,
        step: &'a BackwardStep,
    ) -> impl Iterator<Item = Input> + use<'a> {
        let shape = self.shape.clone();
        let grads = step.free_grads.iter().filter(|&&v| v != plan.root).map(|&v| Input::Grad(v));
        let data = step.forget.iter().chain(&step.free_data).map(|&v| Input::Data(v));
        let is_viewed = |i: &Input| step.viewed.iter().any(|(source, _)| *i == Input::Data(*source));
        let data = data.filter(move |i| !plan.key.hooked && !is_viewed(i)); // a hook may write it
        grads.chain(data).filter(move |i| match *i {
            Input::Grad(v) => *plan.grad_shape(v) == shape,
            Input::Data(v) => plan.slots[v as usize].shape == shape,
        })
    }

    fn program(&self, adds: &[bool], reduced: &[bool]) -> (AnyProgram, Arc<[Input]>) {
        let mut programs = self.programs.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, p, inputs)) = programs.iter().find(|(a, ..)| **a == *adds) {
            return (p.clone(), inputs.clone());
        }
        let (p, inputs) = self.unit.compile(adds, reduced);
        let inputs: Arc<[Input]> = inputs.into();
        programs.push((adds.to_vec(), p.clone(), inputs.clone()));
        (p, inputs)
    }
}
