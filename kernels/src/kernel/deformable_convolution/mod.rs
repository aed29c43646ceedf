//! Convolutions whose kernels read each element at a place of its own: the images are read as `warp` reads them, one sample at a
//! time, and multiplied with the weight. Any device: the parts know theirs.

use super::convolution::ConvolutionSizes;
use super::matmul::{Matrix, matmul};
use super::moves::Moves;
use super::ops;
use super::warp::{Padding, Warp, WarpWindow};
use crate::array::{Data, Output};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;

/// All sizes. Images are two-dimensional.
pub struct DeformableConvolution {
    pub sizes: ConvolutionSizes,
    /// Groups of channels with distances of their own.
    pub deformable_group: usize,
    /// Numbers of the inputs mask and bias, where they are there.
    pub mask: Option<usize>,
    pub bias: Option<usize>,
}

impl DeformableConvolution {
    pub fn taps(&self) -> usize {
        self.sizes.kernel.iter().product()
    }

    /// Places of the kernel in an image.
    pub fn points(&self) -> usize {
        self.sizes.output.iter().product()
    }

    /// Elements of a channel of x.
    fn image(&self) -> usize {
        self.sizes.input.iter().product()
    }

    /// How `samples` images are read, the groups of a sample as images of their own.
    pub fn warp(&self, samples: usize) -> Warp {
        let s = &self.sizes;
        let pair = |d: &[usize]| [d[0], d[1]];
        Warp {
            batch: samples * self.deformable_group,
            channels: s.in_channels / self.deformable_group,
            channel_last: false,
            from: [1, s.input[0], s.input[1]],
            to: [self.taps(), s.output[0], s.output[1]],
            dims: 2,
            flow: true,
            window: Some(WarpWindow {
                columns: s.kernel[1],
                stride: pair(&s.stride),
                pad: pair(&s.pad),
                dilation: pair(&s.dilation),
            }),
            nearest: false,
            padding: Padding::Zero,
            corners: false,
            order: [0; 3],
        }
    }

    /// Bytes of what is read for a sample.
    fn columns(&self) -> usize {
        self.sizes.in_channels * self.taps() * self.points()
    }

    /// Convolves images whose channels come first.
    fn convolve(&self, [x, w, offset]: [&Data; 3], mask: Option<&Data>, y: &Data, output: Output) -> Result<()> {
        let (s, taps, points) = (&self.sizes, self.taps(), self.points());
        let columns = Data::new_at(y.place(), y.dtype(), self.columns())?;
        let (inner, maps) = (s.in_channels / s.group * taps, s.out_channels / s.group);
        let warp = self.warp(1);
        let of = |data: &Data, n: usize| data.within(n * (data.len() / s.batch), data.len() / s.batch);
        for n in 0..s.batch {
            let mask = mask.map(|m| of(m, n));
            warp.gather(&of(x, n), &of(offset, n), mask.as_ref(), &columns)?;
            let (w, columns) = (Matrix::new(w, maps, inner).each(), Matrix::new(&columns, inner, points).each());
            matmul(s.group, w, columns, &of(y, n), output)?;
        }
        Ok(())
    }

    /// What an array with its channels last, of `points` elements a channel, is with its channels first.
    fn first(&self, data: &Data, batch: usize, points: usize) -> Result<Data> {
        let to = Data::new_at(data.place(), data.dtype(), data.len())?;
        ops::moves(swap(batch, data.len() / (batch * points).max(1), points).reversed(), &to, data, Output::Write)?;
        Ok(to)
    }
}

/// Puts channels last.
fn swap(batch: usize, channels: usize, points: usize) -> Moves {
    let size = (channels * points) as isize;
    let moves = Moves::new(0, 0).axis(batch, size, size);
    moves.axis(points, channels as isize, 1).axis(channels, 1, points as isize)
}

impl Call for DeformableConvolution {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (s, y) = (&self.sizes, &y[0].data);
        if y.is_empty() {
            return Ok(());
        }
        let mut given: Vec<Data> = x.iter().map(|x| x.data.clone()).collect();
        if s.channel_last {
            for i in [Some(0), Some(1), Some(2), self.mask].into_iter().flatten() {
                let (batch, points) = if i == 1 { (s.out_channels, self.taps()) } else { (s.batch, self.image()) };
                given[i] = self.first(&given[i], batch, points)?;
            }
        }
        let own = if s.channel_last { Data::new_at(y.place(), y.dtype(), y.len())? } else { y.clone() };
        if let Some(b) = self.bias {
            let shape = [s.batch, s.out_channels, self.points()];
            ops::broadcast(&given[b], &Shape::from([1, shape[1], 1]), &own, &shape.into(), Output::Write)?;
        }
        let output = if self.bias.is_some() { Output::Accumulate } else { Output::Write };
        self.convolve([&given[0], &given[1], &given[2]], self.mask.map(|m| &given[m]), &own, output)?;
        if s.channel_last {
            ops::moves(swap(s.batch, s.out_channels, self.points()), y, &own, Output::Write)?;
        }
        Ok(())
    }

    fn multiplications(&self) -> f64 {
        self.sizes.batch as f64 * self.columns() as f64 * (self.sizes.out_channels / self.sizes.group) as f64
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.columns() * dtype.size() + self.warp(1).scratch(dtype), 0]
    }
}
