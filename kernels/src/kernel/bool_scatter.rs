//! Rows put where a mask is not zero, and the reverse.

use super::gather::Picks;
use super::ops;
use crate::array::scratch::{Scratch, counted};
use crate::array::{Output, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::gather::cuda::indices as device_indices;
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
use crate::kernel::gather::rows;
use crate::with_real;

/// `n` rows of `size` elements.
pub struct RowShape {
    pub n: usize,
    pub size: usize,
}

impl RowShape {
    /// Offsets of the rows where the mask is not zero; there must be `n` of them.
    fn chosen(&self, run: &Run, mask: &View) -> Result<Scratch<usize>> {
        let mut at = Scratch::filled(self.n, 0);
        let found = with_real!(run.dtype, T => {
            let (mask, mut found) = (mask.slice::<T>(), 0);
            for (i, _) in mask.iter().enumerate().filter(|(_, m)| **m != 0.0) {
                at.get_mut(found).into_iter().for_each(|at| *at = i * self.size);
                found += 1;
            }
            found
        });
        if found == self.n {
            return Ok(at);
        }
        let e =
            Error::arg("mask", format!("{} places that are not 0, as many as there are rows", self.n)).actual(found);
        Err(e.hint("rows are counted when the function is called: for other masks, call it again"))
    }

    /// Bytes of the offsets.
    fn scratch(&self) -> [usize; 2] {
        [counted(self.n * size_of::<usize>()); 2]
    }
}

/// Puts rows where the mask is not zero.
pub struct BoolScatter(pub RowShape);

impl Call for BoolScatter {
    /// On a GPU, where counting the places would make the host wait, rows without a place are left out, and places
    /// without a row are as where the mask is zero.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (&RowShape { n, size }, out) = (&self.0, x.get(2).map(|out| &out.data));
        if let Place::Gpu(_) = y[0].data.place() {
            ops::begin(&y[0].data, out)?;
            let at = device_indices::chosen(&x[1].data, n)?;
            return gather::put(&at, Some(&x[0].data), size, &y[0].data);
        }
        let at = self.0.chosen(run, &x[1])?;
        ops::begin(&y[0].data, out)?;
        with_real!(run.dtype, T => rows::scatter(x[0].slice(), &at, size, y[0].slice::<T>(), Output::Write));
        Ok(())
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        self.0.scratch()
    }
}

/// Takes the rows where the mask, which has `places` elements, is not zero.
pub struct BoolGather {
    pub rows: RowShape,
    pub places: usize,
}

impl Call for BoolGather {
    /// On a GPU rows without a place are NaN, and places beyond the number of rows are left out.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let RowShape { n, size } = self.rows;
        if let Place::Gpu(_) = y[0].data.place() {
            let at = device_indices::chosen(&x[1].data, n)?;
            let picks = Picks::rows(self.places, size, n);
            return gather::gather(&picks, &at, &x[0].data, &y[0].data, OutOfRange::Nan);
        }
        let at = self.rows.chosen(run, &x[1])?;
        with_real!(run.dtype, T => rows::gather(x[0].slice::<T>(), &at, size, y[0].slice(), Output::Write));
        Ok(())
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        self.rows.scratch()
    }
}
