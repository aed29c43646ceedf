//! A formula that is compiled into a loop of its own. It does the same operations in the same order as the formula's tile
//! program, so both give the same bits.

use super::{Chunk, TensorUpdate};
use crate::dtype::DType;
use crate::simd::{self, Body, Number, SimdReal, Vector};
use std::marker::PhantomData;

/// A weight's and its `S` states' next values, from its gradient and `K` numbers, which may depend on `M` norms.
pub trait Loop<const S: usize, const K: usize, const M: usize>: 'static {
    /// The new weight and the new states. Must be `inline(always)`, because it becomes the body of a vector loop.
    fn formula<N: Number>(w: N, g: N, states: [N; S], scalars: [N; K]) -> (N, [N; S]);
    /// The terms whose norms are asked for. Must be `inline(always)` too.
    fn normed<N: Number>(w: N, g: N, states: [N; S], scalars: [N; K]) -> [N; M];
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
pub(super) unsafe fn run<L: Loop<S, K, M>, const S: usize, const K: usize, const M: usize>(
    job: &TensorUpdate,
    part: Chunk,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match job.dtype {
            DType::F64 => simd::run(&UpdatePointers::<f64, L, S, K, M>::new(job, part)),
            _ => simd::run(&UpdatePointers::<f32, L, S, K, M>::new(job, part)),
        }
    }
}

/// The terms whose norms are asked for, of the elements of a part: each in its row of `to`.
///
/// # Safety
/// As for [`run`]; `T` is the job's type, and each row of `to` is as long as the part.
pub(super) unsafe fn normed<T: SimdReal, L: Loop<S, K, M>, const S: usize, const K: usize, const M: usize>(
    job: &TensorUpdate,
    part: Chunk,
    to: [*mut T; M],
) {
    // SAFETY: the caller's promise.
    unsafe { simd::run(&NormedPointers::<T, L, S, K, M> { of: UpdatePointers::new(job, part), to }) }
}

/// Elements of a job as pointers: weight, gradient, states.
struct UpdatePointers<T, L, const S: usize, const K: usize, const M: usize> {
    w: *mut T,
    g: *const T,
    states: [*mut T; S],
    scalars: [f64; K],
    n: usize,
    formula: PhantomData<L>,
}

impl<T: SimdReal, L: Loop<S, K, M>, const S: usize, const K: usize, const M: usize> UpdatePointers<T, L, S, K, M> {
    /// # Safety
    /// As for [`run`]; `T` is the job's type.
    unsafe fn new(job: &TensorUpdate, part: Chunk) -> Self {
        // SAFETY: the elements lie inside the job's arrays, which are of type T.
        let at = |i: usize| unsafe { (job.sources[i].ptr as *mut T).add(part.from) };
        let scalars = std::array::from_fn(|i| job.scalars[i]);
        let (states, n) = (std::array::from_fn(|i| at(2 + i)), part.to - part.from);
        UpdatePointers { w: at(0), g: at(1), states, scalars, n, formula: PhantomData }
    }

    /// The numbers in each lane.
    #[inline(always)]
    fn splat<V: Vector<E = T>>(&self) -> [V; K] {
        let mut scalars = [V::splat(0.0); K];
        // Plain loops: closures would not be inlined into a frame with the CPU's features.
        let mut k = 0;
        while k < K {
            scalars[k] = V::splat(self.scalars[k]);
            k += 1;
        }
        scalars
    }

    /// The states of elements `i .. i + n`, a whole vector or a part of one.
    #[inline(always)]
    unsafe fn states<V: Vector<E = T>>(&self, i: usize, n: usize) -> [V; S] {
        let mut states = [V::splat(0.0); S];
        let mut k = 0;
        while k < S {
            // SAFETY: inside the part.
            states[k] = unsafe { load::<V>(self.states[k].add(i), n) };
            k += 1;
        }
        states
    }

    /// Elements `i .. i + n`, a whole vector or a part of one.
    #[inline(always)]
    unsafe fn step<V: Vector<E = T>>(&self, i: usize, n: usize, scalars: [V; K]) {
        // SAFETY: inside the part.
        unsafe {
            let (w, g) = (load::<V>(self.w.add(i), n), load::<V>(self.g.add(i), n));
            let (w, states) = L::formula(w, g, self.states::<V>(i, n), scalars);
            store(w, self.w.add(i), n);
            let mut k = 0;
            while k < S {
                store(states[k], self.states[k].add(i), n);
                k += 1;
            }
        }
    }
}

/// The same elements, and where the terms whose norms are asked for go.
struct NormedPointers<T, L, const S: usize, const K: usize, const M: usize> {
    of: UpdatePointers<T, L, S, K, M>,
    to: [*mut T; M],
}

impl<T: SimdReal, L: Loop<S, K, M>, const S: usize, const K: usize, const M: usize> NormedPointers<T, L, S, K, M> {
    #[inline(always)]
    unsafe fn step<V: Vector<E = T>>(&self, i: usize, n: usize, scalars: [V; K]) {
        // SAFETY: inside the part.
        unsafe {
            let (w, g) = (load::<V>(self.of.w.add(i), n), load::<V>(self.of.g.add(i), n));
            let terms = L::normed(w, g, self.of.states::<V>(i, n), scalars);
            let mut k = 0;
            while k < M {
                store(terms[k], self.to[k].add(i), n);
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

/// A body that takes its steps from the first element to the last.
macro_rules! body {
    ($pointers:ident, $($of:ident)?) => {
        impl<T: SimdReal, L: Loop<S, K, M>, const S: usize, const K: usize, const M: usize> Body<T>
            for $pointers<T, L, S, K, M>
        {
            #[inline(always)]
            unsafe fn run<V: Vector<E = T>>(&self) {
                let (scalars, count) = (self$(.$of)?.splat::<V>(), self$(.$of)?.n);
                let mut i = 0;
                // SAFETY: inside the part.
                unsafe {
                    while i + V::N <= count {
                        self.step(i, V::N, scalars);
                        i += V::N;
                    }
                    if i < count {
                        self.step(i, count - i, scalars);
                    }
                }
            }
        }
    };
}
body!(UpdatePointers,);
body!(NormedPointers, of);
