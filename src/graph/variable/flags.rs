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
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// assert!(!x.need_grad() && f::exp(&x.with_need_grad(true))?.need_grad());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn need_grad(&self) -> bool {
        self.node().need_grad()
    }

    /// `need_grad` as set by the user, `None` if it is inherited.
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// assert_eq!(x.need_grad_setting(), None);
    /// assert_eq!(x.with_need_grad(false).need_grad_setting(), Some(false));
    /// ```
    pub fn need_grad_setting(&self) -> Option<bool> {
        self.node().lock().need_grad
    }

    /// True if the user has set `need_grad`, so that it is not inherited (see [`Variable::set_need_grad`]).
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// x.set_need_grad(false);
    /// assert!(x.need_grad_is_set());
    /// ```
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
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]).with_need_grad(true);
    /// x.unset_need_grad();
    /// assert!(!x.need_grad() && !x.need_grad_is_set());
    /// ```
    pub fn unset_need_grad(&self) {
        self.set_need_grad(None);
    }

    /// What this variable inherits: whether something that it is computed from needs a gradient. It decides whether this
    /// variable needs one as long as [`need_grad`](Variable::need_grad) is not set.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::exp(&Variable::new([2]).with_need_grad(true))?;
    /// y.set_need_grad(false);
    /// assert!(y.need_grad_state() && !y.need_grad());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn need_grad_state(&self) -> bool {
        self.node().lock().inherited
    }

    /// True if there is something to inherit: a function computes this variable, or the state was set by hand.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// let y = f::exp(&x)?;
    /// assert!(!x.need_grad_state_is_set() && y.need_grad_state_is_set());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn need_grad_state_is_set(&self) -> bool {
        let s = self.node().lock();
        s.parent.is_some() || s.inherited_by_hand.is_some()
    }

    /// Sets what this variable inherits, whatever its inputs say, until [`Variable::unset_need_grad_state`].
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::from_slice(&[1.0f32], [1].into())?.with_need_grad(true);
    /// let y = f::exp(&x)?;
    /// y.set_need_grad_state(false);
    /// assert!(!y.need_grad());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_need_grad_state(&self, on: bool) {
        let mut s = self.node().lock();
        (s.inherited, s.inherited_by_hand) = (on, Some(on));
        drop(s);
        self.node().changed();
    }

    /// Lets the inputs say again what this variable inherits.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::exp(&Variable::new([2]).with_need_grad(true))?;
    /// y.set_need_grad_state(false);
    /// y.unset_need_grad_state();
    /// assert!(y.need_grad());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn unset_need_grad_state(&self) {
        let inherited = self.node().parent().is_some_and(|f| f.inputs().iter().any(|x| x.need_grad()));
        let mut s = self.node().lock();
        (s.inherited, s.inherited_by_hand) = (inherited, None);
        drop(s);
        self.node().changed();
    }

    /// Whether data and gradient stay whatever the clear flags say.
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// x.set_persistent(true);
    /// assert!(x.persistent() && !nnrs::Variable::new([2]).persistent());
    /// ```
    pub fn persistent(&self) -> bool {
        self.node().lock().persistent
    }

    /// Sets [`Variable::persistent`].
    ///
    /// ```
    /// use nnrs::{functions as f, ForwardOptions, Variable};
    /// let h = f::exp(&Variable::from_slice(&[0.0f32], [1].into())?)?;
    /// let y = f::sin(&h)?;
    /// h.set_persistent(true);
    /// y.forward_with(ForwardOptions { clear_buffer: true, ..Default::default() })?;
    /// assert_eq!(h.raw_data().to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_persistent(&self, on: bool) {
        let old = std::mem::replace(&mut self.node().lock().persistent, on);
        self.changed_if(old != on);
    }

    /// Whether the data stays whatever the clear flags say. The gradient may go, which is the difference from
    /// [`Variable::persistent`].
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// x.set_prohibit_clear_data(true);
    /// assert!(x.prohibit_clear_data() && !x.persistent());
    /// ```
    pub fn prohibit_clear_data(&self) -> bool {
        self.node().lock().prohibit_clear_data
    }

    /// Sets [`Variable::prohibit_clear_data`].
    ///
    /// ```
    /// use nnrs::{functions as f, BackwardOptions, Variable};
    /// let x = Variable::from_slice(&[0.0f32], [1].into())?.with_need_grad(true);
    /// let h = f::exp(&x)?;
    /// let y = f::sin(&h)?;
    /// h.set_prohibit_clear_data(true);
    /// y.forward()?;
    /// y.backward_with(BackwardOptions { clear_buffer: true, ..Default::default() })?;
    /// assert_eq!(h.raw_data().to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_prohibit_clear_data(&self, on: bool) {
        let old = std::mem::replace(&mut self.node().lock().prohibit_clear_data, on);
        self.changed_if(old != on);
    }

    /// Whether another value may take this variable's place (see [`Variable::supersede`]). True unless set otherwise.
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// x.set_allow_modify_data(false);
    /// assert!(!x.allow_modify_data() && nnrs::Variable::new([2]).allow_modify_data());
    /// ```
    pub fn allow_modify_data(&self) -> bool {
        !self.node().lock().fixed
    }

    /// Sets [`Variable::allow_modify_data`].
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// x.set_allow_modify_data(false);
    /// let error = x.supersede(&f::exp(&x)?).unwrap_err();
    /// assert!(error.to_string().contains("must not be modified"));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
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
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// x.set_recompute(true);
    /// assert!(x.recompute() && !nnrs::Variable::new([2]).recompute());
    /// ```
    pub fn recompute(&self) -> bool {
        self.node().lock().recompute
    }

    /// Sets [`Variable::recompute`].
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::from_slice(&[0.0f32, 1.0], [2].into())?.with_need_grad(true);
    /// let h = f::sin(&x)?;
    /// h.set_recompute(true);
    /// let y = f::mul2(&h, &h, f::Mul2::default())?;
    /// y.forward()?;
    /// y.backward()?; // computes sin(x) again
    /// assert_eq!(x.grad().to_vec::<f32>()?[0], 0.0); // 2 sin(x) cos(x)
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_recompute(&self, on: bool) {
        self.node().set_recompute(on);
    }

    /// Drops the data now if it can be computed again and nobody else looks at it: what dropping the last handle does to a
    /// variable that was made under auto_forward and [recompute](crate::graph::mode::set_recompute). Does nothing to a variable
    /// that is persistent, not marked with [`recompute`](Variable::recompute), or made by no function.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let h = f::exp(&Variable::from_slice(&[0.0f32], [1].into())?)?;
    /// h.set_recompute(true);
    /// h.forward()?;
    /// h.clear_during_auto_forward();
    /// assert!(h.raw_data().storage().is_empty());
    /// assert_eq!(h.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn clear_during_auto_forward(&self) {
        let s = self.node().lock();
        let kept = s.persistent || s.prohibit_clear_data || !s.recompute;
        drop(s);
        if !kept {
            self.node().sheds.store(true, Relaxed);
            self.node().shed(1);
        }
    }

    fn changed_if(&self, changed: bool) {
        if changed {
            self.node().changed();
        }
    }
}
