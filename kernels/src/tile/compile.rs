//! Compiling a tile program: cheap operations become steps in registers, dear ones loops over tiles, and values get places.
//!
//! A value that steps alone use, between two loops, lives in a block of a few vectors; only what a loop touches or what must outlive
//! one needs a tile. Steps follow chains: after a value comes an operation that takes it from the registers, if one is ready.

use super::registers;
use super::{Code, Register, TileProgram, UniformValue};
use crate::expr::ssa::{Id, Ins, Ssa};
use crate::simd::{self, Act, RegisterOp, SimdReal};

/// What the compiler knows about a value.
#[derive(Clone, Copy, Default)]
pub(super) struct Value {
    needed: bool,
    pub done: bool,
    /// Computed by a loop over the tile, not by steps.
    looped: bool,
    /// How many dear operations come before it; steps of one phase run together.
    pub phase: u32,
    /// Readings to come, that by the caller of an output included.
    pub uses: u32,
    /// Read by a loop or in another phase, so that it needs a tile.
    tile: bool,
    slot: Option<Register>,
    /// An output that it may be made in directly.
    home: Option<Register>,
    /// Where the list of its users begins and ends.
    pub users: (u32, u32),
}

/// Assigns slots and writes the code.
pub(super) struct Compiler<'a, T> {
    pub(super) ssa: &'a Ssa,
    outputs: &'a [Id],
    program: TileProgram<T>,
    pub(super) values: Vec<Value>,
    pub(super) users: Vec<Id>,
    /// Slots of blocks are numbered from 0 until all tiles are known, and marked.
    free: [Vec<Register>; 2],
    /// What is in the registers.
    pub(super) held: Option<Id>,
    /// Counts loops and steps.
    now: usize,
}

/// Marks a block's slot while compiling.
pub(super) const BLOCK: Register = 1 << 31;

fn is_leaf(ins: Ins) -> bool {
    is_number(ins) || matches!(ins, Ins::Input(_))
}

fn is_number(ins: Ins) -> bool {
    matches!(ins, Ins::Const(_) | Ins::Scalar(_))
}

/// Whether the operation is a step; else it is a loop.
fn is_cheap(ins: Ins) -> bool {
    match ins {
        Ins::Unary(op, _) => Act::unary(op).is_some(),
        Ins::Binary(op, ..) => Act::left(op).is_some(),
        _ => true,
    }
}

impl<'a, T: SimdReal> Compiler<'a, T> {
    pub fn new(ssa: &'a Ssa, inputs: usize, scalars: usize, outputs: &'a [Id]) -> Self {
        let program = TileProgram {
            code: Vec::new(),
            steps: Vec::new(),
            inputs,
            outputs: outputs.len(),
            fills: Vec::new(),
            scalars,
            tiles: inputs + outputs.len(),
            blocks: 0,
            block: simd::steps_fn::<T>().1,
            tile: 0,
            loops: 0,
            made: vec![0; outputs.len()],
            read: vec![None; inputs],
        };
        let values = vec![Value::default(); ssa.ins().len()];
        Compiler { ssa, outputs, program, values, users: Vec::new(), free: Default::default(), held: None, now: 0 }
    }

    pub fn finish(mut self) -> TileProgram<T> {
        self.survey();
        self.list_users();
        for id in 0..self.values.len() {
            let v = self.values[id];
            if v.needed && !v.done {
                match v.looped {
                    true => self.single(id as Id),
                    false => self.chain(id as Id),
                }
            }
        }
        self.copy_outputs();
        self.program.each_run(registers::assign);
        self.seal();
        self.program
    }

    /// Finds what is needed, the phases, and which values need tiles.
    fn survey(&mut self) {
        let needed = self.ssa.needed(self.outputs.iter().copied());
        // Of the phase: how many cheap operations so far, and the last of them.
        let (mut phase, mut cheap, mut last) = (0, 0, 0);
        for (id, &ins) in self.ssa.ins().iter().enumerate().filter(|(id, _)| needed[*id]) {
            let (dear, leaf) = (!is_cheap(ins), is_leaf(ins));
            if dear && cheap == 1 {
                self.loops_over(last);
            }
            (phase, cheap) = if dear { (phase + 1, 0) } else { (phase, cheap + !leaf as usize) };
            self.values[id] = Value { needed: true, phase, done: leaf, ..Value::default() };
            for o in ins.operands() {
                let v = &mut self.values[o as usize];
                v.uses += 1;
                // A leaf has no phase of its own.
                v.tile |= v.phase != phase && !v.done;
            }
            match dear {
                true => self.loops_over(id),
                false if !leaf => last = id,
                false => {}
            }
        }
        if cheap == 1 {
            self.loops_over(last);
        }
        self.survey_outputs();
        self.place_leaves();
    }

    /// Makes an operation a loop over the tile: a dear one, or one that is alone between two of them.
    fn loops_over(&mut self, id: usize) {
        let v = &mut self.values[id];
        (v.looped, v.tile) = (true, true);
        let (ssa, ins) = (self.ssa, self.ssa.ins()[id]);
        // A loop over two operands takes numbers from a block.
        let in_block = |o: &Id| matches!(ins, Ins::Binary(..)) && is_number(ssa.get(*o));
        ins.operands().filter(|o| !in_block(o)).for_each(|o| self.values[o as usize].tile = true);
    }

    fn survey_outputs(&mut self) {
        for (k, &id) in self.outputs.iter().enumerate() {
            let v = &mut self.values[id as usize];
            v.uses += 1;
            if !v.done && v.home.is_none() {
                v.home = Some((self.program.inputs + k) as Register);
            }
        }
    }

