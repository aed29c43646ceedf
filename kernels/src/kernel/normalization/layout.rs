//! How an array is laid out for the kernels: as it is where the axes that have statistics of their own lie side by side,
//! otherwise through a copy with those axes first.

use super::cpu::{ChannelGroups, Channels};
use crate::array::scratch::{Scratch, counted};
use crate::array::{Data, Output};
use crate::dtype::{DType, Real, compute_dtype};
use crate::error::Result;
use crate::kernel::moves::Moves;
use crate::shape::Shape;
use ndarray::{ArrayViewD, ArrayViewMutD, IxDyn, ShapeBuilder, StrideShape};
use smallvec::SmallVec;

/// How an array is given to the kernels.
pub struct NormalizationLayout {
    pub(super) channels: Channels,
    /// Sizes and strides of the axes with the kept ones first, if a copy is needed.
    order: Option<SmallVec<[(usize, usize); 6]>>,
}

impl NormalizationLayout {
    /// The kept axes as channels, with reduced axes before and after them.
    pub fn of_channels(x: &Shape, kept: &[bool]) -> NormalizationLayout {
        let first = kept.iter().position(|k| *k).unwrap_or(0);
        let last = kept.iter().rposition(|k| *k).map_or(0, |i| i + 1);
        if (first..last).any(|i| !kept[i] && x[i] != 1) {
            return NormalizationLayout::ordered(x, kept);
        }
        let channels: usize = x[first..last].iter().product();
        let (outer, inner) = (x.size_to(first), x.size_from(last));
        NormalizationLayout { channels: Channels { outer, channels, inner }, order: None }
    }

    /// The kept axes as rows, before all reduced axes.
    pub fn of_rows(x: &Shape, kept: &[bool]) -> NormalizationLayout {
        let direct = NormalizationLayout::of_channels(x, kept);
        if direct.order.is_some() || direct.channels.outer == 1 {
            return direct;
        }
        NormalizationLayout::ordered(x, kept)
    }

    /// The batch axes and groups of the channel axis as rows, before the channels of a group and all other axes; and the
    /// sizes. `by_sample`: each sample has scales of its own.
    pub fn of_groups(
        x: &Shape,
        batch: &[bool],
        channel: usize,
        groups: usize,
        by_sample: bool,
    ) -> (NormalizationLayout, ChannelGroups) {
        let (strides, width) = (x.strides(), x[channel] / groups);
        let of = |axes: std::ops::Range<usize>, kept: bool| {
            axes.filter(move |&i| i != channel && batch[i] == kept).map(|i| (x[i], strides[i]))
        };
        let (before, after, all) = (0..channel, channel..x.ndim(), 0..x.ndim());
        let order = of(before.clone(), true)
            .chain([(groups, width * strides[channel])])
            .chain(of(after.clone(), true))
            .chain([(width, strides[channel])])
            .chain(of(all.clone(), false));
        let order: SmallVec<[(usize, usize); 6]> = order.collect();
        let size = |axes, kept| of(axes, kept).map(|a| a.0).product();
        let (before, after, inner) = (size(before, true), size(after, true), size(all, false));
        let sizes = ChannelGroups { before, groups, after, width, inner, by_sample };
        let channels = Channels { outer: 1, channels: sizes.rows(), inner: sizes.length() };
        (NormalizationLayout { channels, order: (!in_order(&order)).then_some(order) }, sizes)
    }

    fn ordered(x: &Shape, kept: &[bool]) -> NormalizationLayout {
        let strides = x.strides();
        let of = |k: bool| (0..x.ndim()).filter(move |&i| kept[i] == k).map(|i| (x[i], strides[i]));
        let size = |k: bool| of(k).map(|a| a.0).product();
        let channels = Channels { outer: 1, channels: size(true), inner: size(false) };
        NormalizationLayout { channels, order: Some(of(true).chain(of(false)).collect()) }
    }

