//! Graph surgery: putting one variable in another's place, cutting history.

use super::node::{FnNode, mirror};
use super::plan::Cache;
use super::variable::{VarRef, Variable};
use nnrs_kernels::error::{Error, Result};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Variable {
    /// Puts the graph that reads `self` on top of `var`: the arrays, the parent function, `need_grad` and
    /// [`allow_modify_data`](Variable::allow_modify_data) of `var` become those of `self`, whatever made `self` before is
    /// dropped, and `var` has no parent any more. So `xa.rewire_on(yb)` turns
    /// `xa -> A -> ya` and `xb -> B -> yb` into `xb -> B -> xa -> A -> ya`.
    ///
    /// # Errors
    /// Another shape; `var` is a leaf, or computed from `self`.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let (xa, xb) = (Variable::new([1]), Variable::from_slice(&[0.0f32], [1].into())?);
    /// let (ya, yb) = (f::sin(&xa)?, f::exp(&xb)?);
    /// xa.rewire_on(&yb)?;
    /// ya.forward()?;
    /// assert_eq!(ya.to_vec::<f32>()?, [1.0f32.sin()]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn rewire_on(&self, var: &Variable) -> Result<()> {
        if self.is(var) {
            return Ok(());
        }
        let (mine, theirs) = (self.shape(), var.shape());
        if mine != theirs {
            return Err(Error::shape("var", format!("shape {mine}")).actual(theirs).function("rewire_on"));
        }
        if !var.has_parent() {
            return Err(Error::graph("var has no parent: no function computes it")
                .function("rewire_on")
                .hint("to use the data of a leaf, assign `.data`"));
        }
        if reaches(var.node(), self.node()) {
            return Err(Error::graph("this would make a cycle: var is computed from the variable that is rewired")
                .function("rewire_on"));
        }
        let old = self.raw_data();
        if self.node().is_copied() || old.is_observed() {
            self.keep_lost();
        }
        self.take_place(var);
        if !old.is(&self.raw_data()) {
            old.storage().set_free(); // nothing makes it any more
        }
        self.set_need_grad(var.need_grad_setting());
        self.set_allow_modify_data(var.allow_modify_data());
        self.mark_need_setup();
        Ok(())
    }

    /// Makes the parent of `var` compute `self`, which takes the arrays of `var` too.
    fn take_place(&self, var: &Variable) {
        let Some((parent, i)) = var.node().lock().take_parent() else { return };
        self.node().take_arrays(var.node());
        self.node().sheds.store(var.node().sheds.load(Relaxed), Relaxed); // data that went is computed again
        self.become_output(parent, i);
        var.mirrors().iter().for_each(|f| reread(f, var.node(), self.node()));
        let plans = std::mem::take(&mut var.node().lock().plans);
        var.node().changed();
        drop(plans);
    }

    /// Is no output of `f` any more; the copies of the output are those of what takes its place.
    fn leave(&self, f: &Arc<FnNode>, i: usize) {
        f.lose_output(i, self.node());
        let mirrors = self.mirrors();
        if !mirrors.is_empty() {
            let output = &f.outputs()[i];
            mirrors.iter().for_each(|m| reread(m, self.node(), output));
        }
    }

    /// The functions that copy this variable to those that have [its parent](Variable::set_parent) too.
    fn mirrors(&self) -> Vec<Arc<FnNode>> {
        self.node().lock().consumers.iter().filter_map(|c| c.upgrade()).filter(|f| f.mirror).collect()
    }

    /// Makes output `i` of `parent` this variable; what has made it before is dropped.
    fn become_output(&self, parent: Arc<FnNode>, i: u32) {
        parent.replace_output(i as usize, self.node());
        let inherited = parent.inputs().iter().any(|x| x.need_grad()); // one may be this variable, until it leaves its parent
        let old = {
            let mut s = self.node().lock();
            s.inherit(inherited);
            s.at_once = false;
            (s.parent.replace((parent, i)), std::mem::take(&mut s.plans))
        };
        if let Some((f, i)) = &old.0 {
            self.leave(f, *i as usize);
        }
        self.node().changed();
        drop((old, super::plan::take_joint_plans())); // what they own may be freed with them
    }

    /// Gives this variable the parent `f`: it is a copy of the first output of `f` of its shape from now on, which stays the
    /// output. The copy shows what it has until it runs, and passes its gradient on to the output.
    ///
    /// # Errors
    /// `f` has no output of this shape, or is computed from this variable.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::from_slice(&[0.0f32], [1].into())?;
    /// let (y, z) = (f::exp(&x)?, Variable::new([1]));
    /// z.set_parent(&y.parent().unwrap())?;
    /// z.forward()?;
    /// assert_eq!((z.to_vec::<f32>()?, y.to_vec::<f32>()?), (vec![1.0], vec![1.0]));
    /// assert_eq!(z.parent().unwrap().id(), y.parent().unwrap().id());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_parent(&self, f: &super::FunctionRef) -> Result<()> {
        if self.parent().is_some_and(|parent| parent.id() == f.id()) {
            return Ok(());
        }
        let (shape, outputs) = (self.shape(), f.outputs());
        let Some(y) = outputs.iter().find(|y| y.shape() == shape) else {
            let shapes: Vec<String> = outputs.iter().map(|y| y.shape().to_string()).collect();
            return Err(Error::shape("parent", format!("a function with an output of shape {shape}"))
                .actual(shapes.join(", "))
                .function("Variable.parent"));
        };
        if reaches(y.node(), self.node()) {
            return Err(Error::graph("this would make a cycle: the function is computed from the variable")
                .function("Variable.parent"));
        }
        self.become_output(mirror(y.node(), self.node()), 0);
        Ok(())
    }

    /// Gives this variable the value `new`, which was computed from it: the function that made `new` makes this variable
    /// from now on, from a variable that has what this one had. In a static graph all that reads this variable, also
    /// from before, sees the new value, but for what `new` is computed from; what ran already (auto_forward) keeps
    /// what it read.
    ///
    /// # Errors
    /// [`Variable::allow_modify_data`] is off; `new` has another shape, or is no output of a function that reads this
    /// variable itself.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::from_slice(&[1.0f32], [1].into())?;
    /// let y = f::exp(&x)?;
    /// x.supersede(&f::mul_scalar(&x, f::MulScalar { val: 0.0, inplace: false })?)?;
    /// y.forward()?;
    /// assert_eq!((x.to_vec::<f32>()?, y.to_vec::<f32>()?), (vec![0.0], vec![1.0]));
    /// assert!(x.supersede(&f::exp(&Variable::new([1]))?).is_err()); // not computed from x
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn supersede(&self, new: &Variable) -> Result<()> {
        self.check_modifiable()?;
        let f = new.node().parent().filter(|f| f.inputs().iter().any(|x| Arc::ptr_eq(x, self.node())));
        if f.is_none() || new.shape() != self.shape() {
            return Err(Error::graph("the new value must have the variable's shape and be computed from it directly"));
        }
        let (mine, theirs) = (self.raw_data(), new.raw_data());
        if theirs.storage().is_empty() && !mine.storage().is_empty() {
            theirs.copy_from(&mine)?; // until the graph runs, the variable shows what it had
        }
        let earlier = self.readers_of_old(new);
        let old = self.split_off();
        earlier.iter().for_each(|f| reread(f, self.node(), old.node()));
        self.take_place(new);
        self.set_need_grad(None);
        Ok(())
    }

    /// The functions that go on reading what this variable was before it became `new`.
    fn readers_of_old(&self, new: &Variable) -> Vec<Arc<FnNode>> {
        let mut readers = self.readers();
        readers.dedup_by(|a, b| Arc::ptr_eq(a, b));
        if readers.len() > 1 && !super::mode::auto_forward() {
            let behind = super::plan::collect(std::slice::from_ref(new.node()));
            readers.retain(|r| behind.iter().any(|f| Arc::ptr_eq(f, r)));
        }
        readers
    }

    /// A variable with this one's arrays, need_grad and history; this one has no history then.
    fn split_off(&self) -> Variable {
        let old = Variable::from_array(self.raw_data());
        old.node().take_arrays(self.node());
        old.set_need_grad(self.need_grad_setting());
        let parent = {
            let mut s = self.node().lock();
            let mut o = old.node().lock();
            (o.inherited, o.at_once, o.recompute) = (s.inherited, s.at_once, s.recompute);
            o.parent = s.parent.take();
            o.parent.clone()
        };
        if let Some((f, i)) = parent {
            f.replace_output(i as usize, old.node());
        }
        old
    }

    /// Forgets how this variable was made: it is a leaf, with the data that it has.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::exp(&Variable::from_slice(&[0.0f32], [1].into())?)?;
    /// y.forward()?;
    /// y.cut();
    /// assert!(!y.has_parent() && y.to_vec::<f32>()? == [1.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn cut(&self) {
        self.keep_lost();
        self.unlink_parent();
        if self.node().is_planned() {
            drop(take_plans_of(self.readers()));
        }
    }

    /// The functions that read it.
    fn readers(&self) -> Vec<Arc<FnNode>> {
        self.node().lock().consumers.iter().filter_map(|c| c.upgrade()).collect()
    }

    /// Data that was not kept is made while that is possible, unless it was cleared. If it cannot be made, reading it says so.
    fn keep_lost(&self) {
        let storage = self.raw_data().storage();
        if storage.is_lost() && !storage.is_cleared() {
            let _ = storage.fetch();
        }
    }

    fn unlink_parent(&self) {
        let old = {
            let mut s = self.node().lock();
            (s.take_parent(), std::mem::take(&mut s.plans))
        };
        if let (Some((f, i)), _) = &old {
            self.leave(f, *i as usize);
        }
        self.raw_data().storage().set_free();
        self.node().changed();
        drop(old);
    }

    /// Cuts all links of the graph behind this variable.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let h = f::exp(&Variable::new([2]))?;
    /// let y = f::sin(&h)?;
    /// y.clear_all_graph_links();
    /// assert!(!y.has_parent() && !h.has_parent());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn clear_all_graph_links(&self) {
        let nodes = super::plan::collect(&[self.node().clone()]);
        let outputs: Vec<VarRef> = nodes.iter().flat_map(|f| f.outputs()).collect();
        let observed = outputs.iter().filter(|v| v.observed().data);
        observed.for_each(|v| Variable::handle(v.clone()).keep_lost());
        let outputs: Vec<Variable> = outputs.into_iter().map(Variable::handle).collect();
        outputs.iter().for_each(Variable::unlink_parent);
        drop(take_plans_of(outputs.iter().flat_map(Variable::readers).collect()));
    }
}

