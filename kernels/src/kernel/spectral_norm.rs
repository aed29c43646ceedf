//! A weight over its largest singular value, which power iteration approaches.

use super::matmul::{Matrix, matmul};
use super::ops;
use crate::array::{Data, Output, Place, Walk};
use crate::call::{Call, Run, View, ViewMut};
use crate::error::Result;
use crate::expr::{Expr, Formula};
use crate::shape::Shape;
use crate::with_real;

/// `y = w / s` with `s = u' W v`, where W is w as a matrix with a row for each index of one axis.
pub struct SpectralNorm {
    /// Sizes of w before the axis, at it and after it.
    pub outer: usize,
    pub channels: usize,
    pub inner: usize,
    /// Steps of the iteration.
    pub steps: usize,
    pub eps: f64,
    /// The last u takes the place of the first one.
    pub update: bool,
    /// The first u is an output, before the last u and v.
    pub gives_first: bool,
}

/// The u that the iteration has begun with, for when it is to run again.
struct FirstVector(Data);

impl SpectralNorm {
    /// The vectors' iteration from `u`: the last u and v, and W v.
    fn iterate(&self, w: &Data, u: &Data) -> Result<[Data; 3]> {
        let (new, n) = (|n: usize| Data::new_at(w.place(), w.dtype(), n), self.channels);
        let (parts, product) = (new(self.outer * n)?, new(n)?);
        let (mut u, mut v, raw) = (u.clone(), new(0)?, new(self.outer * self.inner)?);
        let matrices = || Matrix::new(w, n, self.inner).each();
        for _ in 0..self.steps {
            matmul(self.outer, Matrix::new(&u, 1, n), matrices(), &raw, Output::Write)?;
            v = self.unit(&raw)?;
            matmul(self.outer, matrices(), Matrix::new(&v, self.inner, 1).each(), &parts, Output::Write)?;
            ops::sum_to(&parts, &[self.outer, n].into(), &product, &[n].into(), Output::Write)?;
            u = self.unit(&product)?;
        }
        Ok([u, v, product])
    }

    /// `a / sqrt(|a|^2 + eps)`
    fn unit(&self, a: &Data) -> Result<Data> {
        let squares = sum_of(&[a, a])?;
        let unit = Data::new_at(a.place(), a.dtype(), a.len())?;
        by_number(a, &squares, &unit, |a, s| a * (s + self.eps).pow(-0.5))?;
        Ok(unit)
    }

    fn give(&self, run: &Run, u: &Data) -> Result<()> {
        if let Place::Gpu(_) = u.place() {
            return ops::put(&run.input_to_update(1, u.place(), u.len())?, u, Output::Write);
        }
        with_real!(u.dtype(), T => run.update_input::<T>(1, u.len(), |to| to.copy_from_slice(u.as_slice())))
    }
}

/// The sum of the products of two arrays' elements, as an array of one.
fn sum_of([a, b]: &[&Data; 2]) -> Result<Data> {
    let (products, sum) = (Data::new_at(a.place(), a.dtype(), a.len())?, Data::new_at(a.place(), a.dtype(), 1)?);
    let product = Formula::new(2, |v| vec![Some(&v[0] * &v[1])]);
    ops::formula(&product, &[(a, Walk::Dense), (b, Walk::Dense)], &products, Output::Write)?;
    ops::sum_to(&products, &[a.len()].into(), &sum, &[1].into(), Output::Write)?;
    Ok(sum)
}

/// `y = f(a, b)` for all elements of `a` and the one of `b`.
fn by_number(a: &Data, b: &Data, y: &Data, f: impl Fn(&Expr, &Expr) -> Expr) -> Result<()> {
    let (one, all): (Shape, Shape) = ([1].into(), [a.len()].into());
    let formula = Formula::new(2, |v| vec![Some(f(&v[0], &v[1]))]);
    ops::formula(&formula, &[(a, Walk::Dense), (b, Walk::new(&one, &all))], y, Output::Write)
}

/// The array in the type to compute in, apart from what others may write.
fn copy(run: &Run, x: &Data) -> Result<Data> {
    let copy = Data::new_at(x.place(), run.dtype, x.len())?;
    ops::put(&copy, x, Output::Write)?;
    Ok(copy)
}

impl Call for SpectralNorm {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let given = &x[0].data;
        let w = if given.dtype() == run.dtype { given.clone() } else { copy(run, given)? };
        let first = match run.saved::<FirstVector>().filter(|_| run.again) {
            Some(first) => first.0.clone(),
            None => copy(run, &x[1].data)?,
        };
        let [u, v, product] = self.iterate(&w, &first)?;
        by_number(&w, &sum_of(&[&u, &product])?, &y[0].data, |w, s| w / s)?;
        let outputs = self.gives_first.then_some(&first).into_iter().chain([&u, &v]);
        y[1..].iter().zip(outputs).try_for_each(|(y, x)| ops::put(&y.data, x, Output::Write))?;
        if self.update && !run.again {
            self.give(run, &u)?;
        }
        run.save(FirstVector(first));
        Ok(())
    }
}
