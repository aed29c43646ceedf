//! Poolings: sums, means and largest numbers of windows, and their gradients.

pub mod cpu;
mod cuda;

use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::{DType, Real};
use crate::error::{Error, Result};
use crate::with_real;
use cpu::{Divisor, Pooling};

/// The sum of each window, over the divisor.
pub struct SumPooling {
    pub pooling: Pooling,
    pub by: Divisor,
}

impl SumPooling {
    /// Each gradient, over the divisor, to all places of its window.
    fn back(&self, gy: &Data, gx: &Data, output: Output) -> Result<()> {
        let (p, by) = (&self.pooling, self.by);
        match gx.place() {
            Place::Gpu(_) => cuda::sum_backward(p, gy, gx, by, output)?,
            Place::Host => {
                with_real!(gx.dtype(), T => p.sum_backward(gy.as_slice::<T>(), gx.as_mut_slice(), by, output))
            }
        }
        Ok(())
    }
}

impl Call for SumPooling {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (p, by) = (&self.pooling, self.by);
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::sum_forward(p, &x[0].data, &y[0].data, by);
        }
        with_real!(run.dtype, T => p.sum_forward(x[0].slice::<T>(), y[0].slice(), by));
        Ok(())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [0, self.pooling.rows(dtype.size())]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        self.back(&gy.data, &gx.data, gx.output)
    }
}

/// The gradient of a `SumPooling` as a function of its own.
pub struct SumPoolingBackward(pub SumPooling);

impl Call for SumPoolingBackward {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.back(&x[0].data, &y[0].data, Output::Write)
    }
}

/// The largest number of each window.
pub struct MaxPooling(pub Pooling);

/// Where a forward pass has found the maxima, in numbers of [`Pooling::place_type`].
struct WindowArgmax(Data);

impl Call for MaxPooling {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let p = &self.0;
        if !run.keep {
            if let Place::Gpu(_) = y[0].data.place() {
                return cuda::max_forward(p, &x[0].data, &y[0].data);
            }
            with_real!(run.dtype, T => p.max_forward(x[0].slice::<T>(), y[0].slice()));
            return Ok(());
        }
        let places = Data::new(p.place_type()?, p.output_len())?;
        with_real!(run.dtype, T => match places.dtype() {
            DType::U8 => p.max_forward_keeping(x[0].slice::<T>(), y[0].slice(), places.as_mut_slice::<u8>()),
            DType::U16 => p.max_forward_keeping(x[0].slice::<T>(), y[0].slice(), places.as_mut_slice::<u16>()),
            _ => p.max_forward_keeping(x[0].slice::<T>(), y[0].slice(), places.as_mut_slice::<u32>()),
        });
        run.save(WindowArgmax(places));
        Ok(())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.0.rows(size_of::<u32>()).max(self.0.turned_bands(dtype.size())), 0]
    }

    fn saves(&self, _dtype: DType) -> Option<usize> {
        Some(self.0.output_len() * self.0.place_type().ok()?.size())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let (p, output) = (&self.0, gx.output);
        if let (Place::Gpu(_), Some(x)) = (gx.data.place(), &x[0]) {
            return cuda::max_backward(p, &gy.data, &x.data, &gx.data, output);
        }
        let saved = run.saved::<WindowArgmax>().ok_or_else(no_forward)?;
        with_real!(run.dtype, T => match saved.0.dtype() {
            DType::U8 => p.max_backward_to(gy.slice::<T>(), saved.0.as_slice::<u8>(), gx.slice(), output),
            DType::U16 => p.max_backward_to(gy.slice::<T>(), saved.0.as_slice::<u16>(), gx.slice(), output),
            _ => p.max_backward_to(gy.slice::<T>(), saved.0.as_slice::<u32>(), gx.slice(), output),
        });
        Ok(())
    }
}

fn no_forward() -> Error {
    Error::graph("the places of the maxima are missing").hint("call forward() before backward()")
}

/// Each gradient to the place of its window's largest number in x.
pub struct MaxPoolingBackward(pub Pooling);

impl Call for MaxPoolingBackward {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::max_backward(&self.0, &x[0].data, &x[1].data, &y[0].data, Output::Write);
        }
        with_real!(run.dtype, T => {
            self.0.max_backward(x[0].slice::<T>(), x[1].slice(), y[0].slice(), Output::Write)
        });
        Ok(())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.0.rows(dtype.size()) + self.0.rows(size_of::<u32>()), 0]
    }
}

/// The numbers of the first input at the places where the second one has the largest ones of the windows.
pub struct MaxPoolingGather(pub Pooling);

impl Call for MaxPoolingGather {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::max_gather(&self.0, &x[0].data, &x[1].data, &y[0].data);
        }
        with_real!(run.dtype, T => {
            let (g, x, y) = (x[0].slice::<T>(), x[1].slice::<T>(), y[0].slice::<T>());
            y.iter_mut().enumerate().for_each(|(i, y)| *y = g[largest(&self.0, x, i)]);
        });
        Ok(())
    }
}

/// The place of the first largest number of window `i`.
fn largest<T: Real>(p: &Pooling, x: &[T], i: usize) -> usize {
    let (out, c) = (p.output(), i % p.inner);
    let (o, plane) = (i / p.inner, i / p.inner / out.iter().product::<usize>());
    let at = [o / out[2] / out[1] % out[0], o / out[2] % out[1], o % out[2]];
    let range = |a: usize| {
        let from = at[a] * p.stride[a];
        from.saturating_sub(p.pad[a])..(from + p.kernel[a]).saturating_sub(p.pad[a]).min(p.input[a])
    };
    let place =
        |d: usize, h: usize, w: usize| (((plane * p.input[0] + d) * p.input[1] + h) * p.input[2] + w) * p.inner + c;
    let rows = range(0).flat_map(|d| range(1).map(move |h| (d, h)));
    let places = rows.flat_map(|(d, h)| range(2).map(move |w| (d, h, w))).map(|(d, h, w)| place(d, h, w));
    places.reduce(|best, v| if cpu::wins(x[v], x[best]) { v } else { best }).unwrap_or(0)
}
