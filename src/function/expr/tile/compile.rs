//! Compiling a tile program: cheap operations become steps in registers, dear ones loops over tiles, and values get places.
//!
//! A value that steps alone use, between two loops, lives in a block of a few vectors; only what a loop touches or what must outlive
//! one needs a tile. Steps follow chains: after a value comes an operation that takes it from the registers, if one is ready.

use super::{Code, Number, Program, Slot};
use crate::cpu::simd::{self, Act, SimdReal, Step};
use crate::function::expr::op::Binary;
use crate::function::expr::ssa::{Id, Ins, Ssa};

/// What the compiler knows about a value.
#[derive(Clone, Copy, Default)]
struct Value {
    needed: bool,
    done: bool,
    /// How many loops over tiles come before it; steps of one phase run together.
    phase: u32,
    /// Readings to come, that by the caller of an output included.
    uses: u32,
    /// Read by a loop or in another phase, so that it needs a tile.
    tile: bool,
    slot: Option<Slot>,
    /// An output that it may be made in directly.
    home: Option<Slot>,
    /// Where the list of its users begins.
    users: u32,
}

/// Assigns slots and writes the code.
pub(super) struct Compiler<'a, T> {
    ssa: &'a Ssa,
    outputs: &'a [Id],
    program: Program<T>,
    values: Vec<Value>,
    users: Vec<Id>,
    /// Slots of blocks are numbered from 0 until all tiles are known, and marked.
    free: [Vec<Slot>; 2],
    /// What is in the registers.
    held: Option<Id>,
    /// Counts loops and steps.
    now: usize,
}

/// Marks a block's slot while compiling.
const BLOCK: Slot = 1 << 15;

