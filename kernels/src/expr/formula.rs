//! A finished element-wise formula: inputs in, outputs out, to be placed into larger programs.

use super::ssa::{Id, Ins, Ssa};
use super::{Expr, derivative};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::rc::Rc;

/// A compiled formula. `outputs` may have gaps (the derivative with respect to an input that has none).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Formula {
    pub(super) ins: Vec<Ins>,
    pub(super) inputs: usize,
    pub(super) scalars: usize,
    pub(super) outputs: Vec<Option<Id>>,
}

impl Formula {
    /// Builds a formula of `inputs` inputs.
    ///
    /// ```
    /// use nnrs_kernels::expr::Formula;
    /// let square_plus_one = Formula::new(1, |x| vec![Some(x[0].square() + 1.0)]);
    /// assert_eq!(square_plus_one.eval(&[3.0]), [Some(10.0)]);
    /// ```
    pub fn new(inputs: usize, f: impl FnOnce(&[Expr]) -> Vec<Option<Expr>>) -> Formula {
        Formula::with_scalars(inputs, 0, |x, _| f(x))
    }

    /// Builds a formula of `inputs` inputs and `scalars` numbers that are given anew at each run.
    ///
    /// ```
    /// use nnrs_kernels::expr::Formula;
    /// let step = Formula::with_scalars(2, 1, |x, rate| vec![Some(&x[0] - &rate[0] * &x[1])]);
    /// assert_eq!(step.eval_with(&[3.0, 2.0], &[0.5]), [Some(2.0)]);
    /// ```
    pub fn with_scalars(
        inputs: usize,
        scalars: usize,
        f: impl FnOnce(&[Expr], &[Expr]) -> Vec<Option<Expr>>,
    ) -> Formula {
        let ssa = Rc::new(RefCell::new(Ssa::default()));
        let leaf = |ins| {
            let id = ssa.borrow_mut().push(ins);
            Expr { ssa: ssa.clone(), id }
        };
        let x: Vec<Expr> = (0..inputs as u32).map(|k| leaf(Ins::Input(k))).collect();
        let s: Vec<Expr> = (0..scalars as u32).map(|k| leaf(Ins::Scalar(k))).collect();
        let outputs = f(&x, &s).into_iter().map(|e| e.map(|e| e.id)).collect();
        Formula { ins: ssa.borrow().ins().to_vec(), inputs, scalars, outputs }.pruned()
    }

    /// How many arrays it reads.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// How many numbers a run gives.
    pub fn scalars(&self) -> usize {
        self.scalars
    }

    /// For each output, whether it exists.
    pub fn outputs(&self) -> &[Option<Id>] {
        &self.outputs
    }

    /// The program.
    pub fn ins(&self) -> &[Ins] {
        &self.ins
    }

    /// Which inputs the given output depends on.
    pub fn uses(&self, output: usize) -> Vec<bool> {
        let mut used = vec![false; self.inputs];
        let Some(out) = self.outputs[output] else { return used };
        let mut needed = vec![false; self.ins.len()];
        needed[out as usize] = true;
        for i in (0..self.ins.len()).rev() {
            if !needed[i] {
                continue;
            }
            if let Ins::Input(k) = self.ins[i] {
                used[k as usize] = true;
            }
            self.ins[i].operands().for_each(|o| needed[o as usize] = true);
        }
        used
    }

    /// The formula of output `k` alone.
    pub fn only(&self, k: usize) -> Formula {
        let ins = self.ins.clone();
        Formula { ins, inputs: self.inputs, scalars: self.scalars, outputs: vec![self.outputs[k]] }.pruned()
    }

    /// The same formula with only the inputs `used`, in that order; the others must not be read.
    pub fn keep(&self, used: &[usize]) -> Formula {
        let rename = |ins: &Ins| match ins {
            Ins::Input(k) => {
                used.iter().position(|u| *u == *k as usize).map_or(Ins::Const(0), |i| Ins::Input(i as u32))
            }
            other => *other,
        };
        Formula {
            ins: self.ins.iter().map(rename).collect(),
            inputs: used.len(),
            scalars: self.scalars,
            outputs: self.outputs.clone(),
        }
        .pruned()
    }

    /// Drops instructions that no output needs.
    fn pruned(self) -> Formula {
        let mut ssa = Ssa::default();
        let args: Vec<Id> = (0..self.inputs).map(|k| ssa.push(Ins::Input(k as u32))).collect();
        let outputs = self.apply(&mut ssa, &args).into_vec();
        let keep = ssa.needed(outputs.iter().flatten().copied().chain(args));
        let mut renamed = vec![0; keep.len()];
        let mut ins = Vec::new();
        for (id, &i) in ssa.ins().iter().enumerate().filter(|(id, _)| keep[*id]) {
            renamed[id] = ins.len() as Id;
            ins.push(i.map(|o| renamed[o as usize]));
        }
        let outputs = outputs.into_iter().map(|o| o.map(|o| renamed[o as usize])).collect();
        Formula { ins, inputs: self.inputs, scalars: self.scalars, outputs }
    }

    /// Places the formula into `ssa` with `args` for its inputs; gives its outputs.
    pub fn apply(&self, ssa: &mut Ssa, args: &[Id]) -> SmallVec<[Option<Id>; 4]> {
        let wanted = self.wanted();
        let mut at: SmallVec<[Id; 32]> = SmallVec::from_elem(Id::MAX, self.ins.len());
        for (i, &ins) in self.ins.iter().enumerate().filter(|(i, _)| wanted[*i]) {
            at[i] = match ins {
                Ins::Input(k) => args[k as usize],
                other => ssa.push(other.map(|o| at[o as usize])),
            };
        }
        self.outputs.iter().map(|o| o.map(|o| at[o as usize])).collect()
    }

    /// For each instruction, whether an output needs it.
    pub(super) fn wanted(&self) -> SmallVec<[bool; 32]> {
        let mut wanted: SmallVec<[bool; 32]> = SmallVec::from_elem(false, self.ins.len());
        self.outputs.iter().flatten().for_each(|&o| wanted[o as usize] = true);
        for i in (0..self.ins.len()).rev() {
            if wanted[i] {
                self.ins[i].operands().for_each(|o| wanted[o as usize] = true);
            }
        }
        wanted
    }

    /// The derivative of a formula with one output: inputs `x.., y, gy`, outputs `gx..` (`None`: no gradient).
    pub fn derivative(&self) -> Formula {
        derivative::derive(self)
    }

    /// Evaluates the formula for one element in double precision (tests, constant folding).
    pub fn eval(&self, x: &[f64]) -> Vec<Option<f64>> {
        self.eval_with(x, &[])
    }

    /// As [`Formula::eval`], with the numbers of the run.
    pub fn eval_with(&self, x: &[f64], scalars: &[f64]) -> Vec<Option<f64>> {
        let mut v = Vec::with_capacity(self.ins.len());
        for ins in &self.ins {
            let of = |id: Id| -> f64 { v[id as usize] };
            let value = match *ins {
                Ins::Input(k) => x[k as usize],
                Ins::Scalar(k) => scalars.get(k as usize).copied().unwrap_or(f64::NAN),
                Ins::Const(bits) => f64::from_bits(bits),
                Ins::Unary(op, a) => op.eval(of(a)),
                Ins::Binary(op, a, b) => op.eval(of(a), of(b)),
                Ins::Select(c, a, b) => {
                    if of(c) != 0.0 {
                        of(a)
                    } else {
                        of(b)
                    }
                }
            };
            v.push(value);
        }
        self.outputs.iter().map(|o| o.map(|o| v[o as usize])).collect()
    }
}
