//! Strided inputs: their elements are brought into tiles, or, where their runs are long, used where they lie.

use super::{Source, Walk, WalkAxes};
use crate::simd::{self, Body, SimdReal, TileAddress, Vector};
use smallvec::SmallVec;

/// Elements of a run from which on it pays to go through a program run by run.
const LONG: usize = 256;

/// A place in a walk over some axes.
struct Odometer {
    /// Size, stride and index; the innermost axis first.
    axes: SmallVec<[(usize, isize, usize); 4]>,
    offset: isize,
}

impl Odometer {
    /// At step `at` of a walk from the offset `first`.
    fn new(axes: &[(usize, isize)], first: isize, at: usize) -> Odometer {
        let mut odometer = Odometer { axes: SmallVec::new(), offset: first };
        let mut rest = at;
        for &(n, stride) in axes.iter().rev() {
            odometer.axes.push((n, stride, rest % n));
            odometer.offset += (rest % n) as isize * stride;
            rest /= n;
        }
        odometer
    }

    /// How often this place is to come in succession.
    #[inline(always)]
    fn repeats(&self) -> usize {
        if let Some(&(n, 0, index)) = self.axes.first() { n - index } else { 1 }
    }

    /// Goes on by some steps, within the innermost axis or to its end.
    #[inline(always)]
    fn advance(&mut self, mut steps: usize) {
        for (n, stride, index) in &mut self.axes {
            *index += steps;
            self.offset += steps as isize * *stride;
            if *index < *n {
                return;
            }
            self.offset -= *n as isize * *stride;
            (*index, steps) = (0, 1);
        }
    }
}

/// Strided inputs whose runs, in which each repeats an element or has neighbours, are as long, or as long together.
pub(super) struct LongRuns {
    length: usize,
    /// Elements of this run that are still to come.
    pub left: usize,
    /// The inputs, where their runs begin, and the strides within them.
    walks: SmallVec<[(usize, Odometer, isize); 2]>,
}

impl LongRuns {
    /// From element `at` on; `None` if there are no such inputs, or their runs are short or end within those of others.
    pub fn new<'a>(inputs: impl Iterator<Item = (usize, &'a Source)> + Clone, at: usize) -> Option<LongRuns> {
        let strided = || {
            inputs.clone().filter_map(|(k, s)| {
                if let Walk::Strided(first, axes) = &s.walk { Some((k, *first, axes)) } else { None }
            })
        };
        let length = strided().map(|(_, _, axes)| axes.last().map_or(0, |axis| axis.0)).min().filter(|n| *n >= LONG)?;
        let mut runs = LongRuns { length, left: length - at % length, walks: SmallVec::new() };
        for (k, first, axes) in strided() {
            let (&(n, stride @ (0 | 1)), outer) = axes.split_last()? else { return None };
            if n % length != 0 {
                return None;
            }
            let mut outer: WalkAxes = outer.into();
            outer.push((n / length, length as isize * stride));
            runs.walks.push((k, Odometer::new(&outer, first as isize, at / length), stride));
        }
        Some(runs)
    }

    /// Whether an input repeats an element in each run.
    pub fn repeats(&self, slot: usize) -> bool {
        self.walks.iter().any(|&(k, _, stride)| k == slot && stride == 0)
    }

    /// Makes the inputs' next `len` elements, of this run, be found at their places: where they lie, if they are neighbours of the
    /// program's type; else in the tile or block there.
    ///
    /// # Safety
    /// The walks stay inside the inputs and have these elements; tiles have room for them.
    pub unsafe fn bring<T: SimdReal>(&self, places: &mut [TileAddress<T>], sources: &[Source], len: usize) {
        for (k, walk, stride) in &self.walks {
            let (s, place) = (&sources[*k], &mut places[*k]);
            let offset = walk.offset + (self.length - self.left) as isize * stride;
            if *stride == 1 && s.dtype == T::DTYPE {
                place.ptr = s.ptr.cast::<T>().wrapping_offset(offset).cast_mut();
            } else {
                // SAFETY: the caller's promise.
                unsafe { copy_run(place.ptr, s, offset, *stride, len.min(place.mask.saturating_add(1))) }
            }
        }
    }

    /// Goes on by `len` elements of this run.
    pub fn advance(&mut self, len: usize) {
        self.left -= len;
        if self.left == 0 {
            self.left = self.length;
            self.walks.iter_mut().for_each(|(_, walk, _)| walk.advance(1));
        }
    }
}

