//! Straight-line programs in which each value is computed once: what expressions build and tile programs run.

use super::op::{Binary, Unary};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A value of a program.
pub type Id = u32;

/// How one value is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ins {
    /// Element of input array number k.
    Input(u32),
    /// A number given at run time, the same for all elements.
    Scalar(u32),
    /// A constant, by its bits (so that constants can be compared and hashed).
    Const(u64),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    /// First non-zero (or NaN): second, else third.
    Select(Id, Id, Id),
}

impl Ins {
    /// The values that this one is made from.
    pub fn operands(self) -> impl Iterator<Item = Id> {
        let (list, n) = match self {
            Ins::Unary(_, a) => ([a, 0, 0], 1),
            Ins::Binary(_, a, b) => ([a, b, 0], 2),
            Ins::Select(c, a, b) => ([c, a, b], 3),
            _ => ([0; 3], 0),
        };
        list.into_iter().take(n)
    }

    /// The same with its operands renamed.
    pub fn map(self, mut f: impl FnMut(Id) -> Id) -> Ins {
        match self {
            Ins::Unary(op, a) => Ins::Unary(op, f(a)),
            Ins::Binary(op, a, b) => Ins::Binary(op, f(a), f(b)),
            Ins::Select(c, a, b) => Ins::Select(f(c), f(a), f(b)),
            leaf => leaf,
        }
    }
}

/// A fast hasher for small keys (multiply and rotate); programs are short-lived, so no attacker chooses the keys.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(b as u64));
    }
    #[inline]
    fn write_u8(&mut self, v: u8) {
        self.write_u64(v as u64);
    }
    #[inline]
    fn write_u32(&mut self, v: u32) {
        self.write_u64(v as u64);
    }
    #[inline]
    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0.rotate_left(5) ^ v).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    #[inline]
    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }
    #[inline]
    fn write_isize(&mut self, v: isize) {
        self.write_u64(v as u64);
    }
}

pub type MixMap<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// A program under construction: equal instructions are the same value.
#[derive(Clone, Default)]
pub struct Ssa {
    ins: Vec<Ins>,
    seen: MixMap<Ins, Id>,
}

impl Ssa {
    #[inline]
    pub fn ins(&self) -> &[Ins] {
        &self.ins
    }

    #[inline]
    pub fn get(&self, id: Id) -> Ins {
        self.ins[id as usize]
    }

    /// The value of `ins`, simplified where that changes no bit of any result.
    pub fn push(&mut self, ins: Ins) -> Id {
        if let Some(id) = self.simpler(ins) {
            return id;
        }
        if let Some(&id) = self.seen.get(&ins) {
            return id;
        }
        let id = self.ins.len() as Id;
        self.ins.push(ins);
        self.seen.insert(ins, id);
        id
    }

    #[inline]
    pub fn constant(&mut self, v: f64) -> Id {
        self.push(Ins::Const(v.to_bits()))
    }

    #[inline]
    pub fn as_const(&self, id: Id) -> Option<f64> {
        match self.get(id) {
            Ins::Const(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    fn simpler(&mut self, ins: Ins) -> Option<Id> {
        match ins {
            Ins::Unary(Unary::Neg, a) => match self.get(a) {
                Ins::Unary(Unary::Neg, x) => Some(x),
                Ins::Const(bits) => Some(self.constant(-f64::from_bits(bits))),
                _ => None,
            },
            Ins::Binary(op, a, b) => self.simpler_binary(op, a, b),
            _ => None,
        }
    }

    fn simpler_binary(&mut self, op: Binary, a: Id, b: Id) -> Option<Id> {
        match (op, self.as_const(a), self.as_const(b)) {
            (Binary::Mul, Some(1.0), _) => Some(b),
            (Binary::Mul | Binary::Div | Binary::Pow, _, Some(1.0)) => Some(a),
            (Binary::Add, Some(x), Some(y)) => Some(self.constant(x + y)),
            (Binary::Sub, Some(x), Some(y)) => Some(self.constant(x - y)),
            (Binary::Mul, Some(x), Some(y)) => Some(self.constant(x * y)),
            (Binary::Sub, _, Some(0.0)) => Some(a),
            _ => self.without_sign(op, a, b),
        }
    }

    /// Sums of a negated value as differences, and the other way round.
    fn without_sign(&mut self, op: Binary, a: Id, b: Id) -> Option<Id> {
        let negated = |id: Id| match self.get(id) {
            Ins::Unary(Unary::Neg, x) => Some(x),
            _ => None,
        };
        let simple = match (op, negated(a), negated(b)) {
            (Binary::Add, _, Some(x)) => Ins::Binary(Binary::Sub, a, x),
            (Binary::Add, Some(x), None) => Ins::Binary(Binary::Sub, b, x),
            (Binary::Sub, _, Some(x)) => Ins::Binary(Binary::Add, a, x),
            _ => return None,
        };
        Some(self.push(simple))
    }

    /// Marks the values that `outputs` need; values are in order of creation, so one pass backwards is enough.
    pub fn needed(&self, outputs: impl IntoIterator<Item = Id>) -> Vec<bool> {
        let mut needed = vec![false; self.ins.len()];
        for id in outputs {
            needed[id as usize] = true;
        }
        for id in (0..self.ins.len()).rev() {
            if needed[id] {
                self.ins[id].operands().for_each(|o| needed[o as usize] = true);
            }
        }
        needed
    }
}
