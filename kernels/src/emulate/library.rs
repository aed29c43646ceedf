//! NVIDIA's libraries as the emulated GPU has them: plain loops over what the calls say, in double precision.

use crate::cuda::vendor::{ConvolutionPass, MatrixLayout, VendorCall, VendorConvolution, VendorProduct};
use crate::dtype::{DType, Element};
use crate::with_dtype;
use smallvec::SmallVec;

/// Does a call.
///
/// # Safety
/// The arrays, in the call's order, have its sizes and types, in memory of the host.
pub(super) unsafe fn perform(call: &VendorCall, arrays: [u64; 3]) {
    // SAFETY: the caller's promise.
    unsafe {
        match call {
            VendorCall::Product(p) => product(p, arrays),
            VendorCall::Convolution(c) => convolution(c, arrays),
        }
    }
}

unsafe fn read(at: u64, dtype: DType, i: usize) -> f64 {
    // SAFETY: the caller's promise.
    with_dtype!(dtype, T => unsafe { (at as *const T).add(i).read().to_f64() })
}

unsafe fn write(at: u64, dtype: DType, i: usize, v: f64, accumulate: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let v = if accumulate { v + read(at, dtype, i) } else { v };
        with_dtype!(dtype, T => (at as *mut T).add(i).write(T::from_f64(v)))
    }
}

impl MatrixLayout {
    fn at(&self, batch: usize, row: usize, column: usize) -> usize {
        let (minor, major) = if self.transposed { (column, row) } else { (row, column) };
        batch * self.step + minor + major * self.lead
    }
}

unsafe fn product(p: &VendorProduct, [a, b, c]: [u64; 3]) {
    let [m, n, k] = p.sizes;
    for (at, layout) in [(a, p.a), (b, p.b), (c, p.c)] {
        assert_eq!(at % layout.alignment as u64, 0, "an array is aligned as the call says");
    }
    for batch in 0..p.batch {
        for i in 0..m {
            for j in 0..n {
                // SAFETY: the caller's promise.
                unsafe {
                    let term = |l| read(a, p.from, p.a.at(batch, i, l)) * read(b, p.from, p.b.at(batch, l, j));
                    let sum = (0..k).map(term).sum();
                    write(c, p.to, p.c.at(batch, i, j), sum, p.accumulate);
                }
            }
        }
    }
}

/// Numbers of all places of some sizes.
fn places(sizes: &[usize]) -> impl Iterator<Item = SmallVec<[usize; 3]>> + use<'_> {
    (0..sizes.iter().product()).map(move |mut i: usize| {
        let mut place: SmallVec<[usize; 3]> = sizes.iter().map(|_| 0).collect();
        for (p, n) in place.iter_mut().zip(sizes).rev() {
            (*p, i) = (i % n, i / n);
        }
        place
    })
}

/// Where an element of an array of batch, channels and spatial axes lies.
fn element(last: bool, channels: usize, sizes: &[usize], outer: usize, channel: usize, place: &[usize]) -> usize {
    let points: usize = sizes.iter().product();
    let point = place.iter().zip(sizes).fold(0, |at, (p, n)| at * n + p);
    match last {
        true => (outer * points + point) * channels + channel,
        false => (outer * channels + channel) * points + point,
    }
}

/// All products of a convolution, each added to the element of the result that it belongs to.
unsafe fn convolution(c: &VendorConvolution, arrays: [u64; 3]) {
    let (each_in, each_out) = (c.in_channels / c.group, c.out_channels / c.group);
    let points = |s: &[usize]| s.iter().product::<usize>();
    let size = match c.part {
        ConvolutionPass::Forward => c.batch * c.out_channels * points(&c.output),
        ConvolutionPass::Data => c.batch * c.in_channels * points(&c.input),
        ConvolutionPass::Weight => c.out_channels * each_in * points(&c.kernel),
    };
    let mut sums = vec![0.0; size];
    for (batch, map) in (0..c.batch).flat_map(|b| (0..c.out_channels).map(move |m| (b, m))) {
        for (to, tap) in places(&c.output).flat_map(|to| places(&c.kernel).map(move |tap| (to.clone(), tap))) {
            let from = |i: usize| (to[i] * c.stride[i] + tap[i] * c.dilation[i]).checked_sub(c.pad[i]);
            let from: Option<SmallVec<[usize; 3]>> =
                (0..to.len()).map(|i| from(i).filter(|&p| p < c.input[i])).collect();
            let Some(from) = from else { continue };
            let y = element(c.channel_last, c.out_channels, &c.output, batch, map, &to);
            for own in 0..each_in {
                let channel = map / each_out * each_in + own;
                let x = element(c.channel_last, c.in_channels, &c.input, batch, channel, &from);
                let w = element(c.channel_last, each_in, &c.kernel, map, own, &tap);
                let ([a, b], at) = match c.part {
                    ConvolutionPass::Forward => ([x, w], y),
                    ConvolutionPass::Data => ([y, w], x),
                    ConvolutionPass::Weight => ([x, y], w),
                };
                // SAFETY: the caller's promise.
                sums[at] += unsafe { read(arrays[0], c.dtype, a) * read(arrays[1], c.dtype, b) };
            }
        }
    }
    for (i, sum) in sums.into_iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { write(arrays[2], c.dtype, i, sum, c.accumulate) };
    }
}
