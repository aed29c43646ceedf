//! Which axes have statistics of their own, and how an array is laid out for the kernels: as it is where they lie side by
//! side, otherwise through a copy with those axes first.

use crate::function::View;
use crate::function::reduction::Mask;
use nnrs_kernels::array::Output;
use nnrs_kernels::cpu::normalize::Channels;
use nnrs_kernels::cpu::scratch::{Scratch, counted};
use nnrs_kernels::dtype::{DType, Element, Real};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;

/// The axes that argument `name` lists, as a mask.
pub(super) fn mask(name: &str, axes: &[i64], x: &Shape) -> Result<Mask> {
    let mut mask = Mask::from_elem(false, x.ndim());
    for &a in axes {
        if std::mem::replace(&mut mask[x.axis(a, name)?], true) {
            return Err(Error::arg(name, "each axis once").actual(format!("{axes:?}")));
        }
    }
    Ok(mask)
}

/// x's sizes where the mask says so, otherwise 1.
pub(super) fn sizes_at(x: &Shape, mask: &Mask, kept: bool) -> Shape {
    x.iter().zip(mask).map(|(&n, &m)| if m == kept { n } else { 1 }).collect()
}

/// Checks the shape of a statistic, a scale or a shift.
pub(super) fn check_shape(name: &str, got: &Shape, want: &Shape) -> Result<()> {
    match got == want {
        true => Ok(()),
        false => Err(Error::shape(name, format!("shape {want}")).actual(got)),
    }
}

/// The numbers of view `i`, if it is there.
pub(super) fn slice_at<'a, T: Element>(views: &'a [Option<View>], i: Option<usize>) -> Option<&'a [T]> {
    views.get(i?)?.as_ref().map(|v| v.slice())
}

/// How an array is given to the kernels.
pub(super) struct Layout {
    pub channels: Channels,
    /// Sizes and strides of the axes with the kept ones first, if a copy is needed.
    order: Option<SmallVec<[(usize, usize); 6]>>,
}

impl Layout {
    /// The kept axes as channels, with reduced axes before and after them.
    pub fn of_channels(x: &Shape, kept: &Mask) -> Layout {
        let first = kept.iter().position(|k| *k).unwrap_or(0);
        let last = kept.iter().rposition(|k| *k).map_or(0, |i| i + 1);
        if (first..last).any(|i| !kept[i] && x[i] != 1) {
            return Layout::ordered(x, kept);
        }
        let channels: usize = x[first..last].iter().product();
        let (outer, inner) = (x.size_to(first), x.size_from(last));
        Layout { channels: Channels { outer, channels, inner }, order: None }
    }

    /// The kept axes as rows, before all reduced axes.
    pub fn of_rows(x: &Shape, kept: &Mask) -> Layout {
        let direct = Layout::of_channels(x, kept);
        if direct.order.is_some() || direct.channels.outer == 1 {
            return direct;
        }
        Layout::ordered(x, kept)
    }

    fn ordered(x: &Shape, kept: &Mask) -> Layout {
        let strides = x.strides();
        let of = |k: bool| (0..x.ndim()).filter(move |&i| kept[i] == k).map(|i| (x[i], strides[i]));
        let size = |k: bool| of(k).map(|a| a.0).product();
        let channels = Channels { outer: 1, channels: size(true), inner: size(false) };
        Layout { channels, order: Some(of(true).chain(of(false)).collect()) }
    }

    /// Whether the kernels see the arrays themselves.
    pub fn is_direct(&self) -> bool {
        self.order.is_none()
    }

    /// Sizes and strides of the axes as the kernels want them, if they do not lie so.
    pub fn order(&self) -> Option<&[(usize, usize)]> {
        self.order.as_deref()
    }

    /// Bytes of the copies of an array, each of `size` numbers: two forward, three backward.
    pub fn scratch(&self, size: usize, dtype: DType) -> [usize; 2] {
        let copy = if self.is_direct() { 0 } else { counted(size * dtype.size()) };
        [2 * copy, 3 * copy]
    }

    /// `f` with x as the kernels want it.
    pub fn read<T: Real, R>(&self, x: &[T], f: impl FnOnce(&[T]) -> R) -> R {
        let Some(order) = &self.order else { return f(x) };
        let mut copy = Scratch::filled(x.len(), T::ZERO);
        let mut to = copy.iter_mut();
        each(order, x.len(), |i| to.next().into_iter().for_each(|to| *to = x[i]));
        f(&copy)
    }

    /// `f` with an array to write or add to, which then comes to `y`.
    pub fn write<T: Real, R>(&self, y: &mut [T], output: Output, f: impl FnOnce(&mut [T], Output) -> R) -> R {
        let Some(order) = &self.order else { return f(y, output) };
        let mut copy = Scratch::filled(y.len(), T::ZERO);
        let r = f(&mut copy, Output::Write);
        let mut from = copy.iter();
        each(order, y.len(), |i| {
            let v = from.next().copied().unwrap_or(T::ZERO);
            y[i] = if output == Output::Write { v } else { y[i] + v };
        });
        r
    }
}

/// Calls `f` with the places of all `n` elements in the order of the axes given.
fn each(order: &[(usize, usize)], n: usize, mut f: impl FnMut(usize)) {
    let Some((&(width, stride), outer)) = order.split_last() else { return (0..n).for_each(f) };
    for row in 0..n / width.max(1) {
        let mut rest = row;
        let at: usize = outer.iter().rev().map(|&(n, s)| (rest % n * s, rest /= n).0).sum();
        (0..width).for_each(|i| f(at + i * stride));
    }
}