    /// Elements of each channel.
    pub fn count(&self) -> usize {
        self.channels.count()
    }

    /// Whether the kernels see the arrays themselves.
    pub(super) fn is_direct(&self) -> bool {
        self.order.is_none()
    }

    /// Bytes of the copies of an array, each of `size` numbers: two forward, three backward.
    pub(super) fn scratch(&self, size: usize, dtype: DType) -> [usize; 2] {
        let copy = if self.is_direct() { 0 } else { counted(size * dtype.size()) };
        [2 * copy, 3 * copy]
    }

    /// `f` with x as the kernels want it.
    pub(super) fn read<T: Real, R>(&self, x: &[T], f: impl FnOnce(&[T]) -> R) -> R {
        let Some(order) = self.order.as_ref().filter(|_| !x.is_empty()) else { return f(x) };
        let x = ArrayViewD::from_shape(lies(order), x).expect("an array of the layout's size");
        let mut copy = Scratch::filled(x.len(), T::ZERO);
        ArrayViewMutD::from_shape(x.raw_dim(), &mut copy).expect("as many elements").assign(&x);
        f(&copy)
    }

    /// `f` with an array to write or add to, which then comes to `y`.
    pub(super) fn write<T: Real, R>(&self, y: &mut [T], output: Output, f: impl FnOnce(&mut [T], Output) -> R) -> R {
        let Some(order) = self.order.as_ref().filter(|_| !y.is_empty()) else { return f(y, output) };
        let mut copy = Scratch::filled(y.len(), T::ZERO);
        let r = f(&mut copy, Output::Write);
        let mut y = ArrayViewMutD::from_shape(lies(order), y).expect("an array of the layout's size");
        let copy = ArrayViewD::from_shape(y.raw_dim(), &copy).expect("as many elements");
        match output {
            Output::Write => y.assign(&copy),
            Output::Accumulate => y.zip_mut_with(&copy, |y, &v| *y += v),
        }
        r
    }

    /// x on a GPU as the kernels want it.
    pub(super) fn read_on_gpu(&self, x: &Data) -> Result<Data> {
        let Some(order) = &self.order else { return Ok(x.clone()) };
        let copy = Data::new_at(x.place(), x.dtype(), x.len())?;
        let (moves, _) = order.iter().rev().fold((Moves::new(0, 0), 1), |(m, step), &(n, stride)| {
            (m.axis(n, step as isize, stride as isize), step * n)
        });
        moves.run_on_gpu(&copy, x, Output::Write)?;
        Ok(copy)
    }

    /// `f` with an array on a GPU to write or add to, which then comes to `y`.
    pub(super) fn write_on_gpu<R>(
        &self,
        y: &Data,
        output: Output,
        f: impl FnOnce(&Data, Output) -> Result<R>,
    ) -> Result<R> {
        let Some(order) = &self.order else { return f(y, output) };
        let copy = Data::new_at(y.place(), compute_dtype(y.dtype()), y.len())?;
        let result = f(&copy, Output::Write)?;
        let (moves, _) = order.iter().rev().fold((Moves::new(0, 0), 1), |(m, step), &(n, stride)| {
            (m.axis(n, stride as isize, step as isize), step * n)
        });
        moves.run_on_gpu(y, &copy, output)?;
        Ok(result)
    }
}

/// Whether the axes already lie one after another.
fn in_order(order: &[(usize, usize)]) -> bool {
    let mut step = 1;
    order.iter().rev().filter(|a| a.0 != 1).all(|&(n, stride)| {
        let right = stride == step;
        step *= n;
        right
    })
}

/// How the axes lie in the array.
fn lies(order: &[(usize, usize)]) -> StrideShape<IxDyn> {
    let (sizes, strides): (Vec<usize>, Vec<usize>) = order.iter().copied().unzip();
    IxDyn(&sizes).strides(IxDyn(&strides))
}
