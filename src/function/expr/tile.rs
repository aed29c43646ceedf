//! Tile programs: a run of element-wise work compiled to calls of precompiled vector loops over L1-sized tiles.
//! Intermediate values live in scratch tiles that never leave the cache; no compiler is needed where the user is.

use super::ssa::{Id, Ins, Ssa};
use crate::cpu::pool;
use crate::cpu::simd::{self, SimdReal};
use crate::dtype::DType;
use crate::shape::Shape;
use smallvec::SmallVec;
use std::cell::RefCell;

type Slot = u16;

/// One loop over a tile.
#[derive(Clone, Copy)]
enum Code<T> {
    Unary { f: unsafe fn(*mut T, *const T, usize), y: Slot, a: Slot },
    Binary { f: unsafe fn(*mut T, *const T, *const T, usize), y: Slot, a: Slot, b: Slot },
    Select { y: Slot, c: Slot, a: Slot, b: Slot },
    Copy { y: Slot, a: Slot },
}

/// A compiled program over `T` (f32, also for half types and integers, or f64).
///
/// Slots are numbered: inputs, outputs, constants, scalars, scratch.
pub struct Program<T> {
    code: Vec<Code<T>>,
    inputs: usize,
    outputs: usize,
    consts: Vec<f64>,
    scalars: usize,
    slots: usize,
    tile: usize,
    /// Per output: code index at which it is complete; per input: index of its last reading.
    made: Vec<usize>,
    read: Vec<Option<usize>>,
}

/// How a program walks over an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Walk {
    /// Element by element, as the outputs.
    Dense,
    /// One value for all, read from the array.
    Splat,
    /// A number; there is no array.
    Constant(f64),
    /// Broadcast: sizes and strides of merged axes (stride 0 where the input repeats).
    Strided(SmallVec<[(usize, usize); 4]>),
}

impl Walk {
    /// How an input of shape `from` is read in a loop over `over`.
    pub fn new(from: &Shape, over: &Shape) -> Walk {
        if from == over {
            return Walk::Dense;
        }
        if from.size() == 1 {
            return Walk::Splat;
        }
        let strides = from.strides();
        let lead = over.ndim() - from.ndim();
        let mut axes: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for (i, &n) in over.iter().enumerate().filter(|(_, n)| **n != 1) {
            let stride = if i < lead || from[i - lead] == 1 { 0 } else { strides[i - lead] };
            match axes.last_mut() {
                Some((m, s)) if *s == stride * n && (stride > 0 || *s == 0) => (*m, *s) = (*m * n, stride),
                _ => axes.push((n, stride)),
            }
        }
        if axes.len() == 1 && axes[0].1 == 1 { Walk::Dense } else { Walk::Strided(axes) }
    }
}

/// An input of a run.
pub struct Source {
    pub ptr: *const u8,
    pub dtype: DType,
    pub walk: Walk,
}

/// An output of a run; always dense.
#[derive(Clone, Copy)]
pub struct Sink {
    pub ptr: *mut u8,
    pub dtype: DType,
}

const MIN_PARALLEL: usize = 1 << 17;
const CHUNK: usize = 1 << 14;

impl<T: SimdReal> Program<T> {
    /// Compiles the values `outputs` of `ssa`, whose inputs are numbered below `inputs`.
    pub fn compile(ssa: &Ssa, inputs: usize, scalars: usize, outputs: &[Id]) -> Program<T> {
        Compiler::new(ssa, inputs, scalars, outputs).finish()
    }

    /// Compiles a formula.
    pub fn of(f: &super::Formula) -> Program<T> {
        let mut ssa = Ssa::default();
        let args: Vec<Id> = (0..f.inputs()).map(|k| ssa.push(Ins::Input(k as u32))).collect();
        let outputs: Vec<Id> = f.apply(&mut ssa, &args).into_iter().flatten().collect();
        Program::compile(&ssa, f.inputs(), f.scalars(), &outputs)
    }

    /// Runs over `n` elements.
    ///
    /// # Safety
    /// Sources must be readable and sinks writable for `n` elements of their types. A sink may be the same memory as a
    /// dense source of an element type of the same size, but they must not overlap otherwise.
    pub unsafe fn run(&self, n: usize, sources: &[Source], sinks: &[Sink], scalars: &[f64]) {
        debug_assert!(sources.len() == self.inputs && sinks.len() == self.outputs && scalars.len() == self.scalars);
        let run = Run { program: self, n, sources, sinks, scalars };
        if n * (self.code.len() + 1) < MIN_PARALLEL || n <= CHUNK {
            // SAFETY: the caller's promise.
            unsafe { run.range(0, n) };
            return;
        }
        let run = &run;
        // SAFETY: the caller's promise; chunks do not overlap.
        pool::run(n.div_ceil(CHUNK), &move |i| unsafe { run.range(i * CHUNK, n.min((i + 1) * CHUNK)) });
    }

