//! Short rows, which lie one behind the other: many are turned at once, so that vectors go across them.

use crate::array::{Output, scratch};
use crate::dtype::Real;
use crate::pool::tasks::share;
use crate::shape::Shape;
use crate::simd::lanes::TransposeBlock;
use crate::simd::turn::turn;
use std::ops::Range;

/// Rows of at most so many elements hardly fill vectors along them.
const SHORT: usize = 63;
/// So few rows are not worth it.
pub const FEW: usize = 16;
/// Elements that are turned together at most, where rows are not long: a few arrays of so many stay in the first cache.
const TOGETHER: usize = 1 << 12;
/// Rows that are turned together at most, and where they are long. Their multiples lie in all parts of the cache.
pub const MOST: usize = 192;
const LEAST: usize = 64;

/// Neighbouring rows that are turned together.
#[derive(Clone, Copy, Debug)]
pub struct RowGroup {
    /// The number of the first.
    pub first: usize,
    pub rows: usize,
    /// Elements of each.
    pub width: usize,
}

/// Whether it pays to turn rows.
pub fn are_short(rows: usize, width: usize) -> bool {
    width <= SHORT && rows >= FEW
}

/// Rows of a group.
fn together(width: usize) -> usize {
    if MOST * width <= TOGETHER { MOST } else { LEAST }
}

/// How many groups there are.
pub fn group_count(rows: usize, width: usize) -> usize {
    rows.div_ceil(together(width))
}

/// Calls `f` with all of `rows` rows in groups, on all threads.
pub fn each_group(rows: usize, width: usize, f: impl Fn(RowGroup) + Sync) {
    each_group_of(together(width), rows, width, f);
}

/// As `each_group`, with `together` rows in each.
pub fn each_group_of(together: usize, rows: usize, width: usize, f: impl Fn(RowGroup) + Sync) {
    share(rows.div_ceil(together), rows * width, |group| {
        let first = group * together;
        f(RowGroup { first, rows: together.min(rows - first), width });
    });
}

impl RowGroup {
    pub fn size(&self) -> usize {
        self.rows * self.width
    }

    /// The number of the group.
    pub fn number(&self) -> usize {
        self.first / together(self.width)
    }

    /// The numbers of its rows.
    pub fn numbers(&self) -> Range<usize> {
        self.first..self.first + self.rows
    }

    /// The group's elements in an array of all rows.
    pub fn range(&self) -> Range<usize> {
        self.first * self.width..(self.first + self.rows) * self.width
    }

    /// The shape of the group when it is turned.
    pub fn turned(&self) -> Shape {
        [self.width, self.rows].into()
    }

    /// The group with rows of `width` elements.
    pub fn of_width(self, width: usize) -> RowGroup {
        RowGroup { width, ..self }
    }

    /// Calls `f` with these rows of an array, turned, and room for those of a result, which it writes turned; they are written
    /// to `y`, or added. Rows of the result may have another width.
    pub fn through<T: Real>(&self, x: &[T], y: &mut [T], output: Output, f: impl FnOnce(&[T], &mut [T])) {
        scratch::with(x.len() + y.len(), |room| {
            let (from, to) = room.split_at_mut(x.len());
            self.of_width(x.len() / self.rows).turn(x, from);
            f(from, to);
            self.of_width(y.len() / self.rows).turn_back(to, y, output);
        });
    }

    /// `to[k * rows + r] = x[r * width + k]`, of the group's elements.
    pub fn turn<T: Real>(&self, x: &[T], to: &mut [T]) {
        transpose(x, self.width, to, self.rows, Output::Write);
    }

    /// The way back: `to` is written, or added to.
    pub fn turn_back<T: Real>(&self, x: &[T], to: &mut [T], output: Output) {
        transpose(x, self.rows, to, self.width, output);
    }
}

/// Rows of `cols` elements become rows of `rows`.
fn transpose<T: Real>(x: &[T], cols: usize, to: &mut [T], rows: usize, output: Output) {
    assert!(x.len() == rows * cols && to.len() == x.len(), "sizes do not fit");
    if rows.min(cols) == 1 {
        return match output {
            Output::Write => to.copy_from_slice(x),
            Output::Accumulate => to.iter_mut().zip(x).for_each(|(to, &v)| *to += v),
        };
    }
    let (src, dst) = (x.as_ptr(), to.as_mut_ptr());
    let block = TransposeBlock { src, src_stride: cols, rows, cols, dst, dst_stride: rows };
    // SAFETY: the sizes of both.
    unsafe { turn(block, output == Output::Accumulate) };
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use std::sync::Mutex;

    unit_test!(groups_are_turned_there_and_back);
    fn groups_are_turned_there_and_back() {
        for width in [1, 2, 3, 5, 8, 9, 16, 17, 31, 33, 100] {
            for rows in [1, 15, 64, 100, 1000] {
                let x: Vec<f32> = (0..rows * width).map(|i| i as f32).collect();
                let y = Mutex::new(vec![1f32; x.len()]);
                each_group(rows, width, |g| {
                    let mut turned = vec![0f32; g.size()];
                    g.turn(&x[g.range()], &mut turned);
                    for (i, v) in turned.iter().enumerate() {
                        assert_eq!(*v, x[g.range()][i % g.rows * width + i / g.rows]);
                    }
                    let part = &mut y.lock().unwrap()[g.range()];
                    g.turn_back(&turned, part, Output::Accumulate);
                });
                let y = y.into_inner().unwrap();
                assert!(x.iter().zip(y).all(|(x, y)| x + 1.0 == y), "{rows} x {width}");
            }
        }
    }
}
