//! Convolution and its gradients, by direct kernels over bands of an image: there is never a whole im2col.
//!
//! One-, two- and three-dimensional convolutions are all three-dimensional here, with leading axes of length one.
//! Every task grid and every order of summation follows from the sizes alone.

mod bias;
mod columns;
mod correlate;
mod depthwise;
mod few;
mod geometry;
pub(super) mod loops;
mod pack;
mod planes;
mod pointwise;
mod strided;
mod weight;

#[cfg(feature = "emulate")]
mod tests;
#[cfg(feature = "emulate")]
mod tests_finish;

use super::winograd::{self, WinogradSizes, WinogradWeight};
use crate::array::scratch;
use crate::array::{Data, Output};
use crate::dtype::Real;
use crate::finish::Finisher;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes;
use correlate::Correlate;
use depthwise::{Depthwise, Pass};
use geometry::Geometry;
use planes::DepthwisePlanes;
use std::cell::Cell;
use std::ops::Range;
use weight::GroupWeightGradient;

/// Elements of gradients that are copied at a time where one is written over another.
const OVER: usize = 1 << 18;

/// Where the channels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelOrder {
    /// x (N, C, D, H, W), w (OC, C / group, kernel).
    ChannelFirst,
    /// x (N, D, H, W, C), w (OC, kernel, C / group).
    ChannelLast,
}

/// Points of all images at most, for which weights are kept in the form that the kernel reads: for more that form is made in no time beside
/// the sums.
const KEPT: usize = 1 << 10;

/// The weights of a convolution, and the array that they are, if it may keep another form of them.
#[derive(Clone, Copy)]
pub struct ConvolutionWeights<'a, T> {
    pub all: &'a [T],
    pub array: Option<&'a Data>,
}

impl<'a, T: Real> ConvolutionWeights<'a, T> {
    pub fn of(array: &'a Data) -> ConvolutionWeights<'a, T> {
        ConvolutionWeights { all: array.as_slice(), array: Some(array) }
    }
}

/// What a forward pass reads, and what is to be done to its result.
#[derive(Clone, Copy)]
pub(crate) struct ForwardOperands<'a, T: 'static> {
    pub x: &'a [T],
    pub w: ConvolutionWeights<'a, T>,
    pub bias: Option<&'a [T]>,
    pub finish: Option<&'a Finisher<'a, T>>,
}

/// Sizes of a convolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conv {
    pub batch: usize,
    pub group: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub input: [usize; 3],
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub pad: [usize; 3],
    pub dilation: [usize; 3],
    pub layout: ChannelOrder,
}

impl Conv {
    /// Output sizes: `(in + 2 pad - dilation (kernel - 1) - 1) / stride + 1`, or 0 where the kernel does not fit.
    pub fn output(&self) -> [usize; 3] {
        std::array::from_fn(|i| {
            let window = self.dilation[i] * (self.kernel[i].max(1) - 1) + 1;
            let room = self.input[i] + 2 * self.pad[i];
            if room < window { 0 } else { (room - window) / self.stride[i] + 1 }
        })
    }

    pub fn input_len(&self) -> usize {
        self.batch * self.in_channels * self.input.iter().product::<usize>()
    }

    pub fn weight_len(&self) -> usize {
        self.out_channels * (self.in_channels / self.group) * self.kernel.iter().product::<usize>()
    }

    pub fn output_len(&self) -> usize {
        self.batch * self.out_channels * self.output().iter().product::<usize>()
    }

    /// The convolutions of `each` images at most, and their numbers in x and in y.
    fn in_parts(&self, each: usize) -> impl Iterator<Item = (Conv, Range<usize>, Range<usize>)> {
        let [read, made] = [self.input_len(), self.output_len()].map(|n| n / self.batch.max(1));
        (0..self.batch).step_by(each).map(move |first| {
            let batch = each.min(self.batch - first);
            let range = |n: usize| first * n..(first + batch) * n;
            (Conv { batch, ..self.clone() }, range(read), range(made))
        })
    }

    /// Bytes of the large buffers that forward works in, and backward for all gradients.
    pub fn scratch<T: Real>(&self) -> [usize; 2] {
        let (forward, bytes) = (Geometry::forward(self), Cell::new(0));
        if planes::suits(self) || Depthwise::<T>::suits(self) || forward.is_empty() {
            return [0; 2];
        }
        let correlate = |g: &Geometry| {
            lanes::dispatch::<T, _>(correlate::CorrelationScratch { g, bytes: &bytes });
            bytes.get()
        };
        let over = if self.goes_over() { self.images_over() * (self.output_len() / self.batch.max(1)) } else { 0 };
        let over = scratch::counted(over * size_of::<T>());
        if pointwise::suits(self) {
            return [0, pointwise::weight_scratch::<T>(self).max(over)];
        }
        let columns = |suits: bool| suits.then(|| columns::scratch::<T>(self));
        let [made, data, weight] =
            [columns::suits(self), columns::suits_data(self), columns::suits_weight(self)].map(columns);
        if strided::suits(self) {
            let [forward, backward] = strided::scratch::<T>(self);
            return [forward, backward.max(data.unwrap_or(0)).max(over)];
        }
        let each_phase = || Geometry::data(self).iter().filter(|g| !g.is_empty()).map(correlate).max().unwrap_or(0);
        let data = data.unwrap_or_else(each_phase) + over;
        lanes::dispatch::<T, _>(weight::WeightGradientScratch { g: &forward, bytes: &bytes });
        let direct_weight = weight.unwrap_or(bytes.get());
        let fast = |s: Option<WinogradSizes>| s.map_or(0, |s| s.scratch());
        let weight = WinogradSizes::weight(self).map_or(0, |s| s.weight_scratch());
        let backward = data.max(direct_weight).max(fast(WinogradSizes::data(self))).max(weight);
        let direct = made.unwrap_or_else(|| correlate(&Geometry::correlation(self)));
        [direct.max(fast(WinogradSizes::forward(self))), backward]
    }

