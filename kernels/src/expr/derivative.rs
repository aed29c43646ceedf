//! Derivatives of formulas: one table of rules for the primitive operations, applied backwards.

use super::op::{Binary, Unary};
use super::ssa::{Id, Ins, Ssa};
use super::{Expr, Formula};
use std::cell::RefCell;
use std::rc::Rc;

/// Derivative of a formula with one output. Inputs of the result: those of `f`, its output `y`, its gradient `gy`.
pub(super) fn derive(f: &Formula) -> Formula {
    let n = f.inputs;
    let Some(out) = f.outputs.first().copied().flatten() else {
        return Formula { ins: vec![], inputs: n + 2, scalars: f.scalars, outputs: vec![None; n] };
    };
    Formula::with_scalars(n + 2, f.scalars, |x, _| {
        let values = replay(f, &x[..n], out, &x[n]);
        let mut adjoint: Vec<Option<Adjoint>> = vec![None; f.ins.len()];
        adjoint[out as usize] = Some(Adjoint { value: x[n + 1].clone(), only: None });
        let mut gx = vec![None; n];
        for i in (0..=out as usize).rev() {
            let Some(g) = adjoint[i].take() else { continue };
            match f.ins[i] {
                Ins::Input(k) => gx[k as usize] = Some(g.whole(&values)),
                ins => spread(f, ins, i, &g, &values, &mut adjoint),
            }
        }
        gx
    })
}

/// A gradient, which may hold only where a value of `f` is true, or only where it is not, and be zero elsewhere. The choice is
/// put off, because the two sides of a `select` often meet again: then one choice between them does.
#[derive(Clone)]
struct Adjoint {
    value: Expr,
    only: Option<(Id, bool)>,
}

impl Adjoint {
    /// The gradient everywhere.
    fn whole(self, v: &[Expr]) -> Expr {
        match self.only {
            Some((c, true)) => v[c as usize].select(self.value, 0.0),
            Some((c, false)) => v[c as usize].select(0.0, self.value),
            None => self.value,
        }
    }

    /// The sum of two gradients.
    fn plus(self, o: Adjoint, v: &[Expr]) -> Adjoint {
        let (value, only) = match (self.only, o.only) {
            (Some((c, side)), Some((d, other))) if c == d && side != other => {
                let (a, b) = if side { (self.value, o.value) } else { (o.value, self.value) };
                (v[c as usize].select(a, b), None)
            }
            (p, q) if p == q => (self.value + o.value, p),
            _ => (self.whole(v) + o.whole(v), None),
        };
        Adjoint { value, only }
    }
}

/// The values of `f`'s instructions in the new formula; its output is taken as given.
fn replay(f: &Formula, x: &[Expr], out: Id, y: &Expr) -> Vec<Expr> {
    let ssa: &Rc<RefCell<Ssa>> = &y.ssa;
    let mut v: Vec<Expr> = Vec::with_capacity(f.ins.len());
    for (i, ins) in f.ins.iter().enumerate() {
        let e = match *ins {
            Ins::Input(k) => x[k as usize].clone(),
            _ if i == out as usize => y.clone(),
            other => {
                let id = ssa.borrow_mut().push(other.map(|o| v[o as usize].id));
                Expr { ssa: ssa.clone(), id }
            }
        };
        v.push(e);
    }
    v
}

fn spread(f: &Formula, ins: Ins, at: usize, g: &Adjoint, v: &[Expr], adjoint: &mut [Option<Adjoint>]) {
    let val = |id: Id| &v[id as usize];
    let is_const = |id: Id| matches!(f.ins[id as usize], Ins::Const(_) | Ins::Scalar(_));
    let mut put = |id: Id, value: Expr, only: Option<(Id, bool)>| {
        let (slot, new) = (&mut adjoint[id as usize], Adjoint { value, only });
        *slot = Some(match slot.take() {
            Some(old) => old.plus(new, v),
            None => new,
        });
    };
    let mut add = |id: Id, e: Expr| put(id, e, g.only);
    match ins {
        Ins::Unary(op, a) => {
            if let Some(e) = unary(op, val(a), &v[at], &g.value) {
                add(a, e);
            }
        }
        Ins::Binary(op, a, b) => {
            let (ga, gb) = (!is_const(a), !is_const(b));
            let (ea, eb) = binary(op, val(a), val(b), &v[at], &g.value, is_exact(&f.ins[b as usize]));
            if let Some(e) = ea.filter(|_| ga) {
                add(a, e);
            }
            if let Some(e) = eb.filter(|_| gb) {
                add(b, e);
            }
        }
        Ins::Select(c, a, b) => {
            let whole = g.clone().whole(v);
            if !is_const(a) {
                put(a, whole.clone(), Some((c, true)));
            }
            if !is_const(b) {
                put(b, whole, Some((c, false)));
            }
        }
        Ins::Input(_) | Ins::Const(_) | Ins::Scalar(_) => {}
    }
}

