//! Poolings against plain loops in f64.

use super::{count, position};
use crate::common::{self, Check, given, input};
use nnrs::{Variable, functions as f};

/// A pooling's arguments, and the elements of each window with the number of its places.
struct Pool {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    pad: Vec<i64>,
    ignore_border: bool,
    last: bool,
}

impl Pool {
    fn windows(&self, x: &[usize]) -> Vec<(Vec<usize>, usize)> {
        let n = self.kernel.len();
        let first = x.len() - n - self.last as usize;
        let (size, inner) = (&x[first..first + n], if self.last { x[first + n] } else { 1 });
        let out: Vec<usize> = (0..n)
            .map(|i| {
                let (n, k, s, p) = (size[i] as i64, self.kernel[i], self.stride[i], self.pad[i]);
                if self.ignore_border { ((n + 2 * p - k) / s + 1) as usize } else { ((n + p + s - 1) / s) as usize }
            })
            .collect();
        let mut all = Vec::new();
        for o in 0..count(&x[..first]) * count(&out) * inner {
            let (c, at) = (o % inner, position(o / inner % count(&out), &out));
            let outer = o / inner / count(&out);
            let ranges: Vec<(i64, i64)> = (0..n)
                .map(|i| {
                    let from = at[i] as i64 * self.stride[i] - self.pad[i];
                    (from, (from + self.kernel[i]).min(size[i] as i64 + self.pad[i]))
                })
                .collect();
            let spans: Vec<usize> = ranges.iter().map(|r| (r.1 - r.0) as usize).collect();
            let mut places = Vec::new();
            for k in 0..count(&spans) {
                let t = position(k, &spans);
                let q: Vec<i64> = (0..n).map(|i| ranges[i].0 + t[i] as i64).collect();
                if q.iter().zip(size).all(|(&q, &n)| q >= 0 && q < n as i64) {
                    let p = q.iter().zip(size).fold(0, |s, (&q, &n)| s * n + q as usize);
                    places.push((outer * count(size) + p) * inner + c);
                }
            }
            all.push((places, count(&spans)));
        }
        all
    }

    fn check(&self, x: &[usize]) {
        let windows = self.windows(x);
        let (kernel, stride, pad) = (self.kernel.clone(), Some(self.stride.clone()), Some(self.pad.clone()));
        let (ignore_border, channel_last) = (self.ignore_border, self.last);
        let max = |d: &[Vec<f64>]| {
            vec![windows.iter().map(|(w, _)| w.iter().map(|&i| d[0][i]).fold(f64::NEG_INFINITY, f64::max)).collect()]
        };
        let args = f::MaxPooling { kernel, stride, ignore_border, pad, channel_last };
        let build = |v: &[Variable]| vec![f::max_pooling(&v[0], args.clone()).unwrap()];
        let spread = given(x, (0..count(x)).map(|i| (i * 37 % count(x)) as f64 * 0.25).collect());
        let inputs = vec![common::Input { differentiable: true, ..spread }];
        Check { name: "max", inputs, build: &build, reference: &max, second: true }.run();
        for kind in 0..3 {
            let reference = |d: &[Vec<f64>]| {
                let by = |w: &(Vec<usize>, usize)| [1, w.1, w.0.len()][kind] as f64;
                vec![windows.iter().map(|w| w.0.iter().map(|&i| d[0][i]).sum::<f64>() / by(w)).collect()]
            };
            let f::MaxPooling { kernel, stride, ignore_border, pad, channel_last } = args.clone();
            let sum = f::SumPooling { kernel, stride, ignore_border, pad, channel_last };
            let f::MaxPooling { kernel, stride, ignore_border, pad, channel_last } = args.clone();
            let including_pad = kind == 1;
            let mean = f::AveragePooling { kernel, stride, ignore_border, pad, channel_last, including_pad };
            let build = |v: &[Variable]| match kind {
                0 => vec![f::sum_pooling(&v[0], sum.clone()).unwrap()],
                _ => vec![f::average_pooling(&v[0], mean.clone()).unwrap()],
            };
            let inputs = vec![input(x, 5)];
            Check { name: "sum or average", inputs, build: &build, reference: &reference, second: true }.run();
        }
    }
}