    /// y = x * w + bias.
    pub fn forward<T: Real>(&self, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
        self.forward_by(ForwardOperands { x, w: ConvolutionWeights { all: w, array: None }, bias, finish: None }, y);
    }

    /// The same with weights that may be kept in another form, and what is to be done to y.
    pub(crate) fn forward_by<T: Real>(&self, o: ForwardOperands<T>, y: &mut [T]) {
        let ForwardOperands { x, w, bias, .. } = o;
        self.assert_sizes(x.len(), w.all.len(), y.len());
        assert!(bias.is_none_or(|b| b.len() == self.out_channels), "one bias for each output channel");
        let array = w.array.filter(|_| self.group == 1 && self.batch * self.output().iter().product::<usize>() <= KEPT);
        let o = ForwardOperands { w: ConvolutionWeights { array, ..w }, ..o };
        if !winograd::forward(self, o, y) {
            self.direct_forward(o, y);
        }
    }

    /// As [`Self::forward_by`], without transforms. The sizes have been checked.
    pub(super) fn direct_forward<T: Real>(&self, o: ForwardOperands<T>, y: &mut [T]) {
        let is_finished = self.direct_sums(o, y);
        if let Some(finish) = o.finish.filter(|_| !is_finished) {
            // SAFETY: `y` is some images of the result.
            unsafe { finish.images(y) }
        }
    }

    /// As above; whether the result is finished too.
    fn direct_sums<T: Real>(&self, ForwardOperands { x, w, bias, finish }: ForwardOperands<T>, y: &mut [T]) -> bool {
        let g = Geometry::correlation(self);
        let (from, with, to) = (SendPtr::of(x), SendPtr::of(w.all), SendPtr(y.as_mut_ptr()));
        if planes::suits(self) {
            // SAFETY: the sizes were checked.
            unsafe { DepthwisePlanes { c: self, pass: Pass::Forward, x: from, w: with, y: to, bias }.run() }
            return false;
        }
        if Depthwise::<T>::suits(self) {
            // SAFETY: the sizes were checked.
            unsafe { Depthwise { c: self, g: &g, pass: Pass::Forward, x: from, w: with, y: to, bias }.run() }
            return false;
        }
        if strided::suits(self) {
            strided::forward(self, x, w.all, bias, y);
            return false;
        }
        if pointwise::suits(self) {
            pointwise::forward(self, x, w.all, bias, y);
            return false;
        }
        if columns::suits(self) {
            columns::forward(self, x, w.all, bias, y);
            return false;
        }
        for i in 0..self.group {
            let bias = bias.map(|b| &b[i * g.lanes..(i + 1) * g.lanes]);
            let (x, taps) = (from.add(i * g.channels * g.x.channel), with.add(i * g.lanes * g.w.lane));
            let y = to.add(i * g.lanes * g.y.channel);
            // SAFETY: the sizes were checked.
            unsafe { Correlate { g: &g, x, w: taps, bias, y, output: Output::Write, weights: w.array, finish }.run() }
        }
        correlate::finishes(&g)
    }

    /// The gradient of x from that of y.
    pub fn backward_data<T: Real>(&self, gy: &[T], w: &[T], gx: &mut [T], output: Output) {
        self.assert_sizes(gx.len(), w.len(), gy.len());
        if output == Output::Accumulate || !winograd::data(self, gy, w, gx) {
            self.direct_data(gy, w, gx, output);
        }
    }