    /// Runs over elements `from .. to` on this thread, for callers that divide the work themselves.
    ///
    /// # Safety
    /// As [`Program::run`], for `to` elements.
    pub unsafe fn run_part(&self, from: usize, to: usize, sources: &[Source], sinks: &[Sink], scalars: &[f64]) {
        debug_assert!(sources.len() == self.inputs && sinks.len() == self.outputs && scalars.len() == self.scalars);
        // SAFETY: the caller's promise.
        unsafe { Run { program: self, n: to, sources, sinks, scalars }.range(from, to) }
    }

    /// Loops over a tile that one run of all the code takes: what an element costs.
    pub fn loops(&self) -> usize {
        self.code.len()
    }
}

struct Run<'a, T> {
    program: &'a Program<T>,
    n: usize,
    sources: &'a [Source],
    sinks: &'a [Sink],
    scalars: &'a [f64],
}

// SAFETY: the pointers are used for disjoint ranges by each thread, under the contract of `Program::run`.
unsafe impl<T> Sync for Run<'_, T> {}

thread_local! {
    static SCRATCH: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Where a slot's tile lies: a base, and how far it moves from tile to tile.
#[derive(Clone, Copy)]
struct Place<T> {
    ptr: *mut T,
    step: usize,
}

impl<T: SimdReal> Run<'_, T> {
    /// Runs elements `from .. to`.
    unsafe fn range(&self, from: usize, to: usize) {
        let p = self.program;
        let tile = p.tile.min((to - from).next_multiple_of(64).max(64));
        let words = p.slots * tile * size_of::<T>() / 8 + 8;
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < words {
                *scratch = vec![0; words];
            }
            let base = scratch.as_mut_ptr() as usize;
            let base = base.next_multiple_of(64) as *mut T;
            // SAFETY: slots are tiles inside the scratch; the caller answers for the rest.
            unsafe {
                let mut places = self.places(base, tile, from);
                self.prepare(&places, tile.min(to - from));
                let mut at = from;
                while at < to {
                    let len = tile.min(to - at);
                    self.load(&places, at, len);
                    self.execute(&places, len);
                    self.store(&places, at, len);
                    places.iter_mut().for_each(|s| s.ptr = s.ptr.add(s.step));
                    at += len;
                }
            }
        });
    }

    fn is_direct_source(&self, k: usize) -> bool {
        self.sources[k].dtype == T::DTYPE && self.sources[k].walk == Walk::Dense
    }

    /// An output is written in place unless its type differs, or its memory is an input that is read after it is made.
    fn is_direct_sink(&self, k: usize) -> bool {
        let p = self.program;
        let early = |i: usize| {
            std::ptr::eq(self.sources[i].ptr, self.sinks[k].ptr)
                && (p.read[i].is_some_and(|last| last > p.made[k]) || !self.is_direct_source(i))
        };
        self.sinks[k].dtype == T::DTYPE && !(0..p.inputs).any(early)
    }

    unsafe fn places(&self, base: *mut T, tile: usize, from: usize) -> SmallVec<[Place<T>; 24]> {
        let p = self.program;
        (0..p.slots)
            .map(|s| {
                let direct = if s < p.inputs {
                    self.is_direct_source(s).then_some(self.sources[s].ptr as *mut T)
                } else if s < p.inputs + p.outputs {
                    self.is_direct_sink(s - p.inputs).then_some(self.sinks[s - p.inputs].ptr as *mut T)
                } else {
                    None
                };
                // SAFETY: inside the arrays, or inside the scratch.
                unsafe {
                    match direct {
                        Some(ptr) => Place { ptr: ptr.add(from), step: tile },
                        None => Place { ptr: base.add(s * tile), step: 0 },
                    }
                }
            })
            .collect()
    }

    /// Fills the slots that keep their value over all tiles.
    unsafe fn prepare(&self, places: &[Place<T>], len: usize) {
        let p = self.program;
        let first = p.inputs + p.outputs;
        let fill = |slot: usize, v: f64| {
            // SAFETY: a scratch tile of at least `len` elements.
            let tile = unsafe { std::slice::from_raw_parts_mut(places[slot].ptr, len) };
            tile.fill(T::from_f64(v));
        };
        let numbers = p.consts.iter().chain(self.scalars);
        numbers.enumerate().for_each(|(i, &v)| fill(first + i, v));
        for (k, s) in self.sources.iter().enumerate() {
            match s.walk {
                Walk::Constant(v) => fill(k, v),
                Walk::Splat => {
                    let mut v = T::ZERO;
                    // SAFETY: one element is read and converted.
                    unsafe { simd::convert(&mut v as *mut T as *mut u8, T::DTYPE, s.ptr, s.dtype, 1) };
                    fill(k, v.to_f64());
                }
                _ => {}
            }
        }
    }

    /// Brings the inputs that are not used where they lie into their tiles.
    unsafe fn load(&self, places: &[Place<T>], at: usize, len: usize) {
        for (k, s) in self.sources.iter().enumerate() {
            // SAFETY: elements `at .. at + len` of the input exist by the contract of `run`.
            unsafe {
                match &s.walk {
                    Walk::Dense if places[k].step == 0 => {
                        let src = s.ptr.add(at * s.dtype.size());
                        simd::convert(places[k].ptr as *mut u8, T::DTYPE, src, s.dtype, len)
                    }
                    Walk::Strided(axes) => gather(places[k].ptr, s, axes, at, len),
                    _ => {}
                }
            }
        }
    }

    unsafe fn execute(&self, places: &[Place<T>], len: usize) {
        let at = |s: Slot| places[s as usize].ptr;
        for (i, code) in self.program.code.iter().enumerate() {
            self.prefetch(places, i);
            // SAFETY: each slot holds at least `len` elements; the loops allow y to be one of the operands.
            unsafe {
                match *code {
                    Code::Unary { f, y, a } => f(at(y), at(a), len),
                    Code::Binary { f, y, a, b } => f(at(y), at(a), at(b), len),
                    Code::Select { y, c, a, b } => simd::select(at(y), at(c), at(a), at(b), len),
                    Code::Copy { y, a } => std::ptr::copy(at(a), at(y), len),
                }
            }
        }
    }

    /// Asks for a share of the next tile's inputs before loop `i`: memory works while the loops do.
    /// The CPU sees one or two streams by itself; with a solver's four it loses track (Adam: 1.65 ns an element without this, 1.23 with it).
    #[inline]
    fn prefetch(&self, places: &[Place<T>], i: usize) {
        let loops = self.program.code.len();
        let streams = || places[..self.program.inputs].iter().filter(|p| p.step > 0);
        if streams().count() < 3 {
            return;
        }
        for p in streams() {
            let bytes = p.step * size_of::<T>();
            let next = (p.ptr as *const u8).wrapping_add(bytes);
            for line in (bytes * i / loops / 64)..(bytes * (i + 1) / loops / 64) {
                simd::prefetch(next.wrapping_add(line * 64));
            }
        }
    }

    unsafe fn store(&self, places: &[Place<T>], at: usize, len: usize) {
        let first = self.program.inputs;
        for (k, sink) in self.sinks.iter().enumerate() {
            let place = places[first + k];
            if place.step == 0 {
                // SAFETY: elements `at .. at + len` of the output exist by the contract of `run`.
                unsafe {
                    let dst = sink.ptr.add(at * sink.dtype.size());
                    simd::convert(dst, sink.dtype, place.ptr as *const u8, T::DTYPE, len)
                }
            }
        }
        debug_assert!(at + len <= self.n);
    }
}