#[test]
fn poolings_of_all_kinds() {
    for ignore_border in [true, false] {
        let pool = |kernel: &[i64], stride: &[i64], pad: &[i64], last| {
            let list = |v: &[i64]| v.to_vec();
            Pool { kernel: list(kernel), stride: list(stride), pad: list(pad), ignore_border, last }
        };
        pool(&[2, 2], &[2, 2], &[0, 0], false).check(&[2, 4, 5]);
        pool(&[3, 2], &[1, 2], &[1, 1], false).check(&[1, 2, 4, 3]);
        pool(&[2, 3], &[2, 1], &[0, 2], true).check(&[3, 4, 2]);
        pool(&[2, 1, 2], &[1, 1, 2], &[1, 0, 0], false).check(&[2, 3, 2, 4]);
        pool(&[2, 2], &[2, 2], &[0, 0], false).check(&[3, 3]);
        pool(&[4, 2], &[4, 2], &[0, 0], false).check(&[1, 2, 4]);
    }
}

#[test]
fn wrong_poolings_are_refused() {
    let fails = |x: &[usize], kernel: &[i64], stride: Option<&[i64]>, pad: Option<&[i64]>| {
        let (kernel, stride, pad) = (kernel.to_vec(), stride.map(<[i64]>::to_vec), pad.map(<[i64]>::to_vec));
        let args = f::MaxPooling { kernel, stride, pad, ..Default::default() };
        let e = f::max_pooling(&Variable::new(x), args).unwrap_err();
        assert!(matches!(e.kind(), nnrs::ErrorKind::Shape | nnrs::ErrorKind::Argument), "{e}");
    };
    let x = &[2, 3, 6, 4][..];
    fails(x, &[2], None, None);
    fails(x, &[2; 4], None, None);
    fails(&[6], &[2, 2], None, None);
    fails(x, &[2, 2], Some(&[1]), None);
    fails(x, &[2, 2], None, Some(&[1, 1, 1]));
    fails(x, &[0, 2], None, None);
    fails(x, &[-1, 2], None, None);
    fails(x, &[2, 2], Some(&[0, 1]), None);
    fails(x, &[2, 2], None, Some(&[2, 0]));
    fails(x, &[2, 2], None, Some(&[i64::MAX, 0]));
    fails(&[2, 3, 2, 2], &[4, 4], Some(&[1, 1]), None);
    fails(&[2, 3, 0, 2], &[2, 2], None, None);
}

#[test]
fn ties_and_infinities_of_max_pooling() {
    let x = Variable::from_slice(&[1.0f32; 4], [1, 2, 2].into()).unwrap().with_need_grad(true);
    let args = f::MaxPooling { kernel: vec![2, 2], ..Default::default() };
    let y = f::max_pooling(&x, args.clone()).unwrap();
    y.forward().unwrap();
    y.backward().unwrap();
    assert_eq!(common::numbers(&x.grad()), [1.0, 0.0, 0.0, 0.0]);
    let x = Variable::from_slice(&[f32::NEG_INFINITY; 4], [1, 2, 2].into()).unwrap();
    let y = f::max_pooling(&x, args).unwrap();
    y.forward().unwrap();
    assert_eq!(y.to_vec::<f64>().unwrap(), [f64::NEG_INFINITY]);
}

#[test]
fn global_averages() {
    for shape in [&[2, 3, 2, 2][..], &[2, 3, 4], &[2, 2, 2, 1, 3], &[2, 3]] {
        let n = count(&shape[2..]);
        let reference = |d: &[Vec<f64>]| vec![d[0].chunks(n).map(|c| c.iter().sum::<f64>() / n as f64).collect()];
        let build = |v: &[Variable]| vec![f::global_average_pooling(&v[0]).unwrap()];
        let inputs = vec![input(shape, 8)];
        Check { name: "global average", inputs, build: &build, reference: &reference, second: true }.run();
    }
    assert!(f::global_average_pooling(&Variable::new([3])).is_err());
}
