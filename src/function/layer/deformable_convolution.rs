//! `deformable_convolution`: a convolution whose kernel's elements read where an array says. Its parts are functions of their own, so
//! that there are gradients of any order: images read at the places of a kernel, and the transpose.

use super::spatial::{check_bias, list, spec};
use crate::function::array::{List, Unslice, unslice};
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::deformable_convolution as kernel;
use nnrs_kernels::kernel::warp::{Padding, Warp, WarpGather, WarpScatter, WarpWindow};
use nnrs_kernels::shape::Shape;

function! {
    /// Convolution of images whose kernels read each element at a distance from its usual place, between elements linearly (Dai et
    /// al., Deformable Convolutional Networks, 2017), and times a mask (Zhu et al., Deformable ConvNets v2, 2018).
    DeformableConvolution deformable_convolution in Layer, any_device
    inputs {
        x: "Images of shape (N, C, H, W); (N, H, W, C) if channel_last.",
        weight: "Kernels of shape (O, C / group, kernel..); (O, kernel.., C / group) if channel_last.",
        offset: "Distances in elements of shape (N, deformable_group 2 kernel elements, H, W), vertical and horizontal by turns; (N, H, W, ..) if channel_last. Those of a window are where it begins if there is no padding, at p * stride.",
        mask [optional]: "Factors of shape (N, deformable_group kernel elements, H, W); (N, H, W, ..) if channel_last.",
        bias [optional]: "Bias of shape (O,).",
    }
    args {
        base_axis: i64 = 1, "Axis of the channels: 1.";
        pad: Option<Vec<i64>> = None, "Zeros on both ends of each spatial axis; None: no padding.";
        stride: Option<Vec<i64>> = None, "Distance of windows on each spatial axis; None: 1.";
        dilation: Option<Vec<i64>> = None, "Distance of a kernel's elements on each spatial axis; None: 1.";
        group: i64 = 1, "Number of groups of channels that are convolved apart.";
        deformable_group: i64 = 1, "Number of groups of channels with distances of their own.";
        channel_last: bool = false, "Whether the channels are the last axis."
    }
    outputs { y: "Images of shape (N, O, new H, new W); channels last if channel_last." }
}

function! {
    /// What a deformable convolution multiplies with its weight: images read for each element of a kernel, differentiated between
    /// their elements.
    DeformableColumns deformable_columns in Special, any_device
    inputs { x: "Images.", offset: "Distances.", mask [optional]: "Factors." }
    args {
        kernel: List, "Sizes.";
        pad: List, "As of `deformable_convolution`.";
        stride: List, "As of `deformable_convolution`.";
        dilation: List, "As of `deformable_convolution`.";
        order: List, "How often along height and width."
    }
    outputs { y: "Images of shape (N, C, kernel elements, new H, new W)." }
}

function! {
    /// Adds each element of `deformable_columns` to those that it was read from: its derivative.
    DeformableSpread deformable_spread in Special, any_device
    inputs { gy: "Gradient of the columns.", offset: "Distances.", mask [optional]: "Factors." }
    args {
        kernel: List, "As of `deformable_columns`.";
        pad: List, "As of `deformable_columns`.";
        stride: List, "As of `deformable_columns`.";
        dilation: List, "As of `deformable_columns`.";
        order: List, "As of `deformable_columns`."
    }
    outputs { gx: "Gradient of the images." }
}

impl DeformableConvolution {
    fn sizes(&self, x: &[Shape]) -> Result<kernel::DeformableConvolution> {
        let base = if self.base_axis < 0 { self.base_axis.saturating_add(x[0].ndim() as i64) } else { self.base_axis };
        if x[0].ndim() != 4 {
            return Err(Error::shape("x", "shape (N, C, H, W)").actual(&x[0]));
        }
        if base != 1 {
            return Err(Error::arg("base_axis", "1").actual(self.base_axis));
        }
        let sizes = spec!(self).convolution(&x[0], &x[1])?;
        let groups = match usize::try_from(self.deformable_group) {
            Ok(d) if d > 0 && sizes.in_channels.is_multiple_of(d) => d,
            _ => {
                let expected = format!("a divisor of the {} channels of x", sizes.in_channels);
                return Err(Error::arg("deformable_group", expected).actual(self.deformable_group));
            }
        };
        let beyond = |i: usize| (sizes.output[i] - 1) * sizes.stride[i] >= sizes.input[i];
        if beyond(0) || beyond(1) {
            return Err(Error::arg("pad", "windows that are as many as there are distances in offset, or fewer")
                .actual(format!("{:?}", &sizes.pad[..]))
                .hint("pad at most half of the kernel's extent"));
        }
        let mask = (x.len() > 4 || x.get(3).is_some_and(|m| m.ndim() != 1)).then_some(3);
        let bias = (x.len() > 3 + mask.iter().len()).then_some(x.len() - 1);
        Ok(kernel::DeformableConvolution { sizes, deformable_group: groups, mask, bias })
    }

