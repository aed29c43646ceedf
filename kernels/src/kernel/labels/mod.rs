//! Labels along an axis of classes: the loss of probabilities, errors, and a mask.

mod cuda;

use super::axis::Axis;
use crate::array::{Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::pool::tasks;
use crate::shape::Shape;
use crate::simd::{self, Body, SimdReal, Vector};
use crate::with_real;

/// Labels of the classes along an axis of an array.
pub struct Labels {
    pub axis: usize,
    pub at: Axis,
    /// The array's shape.
    of: Shape,
}

/// What a label that is no number is read as.
const NOT_A_LABEL: i64 = i64::MIN;

impl Labels {
    pub fn new(of: &Shape, axis: usize) -> Labels {
        Labels { axis, at: Axis::new(of, axis).side_by_side(), of: of.clone() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.at.outer * self.at.inner
    }

    fn no_classes(&self) -> Error {
        Error::shape("x", "one class at least along its axis").actual(&self.of)
    }

    /// The labels, all of them numbers less than that of classes.
    pub fn checked<'a>(&self, labels: &'a View) -> Result<&'a [i64]> {
        let (labels, n) = (labels.slice::<i64>(), self.at.n);
        match labels.iter().find(|l| **l >= n as i64 || **l == NOT_A_LABEL) {
            Some(_) if n == 0 => Err(self.no_classes()),
            Some(l) => {
                Err(Error::arg("target", format!("labels less than {n}, the number of classes")).actual_index(*l))
            }
            None => Ok(labels),
        }
    }

    /// On a GPU the labels are not looked at: what is made of wrong ones is NaN.
    pub fn unchecked(&self) -> Result<Axis> {
        if self.at.n == 0 && self.count() > 0 { Err(self.no_classes()) } else { Ok(self.at) }
    }

    /// Index of the labelled element of row number `r`; none for a negative label.
    fn position(&self, r: usize, label: i64) -> Option<usize> {
        let (a, k) = (self.at, usize::try_from(label).ok()?);
        if a.inner == 1 {
            return Some(r * a.n + k); // divisions take long
        }
        Some((r / a.inner * a.n + k) * a.inner + r % a.inner)
    }
}

/// `-log(x[label])`, the logarithm of `least` at least.
pub struct LogLoss {
    pub labels: Labels,
    pub least: f64,
}

impl LogLoss {
    /// NaN stays.
    fn guarded<T: SimdReal>(&self, v: T) -> T {
        let least = T::from_f64(self.least);
        if v < least { least } else { v }
    }

    fn compute<T: SimdReal>(&self, x: &[T], labels: &[i64], y: &mut [T]) {
        for (r, (y, &label)) in y.iter_mut().zip(labels).enumerate() {
            *y = self.labels.position(r, label).map_or(T::ZERO, |i| -self.guarded(x[i]).ln());
        }
    }

    fn differentiate<T: SimdReal>(&self, x: &[T], labels: &[i64], gy: &[T], gx: &mut [T], output: Output) {
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        for (r, (&label, &gy)) in labels.iter().zip(gy).enumerate() {
            if let Some(i) = self.labels.position(r, label) {
                gx[i] = gx[i] - gy / self.guarded(x[i]);
            }
        }
    }
}

impl Call for LogLoss {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::log_loss(self.labels.unchecked()?, &x[0].data, &x[1].data, &y[0].data);
        }
        let labels = self.labels.checked(&x[1])?;
        with_real!(run.dtype, T => self.compute::<T>(x[0].slice(), labels, y[0].slice()));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b11, y: 0 })
    }

    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(x), Some(labels), Some(gy), Some(gx)) = (&x[0], &x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        let output = gx.output;
        if let Place::Gpu(_) = gx.data.place() {
            let a = self.labels.unchecked()?;
            return cuda::log_loss_backward(a, &x.data, &labels.data, &gy.data, &gx.data, output);
        }
        let labels = self.labels.checked(labels)?;
        with_real!(run.dtype, T => self.differentiate::<T>(x.slice(), labels, gy.slice(), gx.slice(), output));
        Ok(())
    }
}