fn is_leaf(ins: Ins) -> bool {
    matches!(ins, Ins::Input(_) | Ins::Const(_) | Ins::Scalar(_))
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
        let program = Program {
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

    pub fn finish(mut self) -> Program<T> {
        self.survey();
        self.list_users();
        for id in 0..self.values.len() {
            let v = self.values[id];
            if v.needed && !v.done {
                match is_cheap(self.ssa.ins()[id]) {
                    true => self.chain(id as Id),
                    false => self.single(id as Id),
                }
            }
        }
        self.copy_outputs();
        self.assign_registers();
        self.seal();
        self.program
    }

    /// Finds what is needed, the phases, and which values need tiles.
    fn survey(&mut self) {
        let needed = self.ssa.needed(self.outputs.iter().copied());
        let mut phase = 0;
        for (id, &ins) in self.ssa.ins().iter().enumerate().filter(|(id, _)| needed[*id]) {
            let cheap = is_cheap(ins);
            phase += !cheap as u32;
            self.values[id] = Value { needed: true, phase, tile: !cheap, done: is_leaf(ins), ..Value::default() };
            for o in ins.operands() {
                let v = &mut self.values[o as usize];
                v.uses += 1;
                // A leaf has no phase of its own.
                v.tile |= !cheap || (v.phase != phase && !v.done);
            }
        }
        for (k, &id) in self.outputs.iter().enumerate() {
            let v = &mut self.values[id as usize];
            v.uses += 1;
            if !v.done && v.home.is_none() {
                v.home = Some((self.program.inputs + k) as Slot);
            }
        }
        self.place_leaves();
    }

    /// Inputs have their slots; constants and scalars are filled in before the first tile.
    fn place_leaves(&mut self) {
        for (id, &ins) in self.ssa.ins().iter().enumerate() {
            let v = self.values[id];
            let number = match ins {
                _ if !v.needed => continue,
                Ins::Input(k) => {
                    self.values[id].slot = Some(k as Slot);
                    continue;
                }
                Ins::Const(bits) => Number::Const(T::from_f64(f64::from_bits(bits))),
                Ins::Scalar(k) => Number::Scalar(k),
                _ => continue,
            };
            let slot = self.fresh(v.tile);
            self.values[id].slot = Some(slot);
            self.program.fills.push((slot, number));
        }
    }

    /// For each value of steps, the steps that use it.
    fn list_users(&mut self) {
        let mut total = 0;
        for v in &mut self.values {
            v.users = total;
            total += v.uses;
        }
        self.users = vec![Id::MAX; total as usize];
        for (id, ins) in self.ssa.ins().iter().enumerate().filter(|(id, _)| self.values[*id].needed) {
            for o in ins.operands() {
                let from = self.values[o as usize].users as usize;
                let free = self.users[from..].iter().position(|u| *u == Id::MAX).unwrap_or(0);
                self.users[from + free] = id as Id;
            }
        }
    }

    /// Emits `id` and operations that go on from it without leaving the registers.
    fn chain(&mut self, mut id: Id) {
        loop {
            self.step(id);
            let next = self.follower(id);
            let kept = match next.map(|u| self.ssa.get(u)) {
                Some(Ins::Binary(Binary::Mul, a, b)) if a == b => 2,
                Some(_) => 1,
                None => 0,
            };
            if self.values[id as usize].uses > kept {
                self.keep(id);
            }
            self.held = Some(id);
            match next {
                Some(u) => id = u,
                None => return,
            }
        }
    }

    /// A step of the same phase that uses `id` and has all its other operands.
    fn follower(&self, id: Id) -> Option<Id> {
        let v = self.values[id as usize];
        let users = &self.users[v.users as usize..];
        let ready = |u: Id| self.ssa.get(u).operands().all(|o| o == id || self.values[o as usize].done);
        let fits = |u: Id| {
            let w = self.values[u as usize];
            !w.done && w.phase == v.phase && is_cheap(self.ssa.get(u)) && ready(u)
        };
        users.iter().copied().take_while(|u| *u != Id::MAX).take(v.uses as usize).find(|&u| fits(u))
    }

    /// Computes `id` into the registers.
    fn step(&mut self, id: Id) {
        let ins = self.ssa.get(id);
        let held = self.held;
        let holds = |o: Id| held == Some(o);
        let act = "steps have acts";
        match ins {
            Ins::Unary(op, a) => {
                self.hold(a);
                self.act(Act::unary(op).expect(act), [None; 2]);
            }
            Ins::Binary(op, a, b) if holds(b) && !holds(a) => self.act(Act::right(op).expect(act), [Some(a), None]),
            Ins::Binary(op, a, b) => {
                self.hold(a);
                match op == Binary::Mul && a == b {
                    true => self.act(Act::Square, [None; 2]),
                    false => self.act(Act::left(op).expect(act), [Some(b), None]),
                }
            }
            Ins::Select(c, a, b) if holds(a) && !holds(c) => self.act(Act::IfTrue, [Some(c), Some(b)]),
            Ins::Select(c, a, b) if holds(b) && !holds(c) => self.act(Act::IfFalse, [Some(c), Some(a)]),
            Ins::Select(c, a, b) => {
                self.hold(c);
                self.act(Act::Choose, [Some(a), Some(b)]);
            }
            _ => {}
        }
        self.program.loops += 1;
        self.values[id as usize].done = true;
        ins.operands().for_each(|o| self.used(o));
    }

    fn hold(&mut self, a: Id) {
        if self.held != Some(a) {
            self.act(Act::Load, [Some(a), None]);
        }
    }

    /// Writes a step that reads the given values.
    fn act(&mut self, act: Act, reads: [Option<Id>; 2]) {
        let [a, b] = reads.map(|o| o.map_or(0, |o| self.read(o)));
        self.push(Step { act, a, b });
    }

    fn push(&mut self, step: Step) {
        let at = self.program.steps.len() as u32;
        match self.program.code.last_mut() {
            Some(Code::Steps { to, .. }) => *to += 1,
            _ => self.program.code.push(Code::Steps { f: simd::steps_fn::<T>().0, from: at, to: at + 1 }),
        }
        self.program.steps.push(step);
        self.now += 1;
    }

    /// The slot of a value that is read now.
    fn read(&mut self, o: Id) -> Slot {
        if let Ins::Input(k) = self.ssa.get(o) {
            self.program.read[k as usize] = Some(self.now);
        }
        self.values[o as usize].slot.expect("operands come first")
    }

    /// Stores what the registers hold as the value of `id`.
    fn keep(&mut self, id: Id) {
        let y = self.place(id);
        self.push(Step { act: Act::Store, a: y, b: 0 });
    }

    /// One loop over the tile.
    fn single(&mut self, id: Id) {
        let ins = self.ssa.get(id);
        let code = match ins {
            Ins::Unary(op, a) => Code::Unary { f: simd::unary_fn(op), y: 0, a: self.read(a) },
            Ins::Binary(op, a, b) => Code::Binary { f: simd::binary_fn(op), y: 0, a: self.read(a), b: self.read(b) },
            _ => return,
        };
        ins.operands().for_each(|o| self.used(o));
        let slot = self.place(id);
        self.program.code.push(match code {
            Code::Unary { f, a, .. } => Code::Unary { f, y: slot, a },
            Code::Binary { f, a, b, .. } => Code::Binary { f, y: slot, a, b },
            steps => steps,
        });
        self.program.loops += 1;
        self.values[id as usize].done = true;
        self.held = None;
        self.now += 1;
    }

    /// Gives a value that is made now its slot.
    fn place(&mut self, id: Id) -> Slot {
        let v = self.values[id as usize];
        let slot = v.home.unwrap_or_else(|| self.free[v.tile as usize].pop().unwrap_or_else(|| self.fresh(v.tile)));
        let output = (slot as usize).wrapping_sub(self.program.inputs);
        if output < self.program.outputs {
            self.program.made[output] = self.now;
        }
        self.values[id as usize].slot = Some(slot);
        slot
    }

    fn fresh(&mut self, tile: bool) -> Slot {
        let count = if tile { &mut self.program.tiles } else { &mut self.program.blocks };
        *count += 1;
        (*count - 1) as Slot | if tile { 0 } else { BLOCK }
    }

    /// Counts one reading of a value; frees its slot after the last.
    fn used(&mut self, o: Id) {
        let v = &mut self.values[o as usize];
        v.uses -= 1;
        if v.uses == 0 && v.home.is_none() && !is_leaf(self.ssa.get(o)) {
            if let Some(slot) = v.slot {
                self.free[v.tile as usize].push(slot);
            }
        }
    }

    /// Outputs that are an input, a constant, or the same value as another output.
    fn copy_outputs(&mut self) {
        for (k, &id) in self.outputs.iter().enumerate() {
            let y = (self.program.inputs + k) as Slot;
            if self.values[id as usize].slot != Some(y) {
                self.hold(id);
                self.held = Some(id);
                self.program.made[k] = self.now;
                self.program.loops += 1;
                self.push(Step { act: Act::Store, a: y, b: 0 });
            }
        }
    }

    /// Keeps values of blocks in the other registers where that spares their way through memory: a linear scan over the
    /// steps between two loops, in which the value that is wanted last gives way.
    fn assign_registers(&mut self) {
        let mut code = std::mem::take(&mut self.program.code);
        for c in &mut code {
            if let Code::Steps { from, to, .. } = c {
                registers(&mut self.program.steps[*from as usize..*to as usize]);
            }
        }
        self.program.code = code;
    }

    /// Puts the blocks' slots behind the tiles', and chooses the length of a tile.
    fn seal(&mut self) {
        let p = &mut self.program;
        let last = |s: Slot| if s & BLOCK == 0 { s } else { (s & !BLOCK) + p.tiles as Slot };
        p.steps.iter_mut().for_each(|s| (s.a, s.b) = (last(s.a), last(s.b)));
        p.fills.iter_mut().for_each(|f| f.0 = last(f.0));
        p.tile = match p.tiles {
            0..=6 => 1024,
            7..=16 => 512,
            _ => 256,
        };
    }
}

/// From the step that stores a value to the last that reads it.
#[derive(Clone, Copy)]
struct Span {
    slot: Slot,
    from: usize,
    to: usize,
}

fn registers(steps: &mut [Step]) {
    let mut taken: [Option<Span>; 2] = [None; 2];
    for span in spans(steps) {
        let end = |r: &Option<Span>| r.map_or(0, |s| s.to);
        let r = if end(&taken[0]) <= end(&taken[1]) { 0 } else { 1 };
        if end(&taken[r]) <= span.from {
            if let Some(s) = taken[r].replace(span) {
                settle(steps, s, r);
            }
        } else if end(&taken[1 - r]) > span.to {
            taken[1 - r] = Some(span);
        }
    }
    for (r, s) in taken.iter().enumerate() {
        if let Some(s) = s {
            settle(steps, *s, r);
        }
    }
}

/// Rewrites the steps of a span.
fn settle(steps: &mut [Step], span: Span, register: usize) {
    for s in steps[span.from..=span.to].iter_mut().filter(|s| s.a == span.slot) {
        if let Some(act) = s.act.with_register(register == 1) {
            s.act = act;
        }
    }
}

/// The values of blocks that steps could as well find in registers.
fn spans(steps: &[Step]) -> Vec<Span> {
    let mut open: Vec<Option<Span>> = Vec::new();
    let mut found = Vec::new();
    for (i, s) in steps.iter().enumerate() {
        for (slot, is_a) in [(s.a, true), (s.b, false)] {
            if slot & BLOCK == 0 {
                continue;
            }
            let k = (slot & !BLOCK) as usize;
            if open.len() <= k {
                open.resize(k + 1, None);
            }
            if s.act == Act::Store && is_a {
                found.extend(open[k].replace(Span { slot, from: i, to: i }));
            } else if is_a && s.act.with_register(false).is_some() {
                if let Some(span) = &mut open[k] {
                    span.to = i;
                }
            } else {
                open[k] = None;
            }
        }
    }
    found.extend(open.into_iter().flatten());
    found.sort_unstable_by_key(|s| s.from);
    found
}
