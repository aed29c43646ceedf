//! A rule as the engine holds it: its formula as an expression, and compiled into one loop over all of its arrays.
//! Both do the same operations in the same order, so they give the same bits.

use super::pass::{Fused, Job};
use super::rule::{Declared, Rule, Scalars, Step};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::expr::{Expr, Formula};
use nnrs_kernels::simd::{self, Body, SimdReal, Vector};
use std::marker::PhantomData;

/// A rule without its type.
pub(super) trait AnyRule: Fused {
    fn declared(&self) -> &dyn Declared;
    fn scalars(&self, step: &Step) -> Scalars;
    /// Inputs weight, gradient, states; outputs weight, states.
    fn expression(&self) -> Formula;
}

/// A rule with its counts of states and numbers.
pub(super) struct Counted<R, const S: usize, const K: usize>(pub R);

impl<R: Rule<S, K>, const S: usize, const K: usize> AnyRule for Counted<R, S, K> {
    fn declared(&self) -> &dyn Declared {
        &self.0
    }

    fn scalars(&self, step: &Step) -> Scalars {
        Scalars::from_slice(&self.0.scalars(step))
    }

    fn expression(&self) -> Formula {
        Formula::with_scalars(2 + S, K, |x, k| {
            let states: [Expr; S] = std::array::from_fn(|i| x[2 + i].clone());
            let numbers: [Expr; K] = std::array::from_fn(|i| k[i].clone());
            let (w, states) = R::formula(x[0].clone(), x[1].clone(), states, numbers);
            std::iter::once(w).chain(states).map(Some).collect()
        })
    }
}

impl<R: Rule<S, K>, const S: usize, const K: usize> Fused for Counted<R, S, K> {
    unsafe fn part(&self, job: &Job, from: usize, to: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match job.dtype() {
                DType::F64 => simd::run(&Part::<f64, R, S, K>::new(job, from, to)),
                _ => simd::run(&Part::<f32, R, S, K>::new(job, from, to)),
            }
        }
    }
}

/// Elements of a job as pointers: weight, gradient, states.
struct Part<T, R, const S: usize, const K: usize> {
    w: *mut T,
    g: *const T,
    states: [*mut T; S],
    scalars: [f64; K],
    n: usize,
    rule: PhantomData<R>,
}

impl<T: SimdReal, R: Rule<S, K>, const S: usize, const K: usize> Part<T, R, S, K> {
    unsafe fn new(job: &Job, from: usize, to: usize) -> Self {
        // SAFETY: the elements lie inside the job's arrays, which are of type T.
        let at = |i: usize| unsafe { (job.source(i) as *mut T).add(from) };
        let scalars = std::array::from_fn(|i| job.scalars()[i]);
        Part {
            w: at(0),
            g: at(1),
            states: std::array::from_fn(|i| at(2 + i)),
            scalars,
            n: to - from,
            rule: PhantomData,
        }
    }

    /// Elements `i .. i + n`, a whole vector or a part of one.
    #[inline(always)]
    unsafe fn step<V: Vector<E = T>>(&self, i: usize, n: usize, scalars: [V; K]) {
        // SAFETY: inside the part.
        unsafe {
            let mut states = [scalars[0]; S];
            // Plain loops: closures would not be inlined into a frame with the CPU's features.
            let mut k = 0;
            while k < S {
                states[k] = load::<V>(self.states[k].add(i), n);
                k += 1;
            }
            let (w, states) = R::formula(load::<V>(self.w.add(i), n), load::<V>(self.g.add(i), n), states, scalars);
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

impl<T: SimdReal, R: Rule<S, K>, const S: usize, const K: usize> Body<T> for Part<T, R, S, K> {
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