/// True if `from` is computed from `what`; its copies are computed from its parent, and stay so when it gets another one.
///
/// Looked for from both ends at once: a long history on one side costs nothing where the other one is short.
fn reaches(from: &VarRef, what: &VarRef) -> bool {
    let Some(end) = from.parent() else { return false };
    let consumers =
        |v: &VarRef| -> Vec<Arc<FnNode>> { v.lock().consumers.iter().filter_map(|c| c.upgrade()).collect() };
    let mut after = consumers(what);
    after.retain(|f| !f.mirror);
    let mut before = vec![end.clone()];
    let (mut seen_after, mut seen_before) = (HashSet::new(), HashSet::new());
    while let (Some(f), Some(g)) = (before.pop(), after.pop()) {
        if Arc::ptr_eq(&g, &end) {
            return true;
        }
        for x in f.inputs() {
            if !f.mirror && Arc::ptr_eq(&x, what) {
                return true;
            }
            before.extend(x.parent().filter(|p| seen_before.insert(p.id)));
        }
        let readers = g.living_outputs().into_iter().flat_map(|y| consumers(&y));
        after.extend(readers.filter(|f| seen_after.insert(f.id)));
    }
    false
}

/// Lets `f` read `new` in the place of `old`. Plans of what `f` computes own `old`, which may soon be computed from there.
fn reread(f: &Arc<FnNode>, old: &VarRef, new: &VarRef) {
    f.replace_input(old, new);
    if old.is_planned() {
        drop(take_plans_after(f));
    }
}

fn take_plans_after(f: &Arc<FnNode>) -> Vec<Cache> {
    take_plans_of(vec![f.clone()])
}

/// Gives up the plans of all that these functions and those after them compute.
fn take_plans_of(mut todo: Vec<Arc<FnNode>>) -> Vec<Cache> {
    let (mut plans, mut seen) = (Vec::new(), HashSet::new());
    while let Some(f) = todo.pop() {
        if !seen.insert(f.id) {
            continue;
        }
        for y in f.living_outputs() {
            let mut s = y.lock();
            plans.push(std::mem::take(&mut s.plans));
            todo.extend(s.consumers.iter().filter_map(|c| c.upgrade()));
        }
    }
    plans
}
