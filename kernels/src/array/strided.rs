//! How a part of an array lies in it: what transposes, slices, broadcasts and flips have in common. A reader that takes
//! strides reads the array itself, and nothing is copied.

use crate::device::Place;
use crate::shape::Shape;
use smallvec::SmallVec;

/// A view of a dense array: its first element there, and the distance to the next one along each axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Strided {
    /// The shape of the view.
    pub shape: Shape,
    /// The place of the first element.
    pub first: usize,
    /// For each axis the distance between neighbours, in elements; 0 where the view repeats.
    pub strides: SmallVec<[isize; 6]>,
}

/// For each axis of a view, the axis of the array it is a view of, and the step along that; `None` where it repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisMap {
    /// The positions along the array's axes at which the view begins.
    start: SmallVec<[usize; 6]>,
    axes: SmallVec<[(usize, Option<(usize, isize)>); 6]>,
}

impl AxisMap {
    /// A view that begins at the positions `start`, one for each axis of the array, and has no axes yet.
    pub fn new(start: impl IntoIterator<Item = usize>) -> AxisMap {
        AxisMap { start: start.into_iter().collect(), axes: SmallVec::new() }
    }

    /// Adds an axis of size `n` that goes along axis `axis` of the array in steps.
    pub fn along(mut self, n: usize, axis: usize, step: isize) -> AxisMap {
        self.axes.push((n, Some((axis, step))));
        self
    }

    /// Adds an axis of size `n` along which the view repeats.
    pub fn repeated(mut self, n: usize) -> AxisMap {
        self.axes.push((n, None));
        self
    }

    /// The view of what is a view itself.
    pub fn of(&self, x: &Strided) -> Strided {
        let ahead: isize = self.start.iter().zip(&x.strides).map(|(&at, stride)| at as isize * stride).sum();
        let stride = |&(_, along): &(usize, Option<(usize, isize)>)| along.map_or(0, |(a, step)| step * x.strides[a]);
        Strided {
            shape: self.axes.iter().map(|a| a.0).collect(),
            first: x.first.wrapping_add_signed(ahead),
            strides: self.axes.iter().map(stride).collect(),
        }
    }
}

impl Strided {
    /// All of an array.
    pub fn dense(shape: &Shape) -> Strided {
        let strides = shape.strides().iter().map(|&s| s as isize).collect();
        Strided { shape: shape.clone(), first: 0, strides }
    }

    /// The elements are neighbours, in order.
    pub fn is_contiguous(&self) -> bool {
        let dense = self.shape.strides();
        let mut axes = self.shape.iter().zip(&self.strides).zip(dense);
        axes.all(|((&n, &stride), dense)| n <= 1 || stride == dense as isize)
    }

    /// These are the array's elements from the first one on, in order.
    pub fn is_dense(&self) -> bool {
        self.first == 0 && self.is_contiguous()
    }

    /// Reading it in order costs about what a copy would: it goes on through the array in one direction, in runs of whole cache
    /// lines, or all of it stays in a cache.
    pub fn reads_well(&self) -> bool {
        let axes = self.shape.iter().zip(&self.strides).map(|(&n, s)| (n, s.unsigned_abs()));
        let axes: SmallVec<[(usize, usize); 6]> = axes.filter(|&(n, stride)| n > 1 && stride != 0).collect();
        let is_ordered = axes.windows(2).all(|w| w[0].1 >= w[1].1);
        let has_runs = axes.last().is_some_and(|&(n, stride)| stride == 1 && n >= 16);
        is_ordered || has_runs || self.shape.size() <= 1 << 13
    }

    /// An element-wise program at `place` reads it as well as a copy: a GPU in any order, but not backwards.
    pub fn reads_well_at(&self, place: Place) -> bool {
        match place {
            Place::Host => self.reads_well(),
            Place::Gpu(_) => self.strides.iter().all(|s| *s >= 0),
        }
    }

    /// All its elements lie in an array of `len`.
    pub fn fits(&self, len: usize) -> bool {
        if self.shape.size() == 0 {
            return true;
        }
        let far = |(&n, &stride): (&usize, &isize)| (n - 1) as isize * stride;
        let ends = self.shape.iter().zip(&self.strides).map(far);
        let (low, high) =
            ends.fold((self.first as isize, self.first as isize), |(l, h), d| (l + d.min(0), h + d.max(0)));
        low >= 0 && high < len as isize
    }

