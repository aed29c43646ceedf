//! Arguments that all poolings share, and the internal functions that their gradients are.

use super::spatial::numbers;
use super::{AveragePooling, MaxPoolingBackward, SumPooling};
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::convolution::three;
use nnrs_kernels::kernel::pooling as kernel;
use nnrs_kernels::kernel::pooling::cpu::{Border, Divisor, Pooling};
use nnrs_kernels::shape::Shape;

/// The arguments of a pooling.
pub(super) struct PoolingArguments<'a> {
    pub kernel: &'a [i64],
    pub stride: Option<&'a [i64]>,
    pub ignore_border: bool,
    pub pad: Option<&'a [i64]>,
    pub channel_last: bool,
}

/// The `PoolingArguments` of a function with the usual arguments.
macro_rules! spec {
    ($f:expr) => {
        $crate::function::layer::pooling::PoolingArguments {
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
pub(super) use {alike, spec};

impl PoolingArguments<'_> {
    /// By default windows lie side by side.
    fn stride(&self) -> &[i64] {
        self.stride.unwrap_or(self.kernel)
    }

    fn pad(&self) -> Vec<i64> {
        self.pad.map_or_else(|| vec![0; self.kernel.len()], <[i64]>::to_vec)
    }

    /// The arguments of `f`, which these are, with strides and padding for each axis.
    pub fn used(&self, f: &dyn Described) -> Vec<(&'static str, ArgValue)> {
        let filled = |(name, v)| match (name, v) {
            ("stride", ArgValue::None) => (name, ArgValue::Ints(self.stride().to_vec())),
            ("pad", ArgValue::None) => (name, ArgValue::Ints(self.pad())),
            (_, v) => (name, v),
        };
        f.arguments().into_iter().map(filled).collect()
    }

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
        let stride = numbers("stride", Some(self.stride()), self.kernel, 1)?;
        let pad = numbers("pad", Some(&self.pad()), self.kernel, 0)?;
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

impl Function for SumPoolingBackward {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let shape: Shape = self.shape.iter().map(|&n| n.max(0) as usize).collect();
        let (pooling, y) = spec!(self).pooling(&shape)?;
        check_gradient("gy", &x[0], &y)?;
        let by = divisor(self.average, self.including_pad);
        Ok(Resolved::one(shape, kernel::SumPoolingBackward(kernel::SumPooling { pooling, by })))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        spec!(self).used(self)
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
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0] != x[1] {
            return Err(Error::shape("g", format!("shape {}", x[1])).actual(&x[0]));
        }
        let (pooling, y) = spec!(self).pooling(&x[1])?;
        Ok(Resolved::one(y, kernel::MaxPoolingGather(pooling)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        spec!(self).used(self)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(f::max_pooling_backward(&g.gy[0], &g.x[1], alike!(MaxPoolingBackward, self))?), None])
    }
}