/// Gradient of `y = op(x)`.
fn unary(op: Unary, x: &Expr, y: &Expr, g: &Expr) -> Option<Expr> {
    use Unary::*;
    Some(match op {
        Neg => -g,
        Abs => g * x.sign(),
        Sqrt => g * 0.5 / (y + 0.0), // which makes 0 of -0: the slope there is that of 0
        Exp => g * y,
        Expm1 => g * (y + 1.0),
        Log => g / x,
        Log1p => g / (x + 1.0),
        Sin => g * x.cos(),
        Cos => -(g * x.sin()),
        Tan => g * (y.square() + 1.0),
        Sinh => g * x.cosh(),
        Cosh => g * x.sinh(),
        Tanh => g * (1.0 - y.square()),
        Asin => g / (1.0 - x.square()).sqrt(),
        Acos => -(g / (1.0 - x.square()).sqrt()),
        Atan => g / (x.square() + 1.0),
        Asinh => g / (x.square() + 1.0).sqrt(),
        Acosh => g / (x.square() - 1.0).sqrt(),
        Atanh => g / (1.0 - x.square()),
        Sigmoid => g * y * (1.0 - y),
        Erf => g * ((-x.square()).exp() * std::f64::consts::FRAC_2_SQRT_PI),
        RoundF16 | RoundBF16 => g.clone(),
        Sign | Floor | Ceil | Round | IsNan | IsInf | Not => return None,
    })
}

/// `a` to the power of b less 1; squares and roots have operations of their own.
fn less_by_one(a: &Expr, b: &Expr) -> Expr {
    let number = match a.ssa.borrow().get(b.id) {
        Ins::Const(bits) => Some(f64::from_bits(bits)),
        _ => None,
    };
    match number {
        // As `pow`: 0 of -0, and infinity of its negative, where a square root is none.
        Some(1.5) => a.equal(f64::NEG_INFINITY).select(f64::INFINITY, (a + 0.0).sqrt()),
        Some(3.0) => a.square(),
        _ => a.pow(b - 1.0),
    }
}

/// Whether it is a number that every floating-point type holds exactly.
fn is_exact(ins: &Ins) -> bool {
    let Ins::Const(bits) = *ins else { return false };
    let v = f64::from_bits(bits);
    half::f16::from_f64(v).to_f64() == v && half::bf16::from_f64(v).to_f64() == v
}

/// Gradients of `y = op(a, b)`. Against a constant bound, max and min tell from `y` which side won, so `a` need not be kept;
/// but not where `y` is stored in a type that rounds the bound (`b_exact` is false): it would not be equal any more.
fn binary(op: Binary, a: &Expr, b: &Expr, y: &Expr, g: &Expr, b_exact: bool) -> (Option<Expr>, Option<Expr>) {
    use Binary::*;
    let winner = if b_exact { y } else { a };
    match op {
        Add => (Some(g.clone()), Some(g.clone())),
        Sub => (Some(g.clone()), Some(-g)),
        Mul => (Some(g * b), Some(g * a)),
        Div => (Some(g / b), Some(-(g * y / b))),
        Pow => (Some(g * (b * less_by_one(a, b))), Some(g * (y * a.log()))),
        Max => (Some(winner.gt(b).select(g, 0.0)), Some(winner.gt(b).select(0.0, g))),
        Min => (Some(winner.lt(b).select(g, 0.0)), Some(winner.lt(b).select(0.0, g))),
        Atan2 => {
            let r = a.square() + b.square();
            (Some(g * b / &r), Some(-(g * a / r)))
        }
        Lt | Le | Gt | Ge | Eq | Ne | And | Or | Xor => (None, None),
    }
}
