//! Rows put where a mask is not zero, and the reverse.

mod cpu;

use super::gather::Picks;
use super::ops;
use crate::array::scratch::counted;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::gather::cuda::indices as device_indices;
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
use crate::simd::SimdReal;
use crate::with_real;
use cpu::Chosen;

/// `n` rows of `size` elements, of the `places` that a mask has.
pub struct RowShape {
    pub n: usize,
    pub size: usize,
    pub places: usize,
}

impl RowShape {
    /// The places where the mask is not zero; there must be `n` of them.
    fn chosen<'a, T: SimdReal>(&self, mask: &'a Data) -> Result<Chosen<'a, T>> {
        let found = Chosen::new(mask.as_slice(), self.size);
        if found.count() == self.n {
            return Ok(found);
        }
        let expected = format!("{} places that are not 0, as many as there are rows", self.n);
        let e = Error::arg("mask", expected).actual(found.count());
        Err(e.hint("rows are counted when the function is called: for other masks, call it again"))
    }

    fn picks(&self) -> Picks {
        Picks::rows(self.places, self.size, self.n)
    }

    /// Takes rows of `x`. On a GPU, where counting the places would make the host wait, rows without a place are `absent`,
    /// and places beyond the number of rows are left out.
    fn take(&self, mask: &Data, x: &Data, y: &Data, absent: OutOfRange, output: Output) -> Result<()> {
        match (y.place(), output) {
            (Place::Host, _) => with_real!(y.dtype(), T => {
                self.chosen::<T>(mask)?.gather(x.as_slice(), y.as_mut_slice(), output);
                Ok(())
            }),
            (Place::Gpu(_), Output::Write) => {
                gather::gather(&self.picks(), &device_indices::chosen(mask, self.n)?, x, y, absent)
            }
            (place, Output::Accumulate) => {
                let taken = Data::new_at(place, x.dtype(), y.len())?;
                self.take(mask, x, &taken, absent, Output::Write)?;
                ops::put(y, &taken, output)
            }
        }
    }

    /// Adds rows of `x` where the mask is not zero, or writes them and zeros elsewhere. On a GPU as above.
    fn put_back(&self, mask: &Data, x: &Data, y: &Data, output: Output) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            return gather::scatter(&self.picks(), &device_indices::chosen(mask, self.n)?, x, y, output);
        }
        with_real!(y.dtype(), T => {
            let chosen = self.chosen::<T>(mask)?;
            if output == Output::Write {
                ops::fill(y, 0.0)?;
            }
            chosen.scatter(x.as_slice(), y.as_mut_slice(), output);
        });
        Ok(())
    }

    /// Bytes of the counts.
    fn scratch(&self) -> [usize; 2] {
        [counted((self.places.div_ceil(cpu::chunk(self.size)) + 1) * size_of::<usize>()); 2]
    }
}

/// The mask is the second input.
const MASK: Needs = Needs { x: 1 << 1, y: 0 };

/// Puts rows where the mask is not zero.
pub struct BoolScatter(pub RowShape);

impl Call for BoolScatter {
    /// On a GPU, where counting the places would make the host wait, rows without a place are left out, and places
    /// without a row are as where the mask is zero.
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (y, out) = (&y[0].data, x.get(2).map(|out| &out.data));
        if let Place::Gpu(_) = y.place() {
            ops::begin(y, out)?;
            let at = device_indices::chosen(&x[1].data, self.0.n)?;
            return gather::put(&at, Some(&x[0].data), self.0.size, y);
        }
        with_real!(y.dtype(), T => {
            let chosen = self.0.chosen::<T>(&x[1].data)?;
            ops::begin(y, out)?;
            chosen.scatter(x[0].slice(), y.as_mut_slice(), Output::Write);
        });
        Ok(())
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        self.0.scratch()
    }

    /// The gradient of what the result is elsewhere is left to the rule.
    fn needs(&self, want: &[bool]) -> Option<Needs> {
        (!want.get(2).is_some_and(|want| *want)).then_some(MASK)
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(mask), Some(gx)) = (&x[1], &gx[0]) else { return Ok(()) };
        match &gy[0] {
            Some(gy) => self.0.take(&mask.data, &gy.data, &gx.data, OutOfRange::Nan, gx.output),
            None => no_gradient(&gx.data, gx.output),
        }
    }
}

fn no_gradient(gx: &Data, output: Output) -> Result<()> {
    if output == Output::Write { ops::fill(gx, 0.0) } else { Ok(()) }
}

/// Takes the rows where the mask is not zero.
pub struct BoolGather(pub RowShape);

impl Call for BoolGather {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.take(&x[1].data, &x[0].data, &y[0].data, OutOfRange::Nan, Output::Write)
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        self.0.scratch()
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(MASK)
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(mask), Some(gx)) = (&x[1], &gx[0]) else { return Ok(()) };
        match &gy[0] {
            Some(gy) => self.0.put_back(&mask.data, &gy.data, &gx.data, gx.output),
            None => no_gradient(&gx.data, gx.output),
        }
    }
}
