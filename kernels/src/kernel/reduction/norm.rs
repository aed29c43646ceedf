//! The p-norm over axes.

use super::Reduced;
use super::cpu::{Extremum, winners};
use crate::array::scratch::{self, Scratch};
use crate::array::{Data, Output, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::Formula;
use crate::expr::op::{Binary, Unary};
use crate::kernel::ops;
use crate::kernel::reduction::axes::ReductionAxes;
use crate::kernel::reduction::cpu::{rows, sum_axes};
use crate::kernel::reduction::cuda::{DeviceReduction, reduce};
use crate::pool::tasks::{self, SendPtr, Shared, share};
use crate::simd::{self, SimdReal};
use crate::tile::{Destination, Source, TileProgram, Walk};
use crate::with_real;

/// `y = (sum |x|^p)^(1/p)` over axes; for `p = inf` the largest `|x|`.
pub struct Norm {
    pub over: Reduced,
    pub p: f64,
}

/// Neighbouring elements that one task adds up.
const PART: usize = 1 << 15;
/// Elements of the short rows of a task, whose terms stay in the first cache.
const TASK: usize = 1 << 12;

impl Call for Norm {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.of(run.dtype, &x[0].data, &y[0].data)
    }
}

impl Norm {
    /// Writes the norms of x to y, computed in a type.
    pub fn of(&self, dtype: DType, x: &Data, y: &Data) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            return self.on_gpu(dtype, x, y);
        }
        with_real!(dtype, T => self.on_host(x.as_slice::<T>(), y.as_mut_slice()))
    }

    fn on_host<T: SimdReal>(&self, x: &[T], y: &mut [T]) -> Result<()> {
        let axes = ReductionAxes::new(&self.over.shape, &self.over.mask);
        let plain = axes.reduced_last().filter(|&n| n == axes.count(true) && !x.is_empty());
        match (plain, self.p) {
            (Some(n), p @ (1.0 | 2.0)) if n <= rows::LONGEST => sum_short_rows(x, n, y, p),
            (Some(n), 1.0) => sum_rows(x, n, y, simd::sum_abs),
            (Some(n), 2.0) => sum_rows(x, n, y, simd::sum_squares),
            _ => {
                let powers = Data::new(T::DTYPE, x.len())?;
                power(x, self.p, powers.as_mut_slice::<T>());
                self.total(powers.as_slice::<T>(), y);
            }
        }
        root(y, self.p);
        Ok(())
    }

    fn total<T: SimdReal>(&self, powers: &[T], y: &mut [T]) {
        let Reduced { shape, mask, .. } = &self.over;
        sum_axes(powers, shape, mask, y, Output::Write);
        if self.p != f64::INFINITY {
            return;
        }
        // The sum tells where there is a NaN, which the largest element leaves out.
        let y = SendPtr(y.as_mut_ptr());
        winners(powers, shape, mask, Extremum::Largest, false, move |r, v, _| {
            // SAFETY: these are some of the results, and each is written once.
            let y = unsafe { y.slice(r, v.len()) };
            y.iter_mut().zip(v).filter(|(y, _)| !y.is_nan()).for_each(|(y, &v)| *y = v);
        });
    }

    /// Sums are of the type to compute in: a half type might not hold them.
    fn on_gpu(&self, dtype: DType, x: &Data, y: &Data) -> Result<()> {
        let (Reduced { shape, mask, .. }, p) = (&self.over, self.p);
        let scratch = |n| Data::new_at(y.place(), dtype, n);
        let join = |op, x: &Data, y: &Data| reduce(op, x, shape, mask, y, 1.0, Output::Write);
        if shape.size() == 0 {
            return ops::fill(y, 0.0);
        }
        if p == 1.0 {
            return join(DeviceReduction::SumAbs, x, y);
        }
        let sums = scratch(y.len())?;
        if p == 2.0 {
            join(DeviceReduction::SumSquares, x, &sums)?;
        } else {
            let powers = scratch(shape.size())?;
            ops::formula(&power_formula(p), &[(x, Walk::Dense)], &powers, Output::Write)?;
            let op = if p == f64::INFINITY { DeviceReduction::Max } else { DeviceReduction::Sum };
            join(op, &powers, &sums)?;
        }
        let root = Formula::new(1, |v| {
            vec![Some(match p {
                2.0 => v[0].sqrt(),
                f64::INFINITY => v[0].clone(),
                _ => v[0].pow(1.0 / p),
            })]
        });
        ops::formula(&root, &[(&sums, Walk::Dense)], y, Output::Write)
    }
}

/// Adds up `|x|^p`, for p = 1 or 2, over rows of `n` neighbours that are no longer than a block.
fn sum_short_rows<T: SimdReal>(x: &[T], n: usize, y: &mut [T], p: f64) {
    let each = (TASK / n).next_multiple_of(64);
    tasks::parts(y, each, |task, y| {
        let x = &x[task * each * n..][..y.len() * n];
        scratch::with(x.len(), |terms: &mut [T]| {
            let (to, from) = (terms.as_mut_ptr(), x.as_ptr());
            // SAFETY: both are of this length, and apart.
            unsafe {
                match p {
                    2.0 => simd::binary(Binary::Mul, to, from, from, x.len()),
                    _ => simd::unary(Unary::Abs, to, from, x.len()),
                }
            }
            rows::sum_rows(terms, n, y, Output::Write);
        });
    });
}

/// Adds up a term over rows of `n` neighbours, in parts of a fixed size.
fn sum_rows<T: SimdReal>(x: &[T], n: usize, y: &mut [T], sum: fn(&[T]) -> T) {
    let parts = n.div_ceil(PART);
    let mut sums = Scratch::filled(y.len() * parts, T::ZERO);
    let shared = Shared(sums.as_mut_ptr());
    let shared = &shared;
    share(sums.len(), x.len(), move |i| {
        let (row, first) = (&x[i / parts * n..][..n], i % parts * PART);
        // SAFETY: task i alone writes element i.
        unsafe { shared.0.add(i).write(sum(&row[first..n.min(first + PART)])) };
    });
    y.iter_mut().zip(sums.chunks(parts)).for_each(|(y, s)| *y = simd::sum(s));
}

/// `|x|^p`, or `|x|` for the infinite norm.
fn power_formula(p: f64) -> Formula {
    Formula::new(1, |v| {
        vec![Some(match p {
            2.0 => v[0].square(),
            1.0 | f64::INFINITY => v[0].abs(),
            _ => v[0].abs().pow(p),
        })]
    })
}

fn power<T: SimdReal>(x: &[T], p: f64, y: &mut [T]) {
    let source = Source { ptr: x.as_ptr().cast(), dtype: T::DTYPE, walk: Walk::Dense };
    let sink = Destination { ptr: y.as_mut_ptr().cast(), dtype: T::DTYPE };
    // SAFETY: both have x's length, and they are apart.
    unsafe { TileProgram::<T>::of(&power_formula(p)).run(x.len(), &[source], &[sink], &[]) };
}

fn root<T: SimdReal>(y: &mut [T], p: f64) {
    match p {
        1.0 | f64::INFINITY => {}
        2.0 => y.iter_mut().for_each(|v| *v = v.sqrt()),
        _ => y.iter_mut().for_each(|v| *v = v.powf(T::from_f64(1.0 / p))),
    }
}
