//! Elements or slices read from, or written to, places given by coordinates.

use super::gather::Picks;
use super::ops;
use crate::array::scratch::{Scratch, counted};
use crate::array::{Data, Output, Place};
use crate::call::{Call, GradMut, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::gather::cuda::indices as device_indices;
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
use crate::kernel::gather::rows;
use crate::shape::Shape;
use crate::simd;
use crate::with_real;

/// Slices of an array of shape `of` at `count` places, with coordinates for its first `m` axes.
pub struct Slices {
    of: Shape,
    m: usize,
    count: usize,
    /// Elements of a slice.
    size: usize,
}

impl Slices {
    /// With coordinates of shape `indices`.
    pub fn new(of: &Shape, indices: &Shape) -> Slices {
        let m = indices[0];
        Slices { of: of.clone(), m, count: indices.size_from(1), size: of.size_from(m) }
    }

    /// Offsets of the places.
    fn offsets(&self, indices: &View) -> Result<Scratch<usize>> {
        let mut offsets = Scratch::filled(self.count, 0usize);
        let axes = self.of.iter().zip(self.of.strides()).enumerate();
        for ((a, (&n, stride)), coordinates) in axes.zip(indices.slice().chunks(self.count.max(1))) {
            let n = n as i64;
            let from_start = |i: i64| if i < 0 { i.wrapping_add(n) } else { i };
            let mut is_inside = true;
            for (offset, &i) in offsets.iter_mut().zip(coordinates) {
                let at = from_start(i);
                is_inside &= (0..n).contains(&at);
                *offset = offset.wrapping_add((at as usize).wrapping_mul(stride));
            }
            if let Some(&i) = coordinates.iter().find(|i| !is_inside && !(0..n).contains(&from_start(**i))) {
                let expected = format!("coordinates between {} and {} for axis {a}", -n, n - 1);
                return Err(Error::arg("indices", expected).actual_index(i));
            }
        }
        Ok(offsets)
    }

    /// Bytes of the offsets.
    fn scratch(&self) -> usize {
        counted(self.count * size_of::<usize>())
    }

    /// How the slices are picked on a GPU, and their numbers. There a slice at coordinates that lie outside is NaN when
    /// it is read, and left out when it is written: looking for one would make the host wait.
    fn on_gpu(&self, indices: &View) -> Result<(Picks, Data)> {
        let picks = Picks::rows(self.of.size_to(self.m), self.size, self.count);
        Ok((picks, device_indices::nd(&indices.data, self.m, self.count, &self.of)?))
    }
}

/// Reads slices.
pub struct GatherNd(pub Slices);

impl Call for GatherNd {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let (p, at) = self.0.on_gpu(&x[1])?;
            return gather::gather(&p, &at, &x[0].data, &y[0].data, OutOfRange::Nan);
        }
        let at = self.0.offsets(&x[1])?;
        with_real!(run.dtype, T => rows::gather(x[0].slice::<T>(), &at, self.0.size, y[0].slice(), Output::Write));
        Ok(())
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        [self.0.scratch(); 2]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b10, y: 0 })
    }

    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(indices), Some(gy), Some(gx)) = (&x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        let output = gx.output;
        if let Place::Gpu(_) = gx.data.place() {
            let (p, at) = self.0.on_gpu(indices)?;
            return gather::scatter(&p, &at, &gy.data, &gx.data, output);
        }
        let at = self.0.offsets(indices)?;
        with_real!(run.dtype, T => {
            let gx = gx.slice::<T>();
            if output == Output::Write {
                gx.fill(0.0);
            }
            rows::scatter(gy.slice(), &at, self.0.size, gx, Output::Accumulate);
        });
        Ok(())
    }
}

/// Writes slices, or adds them if `add` says so.
pub struct ScatterNd {
    pub slices: Slices,
    pub add: bool,
    /// Whether there is an array that the result begins with.
    pub has_out: bool,
}

impl ScatterNd {
    fn forward_on_gpu(&self, x: &[View], y: &Data) -> Result<()> {
        ops::begin(y, x.get(2).map(|out| &out.data))?;
        let (p, at) = self.slices.on_gpu(&x[1])?;
        match self.add {
            true => gather::scatter(&p, &at, &x[0].data, y, Output::Accumulate),
            false => gather::put(&at, Some(&x[0].data), self.slices.size, y),
        }
    }

    fn backward_on_gpu(&self, indices: &View, gy: &View, gx: &[Option<GradMut>]) -> Result<()> {
        let (p, at) = self.slices.on_gpu(indices)?;
        let scratch = |n: usize| Data::new_at(gy.data.place(), gy.dtype(), n);
        if let Some(gx) = &gx[0] {
            let picked = if gx.output == Output::Write { gx.data.clone() } else { scratch(gx.data.len())? };
            gather::gather(&p, &at, &gy.data, &picked, OutOfRange::Zero)?;
            if gx.output == Output::Accumulate {
                ops::put(&gx.data, &picked, gx.output)?;
            }
        }
        let Some(Some(gout)) = gx.get(2) else { return Ok(()) };
        if self.add {
            return ops::put(&gout.data, &gy.data, gout.output);
        }
        let passed = if gout.output == Output::Write { gout.data.clone() } else { scratch(gy.data.len())? };
        ops::put(&passed, &gy.data, Output::Write)?;
        gather::put(&at, None, self.slices.size, &passed)?;
        if gout.output == Output::Accumulate { ops::put(&gout.data, &passed, gout.output) } else { Ok(()) }
    }
}

impl Call for ScatterNd {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.forward_on_gpu(x, &y[0].data);
        }
        let at = self.slices.offsets(&x[1])?; // before y is touched
        let output = if self.add { Output::Accumulate } else { Output::Write };
        ops::begin(&y[0].data, x.get(2).map(|out| &out.data))?;
        with_real!(run.dtype, T => rows::scatter(x[0].slice(), &at, self.slices.size, y[0].slice::<T>(), output));
        Ok(())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let at = self.slices.scratch();
        let (whole, part) = (self.slices.of.size(), self.slices.count * self.slices.size);
        let copies = if self.has_out { counted(whole * dtype.size()) + counted(part * dtype.size()) } else { 0 };
        [at, at + copies]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b10, y: 0 })
    }

    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(indices), Some(gy)) = (&x[1], &gy[0]) else { return Ok(()) };
        if let Place::Gpu(_) = gy.data.place() {
            return self.backward_on_gpu(indices, gy, gx);
        }
        let (at, n) = (self.slices.offsets(indices)?, self.slices.size);
        with_real!(run.dtype, T => {
            if let Some(gx) = &mut gx[0] {
                let output = gx.output;
                rows::gather(gy.slice::<T>(), &at, n, gx.slice(), output);
            }
            if let Some(Some(gout)) = gx.get_mut(2) {
                let mut passed = Scratch::of(gy.slice::<T>());
                if !self.add {
                    let zeros = Scratch::filled(at.len() * n, 0.0);
                    rows::scatter(&zeros, &at, n, &mut passed, Output::Write);
                }
                match gout.output {
                    Output::Write => gout.slice::<T>().copy_from_slice(&passed),
                    Output::Accumulate => simd::add_assign(gout.slice::<T>(), &passed),
                }
            }
        });
        Ok(())
    }
}
