//! Convolutions that finish their results, against the convolution, the scaling and the formula one after the other: bit by bit.

use super::{ChannelOrder, Conv, ConvolutionWeights, ForwardOperands};
use crate::array::{Data, Site};
use crate::dtype::Real;
use crate::expr::Formula;
use crate::expr::ssa::{Id, Ins, Ssa};
use crate::finish::{ChannelScaling, Finish, Finisher};
use crate::shape::Shape;
use crate::simd::SimdReal;
use crate::tile::{AnyProgram, Operands, Walk};
use crate::tuned;

fn noise<T: Real>(n: usize, seed: usize) -> Vec<T> {
    (0..n).map(|i| T::from_f64(((i * 7919 + seed * 104729) % 1009) as f64 / 500.0 - 1.0)).collect()
}

fn data<T: Real>(x: &[T]) -> Data {
    let data = Data::new(T::DTYPE, x.len()).unwrap();
    data.as_mut_slice().copy_from_slice(x);
    data
}

/// The result of a formula of the result, an array of its size, and one of a number for each channel.
struct ResultUnit<'a, T> {
    formula: &'a Formula,
    whole: &'a [T],
    of_channel: &'a [T],
}

impl<T: SimdReal> ResultUnit<'_, T> {
    fn program(&self) -> AnyProgram {
        let mut ssa = Ssa::default();
        let args: Vec<Id> = (0..3).map(|k| ssa.push(Ins::Input(k as u32))).collect();
        let out = self.formula.apply(&mut ssa, &args)[0].unwrap();
        AnyProgram::compile(Site::host(T::DTYPE), &ssa, 3, &[out])
    }

    fn operands(&self, c: &Conv, y: &Data) -> Operands {
        let [_, h, w] = c.output();
        let (whole, channels) = (Shape::from(&[c.batch, c.out_channels, h * w][..]), [c.out_channels, 1]);
        let mut operands = Operands::new(Site::host(T::DTYPE), y.len());
        operands.read(y.clone(), Walk::Dense).unwrap();
        operands.read(data(self.whole), Walk::Dense).unwrap();
        operands.read(data(self.of_channel), Walk::new(&Shape::from(&channels[..]), &whole)).unwrap();
        operands.write(y.clone()).unwrap();
        operands
    }
}

fn check<T: SimdReal>(c: &Conv, change: impl Fn(&mut [T])) {
    let (mut x, w) = (noise::<T>(c.input_len(), 1), noise::<T>(c.weight_len(), 2));
    change(&mut x);
    let (bias, whole) = (noise::<T>(c.out_channels, 3), noise::<T>(c.output_len(), 4));
    let of_channel = noise::<T>(c.out_channels, 5);
    let points = c.output().iter().product();
    let each = |i: usize| [0, 1, 2].map(|k| ((i * 31 + k * 17) % 19) as f64 / 9.0 - 1.0);
    let scaled = || ChannelScaling((0..c.out_channels).map(each).collect());
    let formula = Formula::new(3, |x| vec![Some((&x[0] + &x[1]).gt(&x[2]).select((&x[0] + &x[1]).exp(), &x[2]))]);
    let unit = ResultUnit { formula: &formula, whole: &whole, of_channel: &of_channel };
    let program = unit.program();
    for (has_scaling, has_unit) in [(true, false), (false, true), (true, true)] {
        let [want, got] = [(); 2].map(|()| data(&noise::<T>(c.output_len(), 6)));
        c.forward(&x, &w, Some(&bias), want.as_mut_slice());
        if has_scaling {
            let rows = want.as_mut_slice::<T>().chunks_exact_mut(points);
            for (row, [minus, times, plus]) in rows.zip(scaled().0.iter().cycle()) {
                let [minus, times, plus] = [minus, times, plus].map(|v| T::from_f64(*v));
                row.iter_mut().for_each(|v| *v = (*v - minus) * times + plus);
            }
        }
        if has_unit {
            unit.operands(c, &want).run(&program).unwrap();
        }
        let operands = unit.operands(c, &got);
        let scaling = has_scaling.then(scaled);
        let finish = Finish { scaling, program: has_unit.then_some((&program, &operands)) };
        let y = got.as_mut_slice::<T>();
        let finisher = Finisher::new(&finish, y, c.out_channels, points);
        let w = ConvolutionWeights { all: &w, array: None };
        c.forward_by(ForwardOperands { x: &x, w, bias: Some(&bias), finish: Some(&finisher) }, y);
        let same = |(a, b): (&T, &T)| {
            let [a, b] = [a, b].map(|v| v.to_f64());
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
        };
        assert!(want.as_slice().iter().zip(got.as_slice()).all(same), "{c:?}: {has_scaling}, {has_unit}");
    }
}

/// (batch, group, in, out, height and width, kernel, stride, pad)
type FinishCase = (usize, usize, usize, usize, [usize; 2], usize, usize, usize);

const CASES: [FinishCase; 16] = [
    (2, 1, 3, 33, [19, 23], 7, 2, 3),
    (3, 1, 32, 48, [14, 14], 3, 1, 1),
    (2, 1, 64, 33, [28, 29], 3, 1, 1),
    (1, 1, 32, 64, [57, 30], 3, 1, 0),
    (5, 1, 64, 70, [7, 7], 3, 1, 1),
    (2, 2, 64, 96, [9, 11], 3, 1, 1),
    (3, 1, 40, 72, [13, 10], 3, 2, 1),
    (2, 1, 600, 40, [9, 9], 3, 2, 1),
    (2, 1, 48, 64, [8, 9], 1, 1, 0),
    (2, 4, 48, 64, [5, 7], 1, 1, 0),
    (2, 1, 48, 64, [9, 9], 1, 2, 0),
    (2, 24, 24, 24, [30, 31], 3, 1, 1),
    (2, 24, 24, 48, [12, 9], 5, 2, 2),
    (3, 1, 16, 2, [20, 17], 3, 1, 1),
    (1, 1, 300, 40, [3, 3], 3, 1, 1),
    (1, 1, 8, 8, [120, 90], 3, 1, 1),
];

fn all(choice: &'static tuned::Tuning) {
    let _choice = tuned::ask(choice);
    for (batch, group, in_channels, out_channels, [h, w], k, s, p) in CASES {
        let c = Conv {
            batch,
            group,
            in_channels,
            out_channels,
            input: [1, h, w],
            kernel: [1, k, k],
            stride: [1, s, s],
            pad: [0, p, p],
            dilation: [1; 3],
            layout: ChannelOrder::ChannelFirst,
        };
        check::<f32>(&c, |_| {});
        // By the direct kernel after all, for this image.
        check::<f32>(&c, |x| x[x.len() / 2] = f32::INFINITY);
        check::<f64>(&c, |_| {});
    }
}

unit_test!(the_bits_are_those_of_one_after_the_other);
fn the_bits_are_those_of_one_after_the_other() {
    all(&tuned::ALWAYS);
    all(&tuned::NOWHERE);
}
