//! Element-wise expressions. A function that works element by element is one formula over [`Expr`]; from it come the
//! CPU kernel (a tile program), the CUDA kernel, the derivative, and fusion with neighbours.

pub mod cuda;
mod derivative;
mod formula;
// What formulas become: for the engine, not for those who write them.
#[allow(missing_docs)]
pub mod op;
#[allow(missing_docs)]
pub mod ssa;

pub use formula::Formula;
use op::{Binary, Unary};
use ssa::{Id, Ins, Ssa};
use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::rc::Rc;

/// A value in a formula under construction; use it like a number.
#[derive(Clone)]
pub struct Expr {
    ssa: Rc<RefCell<Ssa>>,
    id: Id,
}

/// Something that can stand beside an [`Expr`]: another one, or a number.
pub trait Operand {
    /// Its number in the program that is built.
    fn id(&self, ssa: &Rc<RefCell<Ssa>>) -> Id;
}

impl Operand for Expr {
    fn id(&self, _: &Rc<RefCell<Ssa>>) -> Id {
        self.id
    }
}

impl Operand for &Expr {
    fn id(&self, _: &Rc<RefCell<Ssa>>) -> Id {
        self.id
    }
}

impl Operand for f64 {
    fn id(&self, ssa: &Rc<RefCell<Ssa>>) -> Id {
        ssa.borrow_mut().constant(*self)
    }
}

impl Expr {
    fn push(&self, ins: Ins) -> Expr {
        let id = self.ssa.borrow_mut().push(ins);
        Expr { ssa: self.ssa.clone(), id }
    }

    fn unary(&self, op: Unary) -> Expr {
        self.push(Ins::Unary(op, self.id))
    }

    fn binary(&self, op: Binary, other: impl Operand) -> Expr {
        let b = other.id(&self.ssa);
        self.push(Ins::Binary(op, self.id, b))
    }

    /// The number `v` in the same formula.
    pub fn constant(&self, v: f64) -> Expr {
        self.push(Ins::Const(v.to_bits()))
    }

    /// `a` where this is not zero, else `b`.
    pub fn select(&self, a: impl Operand, b: impl Operand) -> Expr {
        let (a, b) = (a.id(&self.ssa), b.id(&self.ssa));
        self.push(Ins::Select(self.id, a, b))
    }

    /// The value times itself.
    pub fn square(&self) -> Expr {
        self * self
    }

    /// 1 / (value)
    pub fn recip(&self) -> Expr {
        self.constant(1.0) / self
    }
}

macro_rules! unary_methods {
    ($($name:ident $op:ident)*) => { impl Expr {$(
        #[doc = concat!("`", stringify!($name), "` of the value: [`Unary::", stringify!($op), "`](op::Unary).")]
        pub fn $name(&self) -> Expr { self.unary(Unary::$op) }
    )*} };
}
unary_methods! {
    abs Abs sign Sign floor Floor ceil Ceil round Round sqrt Sqrt exp Exp expm1 Expm1 log Log log1p Log1p
    sin Sin cos Cos tan Tan sinh Sinh cosh Cosh tanh Tanh asin Asin acos Acos atan Atan asinh Asinh acosh Acosh
    atanh Atanh sigmoid Sigmoid erf Erf is_nan IsNan is_inf IsInf not Not round_f16 RoundF16 round_bf16 RoundBF16
}

macro_rules! binary_methods {
    ($($name:ident $op:ident)*) => { impl Expr {$(
        #[doc = concat!("`", stringify!($name), "` of the value and another: [`Binary::", stringify!($op), "`](op::Binary).")]
        pub fn $name(&self, other: impl Operand) -> Expr { self.binary(Binary::$op, other) }
    )*} };
}
binary_methods! {
    pow Pow max Max min Min atan2 Atan2 lt Lt le Le gt Gt ge Ge equal Eq not_equal Ne and And or Or xor Xor
}

macro_rules! operators {
    ($($tr:ident $method:ident)*) => {$(
        impl<O: Operand> $tr<O> for Expr {
            type Output = Expr;
            fn $method(self, other: O) -> Expr { self.binary(Binary::$tr, other) }
        }
        impl<O: Operand> $tr<O> for &Expr {
            type Output = Expr;
            fn $method(self, other: O) -> Expr { self.binary(Binary::$tr, other) }
        }
        impl $tr<Expr> for f64 {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr { other.constant(self).binary(Binary::$tr, other) }
        }
        impl $tr<&Expr> for f64 {
            type Output = Expr;
            fn $method(self, other: &Expr) -> Expr { other.constant(self).binary(Binary::$tr, other) }
        }
    )*};
}
operators! { Add add Sub sub Mul mul Div div }

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.unary(Unary::Neg)
    }
}

impl Neg for &Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.unary(Unary::Neg)
    }
}

impl Expr {
    /// Places a formula of one output; `x` are its inputs.
    pub fn place(&self, formula: &Formula, x: &[Expr]) -> Expr {
        let args: Vec<Id> = x.iter().map(|e| e.id).collect();
        let id = formula.apply(&mut self.ssa.borrow_mut(), &args)[0].expect("a formula with an output");
        Expr { ssa: self.ssa.clone(), id }
    }
}