    /// Inputs have their slots; constants and scalars are filled in before the first tile.
    fn place_leaves(&mut self) {
        for (id, &ins) in self.ssa.ins().iter().enumerate() {
            let v = self.values[id];
            let number = match ins {
                _ if !v.needed => continue,
                Ins::Input(k) => {
                    self.values[id].slot = Some(k as Register);
                    continue;
                }
                Ins::Const(bits) => UniformValue::Const(T::from_f64(f64::from_bits(bits))),
                Ins::Scalar(k) => UniformValue::Scalar(k),
                _ => continue,
            };
            let slot = self.fresh(v.tile);
            self.values[id].slot = Some(slot);
            self.program.fills.push((slot, number));
        }
    }

    /// For each value that is no leaf, those that use it; twice if it is both operands.
    fn list_users(&mut self) {
        let mut total = 0;
        for (v, &ins) in self.values.iter_mut().zip(self.ssa.ins()) {
            v.users = (total, total);
            total += if is_leaf(ins) { 0 } else { v.uses };
        }
        self.users = vec![0; total as usize];
        for (id, ins) in self.ssa.ins().iter().enumerate() {
            let needed = self.values[id].needed;
            for o in ins.operands().filter(|&o| needed && !is_leaf(self.ssa.get(o))) {
                let end = &mut self.values[o as usize].users.1;
                self.users[*end as usize] = id as Id;
                *end += 1;
            }
        }
    }

    pub(super) fn push(&mut self, step: RegisterOp) {
        let at = self.program.steps.len() as u32;
        match self.program.code.last_mut() {
            Some(Code::Steps { to, .. }) => *to += 1,
            _ => self.program.code.push(Code::Steps { f: simd::steps_fn::<T>().0, from: at, to: at + 1 }),
        }
        self.program.steps.push(step);
        self.now += 1;
    }

    /// The slot of a value that is read now.
    pub(super) fn read(&mut self, o: Id) -> Register {
        if let Ins::Input(k) = self.ssa.get(o) {
            self.program.read[k as usize] = Some(self.now);
        }
        self.values[o as usize].slot.expect("operands come first")
    }

    /// One loop over the tile.
    fn single(&mut self, id: Id) {
        let ins = self.ssa.get(id);
        let mut slots = [0; 3];
        ins.operands().zip(&mut slots).for_each(|(o, slot)| *slot = self.read(o));
        let [a, b, c] = slots;
        self.done(id);
        let y = self.place(id);
        self.program.code.push(match ins {
            Ins::Unary(op, _) => Code::Unary { f: simd::unary_fn(op), y, a },
            Ins::Binary(op, ..) => Code::Binary { f: simd::binary_fn(op), y, a, b },
            _ => Code::Select { f: simd::select_fn(), y, c: a, a: b, b: c },
        });
        self.held = None;
        self.now += 1;
    }

    /// Gives a value that is made now its slot.
    pub(super) fn place(&mut self, id: Id) -> Register {
        let v = self.values[id as usize];
        let slot = v.home.unwrap_or_else(|| self.free[v.tile as usize].pop().unwrap_or_else(|| self.fresh(v.tile)));
        let output = (slot as usize).wrapping_sub(self.program.inputs);
        if output < self.program.outputs {
            self.program.made[output] = self.now;
        }
        self.values[id as usize].slot = Some(slot);
        slot
    }

    fn fresh(&mut self, tile: bool) -> Register {
        let count = if tile { &mut self.program.tiles } else { &mut self.program.blocks };
        *count += 1;
        (*count - 1) as Register | if tile { 0 } else { BLOCK }
    }

    /// The code that computes `id` has read its operands.
    pub(super) fn done(&mut self, id: Id) {
        self.program.loops += 1;
        self.values[id as usize].done = true;
        self.ssa.get(id).operands().for_each(|o| self.used(o));
    }

    /// Counts one reading of a value; frees its slot after the last.
    fn used(&mut self, o: Id) {
        let v = &mut self.values[o as usize];
        v.uses -= 1;
        let ends = v.uses == 0 && v.home.is_none() && !is_leaf(self.ssa.get(o));
        if let Some(slot) = v.slot.filter(|_| ends) {
            self.free[v.tile as usize].push(slot);
        }
    }

    /// Outputs that are an input, a constant, or the same value as another output.
    fn copy_outputs(&mut self) {
        for (k, &id) in self.outputs.iter().enumerate() {
            let y = (self.program.inputs + k) as Register;
            if self.values[id as usize].slot == Some(y) {
                continue;
            }
            self.program.loops += 1;
            if self.outputs.len() == 1 && matches!(self.ssa.get(id), Ins::Input(_)) {
                let a = self.read(id);
                self.program.code.push(Code::Copy { y, a });
                continue;
            }
            self.hold(id);
            self.program.made[k] = self.now;
            self.push(RegisterOp { act: Act::Store, a: y, b: 0, c: 0 });
        }
    }

    /// Puts the blocks' slots behind the tiles', and chooses the length of a tile.
    fn seal(&mut self) {
        let p = &mut self.program;
        let tiles = p.tiles as Register;
        let last = |s: Register| if s & BLOCK == 0 { s } else { (s & !BLOCK) + tiles };
        p.steps.iter_mut().for_each(|s| (s.a, s.b, s.c) = (last(s.a), last(s.b), last(s.c)));
        p.fills.iter_mut().for_each(|f| f.0 = last(f.0));
        for code in &mut p.code {
            if let Code::Binary { a, b, .. } = code {
                (*a, *b) = (last(*a), last(*b));
            }
        }
        p.tile = match p.tiles {
            0..=3 => 2048,
            4..=6 => 1024,
            7..=16 => 512,
            _ => 256,
        };
    }
}