    /// Checks an array with numbers for each element of the kernels and of an image.
    fn check(&self, name: &str, s: &Shape, x: &Shape, channels: usize) -> Result<()> {
        let expected: Shape = match self.channel_last {
            true => [x[0], x[1], x[2], channels].into(),
            false => [x[0], channels, x[2], x[3]].into(),
        };
        let expect = || Error::shape(name, format!("shape {expected}")).actual(s);
        if *s == expected { Ok(()) } else { Err(expect()) }
    }
}

impl Function for DeformableConvolution {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let call = self.sizes(x)?;
        let planes = call.deformable_group * call.taps();
        self.check("offset", &x[2], &x[0], 2 * planes)?;
        call.mask.map_or(Ok(()), |m| self.check("mask", &x[m], &x[0], planes))?;
        check_bias(call.bias.map(|b| &x[b]), call.sizes.out_channels)?;
        Ok(Resolved::one(call.sizes.output_shape().checked()?, call))
    }

    fn input_name(&self, i: usize) -> &'static str {
        // One that is alone may be either: its shape says which.
        ["x", "weight", "offset", "mask", "bias"].get(i).copied().unwrap_or("bias")
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let s = &call_of::<kernel::DeformableConvolution>(call).sizes;
        let (pad, stride, dilation) = (list(&s.pad), list(&s.stride), list(&s.dilation));
        DeformableConvolution { pad, stride, dilation, ..self.clone() }.arguments()
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        ConvolutionGradient::new(g)?.all()
    }
}

/// The gradients of a deformable convolution, with channels first.
struct ConvolutionGradient<'a> {
    g: &'a Grad,
    call: &'a kernel::DeformableConvolution,
    gather: DeformableColumns,
    /// Groups of a sample are samples.
    offset: Variable,
    mask: Option<Variable>,
}

fn reshaped(v: &Variable, shape: &[usize]) -> Result<Variable> {
    f::reshape(v, f::Reshape::to(&shape.into()))
}

impl<'a> ConvolutionGradient<'a> {
    fn new(g: &'a Grad) -> Result<Self> {
        let call = g.call::<kernel::DeformableConvolution>();
        let s = &call.sizes;
        let gather = DeformableColumns {
            kernel: s.kernel[..].into(),
            pad: s.pad[..].into(),
            stride: s.stride[..].into(),
            dilation: s.dilation[..].into(),
            order: vec![0; 2].into(),
        };
        let groups = |v: &Variable, planes: usize| {
            let shape = [s.batch * call.deformable_group, planes, s.input[0], s.input[1]];
            reshaped(&Self::first(call, v)?, &shape)
        };
        let offset = groups(&g.x[2], 2 * call.taps())?;
        let mask = call.mask.map(|m| groups(&g.x[m], call.taps())).transpose()?;
        Ok(ConvolutionGradient { g, call, gather, offset, mask })
    }

    /// With channels first.
    fn first(call: &kernel::DeformableConvolution, v: &Variable) -> Result<Variable> {
        if call.sizes.channel_last { f::transpose(v, f::Transpose::by(&[0, 3, 1, 2])) } else { Ok(v.clone()) }
    }

    /// As the function's input number `i` is.
    fn back(&self, v: &Variable, i: usize) -> Result<Option<Variable>> {
        let mut shape = self.g.x[i].shape().to_vec();
        if !self.call.sizes.channel_last {
            return reshaped(v, &shape).map(Some);
        }
        shape[1..].rotate_right(1);
        f::transpose(&reshaped(v, &shape)?, f::Transpose::by(&[0, 2, 3, 1])).map(Some)
    }

    fn x(&self) -> Result<Variable> {
        let (s, groups) = (&self.call.sizes, self.call.deformable_group);
        let shape = [s.batch * groups, s.in_channels / groups, s.input[0], s.input[1]];
        reshaped(&Self::first(self.call, &self.g.x[0])?, &shape)
    }

    fn gy(&self) -> Result<Variable> {
        let s = &self.call.sizes;
        let shape = [s.batch, s.group, s.out_channels / s.group, self.call.points()];
        reshaped(&Self::first(self.call, &self.g.gy[0])?, &shape)
    }

