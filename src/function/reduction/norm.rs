//! `norm`: the p-norm over axes.

use super::{Mask, mask, reduced};
use crate::function::elementwise::FormulaFunction;
use crate::function::{Function, Grad, Output, Run, Shapes, View, ViewMut, call_one};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::axes::Axes;
use nnrs_kernels::cpu::extreme::{Order, winners};
use nnrs_kernels::cpu::reduce::sum_axes;
use nnrs_kernels::cpu::scratch::Scratch;
use nnrs_kernels::cpu::simd::{self, SimdReal};
use nnrs_kernels::cpu::tasks::{Shared, share};
use nnrs_kernels::cuda::reduce::{Reduction, reduce};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::{Expr, Formula};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::tile::{Program, Sink, Source, Walk};
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// p-norm over axes, `y = (sum |x|^p)^(1/p)`; for `p = inf` the largest `|x|`.
    ///
    /// Powers are made in x's type: where all of them underflow (float32, p = 2: `|x|` under 1e-22), y is 0 and its gradients
    /// are infinite or NaN, as in NNabla.
    Norm norm in Reduction, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        p: Option<f64> = None, "Order of the norm, 1 or more; None: 2.";
        axis: Option<Vec<i64>> = None, "Axes to reduce; None: all. They may count from the end.";
        keepdims: bool = false, "Whether the reduced axes stay, with size 1."
    }
    outputs { y: "x without the reduced axes." }
}

/// Neighbouring elements that one task adds up.
const PART: usize = 1 << 15;

impl Norm {
    fn order(&self) -> f64 {
        self.p.unwrap_or(2.0)
    }
}

impl Function for Norm {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let p = self.order();
        if p.is_nan() || p < 1.0 {
            return Err(Error::arg("p", "1 or more").actual(p));
        }
        Ok(smallvec![reduced(&x[0], &mask(&x[0], &self.axis)?, self.keepdims)])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let mask = mask(x[0].shape, &self.axis)?;
        if let Place::Gpu(_) = y[0].data.place() {
            return on_gpu(&x[0], &mask, self.order(), run, &y[0].data);
        }
        with_real!(run.dtype, T => compute(x[0].slice::<T>(), x[0].shape, &mask, self.order(), y[0].slice()))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let x = g.x[0].shape();
        let kept = reduced(&x, &mask(&x, &self.axis)?, true);
        let keep = |v: &Variable| f::reshape(v, f::Reshape::to(&kept));
        let slope = Formula::new(3, |v| vec![Some(slope(&v[0], &v[1], &v[2], self.order()))]);
        let (y, gy) = (keep(&g.y[0])?, keep(&g.gy[0])?);
        Ok(vec![Some(call_one(FormulaFunction::new(slope), &[&g.x[0], &y, &gy])?)])
    }
}

/// The gradient of one element.
fn slope(x: &Expr, y: &Expr, gy: &Expr, p: f64) -> Expr {
    match p {
        1.0 => gy * x.ge(0.0).select(1.0, -1.0),
        2.0 => gy * (x / y),
        f64::INFINITY => gy * x.sign() * x.abs().equal(y),
        _ => gy * x.sign() * x.abs().pow(p - 1.0) / y.pow(p - 1.0),
    }
}

fn compute<T: SimdReal>(x: &[T], shape: &Shape, mask: &Mask, p: f64, y: &mut [T]) -> Result<()> {
    let axes = Axes::new(shape, mask);
    let plain = axes.reduced_last().filter(|&n| n == axes.count(true) && !x.is_empty());
    match (plain, p) {
        (Some(n), 1.0) => sum_rows(x, n, y, simd::sum_abs),
        (Some(n), 2.0) => sum_rows(x, n, y, simd::sum_squares),
        _ => {
            let powers = Data::new(T::DTYPE, x.len())?;
            power(x, p, powers.as_mut_slice::<T>());
            total(powers.as_slice::<T>(), shape, mask, p, y);
        }
    }
    root(y, p);
    Ok(())
}

/// The same on a GPU. Sums are of the type to compute in: a half type might not hold them.
fn on_gpu(x: &View, mask: &Mask, p: f64, run: &Run, y: &Data) -> Result<()> {
    let scratch = |n| Data::new_at(y.place(), run.dtype, n);
    let join = |op, x: &Data, shape, y: &Data| reduce(op, x, shape, mask, y, 1.0, Output::Write);
    if x.shape.size() == 0 {
        return ops::fill(y, 0.0);
    }
    if p == 1.0 {
        return join(Reduction::SumAbs, &x.data, x.shape, y);
    }
    let sums = scratch(y.len())?;
    if p == 2.0 {
        join(Reduction::SumSquares, &x.data, x.shape, &sums)?;
    } else {
        let powers = scratch(x.shape.size())?;
        ops::formula(&power_formula(p), &[(&x.data, Walk::Dense)], &powers, Output::Write)?;
        let op = if p == f64::INFINITY { Reduction::Max } else { Reduction::Sum };
        join(op, &powers, x.shape, &sums)?;
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
    let sink = Sink { ptr: y.as_mut_ptr().cast(), dtype: T::DTYPE };
    // SAFETY: both have x's length, and they are apart.
    unsafe { Program::<T>::of(&power_formula(p)).run(x.len(), &[source], &[sink], &[]) };
}

fn total<T: SimdReal>(powers: &[T], shape: &Shape, mask: &Mask, p: f64, y: &mut [T]) {
    sum_axes(powers, shape, mask, y, Output::Write);
    if p != f64::INFINITY {
        return;
    }
    // The sum tells where there is a NaN, which the largest element leaves out.
    let shared = Shared(y.as_mut_ptr());
    let shared = &shared;
    winners(powers, shape, mask, Order::Largest, move |r, v, _| {
        // SAFETY: r is one of the results, and each is written once.
        let y = unsafe { &mut *shared.0.add(r) };
        *y = if y.is_nan() { *y } else { v };
    });
}

fn root<T: SimdReal>(y: &mut [T], p: f64) {
    match p {
        1.0 | f64::INFINITY => {}
        2.0 => y.iter_mut().for_each(|v| *v = v.sqrt()),
        _ => y.iter_mut().for_each(|v| *v = v.powf(T::from_f64(1.0 / p))),
    }
}