/// Collects a broadcast input's elements `at .. at + len` into a tile, run by run of its innermost axis.
unsafe fn gather<T: SimdReal>(tile: *mut T, s: &Source, axes: &[(usize, usize)], at: usize, len: usize) {
    let (inner, stride) = axes[axes.len() - 1];
    let mut done = 0;
    while done < len {
        let (mut rest, mut offset) = ((at + done) / inner, 0);
        for &(n, st) in axes[..axes.len() - 1].iter().rev() {
            offset += rest % n * st;
            rest /= n;
        }
        let i = (at + done) % inner;
        let run = (inner - i).min(len - done);
        // SAFETY: the offsets stay inside the input by the construction of `Walk`.
        unsafe { copy_run(tile.add(done), s, offset + i * stride, stride, run) };
        done += run;
    }
}

unsafe fn copy_run<T: SimdReal>(dst: *mut T, s: &Source, offset: usize, stride: usize, n: usize) {
    let size = s.dtype.size();
    // SAFETY: the caller's promise.
    unsafe {
        match stride {
            0 => {
                let mut v = T::ZERO;
                simd::convert(&mut v as *mut T as *mut u8, T::DTYPE, s.ptr.add(offset * size), s.dtype, 1);
                std::slice::from_raw_parts_mut(dst, n).fill(v);
            }
            1 => simd::convert(dst as *mut u8, T::DTYPE, s.ptr.add(offset * size), s.dtype, n),
            _ => (0..n).for_each(|i| {
                let src = s.ptr.add((offset + i * stride) * size);
                simd::convert(dst.add(i) as *mut u8, T::DTYPE, src, s.dtype, 1)
            }),
        }
    }
}

