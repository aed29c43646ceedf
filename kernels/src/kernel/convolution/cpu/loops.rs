//! Convolutions over four or more spatial axes: plain loops, for the few who need them.

use crate::array::Output;
use crate::dtype::Real;
use crate::kernel::convolution::ConvolutionSizes;
use crate::pool::Pace;
use smallvec::SmallVec;

type At = SmallVec<[usize; 6]>;

/// Calls `f(input, weight, output)` with the places of every product.
pub fn each_product(s: &ConvolutionSizes, mut f: impl FnMut(usize, usize, usize)) {
    let (each_in, each_out) = (s.in_channels / s.group, s.out_channels / s.group);
    let count = |d: &[usize]| d.iter().product::<usize>();
    let (inputs, outputs, taps) = (count(&s.input), count(&s.output), count(&s.kernel));
    let place = |n: usize, c: usize, channels: usize, p: usize, points: usize| match s.channel_last {
        true => (n * points + p) * channels + c,
        false => (n * channels + c) * points + p,
    };
    let mut pace = Pace::new();
    for p in 0..outputs {
        for k in 0..taps {
            pace.step(8); // the places
            let Some(from) = source(s, &position(p, &s.output), &position(k, &s.kernel)) else { continue };
            for n in 0..s.batch {
                pace.step(s.out_channels * each_in);
                for o in 0..s.out_channels {
                    let y = place(n, o, s.out_channels, p, outputs);
                    for c in 0..each_in {
                        let x = place(n, o / each_out * each_in + c, s.in_channels, from, inputs);
                        f(x, place(o, c, each_in, k, taps), y);
                    }
                }
            }
        }
    }
}

/// What sums start from.
pub fn start<T: Real>(sums: &mut [T], output: Output) {
    if output == Output::Write {
        sums.fill(T::ZERO);
    }
}

fn position(mut i: usize, sizes: &[usize]) -> At {
    let mut at: At = sizes.iter().rev().map(|&n| (i % n, i /= n).0).collect();
    at.reverse();
    at
}

/// The place in the input that tap `k` of output point `p` reads; none in the padding.
fn source(s: &ConvolutionSizes, p: &At, k: &At) -> Option<usize> {
    (0..p.len()).try_fold(0, |place, i| {
        let at = (p[i] * s.stride[i] + k[i] * s.dilation[i]).checked_sub(s.pad[i])?;
        (at < s.input[i]).then(|| place * s.input[i] + at)
    })
}
