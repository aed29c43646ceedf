//! Arguments that all poolings share, and the internal functions that their gradients are.

use super::spatial::{numbers, three};
use super::{AveragePooling, MaxPoolingBackward, SumPooling};
use crate::function::{Function, Grad, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::pooling::{Border, Divisor, Pooling};
use nnrs_kernels::cuda;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

/// The arguments of a pooling.
pub(super) struct Spec<'a> {
    pub kernel: &'a [i64],
    pub stride: Option<&'a [i64]>,
    pub ignore_border: bool,
    pub pad: Option<&'a [i64]>,
    pub channel_last: bool,
}

/// The `Spec` of a function with the usual arguments.
macro_rules! spec {
    ($f:expr) => {
        $crate::function::layer::pooling::Spec {
            kernel: &$f.kernel,
            stride: $f.stride.as_deref(),
            ignore_border: $f.ignore_border,
            pad: $f.pad.as_deref(),
            channel_last: $f.channel_last,
        }
    };
}

/// The function of that name with the usual arguments as those of another one, and the further ones given.
macro_rules! alike {
    ($name:ident, $f:expr $(, $arg:ident: $value:expr)*) => {
        $name {
            kernel: $f.kernel.clone(),
            stride: $f.stride.clone(),
            ignore_border: $f.ignore_border,
            pad: $f.pad.clone(),
            channel_last: $f.channel_last,
            $($arg: $value,)*
        }
    };
}

/// The engine's side of a pooling that adds up its windows. `average`: whether it divides the sums; then `including_pad` says by what.
macro_rules! sums {
    ($name:ident, average: $average:literal, including_pad: |$f:ident| $including_pad:expr) => {
        impl Function for $name {
            fn infer(&self, x: &[Shape]) -> Result<Shapes> {
                Ok(smallvec![spec!(self).pooling(&x[0])?.1])
            }

            fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
                let ((p, _), $f) = (spec!(self).pooling(x[0].shape)?, self);
                ops::sum_pool(&p, &x[0].data, &y[0].data, divisor($average, $including_pad))
            }

            fn needs(&self, _want: &[bool]) -> Option<Needs> {
                Some(Needs::NONE)
            }

            fn backward(
                &self,
                _run: &Run,
                _x: &[Option<View>],
                _y: &[Option<View>],
                gy: &[Option<View>],
                gx: &mut [Option<GradMut>],
            ) -> Result<()> {
                let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
                let ((p, _), $f) = (spec!(self).pooling(gx.shape)?, self);
                ops::sum_pool_back(&p, &gy.data, &gx.data, divisor($average, $including_pad), gx.output)
            }

            fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
                let ($f, shape) = (self, g.x[0].shape().iter().map(|&n| n as i64).collect());
                let args = alike!(SumPoolingBackward, self, average: $average, including_pad: $including_pad, shape: shape);
                Ok(vec![Some(sum_pooling_backward(&g.gy[0], args)?)])
            }
        }
    };
}
pub(super) use {alike, spec, sums};

impl Spec<'_> {
    /// Sizes for the kernels, and the output's shape.
    pub fn pooling(&self, x: &Shape) -> Result<(Pooling, Shape)> {
        let n = self.kernel.len();
        if !(2..=3).contains(&n) {
            return Err(Error::arg("kernel", "2 or 3 numbers").actual(format!("{:?}", self.kernel)));
        }
        let channel = self.channel_last as usize;
        if x.ndim() < n + channel {
            return Err(Error::shape("x", format!("{} axes at least for a kernel of {n}", n + channel)).actual(x));
        }
        let first = x.ndim() - n - channel;
        let spatial = &x[first..first + n];
        let p = Pooling {
            outer: x.size_to(first),
            inner: if self.channel_last { x[first + n] } else { 1 },
            ..self.sizes(spatial)?
        };
        let out = p.output();
        let y: Shape = x[..first].iter().chain(&out[3 - n..]).chain(&x[first + n..]).copied().collect();
        Ok((p, y))
    }

    fn sizes(&self, spatial: &[usize]) -> Result<Pooling> {
        let kernel = numbers("kernel", Some(self.kernel), self.kernel, 1)?;
        let stride = numbers("stride", self.stride, self.kernel, 1)?;
        let pad = numbers("pad", self.pad, &vec![0; kernel.len()], 0)?;
        if kernel.iter().zip(&pad).any(|(k, p)| p >= k) {
            return Err(Error::arg("pad", format!("numbers below the kernel {:?}", self.kernel))
                .actual(format!("{:?}", &pad[..]))
                .hint("a wider padding makes windows with nothing in them"));
        }
        for i in 0..kernel.len() {
            // C's division, as NNabla's: a kernel larger than the image, by less than a stride, makes one output.
            let room = (spatial[i] + 2 * pad[i]) as i64 - kernel[i] as i64;
            if spatial[i] == 0 || (self.ignore_border && room <= -(stride[i] as i64)) {
                return Err(Error::shape("x", format!("spatial sizes that kernel {:?} fits", self.kernel))
                    .actual(format!("{spatial:?} with pad {:?} and stride {:?}", &pad[..], &stride[..])));
            }
        }
        let fitted: Vec<usize> = (0..kernel.len()).map(|i| kernel[i].min(spatial[i] + 2 * pad[i])).collect();
        Ok(Pooling {
            outer: 1,
            inner: 1,
            input: three(spatial, 1),
            kernel: three(&fitted, 1),
            stride: three(&stride, 1),
            pad: three(&pad, 0),
            border: if self.ignore_border { Border::Ignore } else { Border::Keep },
        })
    }
}