/// Assigns slots and writes the code.
struct Compiler<'a, T> {
    ssa: &'a Ssa,
    program: Program<T>,
    slot: Vec<Option<Slot>>,
    last_use: Vec<usize>,
    free: Vec<Slot>,
    outputs: &'a [Id],
    needed: Vec<bool>,
    /// Output that a value may be made in directly.
    home: Vec<Option<Slot>>,
}

impl<'a, T: SimdReal> Compiler<'a, T> {
    fn new(ssa: &'a Ssa, inputs: usize, scalars: usize, outputs: &'a [Id]) -> Self {
        let n = ssa.ins().len();
        let needed = ssa.needed(outputs.iter().copied());
        let mut last_use = vec![0; n];
        for (id, ins) in ssa.ins().iter().enumerate().filter(|(id, _)| needed[*id]) {
            ins.operands().for_each(|o| last_use[o as usize] = id);
        }
        let program = Program {
            code: Vec::new(),
            inputs,
            outputs: outputs.len(),
            consts: Vec::new(),
            scalars,
            slots: 0,
            tile: 0,
            made: vec![0; outputs.len()],
            read: vec![None; inputs],
        };
        let home = vec![None; n];
        Compiler { ssa, program, slot: vec![None; n], last_use, free: Vec::new(), outputs, needed, home }
    }

    fn finish(mut self) -> Program<T> {
        self.place_leaves();
        for (k, &id) in self.outputs.iter().enumerate() {
            last_use_forever(&mut self.last_use, id);
            if self.slot[id as usize].is_none() && self.home[id as usize].is_none() {
                self.home[id as usize] = Some((self.program.inputs + k) as Slot);
            }
        }
        for id in 0..self.ssa.ins().len() {
            if self.needed[id] && self.slot[id].is_none() {
                self.emit(id);
            }
        }
        self.copy_outputs();
        let p = &mut self.program;
        p.tile = match p.slots {
            0..=6 => 1024,
            7..=16 => 512,
            _ => 256,
        };
        self.program
    }

    /// Inputs, constants and scalars have fixed slots.
    fn place_leaves(&mut self) {
        let p = &mut self.program;
        let first = p.inputs + p.outputs;
        for (id, ins) in self.ssa.ins().iter().enumerate().filter(|(id, _)| self.needed[*id]) {
            match *ins {
                Ins::Input(k) => self.slot[id] = Some(k as Slot),
                Ins::Const(bits) => {
                    self.slot[id] = Some((first + p.consts.len()) as Slot);
                    p.consts.push(f64::from_bits(bits));
                }
                _ => {}
            }
        }
        for (id, ins) in self.ssa.ins().iter().enumerate().filter(|(id, _)| self.needed[*id]) {
            if let Ins::Scalar(k) = *ins {
                self.slot[id] = Some((first + p.consts.len() + k as usize) as Slot);
            }
        }
        p.slots = first + p.consts.len() + p.scalars;
    }

    fn emit(&mut self, id: usize) {
        let ins = self.ssa.ins()[id];
        let of = |c: &Self, o: Id| c.slot[o as usize].expect("operands come first");
        let at = self.program.code.len();
        for o in ins.operands() {
            if let Ins::Input(k) = self.ssa.get(o) {
                self.program.read[k as usize] = Some(at);
            }
        }
        let code = match ins {
            Ins::Unary(op, a) => Code::Unary { f: simd::unary_fn(op), y: 0, a: of(self, a) },
            Ins::Binary(op, a, b) => Code::Binary { f: simd::binary_fn(op), y: 0, a: of(self, a), b: of(self, b) },
            Ins::Select(c, a, b) => Code::Select { y: 0, c: of(self, c), a: of(self, a), b: of(self, b) },
            _ => return,
        };
        self.release(ins, id);
        let y = self.home[id].unwrap_or_else(|| self.scratch());
        self.slot[id] = Some(y);
        if (self.program.inputs..self.program.inputs + self.program.outputs).contains(&(y as usize)) {
            self.program.made[y as usize - self.program.inputs] = at;
        }
        self.program.code.push(code.into_slot(y));
    }

