//! Running a tile program: where its tiles lie, what is brought into them, and the loops one after the other.

use super::across::CrossRows;
use super::gather::{LongRuns, RunGather};
use super::{Code, Destination, Register, Source, TileProgram, UniformValue, Walk};
use crate::simd::{self, SimdReal, TileAddress};
use smallvec::SmallVec;
use std::cell::RefCell;

pub(super) struct TileRun<'a, T> {
    pub program: &'a TileProgram<T>,
    pub n: usize,
    pub sources: &'a [Source],
    pub sinks: &'a [Destination],
    pub scalars: &'a [f64],
}

// SAFETY: the pointers are used for disjoint ranges by each thread, under the contract of `TileProgram::run`.
unsafe impl<T> Sync for TileRun<'_, T> {}

thread_local! {
    static SCRATCH: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The places of all slots, and which of them move on from tile to tile because they lie in the caller's arrays.
struct Places<T: Copy> {
    of: SmallVec<[TileAddress<T>; 24]>,
    moving: SmallVec<[Register; 8]>,
    across: SmallVec<[CrossRows<T>; 1]>,
    /// The other strided inputs; `None` if they are gathered.
    runs: Option<LongRuns>,
}

impl<T: SimdReal> TileRun<'_, T> {
    /// Runs elements `from .. to`.
    ///
    /// # Safety
    /// As [`TileProgram::run`], for `to` elements.
    pub unsafe fn range(&self, from: usize, to: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.rows(from, 0, 1, to - from) }
    }

    /// Runs `n` elements from `first` on, then as many `apart` further on, `count` times in all.
    ///
    /// # Safety
    /// As [`TileProgram::run`], for all of these.
    pub unsafe fn rows(&self, first: usize, apart: usize, count: usize, n: usize) {
        if n * count == 0 {
            return;
        }
        let p = self.program;
        let size = p.tile.min(n.next_multiple_of(64).max(64));
        let words = (p.tiles * size + p.blocks * p.block) * size_of::<T>() / 8 + 8;
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < words {
                *scratch = vec![0; words];
            }
            let base = scratch.as_mut_ptr() as usize;
            let base = base.next_multiple_of(64) as *mut T;
            // SAFETY: slots are tiles inside the scratch; the caller answers for the rest.
            unsafe {
                let mut places = self.places(base, size, first);
                self.prepare(&places.of, size.min(n));
                let numbers = (0..p.inputs).filter(|&s| self.is_number(s)).count();
                let direct = places.moving.len() + numbers == p.inputs + p.outputs;
                let tile = if p.code.len() == 1 && places.all_move() { n } else { size };
                for row in 0..count {
                    let mut at = first + row * apart;
                    if row > 0 && direct {
                        places.advance(apart - n);
                    } else if row > 0 {
                        places = self.places(base, size, at);
                    }
                    let to = at + n;
                    while at < to {
                        let left = places.runs.as_ref().map_or(to, |runs| runs.left);
                        let len = tile.min(to - at).min(left);
                        if direct {
                            self.execute(&places, len);
                        } else {
                            self.load(&mut places, at, len);
                            self.execute(&places, len);
                            self.store(&places.of, at, len);
                        }
                        places.advance(len);
                        at += len;
                    }
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

    /// Whether it is an input that is one number everywhere.
    fn is_number(&self, slot: usize) -> bool {
        self.sources.get(slot).is_some_and(|s| matches!(s.walk, Walk::Splat | Walk::Constant(_)))
    }

    /// The array in which the tiles of a slot lie, if they need no tile of their own.
    fn direct(&self, slot: usize) -> Option<*mut T> {
        let p = self.program;
        if slot < p.inputs {
            return self.is_direct_source(slot).then_some(self.sources[slot].ptr as *mut T);
        }
        let k = slot - p.inputs;
        (k < p.outputs && self.is_direct_sink(k)).then(|| self.sinks[k].ptr as *mut T)
    }

    /// Slots are numbered: inputs, outputs, other tiles, blocks.
    unsafe fn places(&self, base: *mut T, tile: usize, from: usize) -> Places<T> {
        let p = self.program;
        let across = self.across();
        let others = self.sources.iter().enumerate().filter(|(k, _)| !across.iter().any(|a| a.slot == *k));
        let runs = LongRuns::new(others, from);
        let mut of = SmallVec::new();
        let mut moving = SmallVec::new();
        for s in 0..p.tiles {
            let direct = if s < p.inputs + p.outputs { self.direct(s) } else { None };
            moving.extend(direct.map(|_| s as Register));
            let (array, offset) = direct.map_or((base, s * tile), |ptr| (ptr, from));
            // SAFETY: inside the array, or inside the scratch.
            let ptr = unsafe { array.add(offset) };
            let repeats = self.is_number(s) || runs.as_ref().is_some_and(|runs| runs.repeats(s));
            let in_block = repeats && p.takes_block(s);
            of.push(TileAddress { ptr, mask: if in_block { p.block - 1 } else { usize::MAX } });
        }
        for s in 0..p.blocks {
            // SAFETY: inside the scratch.
            let ptr = unsafe { base.add(p.tiles * tile + s * p.block) };
            of.push(TileAddress { ptr, mask: p.block - 1 });
        }
        Places { of, moving, across, runs }
    }

    fn across(&self) -> SmallVec<[CrossRows<T>; 1]> {
        let group = |(k, s): (usize, &Source)| match &s.walk {
            Walk::Strided(_, axes) => CrossRows::new(k, s, axes),
            _ => None,
        };
        self.sources.iter().enumerate().filter_map(group).collect()
    }

    /// Fills the slots that keep their value over all tiles.
    unsafe fn prepare(&self, places: &[TileAddress<T>], len: usize) {
        let p = self.program;
        let fill = |slot: usize, v: T| {
            let n = len.min(places[slot].mask.saturating_add(1));
            // SAFETY: the scratch tile or block has at least `n` elements.
            unsafe { std::slice::from_raw_parts_mut(places[slot].ptr, n) }.fill(v);
        };
        for &(slot, number) in &p.fills {
            let v = match number {
                UniformValue::Const(v) => v,
                UniformValue::Scalar(k) => T::from_f64(self.scalars[k as usize]),
            };
            fill(slot as usize, v);
        }
        for (k, s) in self.sources.iter().enumerate() {
            match s.walk {
                Walk::Constant(v) => fill(k, T::from_f64(v)),
                Walk::Splat => {
                    let mut v = T::ZERO;
                    // SAFETY: one element is read and converted.
                    unsafe { simd::convert(&mut v as *mut T as *mut u8, T::DTYPE, s.ptr, s.dtype, 1) };
                    fill(k, v);
                }
                _ => {}
            }
        }
    }

    /// Brings the inputs that are not used where they lie into their tiles.
    unsafe fn load(&self, places: &mut Places<T>, at: usize, len: usize) {
        let Places { of: places, across, runs, .. } = places;
        if let Some(runs) = runs {
            // SAFETY: the contract of `run`.
            unsafe { runs.bring(places, self.sources, len) };
        }
        for (k, s) in self.sources.iter().enumerate() {
            // SAFETY: elements `at .. at + len` of the input exist by the contract of `run`.
            unsafe {
                match &s.walk {
                    Walk::Dense if s.dtype != T::DTYPE => {
                        let src = s.ptr.add(at * s.dtype.size());
                        simd::convert(places[k].ptr as *mut u8, T::DTYPE, src, s.dtype, len)
                    }
                    Walk::Strided(first, axes) => match across.iter_mut().find(|a| a.slot == k) {
                        Some(group) => {
                            let tile = std::slice::from_raw_parts_mut(places[k].ptr, len);
                            group.load(tile, s, *first as isize, axes, at)
                        }
                        None if runs.is_some() => {}
                        None => RunGather { tile: places[k].ptr, s, first: *first as isize, axes, at, len }.gather(),
                    },
                    _ => {}
                }
            }
        }
    }

    unsafe fn execute(&self, places: &Places<T>, len: usize) {
        let at = |s: Register| places.of[s as usize].ptr;
        for code in &self.program.code {
            // SAFETY: each slot holds at least `len` elements; the loops allow y to be one of the operands.
            unsafe {
                match *code {
                    Code::Unary { f, y, a } => f(at(y), at(a), len),
                    Code::Binary { f, y, a, b } => f(at(y), places.of[a as usize], places.of[b as usize], len),
                    Code::Select { f, y, c, a, b } => f(at(y), at(c), at(a), at(b), len),
                    Code::Copy { y, a } => std::ptr::copy(at(a), at(y), len),
                    Code::Steps { f, from, to } => {
                        f(&self.program.steps[from as usize..to as usize], places.of.as_ptr(), len)
                    }
                }
            }
        }
    }

    unsafe fn store(&self, places: &[TileAddress<T>], at: usize, len: usize) {
        for (k, sink) in self.sinks.iter().enumerate() {
            if self.is_direct_sink(k) {
                continue;
            }
            let place = places[self.program.inputs + k];
            // SAFETY: elements `at .. at + len` of the output exist by the contract of `run`.
            unsafe {
                let dst = sink.ptr.add(at * sink.dtype.size());
                simd::convert(dst, sink.dtype, place.ptr as *const u8, T::DTYPE, len)
            }
        }
        debug_assert!(at + len <= self.n);
    }
}

impl<T: Copy> Places<T> {
    /// Whether no tile lies in the scratch.
    fn all_move(&self) -> bool {
        self.of.iter().filter(|place| place.mask == usize::MAX).count() == self.moving.len()
    }

    fn advance(&mut self, len: usize) {
        for &s in &self.moving {
            let p = &mut self.of[s as usize].ptr;
            *p = p.wrapping_add(len);
        }
        if let Some(runs) = &mut self.runs {
            runs.advance(len);
        }
    }
}