/// Checks that `gy` has the shape of the pooling's output.
pub(super) fn check_gradient(arg: &str, gy: &Shape, y: &Shape) -> Result<()> {
    match gy == y {
        true => Ok(()),
        false => Err(Error::shape(arg, format!("shape {y}, the result of the pooling")).actual(gy)),
    }
}

function! {
    /// The gradient of `sum_pooling` or `average_pooling`: each number goes to all places of its window.
    SumPoolingBackward sum_pooling_backward in Layer, any_device
    inputs { gy: "Gradient of the pooling's result." }
    args {
        kernel: Vec<i64>, "As the pooling's.";
        stride: Option<Vec<i64>> = None, "As the pooling's.";
        ignore_border: bool = true, "As the pooling's.";
        pad: Option<Vec<i64>> = None, "As the pooling's.";
        channel_last: bool = false, "As the pooling's.";
        average: bool = false, "Whether it is average_pooling's.";
        including_pad: bool = true, "As the pooling's.";
        shape: Vec<i64>, "Shape of x."
    }
    outputs { gx: "Gradient of x." }
}

impl SumPoolingBackward {
    fn shape(&self) -> Shape {
        self.shape.iter().map(|&n| n.max(0) as usize).collect()
    }
}

impl Function for SumPoolingBackward {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let (_, y) = spec!(self).pooling(&self.shape())?;
        check_gradient("gy", &x[0], &y)?;
        Ok(smallvec![self.shape()])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (p, _) = spec!(self).pooling(y[0].shape)?;
        let by = divisor(self.average, self.including_pad);
        ops::sum_pool_back(&p, &x[0].data, &y[0].data, by, Output::Write)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let y = match self.average {
            false => f::sum_pooling(&g.gy[0], alike!(SumPooling, self))?,
            true => f::average_pooling(&g.gy[0], alike!(AveragePooling, self, including_pad: self.including_pad))?,
        };
        Ok(vec![Some(y)])
    }
}

/// What the sums of a pooling are divided by.
pub(super) fn divisor(average: bool, including_pad: bool) -> Divisor {
    match (average, including_pad) {
        (false, _) => Divisor::One,
        (true, true) => Divisor::Padded,
        (true, false) => Divisor::Inside,
    }
}

function! {
    /// The numbers of `g` at the places where `x` has the maxima of the pooling's windows.
    MaxPoolingGather max_pooling_gather in Layer, any_device
    inputs { g: "N-D array of x's shape.", x: "N-D array that decides on the places." }
    args {
        kernel: Vec<i64>, "As max_pooling's.";
        stride: Option<Vec<i64>> = None, "As max_pooling's.";
        ignore_border: bool = true, "As max_pooling's.";
        pad: Option<Vec<i64>> = None, "As max_pooling's.";
        channel_last: bool = false, "As max_pooling's."
    }
    outputs { y: "N-D array of the pooling's shape." }
}

impl Function for MaxPoolingGather {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if x[0] != x[1] {
            return Err(Error::shape("g", format!("shape {}", x[1])).actual(&x[0]));
        }
        Ok(smallvec![spec!(self).pooling(&x[1])?.1])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (p, _) = spec!(self).pooling(x[1].shape)?;
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::pooling::max_gather(&p, &x[0].data, &x[1].data, &y[0].data);
        }
        with_real!(run.dtype, T => {
            let (g, x, y) = (x[0].slice::<T>(), x[1].slice::<T>(), y[0].slice::<T>());
            y.iter_mut().enumerate().for_each(|(i, y)| *y = g[largest(&p, x, i)]);
        });
        Ok(())
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(f::max_pooling_backward(&g.gy[0], &g.x[1], alike!(MaxPoolingBackward, self))?), None])
    }
}

/// The place of the first largest number of window `i`.
fn largest<T: nnrs_kernels::dtype::Real>(p: &Pooling, x: &[T], i: usize) -> usize {
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
    places.reduce(|best, v| if x[v] > x[best] { v } else { best }).unwrap_or(0)
}
