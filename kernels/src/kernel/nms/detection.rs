//! Suppression among the boxes of YOLO's detector.

use super::{Rectangle, by_score, cuda};
use crate::array::Place;
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::Real;
use crate::error::Result;
use crate::pool::tasks;
use crate::with_real;

/// Of `boxes` boxes a sample: center, size, objectness and the probabilities of `classes` classes.
pub struct NmsDetection2d {
    pub boxes: usize,
    pub classes: usize,
    /// Objectness and scores below it become 0.
    pub thresh: f64,
    /// Boxes that overlap more than this are suppressed.
    pub nms: f64,
    /// Among the scores of each class; if not, among the boxes by their objectness.
    pub per_class: bool,
}

impl NmsDetection2d {
    fn sample<T: Real>(&self, x: &[T], y: &mut [T]) {
        let row = 5 + self.classes;
        for (x, y) in x.chunks(row).zip(y.chunks_mut(row)) {
            y[..4].copy_from_slice(&x[..4]);
            y[4] = self.kept(x[4]);
            let objectness = y[4];
            y[5..].iter_mut().zip(&x[5..]).for_each(|(y, &p)| *y = self.kept(objectness * p));
        }
        let rectangles: Vec<Rectangle> = x.chunks(row).map(rectangle).collect();
        let overlaps = |a: usize, b: usize| rectangles[a].overlap(&rectangles[b]) > self.nms;
        match self.per_class {
            true => (5..row).for_each(|class| self.class(class, overlaps, y)),
            false => self.all(overlaps, y),
        }
    }

    fn kept<T: Real>(&self, score: T) -> T {
        if score.to_f64() < T::from_f64(self.thresh).to_f64() { T::ZERO } else { score }
    }

    /// A box suppresses others of the class as long as it is not suppressed itself.
    fn class<T: Real>(&self, class: usize, overlaps: impl Fn(usize, usize) -> bool, y: &mut [T]) {
        let row = 5 + self.classes;
        let order = by_score(self.boxes, |i| y[i * row + class].to_f64());
        for (k, &a) in order.iter().enumerate() {
            if y[a * row + class] == T::ZERO {
                continue;
            }
            for &b in &order[k + 1..] {
                if y[b * row + class] != T::ZERO && overlaps(a, b) {
                    y[b * row + class] = T::ZERO;
                }
            }
        }
    }

    /// A box suppresses all of less objectness, whether it is suppressed or not.
    fn all<T: Real>(&self, overlaps: impl Fn(usize, usize) -> bool, y: &mut [T]) {
        let row = 5 + self.classes;
        let order = by_score(self.boxes, |i| y[i * row + 4].to_f64());
        for (k, &b) in order.iter().enumerate() {
            if order[..k].iter().any(|&a| overlaps(a, b)) {
                y[b * row + 4..][..1 + self.classes].fill(T::ZERO);
            }
        }
    }
}

fn rectangle<T: Real>(x: &[T]) -> Rectangle {
    let [cx, cy, w, h] = [0, 1, 2, 3].map(|i: usize| x[i].to_f64());
    Rectangle::around([cx, cy], [w, h])
}

impl Call for NmsDetection2d {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let sample = self.boxes * (5 + self.classes);
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::detect(self, &x[0].data, &y[0].data);
        }
        with_real!(run.dtype, T => {
            let x = x[0].slice::<T>();
            tasks::parts(y[0].slice::<T>(), sample, |s, y| self.sample(&x[s * sample..][..sample], y));
        });
        Ok(())
    }
}
