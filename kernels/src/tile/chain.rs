//! Writing steps: which operation comes next while a value is in the registers, and which step does it.
//!
//! A step costs about the same whatever it does, so few are better: an operation on the registers and a product, sum or
//! difference of two tiles is one step, and so is a product that is only added to a running sum (a gradient).

use super::Register;
use super::compile::Compiler;
use crate::expr::op::Binary::{self, Add, Lt, Mul, Sub};
use crate::expr::op::Unary::Neg;
use crate::expr::ssa::{Id, Ins};
use crate::simd::{Act, RegisterOp, SimdReal};
use smallvec::SmallVec;

/// What goes on from the value in the registers.
enum Next {
    /// This operation, whose other operands are there.
    Follow(Id),
    /// This operation; its other operand is not there, but one step does both.
    Pair(Id, FusedPair),
}

/// `inner`, an operation on a and b, as the other operand; `square` is b times b where that is not there either.
struct FusedPair {
    act: Act,
    inner: Id,
    square: Option<Id>,
    a: Id,
    b: Id,
}

impl<T: SimdReal> Compiler<'_, T> {
    /// Emits `id` and operations that go on from it without leaving the registers.
    pub(super) fn chain(&mut self, id: Id) {
        let mut id = self.begin(id);
        loop {
            self.held = Some(id);
            self.sides(id);
            let next = self.next(id);
            if self.values[id as usize].uses > self.taken(&next) {
                let y = self.place(id);
                self.push(RegisterOp { act: Act::Store, a: y, b: 0, c: 0 });
            }
            id = match next {
                Some(Next::Follow(u)) => {
                    self.step(u);
                    u
                }
                Some(Next::Pair(u, pair)) => {
                    self.pair(u, pair);
                    u
                }
                None => return,
            };
        }
    }

    /// Emits `id`, and what is one step with it; gives what the registers hold then.
    fn begin(&mut self, id: Id) -> Id {
        match self.flip(id) {
            Some((made, value, [a, b])) => {
                self.hold(value);
                self.act(Act::NegWhere, &[a, b]);
                made.into_iter().for_each(|o| self.done(o));
                made[2]
            }
            None => {
                self.step(id);
                id
            }
        }
    }

    /// If `id`, a < b, is used only to choose between a value and its negative: all three, the value, a and b.
    fn flip(&self, id: Id) -> Option<([Id; 3], Id, [Id; 2])> {
        let (Ins::Binary(Lt, a, b), 1) = (self.ssa.get(id), self.values[id as usize].uses) else { return None };
        let choice = self.users(id).next()?;
        let Ins::Select(_, negative, value) = self.ssa.get(choice) else { return None };
        let Ins::Unary(Neg, of) = self.ssa.get(negative) else { return None };
        let fits = of == value && self.is_private(negative, id) && self.is_there(value, id);
        fits.then_some(([id, negative, choice], value, [a, b]))
    }

    /// How many readings of `id` the next step does in registers.
    fn taken(&self, next: &Option<Next>) -> u32 {
        match next {
            Some(Next::Follow(u)) => match self.ssa.get(*u) {
                Ins::Binary(Mul | Add, a, b) if a == b => 2,
                _ => 1,
            },
            Some(Next::Pair(..)) => 1,
            None => 0,
        }
    }

    /// Steps of the same phase that use `id` and are still to come.
    fn users(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        let v = self.values[id as usize];
        let list = &self.users[v.users.0 as usize..v.users.1 as usize];
        list.iter().copied().filter(move |&u| {
            let w = self.values[u as usize];
            !w.done && w.phase == v.phase
        })
    }

    /// Whether all operands but `id` are there.
    fn is_ready(&self, u: Id, id: Id) -> bool {
        self.ssa.get(u).operands().all(|o| o == id || self.values[o as usize].done)
    }

    fn next(&self, id: Id) -> Option<Next> {
        let ready = self.users(id).find(|&u| self.is_ready(u, id)).map(Next::Follow);
        ready.or_else(|| self.users(id).find_map(|u| self.pair_of(u, id).map(|p| Next::Pair(u, p))))
    }

    /// The other operand of `u` as part of its step, if it is an operation that is used only there.
    fn pair_of(&self, u: Id, id: Id) -> Option<FusedPair> {
        let (outer, inner) = match self.ssa.get(u) {
            Ins::Binary(op, a, b) if a == id && b != id => (op, b),
            Ins::Binary(op @ (Add | Mul), a, b) if b == id && a != id => (op, a),
            _ => return None,
        };
        let Ins::Binary(op, a, b) = self.ssa.get(inner) else { return None };
        let act = match (outer, op) {
            (Mul, Add) => Act::MulSum,
            (Mul, Sub) => Act::MulDiff,
            (Mul, Mul) => Act::MulMul,
            (Add, Mul) => Act::AddMul,
            (Sub, Mul) => Act::SubMul,
            _ => return None,
        };
        if !self.is_private(inner, id) || !self.is_there(a, id) {
            return None;
        }
        if self.is_there(b, id) {
            return Some(FusedPair { act, inner, square: None, a, b });
        }
        match self.ssa.get(b) {
            Ins::Binary(Mul, p, q)
                if p == q && act == Act::MulDiff && self.is_private(b, id) && self.is_there(p, id) =>
            {
                Some(FusedPair { act: Act::MulLess, inner, square: Some(b), a, b: p })
            }
            _ => None,
        }
    }

    /// Still to be computed, in the phase of `id`, and read once only.
    fn is_private(&self, o: Id, id: Id) -> bool {
        let v = self.values[o as usize];
        !v.done && v.uses == 1 && v.phase == self.values[id as usize].phase
    }

    /// In memory.
    fn is_there(&self, o: Id, id: Id) -> bool {
        o != id && self.values[o as usize].done
    }

    fn pair(&mut self, u: Id, p: FusedPair) {
        self.act(p.act, &[p.a, p.b]);
        p.square.into_iter().chain([p.inner, u]).for_each(|o| self.done(o));
    }

    /// Operations that read `id` and leave it in the registers, where another waits that goes on from it.
    fn sides(&mut self, id: Id) {
        if self.values[id as usize].uses < 2 {
            return;
        }
        for u in self.others(id) {
            if let Some((sum, a, old)) = self.running_sum(u, id) {
                self.side(Act::SideAddMul, &[a, old], &[u, sum]);
            }
        }
        let ready: SmallVec<[Id; 8]> = self.others(id).into_iter().filter(|&u| self.is_ready(u, id)).collect();
        for &u in ready.iter().rev().skip(1).rev() {
            self.plain_side(u, id);
        }
    }

    /// The users of `id`, each once.
    fn others(&self, id: Id) -> SmallVec<[Id; 8]> {
        let mut users: SmallVec<[Id; 8]> = self.users(id).collect();
        users.dedup();
        users
    }

    /// `u`, a product of `id` and a, if it is used only as a term of a sum with something that is there.
    fn running_sum(&self, u: Id, id: Id) -> Option<(Id, Id, Id)> {
        let Ins::Binary(Mul, a, b) = self.ssa.get(u) else { return None };
        let a = if a == id { b } else { a };
        let sum = self.users(u).next()?;
        let Ins::Binary(Add, p, q) = self.ssa.get(sum) else { return None };
        let old = if p == u { q } else { p };
        let fits = self.is_private(u, id) && self.is_there(a, id) && self.is_there(old, id);
        (fits && self.values[sum as usize].phase == self.values[id as usize].phase).then_some((sum, a, old))
    }

    fn plain_side(&mut self, u: Id, id: Id) {
        match self.ssa.get(u) {
            Ins::Binary(Add, a, b) if a != b => self.side(Act::SideAdd, &[if a == id { b } else { a }], &[u]),
            Ins::Binary(Mul, a, b) if a != b => self.side(Act::SideMul, &[if a == id { b } else { a }], &[u]),
            Ins::Binary(Sub, a, b) if a != b && b == id => self.side(Act::SideSub, &[a], &[u]),
            _ => {}
        }
    }

    /// A step that stores the last of `made`, and leaves the registers as they are.
    fn side(&mut self, act: Act, reads: &[Id], made: &[Id]) {
        let of = |c: &mut Self, k: usize| reads.get(k).map_or(0, |&o| c.read(o));
        let (a, b) = (of(self, 0), of(self, 1));
        made.iter().for_each(|&o| self.done(o));
        let c = self.place(made[made.len() - 1]);
        self.push(RegisterOp { act, a, b, c });
    }

    /// Computes `id` into the registers.
    fn step(&mut self, id: Id) {
        let ins = self.ssa.get(id);
        match ins {
            Ins::Unary(op, a) => {
                self.hold(a);
                self.operation(Act::unary(op), &[]);
            }
            Ins::Binary(op, a, b) => self.binary(op, a, b),
            Ins::Select(c, a, b) if self.held == Some(a) && a != c => self.act(Act::IfTrue, &[b, c]),
            Ins::Select(c, a, b) if self.held == Some(b) && b != c => self.act(Act::IfFalse, &[a, c]),
            Ins::Select(c, a, b) => {
                self.hold(c);
                self.act(Act::Choose, &[a, b]);
            }
            _ => {}
        }
        self.done(id);
    }

    fn binary(&mut self, op: Binary, a: Id, b: Id) {
        match (op, self.held == Some(a), self.held == Some(b)) {
            (Mul, true, true) => self.act(Act::Square, &[]),
            (Add, true, true) => self.act(Act::Double, &[]),
            (_, true, _) => self.operation(Act::left(op), &[b]),
            (_, false, true) => self.operation(Act::right(op), &[a]),
            (Add, ..) => self.act(Act::LoadAdd, &[a, b]),
            (Sub, ..) => self.act(Act::LoadSub, &[a, b]),
            (Mul, ..) => self.act(Act::LoadMul, &[a, b]),
            _ => {
                self.hold(a);
                self.operation(Act::left(op), &[b]);
            }
        }
    }

    /// Loads a value unless the registers hold it.
    pub(super) fn hold(&mut self, a: Id) {
        if self.held != Some(a) {
            self.act(Act::Load, &[a]);
            self.held = Some(a);
        }
    }

    /// Writes the step of a cheap operation.
    fn operation(&mut self, act: Option<Act>, reads: &[Id]) {
        self.act(act.expect("a cheap operation has a step"), reads);
    }

    /// Writes a step that reads the given values.
    fn act(&mut self, act: Act, reads: &[Id]) {
        let of = |c: &mut Self, k: usize| -> Register { reads.get(k).map_or(0, |&o| c.read(o)) };
        let (a, b) = (of(self, 0), of(self, 1));
        self.push(RegisterOp { act, a, b, c: 0 });
    }
}
