//! The axes of a reduction, neighbours of one kind merged: where each result's elements lie.

use crate::array::Strided;
use crate::call::View;
use crate::dtype::Element;
use crate::shape::Shape;
use smallvec::SmallVec;

/// Sizes of merged axes, and whether an axis is reduced.
pub struct ReductionAxes(SmallVec<[(usize, bool); 6]>);

impl ReductionAxes {
    /// The axes of `shape`; `reduced` says which of them are reduced.
    pub fn new(shape: &Shape, reduced: &[bool]) -> ReductionAxes {
        let mut merged: SmallVec<[(usize, bool); 6]> = SmallVec::new();
        for (&n, &r) in shape.iter().zip(reduced).filter(|(n, _)| **n != 1) {
            match merged.last_mut() {
                Some((m, s)) if *s == r => *m *= n,
                _ => merged.push((n, r)),
            }
        }
        ReductionAxes(merged)
    }

    /// Size of the innermost axis if that is reduced.
    pub fn reduced_last(&self) -> Option<usize> {
        self.0.last().filter(|a| a.1).map(|a| a.0)
    }

    /// Neighbouring results: the size of the innermost axis if that is kept, else 1.
    pub fn inner(&self) -> usize {
        self.0.last().filter(|a| !a.1).map_or(1, |a| a.0)
    }

    /// Size of the innermost kept axis: the number of results, if the kept axes are neighbours.
    pub fn kept_together(&self) -> usize {
        self.0.iter().rev().find(|a| !a.1).map_or(1, |a| a.0)
    }

    /// Number and size of rows that lie one behind the other, if each result is made of one.
    pub fn rows(&self) -> Option<(usize, usize)> {
        match self.0[..] {
            [(n, true)] => Some((1, n)),
            [(rows, false), (n, true)] => Some((rows, n)),
            _ => None,
        }
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

    /// The distance of neighbours on the reduced axes, if these are one.
    pub fn reduced_stride(&self) -> Option<usize> {
        let mut reduced = self.0.iter().enumerate().filter(|(_, a)| a.1).map(|(i, _)| i);
        let one = reduced.next().filter(|_| reduced.next().is_none())?;
        Some(self.0[one + 1..].iter().map(|a| a.0).product())
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

/// The elements that are reduced, which a kernel reads in runs along the innermost merged axis: an array, or a view of one
/// in which each run [lies in order](has_dense_runs).
#[derive(Clone, Copy)]
pub struct Runs<'a, T> {
    array: &'a [T],
    view: Option<&'a Strided>,
}

impl<'a, T> From<&'a [T]> for Runs<'a, T> {
    fn from(array: &'a [T]) -> Self {
        Runs { array, view: None }
    }
}

impl<'a, T: Element> From<&'a View<'_>> for Runs<'a, T> {
    fn from(x: &'a View) -> Self {
        Runs { array: x.data.as_slice(), view: x.strides() }
    }
}

impl<'a, T> Runs<'a, T> {
    /// Of a view of an array.
    pub fn of(array: &'a [T], view: &'a Strided) -> Runs<'a, T> {
        Runs { array, view: Some(view) }
    }

    /// All elements, where they are an array.
    pub fn array(&self) -> Option<&'a [T]> {
        self.view.is_none().then_some(self.array)
    }

    /// `n` elements of one run, from number `at` of all elements on.
    pub fn get(&self, at: usize, n: usize) -> &'a [T] {
        let first = self.view.map_or(at, |view| view.place(at));
        &self.array[first..][..n]
    }
}

/// Whether the elements of `x` that are neighbours along the innermost merged axis are neighbours in memory.
pub fn has_dense_runs(x: &Strided, reduced: &[bool]) -> bool {
    let mut axes = x.shape.iter().zip(&x.strides).zip(reduced).rev().filter(|((n, _), _)| **n != 1).peekable();
    let Some(&(_, kind)) = axes.peek() else { return true };
    let mut dense = 1;
    axes.take_while(|(_, r)| *r == kind).all(|((&n, &stride), _)| {
        let is_dense = stride == dense;
        dense *= n as isize;
        is_dense
    })
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use crate::array::AxisMap;

    unit_test!(runs_of_views);
    fn runs_of_views() {
        let x: Vec<usize> = (0..24).collect();
        let view = AxisMap::new([0, 1, 0]).along(2, 1, 1).along(2, 0, 1).along(4, 2, 1);
        let view = view.of(&Strided::dense(&[2, 3, 4].into()));
        for (reduced, dense) in [([true, false, true], true), ([false, true, true], false), ([true, true, false], true)]
        {
            assert_eq!(has_dense_runs(&view, &reduced), dense, "{reduced:?}");
        }
        let runs = Runs { array: &x, view: Some(&view) };
        assert_eq!((runs.get(4, 4), runs.get(9, 3)), (&x[16..20], &x[9..12]));
    }

    unit_test!(offsets_of_rows_and_of_what_they_reduce);
    fn offsets_of_rows_and_of_what_they_reduce() {
        let a = ReductionAxes::new(&[2, 3, 1, 4, 5].into(), &[true, false, false, true, true]);
        assert_eq!((a.count(true), a.count(false), a.inner(), a.reduced_last()), (40, 3, 1, Some(20)));
        assert_eq!((a.reduced_offset(21), a.row_offset(2)), (61, 40));
        let b = ReductionAxes::new(&[2, 3, 4].into(), &[false, true, false]);
        assert_eq!((b.inner(), b.row_offset(1), b.reduced_offset(2)), (4, 12, 8));
    }
}