    /// The view of the elements `array`.
    ///
    /// # Panics
    /// If it does not [fit](Strided::fits).
    pub fn over<'a, T>(&self, array: &'a [T]) -> ndarray::ArrayViewD<'a, T> {
        assert!(self.fits(array.len()), "a view within the array");
        let shape = ndarray::IxDyn(&self.shape);
        if self.shape.size() == 0 {
            return ndarray::ArrayViewD::from_shape(shape, &[]).expect("no elements");
        }
        // ndarray's strides begin at the lowest element: backward axes are turned round after that.
        let backward = |&(_, (&n, &stride)): &(usize, (&usize, &isize))| n > 1 && stride < 0;
        let axes = || self.shape.iter().zip(&self.strides).enumerate();
        let lowest = axes().filter(backward).fold(self.first as isize, |at, (_, (&n, &s))| at + (n as isize - 1) * s);
        let strides: SmallVec<[usize; 6]> = self.strides.iter().map(|s| s.unsigned_abs()).collect();
        let layout = ndarray::ShapeBuilder::strides(shape, ndarray::IxDyn(&strides));
        let mut view = ndarray::ArrayViewD::from_shape(layout, &array[lowest as usize..]).expect("it fits");
        axes().filter(backward).for_each(|(axis, _)| view.invert_axis(ndarray::Axis(axis)));
        view
    }

    /// The place of an element in the array, by its number in the view.
    pub fn place(&self, i: usize) -> usize {
        let (mut rest, mut at) = (i, self.first as isize);
        for (&n, &stride) in self.shape.iter().zip(&self.strides).rev() {
            at += (rest % n) as isize * stride;
            rest /= n;
        }
        at as usize
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    /// The places of all elements, by the definition.
    fn places(s: &Strided) -> Vec<usize> {
        (0..s.shape.size()).map(|i| s.place(i)).collect()
    }

    unit_test!(views_of_views);
    fn views_of_views() {
        let x = Strided::dense(&[2, 3, 4].into());
        assert!(x.is_contiguous() && places(&x).into_iter().eq(0..24));
        let t = AxisMap::new([0, 0, 0]).along(4, 2, 1).along(2, 0, 1).along(3, 1, 1).of(&x);
        assert_eq!((t.shape.clone(), t.place(1), t.place(3)), ([4, 2, 3].into(), 4, 12));
        let back = AxisMap::new([0, 0, 0]).along(2, 1, 1).along(3, 2, 1).along(4, 0, 1).of(&t);
        assert_eq!(back, x);
        let flipped = AxisMap::new([3, 0, 2]).along(2, 0, -2).along(2, 1, 1).along(3, 2, -1).of(&t);
        assert_eq!(places(&flipped)[..4], [11, 7, 3, 23]);
        assert!(flipped.fits(24) && !flipped.fits(23));
    }

    unit_test!(views_of_ndarray);
    fn views_of_ndarray() {
        let x: Vec<usize> = (0..24).collect();
        let dense = Strided::dense(&[2, 3, 4].into());
        let maps = [
            AxisMap::new([1, 2, 3]).along(4, 2, -1).along(2, 0, -1).along(2, 1, -2),
            AxisMap::new([0, 1, 0]).repeated(2).along(2, 1, 1).along(2, 2, 2),
            AxisMap::new([0, 1, 0]).along(0, 1, 1).along(2, 2, 2),
        ];
        for view in maps.map(|m| m.of(&dense)) {
            let array = view.over(&x);
            assert_eq!(array.shape(), &view.shape[..]);
            assert!(array.iter().copied().eq(places(&view)), "{view:?}");
        }
    }

    unit_test!(what_reads_well);
    fn what_reads_well() {
        let of = |axes: AxisMap, shape: &[usize]| axes.of(&Strided::dense(&shape.into())).reads_well();
        assert!(of(AxisMap::new([0, 9]).along(500, 0, 1).along(100, 1, -2), &[500, 500]), "a slice");
        assert!(!of(AxisMap::new([0, 0]).along(500, 1, 1).along(500, 0, 1), &[500, 500]), "a transpose");
        assert!(of(AxisMap::new([0, 0]).along(50, 1, 1).along(50, 0, 1), &[50, 50]), "a small one");
        let heads = AxisMap::new([0, 0, 0]).along(8, 1, 1).along(500, 0, 1).along(64, 2, 1);
        assert!(of(heads, &[500, 8, 64]), "rows in another order");
        assert!(of(AxisMap::new([0, 0]).along(500, 1, 1).repeated(500), &[500, 500]), "a broadcast");
    }

    unit_test!(repeated_axes_and_parts);
    fn repeated_axes_and_parts() {
        let x = Strided::dense(&[3, 1].into());
        let wide = AxisMap::new([0, 0]).repeated(2).along(3, 0, 1).repeated(2).of(&x);
        assert_eq!(places(&wide), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
        let part = AxisMap::new([1, 0]).along(2, 0, 1).along(1, 1, 1).of(&x);
        assert!(part.is_contiguous() && places(&part) == [1, 2]);
        assert!(AxisMap::new([0, 0]).along(0, 0, 1).of(&x).fits(0));
    }
}
