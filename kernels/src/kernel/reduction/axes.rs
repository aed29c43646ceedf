//! The axes of a reduction, neighbours of one kind merged: where each result's elements lie.

use crate::shape::Shape;
use smallvec::SmallVec;

/// Sizes of merged axes, and whether an axis is reduced.
pub struct Axes(SmallVec<[(usize, bool); 6]>);

impl Axes {
    /// The axes of `shape`; `reduced` says which of them are reduced.
    pub fn new(shape: &Shape, reduced: &[bool]) -> Axes {
        let mut merged: SmallVec<[(usize, bool); 6]> = SmallVec::new();
        for (&n, &r) in shape.iter().zip(reduced).filter(|(n, _)| **n != 1) {
            match merged.last_mut() {
                Some((m, s)) if *s == r => *m *= n,
                _ => merged.push((n, r)),
            }
        }
        Axes(merged)
    }

    /// Size of the innermost axis if that is reduced.
    pub fn reduced_last(&self) -> Option<usize> {
        self.0.last().filter(|a| a.1).map(|a| a.0)
    }

    /// Neighbouring results: the size of the innermost axis if that is kept, else 1.
    pub fn inner(&self) -> usize {
        self.0.last().filter(|a| !a.1).map_or(1, |a| a.0)
    }

    /// Number of positions on the reduced, or on the kept axes.
    pub fn count(&self, reduced: bool) -> usize {
        self.0.iter().filter(|a| a.1 == reduced).map(|a| a.0).product()
    }

    /// Offset of position number `k` on the reduced axes.
    pub fn reduced_offset(&self, k: usize) -> usize {
        self.offset(k, true, self.0.len())
    }

    /// Offset of row number `r`: a position on the kept axes, an innermost kept axis left out.
    pub fn row_offset(&self, r: usize) -> usize {
        let inner = matches!(self.0.last(), Some((_, false))) as usize;
        self.offset(r, false, self.0.len() - inner)
    }

    fn offset(&self, mut k: usize, reduced: bool, until: usize) -> usize {
        let (mut stride, mut offset) = (1, 0);
        for (i, &(n, r)) in self.0.iter().enumerate().rev() {
            if r == reduced && i < until {
                offset += k % n * stride;
                k /= n;
            }
            stride *= n;
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_rows_and_of_what_they_reduce() {
        let a = Axes::new(&[2, 3, 1, 4, 5].into(), &[true, false, false, true, true]);
        assert_eq!((a.count(true), a.count(false), a.inner(), a.reduced_last()), (40, 3, 1, Some(20)));
        assert_eq!((a.reduced_offset(21), a.row_offset(2)), (61, 40));
        let b = Axes::new(&[2, 3, 4].into(), &[false, true, false]);
        assert_eq!((b.inner(), b.row_offset(1), b.reduced_offset(2)), (4, 12, 8));
    }
}