/// 1 where more than `most` elements are at least the label's; 0 for negative labels.
pub struct TopErrors {
    pub labels: Labels,
    pub most: i64,
}

/// Rows whose labels are compared by one task.
const ROWS: usize = 64;

impl TopErrors {
    fn compute<T: SimdReal>(&self, x: &[T], labels: &[i64], y: &mut [T]) {
        tasks::parts(y, ROWS, |task, y| {
            let job =
                RowErrors { errors: self, x, labels, first: task * ROWS, y: tasks::Shared(y.as_mut_ptr()), n: y.len() };
            // SAFETY: y is this task's own.
            unsafe { simd::run::<T>(&job) };
        });
    }
}

/// What becomes of `n` rows from number `first` on.
struct RowErrors<'a, T> {
    errors: &'a TopErrors,
    x: &'a [T],
    labels: &'a [i64],
    first: usize,
    y: tasks::Shared<T>,
    n: usize,
}

impl<T: SimdReal> Body<T> for RowErrors<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        // SAFETY: the caller's promise.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.0, self.n) };
        let (labels, a) = (&self.errors.labels, self.errors.labels.at);
        for (r, y) in (self.first..).zip(y) {
            let mine = labels.position(r, self.labels[r]).map(|i| self.x[i]);
            let first = r / a.inner * a.n * a.inner + r % a.inner;
            // A score that is NaN may be any, so the label does not win over it, nor with it.
            let less = mine.map_or(a.n, |mine| match a.inner {
                1 => count_less(&self.x[first..first + a.n], mine),
                inner => self.x[first..].iter().step_by(inner).take(a.n).filter(|v| **v < mine).count(),
            });
            *y = if (a.n - less) as i64 > self.errors.most && mine.is_some() { T::ONE } else { T::ZERO };
        }
    }
}

/// How many numbers are less than another one.
#[inline(always)]
fn count_less<T: PartialOrd + Copy>(x: &[T], than: T) -> usize {
    x.chunks(u16::MAX as usize).map(|x| x.iter().fold(0u32, |n, v| n + (*v < than) as u32) as usize).sum()
}

impl Call for TopErrors {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::top_errors(self.labels.unchecked()?, &x[0].data, &x[1].data, &y[0].data, self.most);
        }
        let labels = self.labels.checked(&x[1])?;
        with_real!(run.dtype, T => self.compute::<T>(x[0].slice(), labels, y[0].slice()));
        Ok(())
    }
}

/// 1 at the labels, 0 elsewhere; the output has the classes.
pub struct LabelMaskCall(pub Labels);

impl Call for LabelMaskCall {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::mask(self.0.unchecked()?, &x[0].data, &y[0].data);
        }
        let labels = self.0.checked(&x[0])?;
        with_real!(run.dtype, T => {
            let y = y[0].slice::<T>();
            y.fill(T::from_f64(0.0));
            let hits = labels.iter().enumerate().filter_map(|(r, &l)| self.0.position(r, l));
            hits.for_each(|i| y[i] = T::from_f64(1.0));
        });
        Ok(())
    }
}

/// How often rows with each label have their largest element at which place.
pub struct ConfusionMatrix(pub Labels);

impl Call for ConfusionMatrix {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let a = self.0.at;
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::confusion(a, &x[0].data, &x[1].data, &y[0].data);
        }
        let (labels, counts) = (self.0.checked(&x[1])?, y[0].slice::<i32>());
        counts.fill(0);
        with_real!(run.dtype, T => {
            let x = x[0].slice::<T>();
            for (r, label) in labels.iter().enumerate().filter(|(_, l)| **l >= 0) {
                let first = r / a.inner * a.n * a.inner + r % a.inner;
                let row = || x[first..].iter().step_by(a.inner).take(a.n).enumerate();
                let (found, _) = row().fold((0, x[first]), |(k, most), (i, &v)| if v > most { (i, v) } else { (k, most) });
                counts[*label as usize * a.n + found] += 1;
            }
        });
        Ok(())
    }
}