    /// Frees the scratch slots of operands that are not used again.
    fn release(&mut self, ins: Ins, id: usize) {
        let mut gone: SmallVec<[Id; 3]> = ins.operands().filter(|&o| self.last_use[o as usize] == id).collect();
        gone.sort_unstable();
        gone.dedup();
        for o in gone {
            let is_scratch = !matches!(self.ssa.get(o), Ins::Input(_) | Ins::Const(_) | Ins::Scalar(_));
            if let Some(slot) = self.slot[o as usize].filter(|_| is_scratch && self.home[o as usize].is_none()) {
                self.free.push(slot);
            }
        }
    }

    fn scratch(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            self.program.slots += 1;
            (self.program.slots - 1) as Slot
        })
    }

    /// Outputs that are an input, a constant, or the same value as another output.
    fn copy_outputs(&mut self) {
        for (k, &id) in self.outputs.iter().enumerate() {
            let y = (self.program.inputs + k) as Slot;
            let a = self.slot[id as usize].expect("all values are placed");
            if a != y {
                let at = self.program.code.len();
                self.program.made[k] = at;
                if let Ins::Input(i) = self.ssa.get(id) {
                    self.program.read[i as usize] = Some(at);
                }
                self.program.code.push(Code::Copy { y, a });
            }
        }
    }
}

fn last_use_forever(last_use: &mut [usize], id: Id) {
    last_use[id as usize] = usize::MAX;
}

impl<T> Code<T> {
    fn into_slot(mut self, slot: Slot) -> Code<T> {
        match &mut self {
            Code::Unary { y, .. } | Code::Binary { y, .. } | Code::Select { y, .. } | Code::Copy { y, .. } => *y = slot,
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::expr::Formula;

    fn run(f: &Formula, x: &[Vec<f32>], shapes: &[Shape], over: &Shape) -> Vec<Vec<f32>> {
        let mut ssa = Ssa::default();
        let args: Vec<Id> = (0..f.inputs()).map(|k| ssa.push(Ins::Input(k as u32))).collect();
        let outs: Vec<Id> = f.apply(&mut ssa, &args).into_iter().flatten().collect();
        let p = Program::<f32>::compile(&ssa, f.inputs(), 0, &outs);
        let sources: Vec<Source> = x
            .iter()
            .zip(shapes)
            .map(|(x, s)| Source { ptr: x.as_ptr() as *const u8, dtype: DType::F32, walk: Walk::new(s, over) })
            .collect();
        let mut y = vec![vec![0f32; over.size()]; outs.len()];
        let sinks: Vec<Sink> =
            y.iter_mut().map(|y| Sink { ptr: y.as_mut_ptr() as *mut u8, dtype: DType::F32 }).collect();
        // SAFETY: sizes match.
        unsafe { p.run(over.size(), &sources, &sinks, &[]) };
        y
    }

    #[test]
    fn programs_match_evaluation_with_broadcasting() {
        let f = Formula::new(2, |x| {
            vec![Some((&x[0] * 2.0 + &x[1]).tanh()), Some(x[1].clone()), Some(x[0].gt(&x[1]).select(1.5, &x[0]))]
        });
        let cases: [(&[usize], &[usize]); 5] =
            [(&[7, 300], &[7, 300]), (&[5, 1, 3], &[1, 4, 3]), (&[2, 3, 1], &[3, 700]), (&[], &[9]), (&[0, 2], &[2])];
        for (sa, sb) in cases {
            let (sa, sb) = (Shape::from(sa), Shape::from(sb));
            let over = sa.broadcast(&sb).unwrap();
            let make = |n: usize, k: f32| (0..n).map(|i| ((i as f32) * k).sin()).collect::<Vec<_>>();
            let x = [make(sa.size(), 0.7), make(sb.size(), 1.3)];
            let y = run(&f, &x, &[sa.clone(), sb.clone()], &over);
            let (st_a, st_b) = (sa.strides(), sb.strides());
            #[allow(clippy::needless_range_loop)]
            for flat in 0..over.size() {
                let at = |s: &Shape, st: &[usize]| {
                    let (mut rest, mut o) = (flat, 0);
                    for ax in (0..over.ndim()).rev() {
                        let i = rest % over[ax];
                        rest /= over[ax];
                        if ax + s.ndim() >= over.ndim() && s[ax + s.ndim() - over.ndim()] != 1 {
                            o += i * st[ax + s.ndim() - over.ndim()];
                        }
                    }
                    o
                };
                let want = f.eval(&[x[0][at(&sa, &st_a)] as f64, x[1][at(&sb, &st_b)] as f64]);
                for k in 0..3 {
                    assert!((y[k][flat] as f64 - want[k].unwrap()).abs() < 1e-6, "{sa} {sb} {flat} {k}");
                }
            }
        }
    }
}