    /// As [`Self::backward_data`], without transforms. The sizes have been checked.
    pub(super) fn direct_data<T: Real>(&self, gy: &[T], w: &[T], gx: &mut [T], output: Output) {
        let is_plain = !planes::suits(self) && !Depthwise::<T>::suits(self) && !pointwise::suits(self);
        if is_plain && columns::suits_data(self) {
            return columns::data(self, gy, w, gx, output);
        }
        if is_plain && strided::suits(self) {
            return strided::data(self, gy, w, gx, output);
        }
        if pointwise::suits(self) {
            return pointwise::data(self, gy, w, gx, output);
        }
        let (gy, w, gx) = (SendPtr::of(gy), SendPtr::of(w), SendPtr(gx.as_mut_ptr()));
        if planes::suits(self) {
            // SAFETY: the sizes were checked.
            return unsafe { DepthwisePlanes { c: self, pass: Pass::Data(output), x: gx, w, y: gy, bias: None }.run() };
        }
        if Depthwise::<T>::suits(self) {
            let (g, pass) = (Geometry::forward(self), Pass::Data(output));
            // SAFETY: the sizes were checked.
            return unsafe { Depthwise { c: self, g: &g, pass, x: gx, w, y: gy, bias: None }.run() };
        }
        for g in Geometry::data(self) {
            for i in 0..self.group {
                let (x, y) = (gy.add(i * g.channels * g.x.channel), gx.add(i * g.lanes * g.y.channel));
                let w = w.add(i * g.channels * g.w.channel);
                // SAFETY: the sizes were checked.
                unsafe { Correlate { g: &g, x, w, bias: None, y, output, weights: None, finish: None }.run() }
            }
        }
    }

    /// The images whose gradients of y are copied at a time, so that those of x may take their place.
    fn images_over(&self) -> usize {
        (OVER / (self.output_len() / self.batch.max(1)).max(1)).clamp(1, self.batch.max(1))
    }

    /// Whether [`Self::backward_data_over`] can do it, by copies that are small beside what it saves.
    pub fn goes_over(&self) -> bool {
        self.input_len() == self.output_len() && self.images_over() * 4 <= self.batch && !winograd::data_suits(self)
    }

    /// As [`Self::backward_data`], with the gradient of y in the place of that of x, which has the same size.
    pub fn backward_data_over<T: Real>(&self, w: &[T], g: &mut [T]) {
        assert!(self.input_len() == g.len() && self.output_len() == g.len(), "x and y have one size");
        let image = (g.len() / self.batch.max(1)).max(1);
        for part in g.chunks_mut(image * self.images_over()) {
            let c = Conv { batch: part.len() / image, ..self.clone() };
            scratch::with(part.len(), |gy: &mut [T]| {
                gy.copy_from_slice(part);
                c.backward_data(gy, w, part, Output::Write);
            });
        }
    }

    /// The gradient of w from that of y.
    pub fn backward_weight<T: Real>(&self, gy: &[T], x: &[T], gw: &mut [T], output: Output) {
        self.assert_sizes(x.len(), gw.len(), gy.len());
        if gw.is_empty() {
            return;
        }
        let (g, all_x, all_gy, all_gw) = (Geometry::forward(self), x, gy, gw);
        let (x, gy, gw) = (SendPtr::of(all_x), SendPtr::of(all_gy), SendPtr(all_gw.as_mut_ptr()));
        if planes::suits(self) {
            // SAFETY: the sizes were checked.
            return unsafe {
                DepthwisePlanes { c: self, pass: Pass::Weight(output), x, w: gw, y: gy, bias: None }.run()
            };
        }
        if Depthwise::<T>::suits(self) {
            // SAFETY: the sizes were checked.
            return unsafe {
                Depthwise { c: self, g: &g, pass: Pass::Weight(output), x, w: gw, y: gy, bias: None }.run()
            };
        }
        if pointwise::suits(self) {
            return pointwise::weight(self, all_gy, all_x, all_gw, output);
        }
        if strided::suits(self) {
            return strided::weight(self, all_gy, all_x, all_gw, output);
        }
        let fast = winograd::weight::<T>(self);
        if fast.is_none() && columns::suits_weight(self) {
            return columns::weight(self, all_gy, all_x, all_gw, output);
        }
        for i in 0..self.group {
            let (x, gy) = (x.add(i * g.channels * g.x.channel), gy.add(i * g.lanes * g.y.channel));
            let gw = gw.add(i * g.lanes * g.w.lane);
            // SAFETY: the sizes were checked.
            unsafe {
                if !fast.is_some_and(|s| WinogradWeight { s, x, gy, gw, output }.run()) {
                    GroupWeightGradient { g: &g, x, gy, gw, output }.run();
                }
            }
        }
    }

    /// The gradient of the bias from that of y.
    pub fn backward_bias<T: Real>(&self, gy: &[T], gb: &mut [T], output: Output) {
        assert!(gy.len() == self.output_len() && gb.len() == self.out_channels, "the slices do not have the sizes");
        bias::gradient(self, gy, gb, output);
    }

    fn assert_sizes(&self, x: usize, w: usize, y: usize) {
        let want = (self.input_len(), self.weight_len(), self.output_len());
        assert!((x, w, y) == want, "sizes of x, w and y are {:?}, not {want:?}", (x, w, y));
        let divides = self.group > 0
            && self.in_channels.is_multiple_of(self.group)
            && self.out_channels.is_multiple_of(self.group);
        assert!(
            divides && self.stride.iter().chain(&self.dilation).all(|&s| s > 0),
            "group, stride or dilation is wrong"
        );
    }
}
