//! What a user may ask of a variable: its gradient, what is kept, what may be changed.

use super::{VarNode, VarRef, VarState, Variable};
use crate::graph::mode;
use crate::graph::plan::{self, Closed};
use nnrs_kernels::error::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Variables whose inherited flag was set by hand.
static BY_HAND: AtomicUsize = AtomicUsize::new(0);

pub(super) fn set_by_hand(s: &mut VarState, state: Option<Option<bool>>) {
    match (s.by_hand.is_some(), state.is_some()) {
        (false, true) => BY_HAND.fetch_add(1, Relaxed),
        (true, false) => BY_HAND.fetch_sub(1, Relaxed),
        _ => 0,
    };
    s.by_hand = state;
}

/// What the functions of a forward run read inherits what the graph says, whatever was set by hand.
pub(in crate::graph) fn drop_states_by_hand(roots: &[VarRef], closed: Option<&Closed>) {
    if BY_HAND.load(Relaxed) == 0 {
        return;
    }
    let is_closed = |id| closed.is_some_and(|c| c.contains(id));
    for f in plan::collect_before(roots, |f, _| is_closed(f.id)).functions {
        f.inputs().iter().for_each(|x| drop_state_by_hand(x));
    }
}

fn drop_state_by_hand(v: &VarNode) {
    let inherited = v.parent().is_some_and(|f| f.inputs().iter().any(|x| x.need_grad()));
    let mut s = v.lock();
    if s.by_hand.is_some() {
        set_by_hand(&mut s, None);
        s.inherit(inherited);
        drop(s);
        v.changed();
    }
}

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

    /// True if the user has set `need_grad` to true. Whether a gradient is computed says
    /// [`need_grad_state`](Variable::need_grad_state), which is what Python calls `need_grad`.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]).with_need_grad(true);
    /// let y = f::exp(&x)?;
    /// assert!(x.need_grad() && !y.need_grad() && y.need_grad_state());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn need_grad(&self) -> bool {
        self.need_grad_setting() == Some(true)
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
    /// assert!(y.need_grad_state() && !y.need_grad_is_set());
    /// y.set_need_grad(false);
    /// assert!(!y.need_grad_state());
    /// y.unset_need_grad();
    /// assert!(y.need_grad_state());
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

    /// Whether a gradient is computed for this variable: as [`need_grad`](Variable::need_grad) is set, or else inherited from
    /// what it was computed from.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::exp(&Variable::new([2]).with_need_grad(true))?;
    /// assert!(y.need_grad_state());
    /// y.set_need_grad(false);
    /// assert!(!y.need_grad_state());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn need_grad_state(&self) -> bool {
        self.node().need_grad()
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
        s.by_hand.map_or(s.parent.is_some(), |state| state.is_some())
    }

    /// Sets what this variable inherits, whatever its inputs say, until the next forward run of a function that reads it.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let h = f::exp(&Variable::new([1]).with_need_grad(true))?;
    /// let y = f::sin(&h)?;
    /// h.set_need_grad_state(false);
    /// assert!(!h.need_grad_state());
    /// y.forward()?;
    /// assert!(h.need_grad_state());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_need_grad_state(&self, on: bool) {
        self.set_state_by_hand(Some(on));
    }

    /// This variable inherits nothing, until the next forward run of a function that reads it.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::exp(&Variable::new([2]).with_need_grad(true))?;
    /// y.unset_need_grad_state();
    /// assert!(!y.need_grad_state() && !y.need_grad_state_is_set());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn unset_need_grad_state(&self) {
        self.set_state_by_hand(None);
    }

    fn set_state_by_hand(&self, state: Option<bool>) {
        let mut s = self.node().lock();
        set_by_hand(&mut s, Some(state));
        s.inherit(false);
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

    /// Under [auto_forward](crate::graph::mode::set_auto_forward), drops the data of an output now if no other handle shows it and
    /// no gradient reads it, or it is marked with [`recompute`](Variable::recompute). Who reads it all the same has it
    /// computed again. Does nothing in static graphs, nor to a variable that is persistent or prohibits clearing.
    ///
    /// ```
    /// use nnrs::{functions as f, graph::mode, Variable};
    /// mode::set_auto_forward(true);
    /// let x = Variable::from_slice(&[0.0f32], [1].into())?.with_need_grad(true);
    /// let h = f::add_scalar(&x, f::AddScalar { val: 1.0, inplace: false })?;
    /// let y = f::sin(&h)?; // its gradient reads h
    /// h.clear_during_auto_forward();
    /// assert!(!h.raw_data().storage().is_empty());
    /// drop(y);
    /// h.clear_during_auto_forward();
    /// assert!(h.raw_data().storage().is_empty());
    /// assert_eq!(h.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn clear_during_auto_forward(&self) {
        let s = self.node().lock();
        let (kept, recompute) = (s.keeps_data(), s.recompute);
        drop(s);
        if mode::auto_forward() && !kept && (recompute || !self.is_read_by_gradients()) {
            self.node().sheds.store(true, Relaxed);
            self.node().shed(1);
        }
    }

    /// Some function's gradient reads the data of this variable.
    fn is_read_by_gradients(&self) -> bool {
        let is_self = |v: &Variable| v.is(self);
        let made = self.parent().is_some_and(|f| {
            let o = f.outputs().iter().position(is_self);
            o.is_some_and(|o| (0..f.inputs().len()).any(|i| f.grad_reads_output(i, o)))
        });
        made || self.function_references().iter().any(|f| {
            let x = f.inputs();
            let reads = |j: usize| (0..x.len()).any(|i| f.grad_reads_input(i, j));
            x.iter().any(Variable::need_grad_state) && (0..x.len()).any(|j| is_self(&x[j]) && reads(j))
        })
    }

    fn changed_if(&self, changed: bool) {
        if changed {
            self.node().changed();
        }
    }
}
