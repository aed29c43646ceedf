//! Few points and many weights, channels first: the product of the weights, as they lie, with the windows of an image as columns.
//! To turn the weights into panels would take longer than all their products.

use super::{ChannelOrder, Conv};
use crate::array::{Output, scratch};
use crate::dtype::Real;
use crate::gemm::{Mat, MatMut, matmul};
use crate::pool;
use crate::pool::tasks::SendPtr;

/// Points of all images, at most, and images: each is a product of its own.
const POINTS: usize = 1 << 8;
const IMAGES: usize = 4;
/// Weights, at least, and channels that are made.
const WEIGHTS: usize = 1 << 14;
const MADE: usize = 16;
/// Numbers of columns that are worth a task.
const TASK: usize = 1 << 15;

/// Whether a convolution is one of these.
pub(super) fn suits(c: &Conv) -> bool {
    let (each, made) = (c.in_channels / c.group, c.out_channels / c.group);
    let points = c.output().iter().product::<usize>();
    c.layout == ChannelOrder::ChannelFirst
        && c.batch <= IMAGES
        && (1..=POINTS).contains(&(c.batch * points))
        && made >= MADE
        && made * each * taps(c) >= WEIGHTS
}

fn taps(c: &Conv) -> usize {
    c.kernel.iter().product()
}

/// Bytes of the large buffers that the convolution works in.
pub(super) fn scratch<T: Real>(c: &Conv) -> usize {
    let points = c.output().iter().product::<usize>();
    scratch::counted(c.in_channels / c.group * taps(c) * points * size_of::<T>())
}

/// y = x * w + bias, of slices that have the sizes.
pub(super) fn forward<T: Real>(c: &Conv, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let points = c.output().iter().product::<usize>();
    let (each, made, image) = (c.in_channels / c.group, c.out_channels / c.group, c.input.iter().product::<usize>());
    let sums = each * taps(c);
    scratch::with(sums * points, |columns: &mut [T]| {
        for (i, y) in y.chunks_exact_mut(made * points).enumerate() {
            let (x, g) = (&x[i * each * image..][..each * image], i % c.group);
            lay(c, x, columns);
            let (w, columns) = (&w[g * made * sums..][..made * sums], &*columns);
            matmul(
                Mat::new(w, made, sums),
                Mat::new(columns, sums, points),
                MatMut::new(y, made, points),
                Output::Write,
            );
            for (y, b) in y.chunks_exact_mut(points).zip(bias.iter().flat_map(|b| &b[g * made..])) {
                y.iter_mut().for_each(|y| *y += *b);
            }
        }
    });
}

/// The windows of some channels: a row for each channel and tap, with a number for each point.
fn lay<T: Real>(c: &Conv, x: &[T], columns: &mut [T]) {
    let image = c.input.iter().product::<usize>();
    let each = columns.len() / (x.len() / image);
    let per = TASK.div_ceil(each);
    let to = SendPtr(columns.as_mut_ptr());
    pool::run((x.len() / image).div_ceil(per), &|t| {
        for (i, x) in x.chunks_exact(image).enumerate().skip(t * per).take(per) {
            // SAFETY: each channel has rows of its own.
            lay_channel(c, x, unsafe { std::slice::from_raw_parts_mut(to.add(i * each).0, each) });
        }
    });
}

fn lay_channel<T: Real>(c: &Conv, x: &[T], columns: &mut [T]) {
    let [_, kh, kw] = c.kernel;
    let [_, h, w] = c.input;
    let [od, oh, ow] = c.output();
    for (tap, row) in columns.chunks_exact_mut(od * oh * ow).enumerate() {
        let at = [tap / (kh * kw), tap / kw % kh, tap % kw];
        let source = |axis: usize, point: usize| {
            let from = (point * c.stride[axis] + at[axis] * c.dilation[axis]).checked_sub(c.pad[axis])?;
            (from < c.input[axis]).then_some(from)
        };
        // The points of a row that read inside the image.
        let first = (0..ow).find(|&p| source(2, p).is_some()).unwrap_or(ow);
        let count = (first..ow).take_while(|&p| source(2, p).is_some()).count();
        let column = source(2, first).unwrap_or(0);
        for (p, line) in row.chunks_exact_mut(ow).enumerate() {
            let (Some(z), Some(y)) = (source(0, p / oh), source(1, p % oh)) else {
                line.fill(T::ZERO);
                continue;
            };
            line[..first].fill(T::ZERO);
            line[first + count..].fill(T::ZERO);
            let from = (z * h + y) * w + column;
            let inside = &mut line[first..first + count];
            match c.stride[2] {
                1 => inside.copy_from_slice(&x[from..from + count]),
                step => inside.iter_mut().zip(x[from..].iter().step_by(step)).for_each(|(to, v)| *to = *v),
            }
        }
    }
}