/// Fills `len` elements with what the first `period` are.
unsafe fn repeat<T: Copy>(to: *mut T, period: usize, len: usize) {
    let mut done = period;
    while done < len {
        let n = done.min(len - done);
        // SAFETY: inside `len` elements; the copy lies behind what it is of.
        unsafe { std::ptr::copy_nonoverlapping(to, to.add(done), n) };
        done += n;
    }
}

/// A strided input's elements `at .. at + len`, on their way into a tile.
#[derive(Clone, Copy)]
pub(super) struct RunGather<'a, T> {
    pub tile: *mut T,
    pub s: &'a Source,
    pub first: isize,
    pub axes: &'a [(usize, isize)],
    pub at: usize,
    pub len: usize,
}

impl<T: SimdReal> RunGather<'_, T> {
    /// Brings them there.
    ///
    /// # Safety
    /// The walk from `first` over `axes` stays inside the input, and has these elements; the tile has room for them.
    pub unsafe fn gather(self) {
        // What is repeated as a whole is brought once.
        if let [(_, 0), axes @ ..] = self.axes {
            let period = axes.iter().map(|a| a.0).product::<usize>();
            if period < self.len && !axes.is_empty() {
                let (i, rest) = (self.at % period, period - self.at % period);
                // SAFETY: the caller's promise.
                unsafe {
                    simd::run(&RunGather { axes, at: i, len: rest, ..self });
                    simd::run(&RunGather { tile: self.tile.add(rest), axes, at: 0, len: i, ..self });
                    return repeat(self.tile, period, self.len);
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { simd::run(&self) }
    }
}

/// Run by run of the innermost axis.
impl<T: SimdReal> Body<T> for RunGather<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let RunGather { tile, s, first, axes, at, len } = *self;
        let &[ref outer @ .., (inner, stride)] = axes else { return };
        let is_repeated = stride == 0 && s.dtype == T::DTYPE;
        let mut walk = Odometer::new(outer, first, at / inner);
        let (mut i, mut done) = (at % inner, 0);
        while done < len {
            let run = (inner - i).min(len - done);
            let offset = walk.offset + i as isize * stride;
            let mut times = 1;
            // SAFETY: the offsets stay inside the input by the construction of `Walk`, and what is written inside the tile.
            unsafe {
                match is_repeated {
                    true => repeat_number::<T, V>(tile.add(done), run, *s.ptr.cast::<T>().offset(offset)),
                    false => copy_run(tile.add(done), s, offset, stride, run),
                }
                if run == inner && walk.repeats() > 1 {
                    // The same run again.
                    times = walk.repeats().min((len - done) / inner);
                    repeat(tile.add(done), inner, times * inner);
                }
            }
            walk.advance(times);
            (i, done) = (0, done + times * run);
        }
    }
}

/// Writes `v` to `n` elements.
#[inline(always)]
unsafe fn repeat_number<T: SimdReal, V: Vector<E = T>>(to: *mut T, n: usize, v: T) {
    let (v, whole) = (V::splat(v.to_f64()), n - n % V::N);
    // SAFETY: the caller's promise.
    unsafe {
        for i in (0..whole).step_by(V::N) {
            v.store(to.add(i));
        }
        if whole < n {
            v.store_part(to.add(whole), n - whole);
        }
    }
}

/// `offset`, from the source's first element, may lie before it, where a view goes backward.
unsafe fn copy_run<T: SimdReal>(dst: *mut T, s: &Source, offset: isize, stride: isize, n: usize) {
    let size = s.dtype.size() as isize;
    // SAFETY: the caller's promise.
    unsafe {
        let src = s.ptr.offset(offset * size);
        match stride {
            0 if s.dtype == T::DTYPE => std::slice::from_raw_parts_mut(dst, n).fill(*(src as *const T)),
            1 if s.dtype == T::DTYPE => std::ptr::copy_nonoverlapping(src as *const T, dst, n),
            0 => {
                let mut v = T::ZERO;
                simd::convert(&mut v as *mut T as *mut u8, T::DTYPE, src, s.dtype, 1);
                std::slice::from_raw_parts_mut(dst, n).fill(v);
            }
            1 => simd::convert(dst as *mut u8, T::DTYPE, src, s.dtype, n),
            _ if s.dtype == T::DTYPE => {
                let src = src as *const T;
                for i in 0..n {
                    *dst.add(i) = *src.offset(i as isize * stride);
                }
            }
            _ => (0..n).for_each(|i| {
                let src = src.offset(i as isize * stride * size);
                simd::convert(dst.add(i) as *mut u8, T::DTYPE, src, s.dtype, 1)
            }),
        }
    }
}
