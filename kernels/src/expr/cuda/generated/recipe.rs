//! What a generated kernel computes for one element, and how a GPU does it in few instructions.

use crate::expr::op::{Binary, Unary};
use crate::expr::ssa::{Id, Ins, Ssa};

/// A straight-line program over the values of one element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// Computed in double precision, not in float.
    pub double: bool,
    pub ins: Vec<Ins>,
    pub outputs: Vec<Id>,
}

impl Recipe {
    /// The values `outputs` of a program, without what they do not need.
    pub fn new(double: bool, ssa: &Ssa, outputs: &[Id]) -> Recipe {
        let needed = ssa.needed(outputs.iter().copied());
        let (mut ins, mut at) = (Vec::new(), vec![0; needed.len()]);
        for (id, i) in ssa.ins().iter().enumerate().filter(|(id, _)| needed[*id]) {
            at[id] = ins.len() as Id;
            ins.push(i.map(|o| at[o as usize]));
        }
        Recipe { double, ins, outputs: outputs.iter().map(|o| at[*o as usize]).collect() }
    }

    pub(super) fn reads(&self, k: usize) -> bool {
        self.ins.contains(&Ins::Input(k as u32))
    }

    /// How many numbers a run gives.
    pub fn scalars(&self) -> usize {
        let number = |i: &Ins| if let Ins::Scalar(k) = i { *k as usize + 1 } else { 0 };
        self.ins.iter().map(number).max().unwrap_or(0)
    }

    fn number(&self, id: Id) -> Option<f64> {
        let Ins::Const(bits) = self.ins[id as usize] else { return None };
        let v = f64::from_bits(bits);
        Some(if self.double { v } else { v as f32 as f64 })
    }

    /// `(x, k)` of a product of x and a number.
    fn scaled(&self, id: Id) -> Option<(Id, f64)> {
        let Ins::Binary(Binary::Mul, a, b) = self.ins[id as usize] else { return None };
        self.number(b).map(|k| (a, k)).or_else(|| self.number(a).map(|k| (b, k)))
    }

    /// What an instruction is in fewer instructions of a GPU, but the same bits.
    pub(super) fn shorter(&self, ins: Ins) -> Option<String> {
        match ins {
            Ins::Select(c, x, kx) => self.leaky(c, x, kx),
            Ins::Binary(Binary::Add, a, b) => self.halved(a, b).or_else(|| self.halved(b, a)),
            _ => None,
        }
    }

    /// k x + c for 1/k a power of two: the product is exact, so that rounding once is rounding twice. (It is not where it is
    /// less than any normal number; then c, which is far from that, is the sum in any case.)
    fn halved(&self, kx: Id, c: Id) -> Option<String> {
        let ((x, k), number) = (self.scaled(kx)?, self.number(c)?);
        let power = k.to_bits() << 12 == 0 && (1e-6..=1.0).contains(&k.abs());
        (power && number.is_finite() && number.abs() > 1e-12)
            .then(|| format!("fma(v{x}, v{}, v{c})", self.factor(kx, x)))
    }

    /// The other factor of a product with x.
    fn factor(&self, product: Id, x: Id) -> Id {
        self.ins[product as usize].operands().find(|o| *o != x).unwrap_or(x)
    }

    /// x where it is positive and k x elsewhere, 0 < k <= 1: the greater of the two (zeros and infinities included, and NaN
    /// is NaN).
    fn leaky(&self, c: Id, x: Id, kx: Id) -> Option<String> {
        let positive = |a, zero| a == x && self.number(zero) == Some(0.0);
        let Ins::Binary(Binary::Gt, a, zero) = self.ins[c as usize] else { return None };
        let (of, k) = self.scaled(kx)?;
        (positive(a, zero) && of == x && k > 0.0 && k <= 1.0).then(|| format!("fmax(v{x}, v{kx})"))
    }

    /// Instructions of one element, roughly.
    pub(super) fn cost(&self) -> usize {
        let of = |i: &Ins| match i {
            Ins::Unary(Unary::Sin | Unary::Cos | Unary::Tan, _) => 100,
            Ins::Unary(op, _) if (*op as usize) < Unary::Exp as usize => 2,
            Ins::Unary(Unary::IsNan | Unary::IsInf | Unary::Not | Unary::RoundF16 | Unary::RoundBF16, _) => 4,
            Ins::Unary(..) => 30,
            Ins::Binary(Binary::Pow | Binary::Atan2, ..) => 80,
            Ins::Binary(Binary::Div, ..) => 10,
            _ => 2,
        };
        let sum: usize = self.ins.iter().map(of).sum();
        if self.double { sum * 2 } else { sum }
    }
}
