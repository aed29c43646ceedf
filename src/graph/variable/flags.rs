//! What a user may ask of a variable: its gradient, what is kept, what may be changed.

use super::Variable;
use crate::error::{Error, Result};
use std::sync::atomic::Ordering::Relaxed;

impl Variable {
    /// The same variable with `need_grad` set.
    ///
    /// ```
    /// let x = nnrs::Variable::new([2, 3]).with_need_grad(true);
    /// assert!(x.need_grad());
    /// ```
    pub fn with_need_grad(self, need_grad: bool) -> Variable {
        self.set_need_grad(need_grad);
        self
    }

    /// Whether a gradient is computed for this variable: as set, or inherited from what it was computed from.
    pub fn need_grad(&self) -> bool {
        self.node().need_grad()
    }

    /// `need_grad` as set by the user, `None` if it is inherited.
    pub fn need_grad_setting(&self) -> Option<bool> {
        self.node().lock().need_grad
    }

    /// True if the user has set `need_grad`, so that it is not inherited.
    pub fn need_grad_is_set(&self) -> bool {
        self.need_grad_setting().is_some()
    }

    /// Sets `need_grad`; `None`: inherit it.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]).with_need_grad(true);
    /// let y = f::exp(&x)?;
    /// assert!(y.need_grad() && !y.need_grad_is_set());
    /// y.set_need_grad(false);
    /// assert!(!y.need_grad() && y.need_grad_state());
    /// y.unset_need_grad();
    /// assert!(y.need_grad());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_need_grad(&self, need_grad: impl Into<Option<bool>>) {
        let need_grad = need_grad.into();
        let mut s = self.node().lock();
        if s.need_grad != need_grad {
            s.need_grad = need_grad;
            drop(s);
            self.node().changed();
        }
    }

    /// Lets `need_grad` be inherited again.
    pub fn unset_need_grad(&self) {
        self.set_need_grad(None);
    }

    /// What this variable inherits: whether something that it is computed from needs a gradient.
    pub fn need_grad_state(&self) -> bool {
        self.node().lock().inherited
    }

    /// True if there is something to inherit: a function computes this variable, or the state was set by hand.
    pub fn need_grad_state_is_set(&self) -> bool {
        let s = self.node().lock();
        s.parent.is_some() || s.inherited_by_hand.is_some()
    }

    /// Sets what this variable inherits, whatever its inputs say, until [`Variable::unset_need_grad_state`].
    pub fn set_need_grad_state(&self, on: bool) {
        let mut s = self.node().lock();
        (s.inherited, s.inherited_by_hand) = (on, Some(on));
        drop(s);
        self.node().changed();
    }

    /// Lets the inputs say again what this variable inherits.
    pub fn unset_need_grad_state(&self) {
        let inherited = self.node().parent().is_some_and(|f| f.inputs().iter().any(|x| x.need_grad()));
        let mut s = self.node().lock();
        (s.inherited, s.inherited_by_hand) = (inherited, None);
        drop(s);
        self.node().changed();
    }

    /// Persistent variables keep data and gradient whatever the clear flags say.
    pub fn persistent(&self) -> bool {
        self.node().lock().persistent
    }

    /// Sets [`Variable::persistent`].
    pub fn set_persistent(&self, on: bool) {
        let old = std::mem::replace(&mut self.node().lock().persistent, on);
        self.changed_if(old != on);
    }

    /// Whether the data stays whatever the clear flags say (the gradient may go).
    pub fn prohibit_clear_data(&self) -> bool {
        self.node().lock().prohibit_clear_data
    }

    /// Sets [`Variable::prohibit_clear_data`].
    pub fn set_prohibit_clear_data(&self, on: bool) {
        let old = std::mem::replace(&mut self.node().lock().prohibit_clear_data, on);
        self.changed_if(old != on);
    }

    /// Whether another value may take this variable's place (see [`Variable::supersede`]). True unless set.
    pub fn allow_modify_data(&self) -> bool {
        !self.node().lock().fixed
    }

    /// Sets [`Variable::allow_modify_data`].
    pub fn set_allow_modify_data(&self, on: bool) {
        self.node().lock().fixed = !on;
    }

    pub(crate) fn check_modifiable(&self) -> Result<()> {
        if self.allow_modify_data() {
            return Ok(());
        }
        Err(Error::graph("the data of this variable must not be modified: its allow_modify_data is off"))
    }

    /// Whether the data is dropped in the forward pass and computed again for the backward pass.
    pub fn recompute(&self) -> bool {
        self.node().lock().recompute
    }

    /// Sets [`Variable::recompute`].
    pub fn set_recompute(&self, on: bool) {
        self.node().set_recompute(on);
    }

    /// Drops the data now if it can be computed again and nobody looks at it: what dropping the last handle does to a
    /// variable that was made under auto_forward and [recompute](crate::graph::mode::set_recompute).
    pub fn clear_during_auto_forward(&self) {
        let s = self.node().lock();
        let kept = s.persistent || s.prohibit_clear_data || !s.recompute;
        drop(s);
        if !kept {
            self.node().sheds.store(true, Relaxed);
            self.node().shed();
        }
    }

    fn changed_if(&self, changed: bool) {
        if changed {
            self.node().changed();
        }
    }
}
