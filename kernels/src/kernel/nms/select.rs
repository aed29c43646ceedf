//! The boxes that suppression leaves, as ONNX wants them.

use super::{Rectangle, by_score, cuda};
use crate::array::Place;
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::Real;
use crate::error::{Error, Result};
use crate::with_real;

/// Batch, class and number of each box that is left.
pub struct OnnxNms {
    pub boxes: usize,
    pub classes: usize,
    /// Boxes are center and size, as x, y, w, h; if not, two corners, as y, x, y, x.
    pub centers: bool,
    /// Boxes of a class of a sample at most.
    pub most: usize,
    pub iou_threshold: f64,
    pub score_threshold: f64,
    /// How many are left; `None`: as many as fit into the output, the rest of which has the largest index.
    pub rows: Option<usize>,
}

impl OnnxNms {
    fn class<T: Real>(&self, rectangles: &[Rectangle], scores: &[T], mut found: impl FnMut(usize)) {
        let threshold = T::from_f64(self.score_threshold).to_f64();
        let order = by_score(self.boxes, |i| scores[i].to_f64());
        let mut kept: Vec<usize> = Vec::new();
        for i in order.into_iter().filter(|&i| scores[i].to_f64() >= threshold) {
            if kept.len() == self.most {
                return;
            }
            if !kept.iter().any(|&k| rectangles[k].overlap(&rectangles[i]) > self.iou_threshold) {
                kept.push(i);
                found(i);
            }
        }
    }

    /// Writes the rows that there is room for; gives how many there are.
    fn run<T: Real>(&self, boxes: &[T], scores: &[T], y: &mut [u64]) -> usize {
        let (mut count, mut rows) = (0, y.chunks_mut(3));
        for (batch, scores) in scores.chunks(self.classes * self.boxes).enumerate() {
            let boxes = &boxes[batch * self.boxes * 4..][..self.boxes * 4];
            let rectangles: Vec<Rectangle> = boxes.chunks(4).map(|b| rectangle(b, self.centers)).collect();
            for (class, scores) in scores.chunks(self.boxes).enumerate() {
                self.class(&rectangles, scores, |i| {
                    count += 1;
                    if let Some(row) = rows.next() {
                        row.copy_from_slice(&[batch as u64, class as u64, i as u64]);
                    }
                });
            }
        }
        rows.for_each(|row| row.fill(u64::MAX));
        count
    }
}

fn rectangle<T: Real>(b: &[T], centers: bool) -> Rectangle {
    let b = [0, 1, 2, 3].map(|i: usize| b[i].to_f64());
    if centers {
        return Rectangle::around([b[0], b[1]], [b[2], b[3]]);
    }
    Rectangle { low: [b[1].min(b[3]), b[0].min(b[2])], high: [b[1].max(b[3]), b[0].max(b[2])] }
}

impl Call for OnnxNms {
    /// On a GPU, where counting the boxes would make the host wait, those beyond the number are left out, and those that are missing have
    /// the largest index.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return if y[0].data.is_empty() { Ok(()) } else { cuda::select(self, &x[0].data, &x[1].data, &y[0].data) };
        }
        if x[1].shape.size() == 0 {
            y[0].slice::<u64>().fill(u64::MAX);
            return self.rows.filter(|n| *n > 0).map_or(Ok(()), |n| Err(other_number(n, 0)));
        }
        let y = y[0].slice::<u64>();
        let count = with_real!(run.dtype, T => self.run(x[0].slice::<T>(), x[1].slice::<T>(), y));
        self.rows.filter(|n| *n != count).map_or(Ok(()), |n| Err(other_number(n, count)))
    }
}

fn other_number(expected: usize, found: usize) -> Error {
    let e = Error::arg("scores", format!("{expected} boxes that are left")).actual(found);
    e.hint("boxes are counted when the function is called: for other boxes or scores, call it again")
}
