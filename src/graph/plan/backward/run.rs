//! Runs backward plans: hands data and gradients to kernels and rules, frees what ends.

use super::{BackwardAction, BackwardCall, BackwardPlan, BackwardStep, GradientTarget, GradientWrite};
use crate::function::{Grad, GradMut, Needs, Output};
use crate::graph::grad::own_rule;
use crate::graph::mode;
use crate::graph::node::FnNode;
use crate::graph::plan::Turn;
use crate::graph::plan::build::{self as forward, PlanNode};
use crate::graph::plan::exec::{Interrupt, NodeHooks, interruptible};
use crate::graph::plan::invoke::{self, ForwardMode, run_arrays};
use crate::graph::plan::order::address;
use crate::graph::plan::recompute::{self, check_input};
use crate::graph::variable::Variable;
use nnrs_kernels::array::{self, Data, NdArray, Place, alloc};
use nnrs_kernels::cuda::replays::{Circumstances, Replays};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::ops;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl BackwardPlan {
    /// Runs the plan; `seed` is the gradient of the root, dropped after its last reading with `clear_seed`.
    pub(crate) fn run(&self, seed: &NdArray, hooks: &NodeHooks, clear_seed: bool) -> Result<()> {
        let _turn = Turn::take(self.nodes.iter().map(|n| &*n.f))?;
        let lost = self.make_ready()?;
        self.clear_unreached()?;
        self.made_again.store(u64::MAX, Relaxed);
        let result = match self.replays.as_ref().filter(|_| !hooks.any()) {
            Some(replays) => self.run_captured(replays, seed, clear_seed),
            None => self.compute(seed, hooks, clear_seed),
        };
        lost.iter().for_each(|&v| self.grads[v as usize].storage().lose_gradient());
        if result.is_err() {
            let freed = self.steps.iter().flat_map(|s| &s.free_grads);
            freed.for_each(|&v| drop(self.grads[v as usize].release()));
            // Data that a gradient had taken over.
            let gone = |v: &&u32| self.slots[**v as usize].data.is_empty();
            self.steps.iter().flat_map(|s| &s.free_data).filter(gone).for_each(|&v| self.drop_data(v));
            let again = self.steps.iter().flat_map(|s| s.again.iter().flat_map(|a| &a.free).chain(&s.forget));
            again.for_each(|&v| self.drop_again(v));
        }
        result
    }

    /// Runs as a CUDA graph, once there is one.
    fn run_captured(&self, replays: &Replays, seed: &NdArray, clear_seed: bool) -> Result<()> {
        let data = self.slots.iter().map(|s| &s.data);
        let arrays: Vec<&NdArray> = data.chain(&self.grads).chain([seed]).collect();
        let saved: Vec<_> = self.nodes.iter().map(|n| &n.f.saved).collect();
        let c = Circumstances { gpu: replays.gpu(), arrays: &arrays, saved: &saved, reads_saved: true };
        let finish = &mut || {
            for (i, step) in self.steps.iter().enumerate() {
                self.end(step);
                if i == 0 && clear_seed {
                    seed.storage().lose_gradient();
                }
            }
        };
        replays.run(&c, &mut || self.compute(seed, &NodeHooks::default(), clear_seed), finish)
    }

    /// Before anything is written: what forward kept and another backward run has cleared is made again, likewise what it
    /// adds to, and what more will be computed from is as it was. Gives the gradients of leaves that an earlier
    /// run has dropped, where a sum with them is dropped too: reading it is the error.
    fn make_ready(&self) -> Result<SmallVec<[u32; 2]>> {
        self.given.iter().try_for_each(|&v| self.grads[v as usize].fetch())?;
        let mut lost = SmallVec::new();
        for &v in &self.adds {
            match self.grads[v as usize].fetch() {
                Err(_) if self.is_lost_alone(v) => lost.push(v),
                done => done?,
            }
        }
        let forward = self.forward.as_ref().and_then(|(_, f)| f.upgrade());
        let clears = array::clears();
        let is_cleared = self.clears.swap(clears, Relaxed) != clears;
        if is_cleared || !forward.as_ref().is_some_and(|f| f.is_there()) {
            self.loaded.iter().try_for_each(|&v| self.slots[v as usize].data.fetch())?;
        }
        if let Some(forward) = forward.filter(|_| self.key.clear_buffer) {
            forward.is_whole.store(false, Relaxed);
        }
        let check = |&(v, n): &(u32, u32)| {
            self.slots[v as usize].data.fetch()?;
            self.check(v, &self.nodes[n as usize])
        };
        self.read_again.iter().try_for_each(check)?;
        for &(v, n) in &self.restored {
            let slot = &self.slots[v as usize];
            let maker = slot.maker.as_ref().filter(|_| slot.data.is_empty()).and_then(recompute::node);
            maker.map_or(Ok(()), |f| recompute::check_makers([&f])).map_err(|e| self.nodes[n as usize].f.explain(e))?;
        }
        let mut savers = self.steps.iter().map(|s| &s.what).filter(|what| what.saves());
        savers.try_for_each(|what| self.check_saved(&self.nodes[what.node() as usize]))?;
        Ok(lost)
    }

    /// The gradient was dropped, only leaves of the run have it, and no user code adds to it, which would read it.
    fn is_lost_alone(&self, v: u32) -> bool {
        let at = address(&self.grads[v as usize]);
        let is_alike = |v: &u32| address(&self.grads[*v as usize]) == at;
        let is_only_added_to = |v: u32| match is_alike(&v) {
            true => self.adds.contains(&v),
            false => address(&self.slots[v as usize].data) != at,
        };
        let mut user_code = self.nodes.iter().filter(|n| n.f.function.on_variables().is_some());
        self.grads[v as usize].storage().is_dropped_gradient()
            && (0..self.grads.len() as u32).all(is_only_added_to)
            && !user_code.any(|n| n.x.iter().chain(&n.y).any(is_alike))
    }

    /// An error if a function has lost what it saved, and could not run again.
    fn check_saved(&self, node: &PlanNode) -> Result<()> {
        if node.f.saved.of_call(node.setup.number).is_some() {
            return Ok(());
        }
        node.x.iter().try_for_each(|&v| self.check(v, node))?;
        let lost = node.x.iter().map(|&v| &self.slots[v as usize]).filter(|s| s.data.is_empty());
        let makers: SmallVec<[Arc<FnNode>; 2]> =
            lost.filter_map(|s| s.maker.as_ref().and_then(recompute::node)).collect();
        recompute::check_makers(&makers).map_err(|e| node.f.explain(e))
    }

    fn compute(&self, seed: &NdArray, hooks: &NodeHooks, clear_seed: bool) -> Result<()> {
        let (mut interrupt, at) = (Interrupt::default(), Cell::new(0));
        let run = || {
            self.steps.iter().enumerate().try_for_each(|(i, step)| {
                at.set(i);
                self.step(step, seed, hooks)?;
                if i == 0 && clear_seed {
                    seed.storage().lose_gradient(); // only what made the root reads it
                }
                interrupt.check(step.work)
            })
        };
        interruptible(run, |e| {
            let what = &self.steps[at.get()].what;
            let made = what.targets();
            let storages = made.iter().map(|t| self.grads[t.slot as usize].storage());
            storages.filter(|s| !s.is_exported()).for_each(|s| s.lose_gradient());
            self.nodes[what.node() as usize].f.explain(e)
        })
    }

    pub(super) fn grad<'a>(&'a self, v: u32, seed: &'a NdArray) -> &'a NdArray {
        if v == self.root { seed } else { &self.grads[v as usize] }
    }

    fn step(&self, step: &BackwardStep, seed: &NdArray, hooks: &NodeHooks) -> Result<()> {
        let node = &self.nodes[step.what.node() as usize];
        hooks.before(&node.f, &self.slots)?;
        self.again(step)?;
        let _label = alloc::label("gradient in", node.name);
        let again = self.restore(&step.reads)?;
        step.viewed.iter().try_for_each(|&(v, n)| self.check_input(v, &self.nodes[n as usize]))?;
        let done = match &step.what {
            BackwardAction::Call(c) => self.call(c, seed),
            BackwardAction::View(n, t) => self.view(*n, *t, seed, step),
            BackwardAction::Tile(t) => self.tile(t, seed, step),
        };
        done.map_err(|e| node.f.explain(e))?;
        hooks.after(&node.f, &self.slots)?;
        again.iter().for_each(|&v| self.forget(v));
        self.end(step);
        if self.key.clear_buffer && step.what.saves() {
            node.f.saved.clear();
        }
        if hooks.any() && self.key.clear_buffer && !hooks.has_own_seed {
            self.hide_seed(node);
        }
        Ok(())
    }

    /// Frees what ends with a step.
    fn end(&self, step: &BackwardStep) {
        step.forget.iter().for_each(|&v| self.forget(v));
        step.free_grads.iter().filter(|&&v| v != self.root).for_each(|&v| self.drop_grad(v));
        step.free_data.iter().for_each(|&v| self.drop_data(v));
    }

    /// After the root's function hooks see that the root's gradient, which they saw for the run only, is cleared.
    fn hide_seed(&self, node: &PlanNode) {
        let root = node.y.iter().zip(node.f.outputs()).find(|(y, _)| **y == self.root);
        if let Some((_, root)) = root {
            let none = NdArray::of_engine(root.shape());
            none.clear();
            root.swap_grad(Some(none));
            root.set_seed_cleared(true);
        }
    }

    /// Drops data that was made again, or was about to be, where the run has failed. What the script wrote before that stays.
    fn drop_again(&self, v: u32) {
        let slot = &self.slots[v as usize];
        match slot.data.storage().modification_count() <= self.made_again.load(Relaxed) {
            true => slot.end(false),
            false => slot.drop_data(false),
        }
    }

    /// Clears data; a later reader has it computed again.
    fn drop_data(&self, v: u32) {
        self.slots[v as usize].end(true);
    }

    /// Drops data that was made again; where the user asked for clearing, the array says so.
    fn forget(&self, v: u32) {
        self.slots[v as usize].end(self.key.clear_buffer);
    }

    /// Drops a gradient that no step reads any more; reading it all the same is an error. Without clearing, it stays where
    /// the script got a handle of it in the middle of the run.
    fn drop_grad(&self, v: u32) {
        let grad = &self.grads[v as usize];
        match self.key.clear_buffer {
            true => grad.storage().lose_gradient(),
            false if grad.is_kept_by_user_code() || self.was_taken_by_hook(v) => {}
            false => drop(grad.release()),
        }
    }

    /// A hook got hold of the variable in the middle of the run: it has its gradient from now on.
    fn was_taken_by_hook(&self, v: u32) -> bool {
        let var = self.vars[v as usize].upgrade().filter(|v| self.key.hooked && v.observed().grad);
        var.inspect(|v| v.set_grad_elided(false)).is_some()
    }

    /// Runs the planned recomputation before a step. What is there all the same stays as it is.
    fn again(&self, step: &BackwardStep) -> Result<()> {
        let is_there = |v: &u32| !self.slots[*v as usize].data.is_empty();
        for again in &step.again {
            let node = &self.nodes[again.what.node() as usize];
            let missing = match &again.what {
                forward::ForwardAction::Tile(t) => !t.sinks.iter().all(is_there),
                _ => !node.y.iter().all(is_there),
            };
            if missing {
                let _label = alloc::label("output (computed again) of", node.name);
                let reads = again.what.reads(&node.reads);
                let more = self.restore(&reads)?; // another backward run may have cleared them
                reads.iter().try_for_each(|&v| self.check_input(v, node))?;
                self.made_again.store(array::now(), Relaxed);
                mode::again(|| again.what.run(node, &self.slots, true))?;
                self.made_again.store(u64::MAX, Relaxed);
                more.iter().for_each(|&v| self.forget(v));
            }
            again.free.iter().for_each(|&v| self.slots[v as usize].end(false));
        }
        Ok(())
    }

    /// Computes data again that was not kept, and that no plan foresaw; gives the slots to be freed afterwards.
    fn restore(&self, reads: &[u32]) -> Result<SmallVec<[u32; 2]>> {
        let mut again = SmallVec::new();
        for &v in reads {
            let slot = &self.slots[v as usize];
            if !slot.data.is_empty() {
                continue;
            }
            let forward = self.forward.as_ref().and_then(|(_, f)| f.upgrade()).zip(self.forward_slots[v as usize]);
            slot.data.fetch()?;
            if slot.maker.is_some() && forward.is_some_and(|(f, slot)| !f.kept[slot as usize]) {
                again.push(v);
            }
        }
        Ok(again)
    }

    /// An error if variable `v` is not what the function of `reader` has read, which runs again. What was there was looked at
    /// before the run.
    pub(super) fn check_input(&self, v: u32, reader: &PlanNode) -> Result<()> {
        if self.is_stored[v as usize] { Ok(()) } else { self.check(v, reader) }
    }

    fn check(&self, v: u32, reader: &PlanNode) -> Result<()> {
        let slot = &self.slots[v as usize];
        if reader.x.iter().enumerate().any(|(i, x)| *x == v && reader.f.function.updates_input(i)) {
            return Ok(());
        }
        check_input(&slot.data, slot.maker.as_ref(), &reader.f).map_err(|e| reader.f.explain(e))
    }

    fn call(&self, c: &BackwardCall, seed: &NdArray) -> Result<()> {
        let node = &self.nodes[c.node as usize];
        if let Some(own) = node.f.function.on_variables() {
            return self.variables(node, c, own, seed);
        }
        match c.needs {
            Some(needs) => self.kernel(node, c, needs, seed),
            None => self.rule(node, c, seed),
        }
    }

    fn kernel(&self, node: &PlanNode, c: &BackwardCall, needs: Needs, seed: &NdArray) -> Result<()> {
        if c.saves {
            self.save_again(node)?;
        }
        let place = node.f.backward_place();
        let compute = node.f.kernel_dtype(place);
        let over = c.over.filter(|&(i, from)| self.take_over(node.x[i], node.y[from], node.f.context.dtype()));
        let data = |v: u32| &self.slots[v as usize].data;
        let arrives = |i: usize| c.arrives[i] && over.is_none_or(|(_, from)| from != i);
        let gy = |i: usize| arrives(i).then(|| self.grad(node.y[i], seed));
        let mut late: SmallVec<[(GradientTarget, Data); 2]> = SmallVec::new();
        let gx = |(i, t): (usize, &Option<GradientTarget>)| match t {
            Some(t) if t.how == GradientWrite::Own => Ok(None),
            Some(t) if over.is_some_and(|(at, _)| at == i) => self.gradient_over(t, compute).map(Some),
            Some(t) => self.gradient(t, node, seed, place, &mut late).map(Some),
            None => Ok(None),
        };
        let gx = || c.targets.iter().enumerate().map(gx).collect();
        let (x, y) = (|i| (data(node.reads[i]), node.view(i)), |i| data(node.y[i]));
        invoke::backward(&node.f, &node.setup, needs, x, y, gy, gx)?;
        late.iter().try_for_each(|(t, data)| self.deliver(*t, data, node.f.context.dtype()))
    }

    /// Runs a function forward for what it saves, if that is gone.
    fn save_again(&self, node: &PlanNode) -> Result<()> {
        if node.f.saved.of_call(node.setup.number).is_some() {
            return Ok(());
        }
        let more = self.restore(&node.x)?;
        node.x.iter().try_for_each(|&v| self.check(v, node))?;
        let data = |v: &u32| self.slots[*v as usize].data.clone();
        let x: SmallVec<[NdArray; 4]> = node.x.iter().map(data).collect();
        let y: SmallVec<[NdArray; 2]> =
            node.y.iter().map(|&v| NdArray::of_engine(self.slots[v as usize].shape.clone())).collect();
        mode::again(|| run_arrays(&node.f, &x, &y, ForwardMode { again: true, keep: true }))?;
        more.iter().for_each(|&v| self.forget(v));
        Ok(())
    }

    /// Gives the gradient `x` the memory of the gradient `y`, unless another array has that, or `x` has its own.
    fn take_over(&self, x: u32, y: u32, dtype: DType) -> bool {
        let (from, to) = (self.grads[y as usize].storage(), self.grads[x as usize].storage());
        !self.grads[y as usize].is_kept_by_user_code() && to.is_empty() && from.give_to(&to, dtype)
    }

    /// Memory for a gradient in the type to compute in; what is stored in another type, or where another gradient of the
    /// function goes too or lies, goes through `late`.
    fn gradient(
        &self,
        t: &GradientTarget,
        node: &PlanNode,
        seed: &NdArray,
        place: Place,
        late: &mut SmallVec<[(GradientTarget, Data); 2]>,
    ) -> Result<GradMut<'_>> {
        let shape = self.grad_shape(t.slot);
        let target = &self.grads[t.slot as usize];
        let output = self.output(t);
        let compute = node.f.kernel_dtype(place);
        let is_seed = node.y.contains(&self.root) && Arc::ptr_eq(&target.storage(), &seed.storage());
        if t.twice || is_seed || node.f.context.dtype() != compute {
            let data = Data::new_at(place, compute, shape.size())?;
            late.push((*t, data.clone()));
            return Ok(GradMut { shape, output: Output::Write, over: false, data });
        }
        let data = match output {
            Output::Write => target.overwrite_at(place, compute)?.of(shape.size())?,
            Output::Accumulate => target.modify_at(place, compute)?.of(shape.size())?,
        };
        Ok(GradMut { shape, output, over: false, data })
    }

    /// A gradient in the memory that it has taken over, with what is there.
    fn gradient_over(&self, t: &GradientTarget, compute: DType) -> Result<GradMut<'_>> {
        let shape = &self.slots[t.slot as usize].shape;
        let data = self.grads[t.slot as usize].modify(compute)?.of(shape.size())?;
        Ok(GradMut { shape, output: Output::Write, over: true, data })
    }

    /// Whether a part of a gradient is written or added to what is there now.
    pub(crate) fn output(&self, t: &GradientTarget) -> Output {
        match t.how {
            GradientWrite::Write => Output::Write,
            GradientWrite::Leaf if self.grads[t.slot as usize].is_nothing() => Output::Write,
            GradientWrite::Leaf | GradientWrite::Add | GradientWrite::Own => Output::Accumulate,
        }
    }

    /// Writes or adds a whole part to a gradient stored as `dtype`.
    pub(super) fn deliver(&self, t: GradientTarget, part: &Data, dtype: DType) -> Result<()> {
        ops::put_as(&self.grads[t.slot as usize], dtype, part, self.output(&t))
    }

    /// The gradient by the function's rule: a graph that runs at once and is forgotten.
    fn rule(&self, node: &PlanNode, c: &BackwardCall, seed: &NdArray) -> Result<()> {
        let f = &node.f;
        // In the shapes of the call, which fit together: an array may have got another one meanwhile.
        let variable = |a: NdArray, v: u32| -> Result<Variable> {
            let shape = &self.slots[v as usize].shape;
            Ok(Variable::from_array(if a.shape() == *shape { a } else { a.reshaped(shape.clone())? }))
        };
        let data = |&v: &u32| variable(self.slots[v as usize].data.clone(), v);
        let gy = |(&v, &arrives): (&u32, &bool)| {
            let none = || NdArray::of_engine(self.slots[v as usize].shape.clone());
            variable(if arrives { self.grad(v, seed).clone() } else { none() }, v)
        };
        let x = node.x.iter().map(data).collect::<Result<_>>()?;
        let y = node.y.iter().map(data).collect::<Result<_>>()?;
        let gy = node.y.iter().zip(&c.arrives).map(gy).collect::<Result<_>>()?;
        let want = c.targets.iter().map(Option::is_some).collect();
        let grad = Grad::over(f, node.setup.clone(), x, y, gy, want)?;
        let parts = mode::inner(f.context.clone(), || own_rule(&*f.function, &grad))?;
        for (t, part) in c.targets.iter().zip(parts) {
            let (Some(t), Some(part)) = (t, part) else { continue };
            let part = part.data()?;
            let target = &self.grads[t.slot as usize];
            let fits = part.dtype() == f.context.dtype() && part.size() == target.size();
            if fits && self.output(t) == Output::Write && part.storage().is_exclusive() {
                target.share_content(&part)?;
                continue;
            }
            let site = f.context.site();
            self.deliver(*t, &part.read_at(site.place, site.compute_dtype())?, site.dtype)?;
        }
        Ok(())
    }

    /// The gradient of a view's output ends with the step, so that the input's may be its memory.
    pub(crate) fn hands_on(&self, n: u32, step: &BackwardStep) -> bool {
        let y = self.nodes[n as usize].y[0];
        !self.key.hooked && step.free_grads.contains(&y) && y != self.root
    }

    /// A view's gradient is its output's, under the input's shape.
    fn view(&self, n: u32, t: GradientTarget, seed: &NdArray, step: &BackwardStep) -> Result<()> {
        let node = &self.nodes[n as usize];
        let gy = self.grad(node.y[0], seed);
        let site = node.f.context.site();
        let fits = gy.dtype() == site.dtype;
        if self.hands_on(n, step) && fits && self.output(&t) == Output::Write && gy.storage().is_exclusive() {
            return self.grads[t.slot as usize].share_content(gy);
        }
        self.deliver(t, &gy.read_at(site.place, site.compute_dtype())?, site.dtype)
    }
}
