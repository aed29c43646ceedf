//! Walks over a graph: what made a variable, who reads it, the functions behind it in either order.

use super::callbacks::{CommunicatorBackwardCallback, finish, finish_function};
use super::plan::{self, Closed};
use super::variable::{VarNode, Variable};
use super::{FunctionRef, node::FnNode};
use crate::error::{Error, Result};
use std::sync::Arc;

impl Variable {
    /// The function that made this variable; `None` for a leaf.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// assert!(x.parent().is_none());
    /// assert_eq!(f::exp(&x)?.parent().unwrap().name(), "exp");
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn parent(&self) -> Option<FunctionRef> {
        self.node().parent().map(FunctionRef::new)
    }

    /// True if some function made this variable.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// assert!(!x.has_parent() && f::exp(&x)?.has_parent());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn has_parent(&self) -> bool {
        self.node().lock().parent.is_some()
    }

    /// The functions that read this variable and are alive: the variable does not keep them.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// let y = f::exp(&x)?;
    /// assert_eq!(x.function_references()[0].name(), "exp");
    /// drop(y);
    /// assert!(x.function_references().is_empty());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn function_references(&self) -> Vec<FunctionRef> {
        let mut list: Vec<_> = self.node().lock().consumers.iter().filter_map(|c| c.upgrade()).collect();
        list.dedup_by(|a, b| Arc::ptr_eq(a, b));
        list.into_iter()
            .filter(|f| f.inputs().iter().any(|x| Arc::ptr_eq(x, self.node())))
            .map(FunctionRef::new)
            .collect()
    }

    /// Calls `f` with each function behind this variable, in the order of running.
    ///
    /// # Errors
    /// The first error of `f`, which ends the walk.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::sin(&f::exp(&Variable::new([2]))?)?;
    /// let mut names = Vec::new();
    /// y.visit(|f| Ok(names.push(f.name())))?;
    /// assert_eq!(names, ["exp", "sin"]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn visit(&self, mut f: impl FnMut(&FunctionRef) -> Result<()>) -> Result<()> {
        plan::collect(&[self.node().clone()]).into_iter().try_for_each(|n| f(&FunctionRef::new(n)))
    }

    /// Calls `f` with the function that made this variable and those before it, in the order of running, and puts them
    /// into `closed`; what is in it already is left out, and so is what only such functions need.
    ///
    /// With `recomputation` the walk follows just those inputs whose data went because they are marked for
    /// [recomputation](Variable::recompute): what it meets is what would run again.
    ///
    /// # Errors
    /// The first error of `f`, which ends the walk.
    ///
    /// ```
    /// use nnrs::{functions as f, graph::Closed, Variable};
    /// let h = f::exp(&Variable::new([2]))?;
    /// let (a, b) = (f::sin(&h)?, f::abs(&h)?);
    /// let (mut closed, mut names) = (Closed::default(), Vec::new());
    /// for y in [&a, &b] {
    ///     y.visit_function_recursive(&mut closed, false, |f| Ok(names.push(f.name())))?;
    /// }
    /// assert_eq!(names, ["exp", "sin", "abs"]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn visit_function_recursive(
        &self,
        closed: &mut Closed,
        recomputation: bool,
        mut f: impl FnMut(&FunctionRef) -> Result<()>,
    ) -> Result<()> {
        let root = std::slice::from_ref(self.node());
        let is_there = |v: &VarNode| !v.lock().recompute || !v.data().storage().is_empty();
        let ends =
            |f: &FnNode, v: &VarNode| closed.contains(f.id) || (recomputation && v.id != root[0].id && is_there(v));
        let functions = plan::collect_before(root, ends).0;
        for function in functions {
            closed.insert(function.id);
            f(&FunctionRef::new(function))?;
        }
        Ok(())
    }

    /// Calls `f` with each function that a gradient of this variable passes through, in the order of
    /// [backward](Variable::backward), and tells `callbacks` after each and at the end. Nothing runs.
    ///
    /// # Errors
    /// The first error of `f` or of a callback, which ends the walk.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]).with_need_grad(true);
    /// let y = f::add2(&f::exp(&x)?, &f::abs(&Variable::new([2]))?, f::Add2::default())?;
    /// let mut names = Vec::new();
    /// y.visit_function_backward(|f| Ok(names.push(f.name())), &[])?;
    /// assert_eq!(names, ["add2", "exp"]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn visit_function_backward(
        &self,
        mut f: impl FnMut(&FunctionRef) -> Result<()>,
        callbacks: &[&dyn CommunicatorBackwardCallback],
    ) -> Result<()> {
        for function in plan::backward_functions(self.node())? {
            let function = FunctionRef::new(function);
            f(&function)?;
            finish_function(callbacks, &function)?;
        }
        finish(callbacks)
    }

    /// Notes that the functions that read this variable must look at its shape again before they run. A changed shape is
    /// noticed without it.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// let y = f::exp(&x)?;
    /// x.mark_need_setup();
    /// assert!(x.check_and_unmark_need_setup(&y.parent().unwrap())?);
    /// assert!(!x.check_and_unmark_need_setup(&y.parent().unwrap())?);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn mark_need_setup(&self) {
        self.function_references().iter().for_each(|f| f.node().mark_stale());
        self.node().changed();
    }

    /// Sets `f`, which reads this variable, up again if its inputs changed their shapes since it was last set up, or were
    /// [marked](Variable::mark_need_setup); true if so.
    ///
    /// # Errors
    /// `f` does not read this variable, or does not take the shapes.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// let y = f::exp(&x)?;
    /// x.reset_shape([5], true)?;
    /// assert!(x.check_and_unmark_need_setup(&y.parent().unwrap())?);
    /// assert_eq!(y.shape(), [5].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn check_and_unmark_need_setup(&self, f: &FunctionRef) -> Result<bool> {
        if !f.node().inputs().iter().any(|x| Arc::ptr_eq(x, self.node())) {
            return Err(
                Error::graph("the function does not read this variable").function("check_and_unmark_need_setup")
            );
        }
        f.node().refresh()
    }
}