    /// The gradient of the columns.
    fn columns(&self) -> Result<Variable> {
        let (s, groups) = (&self.call.sizes, self.call.deformable_group);
        let inner = s.in_channels / s.group * self.call.taps();
        let w = Self::first(self.call, &self.g.x[1])?;
        let w = reshaped(&w, &[1, s.group, s.out_channels / s.group, inner])?;
        let product = f::batch_matmul(&w, &self.gy()?, f::BatchMatmul { transpose_a: true, transpose_b: false })?;
        let channels = s.in_channels / groups;
        reshaped(&product, &[s.batch * groups, channels, self.call.taps(), s.output[0], s.output[1]])
    }

    fn weight(&self) -> Result<Option<Variable>> {
        let s = &self.call.sizes;
        let columns = self.gather.of(&self.x()?, &self.offset, self.mask.as_ref())?;
        let inner = s.in_channels / s.group * self.call.taps();
        let columns = reshaped(&columns, &[s.batch, s.group, inner, self.call.points()])?;
        let products =
            f::batch_matmul(&self.gy()?, &columns, f::BatchMatmul { transpose_a: false, transpose_b: true })?;
        self.back(&f::sum(&products, f::Sum { axis: Some(vec![0]), keepdims: false })?, 1)
    }

    fn all(&self) -> Result<Vec<Option<Variable>>> {
        let (g, call) = (self.g, self.call);
        let want = |i: Option<usize>| i.is_some_and(|i| g.want[i]);
        let reads = g.want[0] || g.want[2] || want(call.mask);
        let columns = if reads { Some(self.columns()?) } else { None };
        let mut grads = vec![None; g.x.len()];
        if let Some(columns) = &columns {
            let parts = [g.want[0], g.want[2], want(call.mask)];
            let [gx, offset, mask] =
                self.gather.gradients(parts, &self.x()?, &self.offset, self.mask.as_ref(), columns)?;
            grads[0] = gx.map(|v| self.back(&v, 0)).transpose()?.flatten();
            grads[2] = offset.map(|v| self.back(&v, 2)).transpose()?.flatten();
            if let Some(m) = call.mask {
                grads[m] = mask.map(|v| self.back(&v, m)).transpose()?.flatten();
            }
        }
        grads[1] = if g.want[1] { self.weight()? } else { None };
        if let Some(b) = call.bias.filter(|&b| g.want[b]) {
            let channel = if call.sizes.channel_last { 3 } else { 1 };
            let axis = Some((0..4).filter(|&a| a != channel).collect());
            grads[b] = Some(f::sum(&g.gy[0], f::Sum { axis, keepdims: false })?);
        }
        Ok(grads)
    }
}

impl DeformableColumns {
    /// How images of shape `x` are read, at distances of shape `offset`.
    fn warp(&self, x: &Shape, offset: &Shape) -> Result<Warp> {
        let pair = |name: &str, v: &List, least: i64| match *v.0.as_slice() {
            [a, b] if a >= least && b >= least => Ok([a as usize, b as usize]),
            _ => Err(Error::arg(name, format!("two numbers from {least} on")).actual(format!("{:?}", v.0))),
        };
        let (kernel, order) = (pair("kernel", &self.kernel, 1)?, pair("order", &self.order, 0)?);
        let (pad, stride) = (pair("pad", &self.pad, 0)?, pair("stride", &self.stride, 1)?);
        let dilation = pair("dilation", &self.dilation, 1)?;
        let taps = kernel[0] * kernel[1];
        if x.ndim() != 4 || x[2..].contains(&0) || offset[..] != [x[0], 2 * taps, x[2], x[3]] {
            return Err(Error::shape("offset", format!("shape (N, {}, H, W) as of x {x}", 2 * taps)).actual(offset));
        }
        let size = |i: usize| {
            let room = (x[2 + i] + 2 * pad[i]).checked_sub(dilation[i] * (kernel[i] - 1) + 1);
            room.map(|room| room / stride[i] + 1).filter(|n| (n - 1) * stride[i] < x[2 + i])
        };
        let (Some(height), Some(width)) = (size(0), size(1)) else {
            return Err(Error::arg("pad", "windows that fit the images").actual(format!("{pad:?}")));
        };
        Ok(Warp {
            batch: x[0],
            channels: x[1],
            channel_last: false,
            from: [1, x[2], x[3]],
            to: [taps, height, width],
            dims: 2,
            flow: true,
            window: Some(WarpWindow { columns: kernel[1], stride, pad, dilation }),
            nearest: false,
            padding: Padding::Zero,
            corners: false,
            order: [0, order[0].min(2) as u8, order[1].min(2) as u8],
        })
    }

