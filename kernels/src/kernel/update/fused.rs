//! A formula that is compiled into a loop of its own. It does the same operations in the same order as the formula's tile
//! program, so both give the same bits.

use super::{Chunk, TensorUpdate};
use crate::dtype::DType;
use crate::simd::{self, Body, Number, SimdReal, Vector};
use std::marker::PhantomData;

/// A weight's and its `S` states' next values, from its gradient and `K` numbers.
pub trait Loop<const S: usize, const K: usize>: 'static {
    /// The new weight and the new states. Must be `inline(always)`, because it becomes the body of a vector loop.
    fn formula<N: Number>(w: N, g: N, states: [N; S], scalars: [N; K]) -> (N, [N; S]);
}

/// Whether the job's arrays are those of such a loop (weight, gradient, states; all but the gradient are written), in memory of
/// the type that is computed in.
pub(super) fn fits<const S: usize, const K: usize>(job: &TensorUpdate) -> bool {
    let written = job.sources.iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, s)| s.ptr);
    job.is_plain()
        && job.sources.len() == 2 + S
        && job.scalars.len() == K
        && written.eq(job.sinks.iter().map(|s| s.ptr.cast_const()))
}

/// The elements of a part.
///
/// # Safety
/// The job [fits](fits), the part is of its elements, and no other thread works on them.
pub(super) unsafe fn run<L: Loop<S, K>, const S: usize, const K: usize>(job: &TensorUpdate, part: Chunk) {
    // SAFETY: the caller's promise.
    unsafe {
        match job.dtype {
            DType::F64 => simd::run(&UpdatePointers::<f64, L, S, K>::new(job, part)),
            _ => simd::run(&UpdatePointers::<f32, L, S, K>::new(job, part)),
        }
    }
}

/// Elements of a job as pointers: weight, gradient, states.
struct UpdatePointers<T, L, const S: usize, const K: usize> {
    w: *mut T,
    g: *const T,
    states: [*mut T; S],
    scalars: [f64; K],
    n: usize,
    formula: PhantomData<L>,
}

impl<T: SimdReal, L: Loop<S, K>, const S: usize, const K: usize> UpdatePointers<T, L, S, K> {
    /// # Safety
    /// As for [`run`]; `T` is the job's type.
    unsafe fn new(job: &TensorUpdate, part: Chunk) -> Self {
        // SAFETY: the elements lie inside the job's arrays, which are of type T.
        let at = |i: usize| unsafe { (job.sources[i].ptr as *mut T).add(part.from) };
        let scalars = std::array::from_fn(|i| job.scalars[i]);
        let (states, n) = (std::array::from_fn(|i| at(2 + i)), part.to - part.from);
        UpdatePointers { w: at(0), g: at(1), states, scalars, n, formula: PhantomData }
    }

    /// Elements `i .. i + n`, a whole vector or a part of one.
    #[inline(always)]
    unsafe fn step<V: Vector<E = T>>(&self, i: usize, n: usize, scalars: [V; K]) {
        // SAFETY: inside the part.
        unsafe {
            let mut states = [V::splat(0.0); S];
            // Plain loops: closures would not be inlined into a frame with the CPU's features.
            let mut k = 0;
            while k < S {
                states[k] = load::<V>(self.states[k].add(i), n);
                k += 1;
            }
            let (w, states) = L::formula(load::<V>(self.w.add(i), n), load::<V>(self.g.add(i), n), states, scalars);
            store(w, self.w.add(i), n);
            let mut k = 0;
            while k < S {
                store(states[k], self.states[k].add(i), n);
                k += 1;
            }
        }
    }
}

#[inline(always)]
unsafe fn load<V: Vector>(p: *const V::E, n: usize) -> V {
    // SAFETY: the caller's promise.
    unsafe { if n == V::N { V::load(p) } else { V::load_part(p, n) } }
}

#[inline(always)]
unsafe fn store<V: Vector>(v: V, p: *mut V::E, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { if n == V::N { v.store(p) } else { v.store_part(p, n) } }
}

impl<T: SimdReal, L: Loop<S, K>, const S: usize, const K: usize> Body<T> for UpdatePointers<T, L, S, K> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let mut scalars = [V::splat(0.0); K];
        let mut k = 0;
        while k < K {
            scalars[k] = V::splat(self.scalars[k]);
            k += 1;
        }
        let mut i = 0;
        // SAFETY: inside the part.
        unsafe {
            while i + V::N <= self.n {
                self.step(i, V::N, scalars);
                i += V::N;
            }
            if i < self.n {
                self.step(i, self.n - i, scalars);
            }
        }
    }
}
