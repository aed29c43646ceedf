//! `fft`, `ifft`: discrete Fourier transforms of complex signals.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::fft as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Discrete Fourier transform of complex numbers, `y[k] = sum over n of x[n] exp(-2 pi i k n / N)` over each of the last axes.
    FFT fft in Signal, any_device
    inputs { x: "N-D array; its last axis, of size 2, has real and imaginary part." }
    args {
        signal_ndim: i64, "How many axes before it are transformed, 1 or more.";
        normalized: bool = false, "Divide by the square root of the number of elements of a signal."
    }
    outputs { y: "N-D array of x's shape." }
}

function! {
    /// Inverse discrete Fourier transform of complex numbers, `y[n] = 1/N sum over k of x[k] exp(2 pi i k n / N)` over each of the
    /// last axes.
    IFFT ifft in Signal, any_device
    inputs { x: "N-D array; its last axis, of size 2, has real and imaginary part." }
    args {
        signal_ndim: i64, "How many axes before it are transformed, 1 or more.";
        normalized: bool = false, "Divide by the square root of the number of elements of a signal instead of by their number."
    }
    outputs { y: "N-D array of x's shape." }
}

/// Checks the shape; the call, with the factor by the number of elements of a signal.
fn transform(x: &Shape, axes: i64, inverse: bool, factor: impl Fn(f64) -> f64) -> Result<Resolved> {
    if x.last() != Some(&2) || x.ndim() < 2 {
        return Err(Error::shape("x", "a last axis of size 2, real and imaginary part, and axes before it").actual(x));
    }
    let most = x.ndim() - 1;
    let axes = usize::try_from(axes).ok().filter(|n| (1..=most).contains(n)).ok_or_else(|| {
        Error::arg("signal_ndim", format!("a number from 1 to {most}, the axes of x before the last")).actual(axes)
    })?;
    let (first, end) = (most - axes, most);
    let elements: f64 = x[first..end].iter().map(|&n| n as f64).product();
    let call = kernel::Fft::new(x.size_to(first), x[first..end].into(), inverse, factor(elements));
    Ok(Resolved::one(x.clone(), call))
}

/// The elements of a signal.
fn elements(x: &Shape, axes: i64) -> f64 {
    let end = x.ndim() - 1;
    x[end - axes as usize..end].iter().map(|&n| n as f64).product()
}

impl Function for FFT {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        transform(&x[0], self.signal_ndim, false, |n| if self.normalized { 1.0 / n.sqrt() } else { 1.0 })
    }

    /// The transpose, real and imaginary part apart, is the transform with the other sign.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let FFT { signal_ndim, normalized } = *self;
        let gx = ifft(&g.gy[0], IFFT { signal_ndim, normalized })?;
        if normalized {
            return Ok(vec![Some(gx)]);
        }
        let val = elements(&g.x[0].shape(), signal_ndim);
        Ok(vec![Some(f::mul_scalar(&gx, f::MulScalar { val, ..Default::default() })?)])
    }
}

impl Function for IFFT {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        transform(&x[0], self.signal_ndim, true, |n| if self.normalized { 1.0 / n.sqrt() } else { 1.0 / n })
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let IFFT { signal_ndim, normalized } = *self;
        let gx = fft(&g.gy[0], FFT { signal_ndim, normalized })?;
        if normalized {
            return Ok(vec![Some(gx)]);
        }
        let val = 1.0 / elements(&g.x[0].shape(), signal_ndim);
        Ok(vec![Some(f::mul_scalar(&gx, f::MulScalar { val, ..Default::default() })?)])
    }
}
