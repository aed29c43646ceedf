//! What solvers do with gradients before an update: weight decay, clipping, scaling, and looking for odd numbers.

use super::gradient_kernels::{self, Odd};
use super::{Hooks, Solver};
use nnrs_kernels::error::Result;

impl Solver {
    /// Adds `rate` times the weight to each gradient; where the solver fuses the two, sets the rate of the next update.
    ///
    /// # Errors
    /// A gradient or a state of another size than its parameter; not enough memory.
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[0.0f32, 1.0])?;
    /// solver.weight_decay(0.5)?;
    /// assert_eq!(w.grad().to_vec::<f32>()?, [0.5, 0.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn weight_decay(&self, rate: f64) -> Result<()> {
        self.weight_decay_hooked(rate, Hooks::default())
    }

    /// As [`Solver::weight_decay`], with hooks (which are not called where the decay is fused).
    ///
    /// # Errors
    /// As [`Solver::weight_decay`], and what a hook says, which ends the work.
    ///
    /// ```
    /// use nnrs::{solver::{Hooks, Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[0.0f32, 1.0])?;
    /// let count = std::cell::Cell::new(0);
    /// let note = || Ok(count.set(count.get() + 1));
    /// let hooks = Hooks { pre: Some(&note), post: Some(&note) };
    /// solver.weight_decay_hooked(0.5, hooks)?;
    /// assert_eq!((count.get(), w.grad().to_vec::<f32>()?), (2, vec![0.5, 0.0]));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn weight_decay_hooked(&self, rate: f64, hooks: Hooks) -> Result<()> {
        let rate = rate as f32 as f64;
        if self.fuses_weight_decay() {
            self.lock().weight_decay = Some(rate);
            return Ok(());
        }
        self.on_gradients(hooks, &mut |entries| gradient_kernels::decay(entries, rate))
    }

    /// Scales each gradient whose L2 norm is above `norm` down to that norm (each parameter on its own).
    ///
    /// # Errors
    /// As [`Solver::weight_decay`].
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[3.0f32, 4.0])?;
    /// solver.clip_grad_by_norm(1.0)?;
    /// assert!(w.grad().to_vec::<f64>()?.iter().zip([0.6, 0.8]).all(|(a, b)| (a - b).abs() < 1e-6));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn clip_grad_by_norm(&self, norm: f64) -> Result<()> {
        self.clip_grad_by_norm_hooked(norm, Hooks::default())
    }

    /// As [`Solver::clip_grad_by_norm`], with hooks.
    ///
    /// # Errors
    /// As [`Solver::weight_decay_hooked`].
    ///
    /// ```
    /// use nnrs::{solver::{Hooks, Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[3.0f32, 4.0])?;
    /// let count = std::cell::Cell::new(0);
    /// let note = || Ok(count.set(count.get() + 1));
    /// let hooks = Hooks { pre: Some(&note), post: Some(&note) };
    /// solver.clip_grad_by_norm_hooked(5.0, hooks)?;
    /// assert_eq!((count.get(), w.grad().to_vec::<f32>()?), (2, vec![3.0, 4.0]));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn clip_grad_by_norm_hooked(&self, norm: f64, hooks: Hooks) -> Result<()> {
        let norm = norm as f32 as f64;
        self.on_gradients(hooks, &mut |entries| gradient_kernels::clip_by_norm(entries, norm))
    }

    /// Multiplies all gradients by `scale`.
    ///
    /// # Errors
    /// As [`Solver::weight_decay`].
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[3.0f32, 4.0])?;
    /// solver.scale_grad(0.5)?;
    /// assert_eq!(w.grad().to_vec::<f32>()?, [1.5, 2.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn scale_grad(&self, scale: f64) -> Result<()> {
        self.scale_grad_hooked(scale, Hooks::default())
    }

    /// As [`Solver::scale_grad`], with hooks.
    ///
    /// # Errors
    /// As [`Solver::weight_decay_hooked`].
    ///
    /// ```
    /// use nnrs::{solver::{Hooks, Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[3.0f32, 4.0])?;
    /// let count = std::cell::Cell::new(0);
    /// let note = || Ok(count.set(count.get() + 1));
    /// let hooks = Hooks { pre: Some(&note), post: Some(&note) };
    /// solver.scale_grad_hooked(2.0, hooks)?;
    /// assert_eq!((count.get(), w.grad().to_vec::<f32>()?), (2, vec![6.0, 8.0]));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn scale_grad_hooked(&self, scale: f64, hooks: Hooks) -> Result<()> {
        let scale = scale as f32 as f64;
        self.on_gradients(hooks, &mut |entries| gradient_kernels::scale(entries, scale))
    }

    /// True if a gradient holds an infinity.
    ///
    /// # Errors
    /// As [`Solver::weight_decay`].
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[1.0, f32::INFINITY])?;
    /// assert!(solver.check_inf_grad()?);
    /// w.grad().write(&[1.0, f32::NAN])?;
    /// assert!(!solver.check_inf_grad()?);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn check_inf_grad(&self) -> Result<bool> {
        self.check_inf_grad_hooked(Hooks::default())
    }

    /// As [`Solver::check_inf_grad`], with hooks.
    ///
    /// # Errors
    /// As [`Solver::weight_decay_hooked`].
    ///
    /// ```
    /// use nnrs::{solver::{Hooks, Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[3.0f32, 4.0])?;
    /// let count = std::cell::Cell::new(0);
    /// let note = || Ok(count.set(count.get() + 1));
    /// let hooks = Hooks { pre: Some(&note), post: Some(&note) };
    /// assert!(!solver.check_inf_grad_hooked(hooks)?);
    /// assert_eq!(count.get(), 2);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn check_inf_grad_hooked(&self, hooks: Hooks) -> Result<bool> {
        self.check(Odd::Inf, hooks)
    }

    /// True if a gradient holds a NaN.
    ///
    /// # Errors
    /// As [`Solver::weight_decay`].
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[1.0, f32::NAN])?;
    /// assert!(solver.check_nan_grad()?);
    /// w.grad().write(&[1.0, f32::INFINITY])?;
    /// assert!(!solver.check_nan_grad()?);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn check_nan_grad(&self) -> Result<bool> {
        self.check_nan_grad_hooked(Hooks::default())
    }

    /// As [`Solver::check_nan_grad`], with hooks.
    ///
    /// # Errors
    /// As [`Solver::weight_decay_hooked`].
    ///
    /// ```
    /// use nnrs::{solver::{Hooks, Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[3.0f32, 4.0])?;
    /// let count = std::cell::Cell::new(0);
    /// let note = || Ok(count.set(count.get() + 1));
    /// let hooks = Hooks { pre: Some(&note), post: Some(&note) };
    /// assert!(!solver.check_nan_grad_hooked(hooks)?);
    /// assert_eq!(count.get(), 2);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn check_nan_grad_hooked(&self, hooks: Hooks) -> Result<bool> {
        self.check(Odd::NaN, hooks)
    }

    /// True if a gradient holds an infinity or a NaN.
    ///
    /// # Errors
    /// As [`Solver::weight_decay`].
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[1.0, f32::NAN])?;
    /// assert!(solver.check_inf_or_nan_grad()?);
    /// w.grad().zero()?;
    /// assert!(!solver.check_inf_or_nan_grad()?);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn check_inf_or_nan_grad(&self) -> Result<bool> {
        self.check_inf_or_nan_grad_hooked(Hooks::default())
    }

    /// As [`Solver::check_inf_or_nan_grad`], with hooks.
    ///
    /// # Errors
    /// As [`Solver::weight_decay_hooked`].
    ///
    /// ```
    /// use nnrs::{solver::{Hooks, Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[3.0f32, 4.0])?;
    /// let count = std::cell::Cell::new(0);
    /// let note = || Ok(count.set(count.get() + 1));
    /// let hooks = Hooks { pre: Some(&note), post: Some(&note) };
    /// assert!(!solver.check_inf_or_nan_grad_hooked(hooks)?);
    /// assert_eq!(count.get(), 2);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn check_inf_or_nan_grad_hooked(&self, hooks: Hooks) -> Result<bool> {
        self.check(Odd::InfOrNaN, hooks)
    }

    fn check(&self, odd: Odd, hooks: Hooks) -> Result<bool> {
        let mut found = false;
        self.on_gradients(hooks, &mut |entries| {
            found |= gradient_kernels::any(entries, odd)?;
            Ok(())
        })?;
        Ok(found)
    }
}
