//! Walks over a graph: what made a variable, which functions read it, the functions behind it in either order.

use super::callbacks::{CommunicatorBackwardCallback, ToldCallbacks};
use super::plan::{self, Closed};
use super::variable::{VarNode, Variable};
use super::{FunctionRef, node::FnNode};
use nnrs_kernels::error::{Error, Result};
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
        self.node().parent().map(|f| FunctionRef::new(f.shown()))
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
            .filter(|f| !f.mirror && f.inputs().iter().any(|x| Arc::ptr_eq(x, self.node())))
            .map(FunctionRef::new)
            .collect()
    }

    /// Calls `f` with each function behind this variable: those behind its inputs come first, one input after the other.
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
        let functions = plan::visited(self.node(), |_, _| false);
        functions.into_iter().filter(|n| !n.mirror).try_for_each(|n| f(&FunctionRef::new(n)))
    }

    /// Calls `f` with the function `start`, mostly the [parent](Variable::parent) of this variable, and those before it, as
    /// [`visit`](Variable::visit) does, and puts them into `closed`; what else is in it already is left out, and so is what only such
    /// functions need.
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
    ///     let start = y.parent().unwrap();
    ///     y.visit_function_recursive(&start, &mut closed, false, |f| Ok(names.push(f.name())))?;
    /// }
    /// assert_eq!(names, ["exp", "sin", "abs"]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn visit_function_recursive(
        &self,
        start: &FunctionRef,
        closed: &mut Closed,
        recomputation: bool,
        mut f: impl FnMut(&FunctionRef) -> Result<()>,
    ) -> Result<()> {
        let is_there = |v: &VarNode| !v.lock().recompute || !v.data().storage().is_empty();
        let ends =
            |f: &FnNode, v: &VarNode| f.id != start.id() && (closed.contains(f.id) || (recomputation && is_there(v)));
        let functions = plan::visited(&start.node().outputs()[0], ends);
        for function in functions.into_iter().filter(|n| !n.mirror) {
            closed.insert(function.id);
            f(&FunctionRef::new(function))?;
        }
        Ok(())
    }

    /// Calls `f` with `start`, mostly the [parent](Variable::parent) of this variable, and each function that a gradient
    /// passes through from there, in the order of [backward](Variable::backward), and tells `callbacks` after each and at the
    /// end. Nothing runs.
    ///
    /// # Errors
    /// The first error of `f` or of a callback, which ends the walk.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]).with_need_grad(true);
    /// let y = f::add2(&f::exp(&x)?, &f::abs(&Variable::new([2]))?, f::Add2::default())?;
    /// let mut names = Vec::new();
    /// y.visit_function_backward(&y.parent().unwrap(), |f| Ok(names.push(f.name())), &[])?;
    /// assert_eq!(names, ["add2", "exp"]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn visit_function_backward(
        &self,
        start: &FunctionRef,
        mut f: impl FnMut(&FunctionRef) -> Result<()>,
        callbacks: &[&dyn CommunicatorBackwardCallback],
    ) -> Result<()> {
        ToldCallbacks::during(callbacks, |told| {
            for function in plan::backward_functions(&start.node().outputs()[0])? {
                if function.mirror {
                    continue;
                }
                let function = FunctionRef::new(function);
                f(&function)?;
                told.function(&function)?;
            }
            Ok(())
        })
    }

    /// Notes that the functions that read this variable must be set up again before they run. [`Variable::reset_shape`] does
    /// it; a shape that changed in other ways is noticed without it.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let (a, b) = (Variable::new([2]), Variable::new([2]));
    /// let y = f::add2(&a, &b, Default::default())?;
    /// a.mark_need_setup();
    /// let function = y.parent().unwrap();
    /// assert!(!b.check_and_unmark_need_setup(&function)? && a.check_and_unmark_need_setup(&function)?);
    /// assert!(!a.check_and_unmark_need_setup(&function)?);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn mark_need_setup(&self) {
        self.function_references().iter().for_each(|f| f.node().mark_stale(self.node().id));
        self.node().changed();
    }

    /// Sets `f`, which reads this variable, up again if this variable [marked](Variable::mark_need_setup) it since it was
    /// last set up; true if so.
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
        f.node().refresh_for(self.node().id)
    }
}