    fn columns(&self, x: &Shape, rest: &[Shape]) -> Result<(Warp, Shape)> {
        let warp = self.warp(x, &rest[0])?;
        let [taps, height, width] = warp.to;
        if let Some(m) = rest.get(1).filter(|m| m[..] != [x[0], taps, x[2], x[3]]) {
            return Err(Error::shape("mask", format!("shape ({}, {taps}, {}, {})", x[0], x[2], x[3])).actual(m));
        }
        let y = Shape::from([x[0], x[1], taps, height, width]);
        Ok((warp, y.checked()?))
    }

    fn of(&self, x: &Variable, offset: &Variable, mask: Option<&Variable>) -> Result<Variable> {
        deformable_columns(x, offset, mask, self.clone())
    }

    fn spread(&self) -> DeformableSpread {
        let DeformableColumns { kernel, pad, stride, dilation, order } = self.clone();
        DeformableSpread { kernel, pad, stride, dilation, order }
    }

    /// Numbers for each place as numbers for each element of an image: zeros where none is read.
    fn strided(&self, v: &Variable, image: [usize; 2]) -> Result<Variable> {
        let s = v.shape();
        if s[s.ndim() - 2..] == image {
            return Ok(v.clone());
        }
        let shape: Vec<usize> = s[..s.ndim() - 2].iter().copied().chain(image).collect();
        let stop = |i: usize| (s[s.ndim() - 2 + i] as i64 - 1) * self.stride[i] + 1;
        let lists = [vec![0; 2], vec![stop(0), stop(1)], self.stride.0.clone()].map(|l| Some(List(l)));
        let [start, stop, step] = lists;
        unslice(v, Unslice { shape: shape[..].into(), start, stop, step })
    }

    /// The gradients of images, distances and factors, as far as they are wanted, of the sum of columns times `gy`.
    fn gradients(
        &self,
        want: [bool; 3],
        x: &Variable,
        offset: &Variable,
        mask: Option<&Variable>,
        gy: &Variable,
    ) -> Result<[Option<Variable>; 3]> {
        let s = x.shape();
        let image = [s[2], s[3]];
        let summed = |v: &Variable| {
            let product = f::mul2(gy, v, f::Mul2::default())?;
            f::sum(&product, f::Sum { axis: Some(vec![1]), keepdims: false })
        };
        let gx = want[0].then(|| deformable_spread(gy, offset, mask, self.spread())).transpose()?;
        let by_mask = || self.strided(&summed(&self.of(x, offset, None)?)?, image);
        let by_offset = || {
            let along = |axis: usize| {
                let mut order = self.order.clone();
                order.0[axis] += 1;
                summed(&DeformableColumns { order, ..self.clone() }.of(x, offset, mask)?)
            };
            let both = f::stack(&[&along(0)?, &along(1)?], f::Stack { axis: 2 })?;
            reshaped(&self.strided(&both, image)?, &offset.shape())
        };
        Ok([gx, want[1].then(by_offset).transpose()?, (want[2] && mask.is_some()).then(by_mask).transpose()?])
    }
}

impl Function for DeformableColumns {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (warp, y) = self.columns(&x[0], &x[1..])?;
        Ok(Resolved::one(y, WarpGather(warp)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let want = [g.want[0], g.want[1], g.want.get(2).is_some_and(|&w| w)];
        let grads = self.gradients(want, &g.x[0], &g.x[1], g.x.get(2), &g.gy[0])?;
        Ok(grads.into_iter().take(g.x.len()).collect())
    }
}

impl DeformableSpread {
    fn columns(&self) -> DeformableColumns {
        let DeformableSpread { kernel, pad, stride, dilation, order } = self.clone();
        DeformableColumns { kernel, pad, stride, dilation, order }
    }
}

impl Function for DeformableSpread {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0].ndim() != 5 || x[1].ndim() != 4 {
            return Err(Error::shape("gy", "5 axes").actual(&x[0]));
        }
        let images: Shape = [x[0][0], x[0][1], x[1][2], x[1][3]].into();
        let (warp, y) = self.columns().columns(&images, &x[1..])?;
        match y == x[0] {
            true => Ok(Resolved::one(images, WarpScatter(warp))),
            false => Err(Error::shape("gy", format!("shape {y}")).actual(&x[0])),
        }
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (gy, offset, mask, back) = (&g.x[0], &g.x[1], g.x.get(2), &g.gy[0]);
        let columns = self.columns();
        let by_gy = g.want[0].then(|| columns.of(back, offset, mask)).transpose()?;
        let want = [false, g.want[1], g.want.get(2).is_some_and(|&w| w)];
        let [_, by_offset, by_mask] = columns.gradients(want, back, offset, mask, gy)?;
        Ok([by_gy, by_offset, by_mask].into_iter().take(g.x.len()).collect())
    }
}
