//! Sorting along an axis, and what is found by sorting: the largest elements of rows, the smallest magnitudes.
//!
//! An element's key is a whole number that is in the order of the elements: equal ones (0 and -0) have the same, NaN the
//! largest. Elements are ordered by key and then by place, so that there is one result.

mod cpu;
mod cuda;
mod short;

pub(super) use cpu::Keyed;
pub(super) use cuda::order_of_lines;

use super::axis::Axis;
use crate::array::scratch::counted;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::ops;
use crate::shape::Shape;
use crate::with_real;
use std::sync::Arc;

/// By what elements are compared.
#[derive(Clone, Copy)]
pub struct Order {
    /// Their magnitudes count.
    pub magnitudes: bool,
    /// The largest come first.
    pub reverse: bool,
}

/// Places in a line are counted in 32 bits.
fn countable(x: &Shape, n: usize) -> Result<()> {
    let most = i32::MAX as usize;
    if n <= most { Ok(()) } else { Err(Error::shape("x", format!("at most {most} elements to sort")).actual(x)) }
}

/// Lines in order; the elements, where they were, or both.
pub struct Sort {
    pub axis: usize,
    at: Axis,
    order: Order,
    only_index: bool,
}

/// Where the elements of a forward pass were, as `u32`.
struct SortedPlaces(Data);

impl SortedPlaces {
    fn of(run: &Run) -> Result<Arc<SortedPlaces>> {
        run.saved().ok_or_else(|| {
            Error::graph("the order of the forward pass is missing").hint("call forward() before backward()")
        })
    }
}

impl Sort {
    /// Along `axis` of arrays of shape `x`.
    pub fn new(x: &Shape, axis: usize, reverse: bool, only_index: bool) -> Result<Sort> {
        countable(x, x[axis])?;
        Ok(Sort { axis, at: Axis::new(x, axis), order: Order { magnitudes: false, reverse }, only_index })
    }

    fn size(&self) -> usize {
        self.at.outer.saturating_mul(self.at.n).saturating_mul(self.at.inner)
    }
}

impl Call for Sort {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let mut outs = y.iter().map(|y| &y.data);
        let values = if self.only_index { None } else { outs.next() };
        let indices = outs.next();
        if let Place::Gpu(_) = x[0].data.place() {
            return cuda::sort(self.at, self.order, &x[0].data, values, indices);
        }
        let saved = if run.keep { Some(Data::new(DType::U32, self.size())?) } else { None };
        with_real!(run.dtype, T => cpu::sort(
            self.at,
            self.order,
            x[0].slice::<T>(),
            values.map(|y| y.as_mut_slice()),
            indices.map(|y| y.as_mut_slice()),
            saved.as_ref().map(|y| y.as_mut_slice()),
        ));
        if let Some(saved) = saved {
            run.save(SortedPlaces(saved));
        }
        Ok(())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [counted(self.at.n * 2 * dtype.size()), 0]
    }

    fn saves(&self, _dtype: DType) -> Option<usize> {
        Some(self.size().saturating_mul(DType::U32.size()))
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    /// The elements go back to where they were; on the host, since a GPU keeps no order.
    fn backward(&self, run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gx) = &gx[0] else { return Ok(()) };
        let Some(gy) = gy[0].as_ref().filter(|_| !self.only_index) else {
            return if gx.output == Output::Write { ops::fill(&gx.data, 0.0) } else { Ok(()) };
        };
        let order = SortedPlaces::of(run)?;
        with_real!(gx.data.dtype(), T => {
            cpu::put_back(self.at, order.0.as_slice(), gy.data.as_slice::<T>(), gx.data.as_mut_slice(), gx.output)
        });
        Ok(())
    }
}

/// The first `k` elements of each row of `n` in an order; or rows that keep these, with 0 in place of the others.
pub struct TopK {
    pub rows: usize,
    pub n: usize,
    pub k: usize,
    order: Order,
    reduce: bool,
}

impl TopK {
    /// Of arrays of shape `x`, where the axes from `axis` on are a row.
    pub fn new(x: &Shape, axis: usize, k: usize, order: Order, reduce: bool) -> Result<TopK> {
        countable(x, x.size_from(axis))?;
        Ok(TopK { rows: x.size_to(axis), n: x.size_from(axis), k, order, reduce })
    }

    fn found(&self) -> usize {
        self.rows.saturating_mul(self.k)
    }
}

impl Call for TopK {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if !self.reduce {
            ops::fill(&y[0].data, 0.0)?;
        }
        let indices = y.get(1).map(|y| &y.data);
        if let Place::Gpu(_) = x[0].data.place() {
            return cuda::top_k(self, &x[0].data, &y[0].data, indices);
        }
        let saved = if run.keep { Some(Data::new(DType::U32, self.found())?) } else { None };
        with_real!(run.dtype, T => cpu::top_k(
            self,
            x[0].slice::<T>(),
            y[0].data.as_mut_slice(),
            indices.map(|y| y.as_mut_slice()),
            saved.as_ref().map(|y| y.as_mut_slice()),
        ));
        if let Some(saved) = saved {
            run.save(SortedPlaces(saved));
        }
        Ok(())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [counted(self.n.saturating_mul(3 * dtype.size())), 0]
    }

    fn saves(&self, _dtype: DType) -> Option<usize> {
        Some(self.found().saturating_mul(DType::U32.size()))
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gx) = &gx[0] else { return Ok(()) };
        if gx.output == Output::Write {
            ops::fill(&gx.data, 0.0)?;
        }
        let Some(gy) = &gy[0] else { return Ok(()) };
        let places = SortedPlaces::of(run)?;
        with_real!(gx.data.dtype(), T => {
            cpu::add_top_k(self, places.0.as_slice(), gy.data.as_slice::<T>(), gx.data.as_mut_slice())
        });
        Ok(())
    }
}

/// A copy; of its gradient the first `k` elements of each row flow back.
pub struct TopKGrad(pub TopK);

impl Call for TopKGrad {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::put(&y[0].data, &x[0].data, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let [forward, backward] = self.0.scratch(dtype);
        [backward, forward]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gx) = &gx[0] else { return Ok(()) };
        if gx.output == Output::Write {
            ops::fill(&gx.data, 0.0)?;
        }
        let Some(gy) = &gy[0] else { return Ok(()) };
        with_real!(gx.data.dtype(), T => cpu::add_first(&self.0, gy.data.as_slice::<T>(), gx.data.as_mut_slice()));
        Ok(())
    }
}

/// Zeros in place of the elements whose magnitude is less than a limit, which is one of the magnitudes.
pub struct Prune {
    n: usize,
    /// The number of the limit among the sorted magnitudes; none: all become 0.
    rank: Option<usize>,
}

impl Prune {
    /// About `rate` of `n` elements become 0.
    pub fn new(n: usize, rate: f64) -> Prune {
        // In single precision, as NNabla counts.
        let rank = (n.max(1) - 1) as f32 * rate as f32;
        Prune { n, rank: (rate < 1.0).then_some((rank as usize).min(n.max(1) - 1)) }
    }
}

impl Call for Prune {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let Some(rank) = self.rank else { return ops::fill(&y[0].data, 0.0) };
        match x[0].data.place() {
            Place::Gpu(_) => return cuda::prune(rank, &x[0].data, &y[0].data),
            Place::Host => with_real!(run.dtype, T => cpu::prune(rank, x[0].slice::<T>(), y[0].slice())),
        }
        Ok(())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [counted(self.n.saturating_mul(dtype.size())), 0]
    }
}
