//! Labels along an axis of classes: the loss of probabilities, errors, and a mask.

mod cuda;

use super::axis::Axis;
use crate::array::{Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::simd::SimdReal;
use crate::with_real;
use ndarray::{ArrayView1, ArrayView2, ArrayView3, ArrayViewMut3, Zip};

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
        Labels { axis, at: Axis::new(of, axis), of: of.clone() }
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

    /// An array with a lane of classes along [`CLASSES`] for each label.
    fn lines<'a, T>(&self, x: &'a [T]) -> ArrayView3<'a, T> {
        let Axis { outer, n, inner } = self.at;
        ArrayView3::from_shape((outer, n, inner), x).expect("an array of the classes")
    }

    fn lines_mut<'a, T>(&self, x: &'a mut [T]) -> ArrayViewMut3<'a, T> {
        let Axis { outer, n, inner } = self.at;
        ArrayViewMut3::from_shape((outer, n, inner), x).expect("an array of the classes")
    }

    fn each<'a, T>(&self, x: &'a [T]) -> ArrayView2<'a, T> {
        ArrayView2::from_shape((self.at.outer, self.at.inner), x).expect("an array of the labels' size")
    }
}

const CLASSES: ndarray::Axis = ndarray::Axis(1);

/// The labelled class; none for a negative label.
fn class(label: i64) -> Option<usize> {
    usize::try_from(label).ok()
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
        for ((x, &label), y) in self.labels.lines(x).lanes(CLASSES).into_iter().zip(labels).zip(y) {
            *y = class(label).map_or(T::ZERO, |k| -self.guarded(x[k]).ln());
        }
    }

    fn differentiate<T: SimdReal>(&self, x: &[T], labels: &[i64], gy: &[T], gx: &mut [T], output: Output) {
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        let (x, mut gx) = (self.labels.lines(x), self.labels.lines_mut(gx));
        let (labels, gy) = (self.labels.each(labels), self.labels.each(gy));
        Zip::from(gx.lanes_mut(CLASSES)).and(x.lanes(CLASSES)).and(labels).and(gy).for_each(
            |mut gx, x, &label, &gy| {
                if let Some(k) = class(label) {
                    gx[k] = gx[k] - gy / self.guarded(x[k]);
                }
            },
        );
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

/// A score that is NaN may be any, so the label does not win over it, nor with it.
fn is_as_large<T: PartialOrd>(score: T, label: T) -> bool {
    !matches!(score.partial_cmp(&label), Some(std::cmp::Ordering::Less))
}

impl TopErrors {
    fn compute<T: SimdReal>(&self, x: &[T], labels: &[i64], y: &mut [T]) {
        let count = |x: ArrayView1<T>, k: usize| x.iter().filter(|v| is_as_large(**v, x[k])).count() as i64;
        for ((x, &label), y) in self.labels.lines(x).lanes(CLASSES).into_iter().zip(labels).zip(y) {
            *y = if class(label).is_some_and(|k| count(x, k) > self.most) { T::ONE } else { T::ZERO };
        }
    }
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
pub struct Mask(pub Labels);

impl Call for Mask {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::mask(self.0.unchecked()?, &x[0].data, &y[0].data);
        }
        let labels = self.0.checked(&x[0])?;
        with_real!(run.dtype, T => {
            let mut y = self.0.lines_mut(y[0].slice::<T>());
            y.fill(0.0);
            for (mut y, &label) in y.lanes_mut(CLASSES).into_iter().zip(labels) {
                class(label).into_iter().for_each(|k| y[k] = 1.0);
            }
        });
        Ok(())
    }
}
