//! Convolutions, poolings and embed against plain loops in f64.

mod pooling;

use crate::common::{Check, given, input, noise};
use nnrs::{Variable, functions as f};

/// A convolution's sizes, with the channels first: batch, groups, channels, maps, then one number for each axis.
#[derive(Clone, Default)]
struct Conv {
    batch: usize,
    group: usize,
    channels: usize,
    maps: usize,
    size: Vec<usize>,
    kernel: Vec<usize>,
    stride: Vec<usize>,
    pad: Vec<usize>,
    dilation: Vec<usize>,
    last: bool,
}

fn count(s: &[usize]) -> usize {
    s.iter().product()
}

fn position(mut i: usize, s: &[usize]) -> Vec<usize> {
    let mut at: Vec<usize> = s.iter().rev().map(|&n| (i % n, i /= n).0).collect();
    at.reverse();
    at
}

impl Conv {
    fn of(size: &[usize], kernel: &[usize]) -> Conv {
        let n = size.len();
        let (size, kernel) = (size.to_vec(), kernel.to_vec());
        let (stride, pad, dilation) = (vec![1; n], vec![0; n], vec![1; n]);
        Conv { batch: 2, group: 1, channels: 2, maps: 3, size, kernel, stride, pad, dilation, last: false }
    }

    fn output(&self) -> Vec<usize> {
        let one = |i: usize| {
            (self.size[i] + 2 * self.pad[i] - self.dilation[i] * (self.kernel[i] - 1) - 1) / self.stride[i] + 1
        };
        (0..self.size.len()).map(one).collect()
    }

    fn place(&self, n: usize, c: usize, channels: usize, p: usize, points: usize) -> usize {
        if self.last { (n * points + p) * channels + c } else { (n * channels + c) * points + p }
    }

    fn shape(&self, n: usize, channels: usize, size: &[usize]) -> Vec<usize> {
        let mut s = vec![n];
        if !self.last {
            s.push(channels);
        }
        s.extend(size);
        if self.last {
            s.push(channels);
        }
        s
    }

    /// Calls f(x, w, y) with the places of every product.
    fn products(&self, mut f: impl FnMut(usize, usize, usize)) {
        let (out, each) = (self.output(), self.channels / self.group);
        for n in 0..self.batch {
            for o in 0..self.maps {
                for p in 0..count(&out) {
                    for k in 0..count(&self.kernel) {
                        let (q, t) = (position(p, &out), position(k, &self.kernel));
                        let at: Vec<isize> = (0..q.len())
                            .map(|i| (q[i] * self.stride[i] + t[i] * self.dilation[i]) as isize - self.pad[i] as isize)
                            .collect();
                        if at.iter().zip(&self.size).any(|(&a, &n)| a < 0 || a >= n as isize) {
                            continue;
                        }
                        let from = at.iter().zip(&self.size).fold(0, |s, (&a, &n)| s * n + a as usize);
                        for c in 0..each {
                            let ch = o / (self.maps / self.group) * each + c;
                            f(
                                self.place(n, ch, self.channels, from, count(&self.size)),
                                self.place(o, c, each, k, count(&self.kernel)),
                                self.place(n, o, self.maps, p, count(&out)),
                            );
                        }
                    }
                }
            }
        }
    }

    fn channel(&self, i: usize, channels: usize, points: usize) -> usize {
        if self.last { i % channels } else { i / points % channels }
    }

    fn check(&self, name: &str, second: bool) {
        self.check_convolution(name, second);
        self.check_deconvolution(name, second);
    }

    fn check_convolution(&self, name: &str, second: bool) {
        let ints = |v: &[usize]| Some(v.iter().map(|&n| n as i64).collect());
        let build = |v: &[Variable]| {
            let args = f::Convolution {
                base_axis: 1,
                pad: ints(&self.pad),
                stride: ints(&self.stride),
                dilation: ints(&self.dilation),
                group: self.group as i64,
                channel_last: self.last,
            };
            vec![f::convolution(&v[0], &v[1], v.get(2), args).unwrap()]
        };
        let (out, each) = (self.output(), self.channels / self.group);
        let reference = |d: &[Vec<f64>]| {
            let points = count(&out);
            let bias = |i: usize| d[2][self.channel(i, self.maps, points)];
            let mut y: Vec<f64> = (0..self.batch * self.maps * points).map(bias).collect();
            self.products(|i, k, o| y[o] += d[0][i] * d[1][k]);
            vec![y]
        };
        let w = self.shape(self.maps, each, &self.kernel);
        let x = self.shape(self.batch, self.channels, &self.size);
        let inputs = vec![input(&x, 1), input(&w, 2), input(&[self.maps], 3)];
        Check { name, inputs, build: &build, reference: &reference, second }.run();
    }

    fn check_deconvolution(&self, name: &str, second: bool) {
        let ints = |v: &[usize]| Some(v.iter().map(|&n| n as i64).collect());
        let out = self.output();
        let rest =
            |i: usize| (self.size[i] + 2 * self.pad[i] - self.dilation[i] * (self.kernel[i] - 1) - 1) % self.stride[i];
        let output_padding = Some((0..out.len()).map(|i| rest(i) as i64).collect::<Vec<i64>>());
        let build = |v: &[Variable]| {
            let args = f::Deconvolution {
                base_axis: 1,
                pad: ints(&self.pad),
                stride: ints(&self.stride),
                dilation: ints(&self.dilation),
                group: self.group as i64,
                channel_last: self.last,
                output_padding: output_padding.clone(),
            };
            vec![f::deconvolution(&v[0], &v[1], v.get(2), args).unwrap()]
        };
        let reference = |d: &[Vec<f64>]| {
            let points = count(&self.size);
            let bias = |i: usize| d[2][self.channel(i, self.channels, points)];
            let mut y: Vec<f64> = (0..self.batch * self.channels * points).map(bias).collect();
            self.products(|i, k, o| y[i] += d[0][o] * d[1][k]);
            vec![y]
        };
        let w = self.shape(self.maps, self.channels / self.group, &self.kernel);
        let x = self.shape(self.batch, self.maps, &out);
        let inputs = vec![input(&x, 4), input(&w, 5), input(&[self.channels], 6)];
        Check { name, inputs, build: &build, reference: &reference, second }.run();
    }
}

#[test]
fn convolutions_of_all_kinds() {
    for last in [false, true] {
        Conv { last, ..Conv::of(&[5], &[3]) }.check("1-D", true);
        let strides = Conv { stride: vec![2, 1], pad: vec![1, 2], dilation: vec![1, 2], ..Conv::of(&[5, 4], &[2, 3]) };
        Conv { last, ..strides }.check("2-D", true);
        let groups = Conv { group: 2, channels: 4, maps: 4, pad: vec![1, 0], ..Conv::of(&[3, 3], &[2, 2]) };
        Conv { last, ..groups }.check("groups", true);
        let three = Conv { stride: vec![1, 2, 1], pad: vec![1, 0, 0], ..Conv::of(&[3, 4, 2], &[2, 2, 1]) };
        Conv { last, batch: 1, ..three }.check("3-D", false);
        let four = Conv { stride: vec![2, 1, 1, 1], pad: vec![1, 0, 0, 0], ..Conv::of(&[3, 2, 2, 2], &[2, 1, 2, 2]) };
        Conv { last, batch: 1, ..four }.check("4-D", true);
        let grouped = Conv { group: 2, channels: 2, maps: 4, ..Conv::of(&[2, 2, 2, 3], &[1, 2, 1, 2]) };
        Conv { last, batch: 2, ..grouped }.check("4-D groups", false);
    }
}

#[test]
fn batch_axes_and_empty_batches() {
    let shapes = |x: &[usize], w: &[usize], base_axis| {
        let v = |s: &[usize]| Variable::from_slice(&noise(count(s), 3), s.into()).unwrap();
        let y = f::convolution(&v(x), &v(w), None, f::Convolution { base_axis, ..Default::default() }).unwrap();
        y.forward().unwrap();
        y.shape().to_vec()
    };
    assert_eq!(shapes(&[2, 2, 3, 5, 6], &[4, 3, 3, 2], 2), [2, 2, 4, 3, 5]);
    assert_eq!(shapes(&[3, 5, 6], &[4, 3, 3, 2], 0), [4, 3, 5]);
    assert_eq!(shapes(&[2, 3, 5, 6], &[4, 3, 3, 2], -3), [2, 4, 3, 5]);
    assert_eq!(shapes(&[0, 3, 5, 6], &[4, 3, 3, 2], 1), [0, 4, 3, 5]);
}

#[test]
fn wrong_convolutions_are_refused() {
    type Args = f::Convolution;
    let fails = |x: &[usize], w: &[usize], b: Option<&[usize]>, args: Args| {
        let v = |s: &[usize]| Variable::new(s);
        let e = f::convolution(&v(x), &v(w), b.map(v).as_ref(), args).unwrap_err();
        assert!(matches!(e.kind(), nnrs::ErrorKind::Shape | nnrs::ErrorKind::Argument), "{e}");
    };
    let (x, w) = (&[2, 4, 5, 6][..], &[6, 4, 3, 2][..]);
    let list = |v: &[i64]| Some(v.to_vec());
    fails(x, w, None, Args { pad: list(&[1]), ..Args::default() });
    fails(x, w, None, Args { pad: list(&[-1, 0]), ..Args::default() });
    fails(x, w, None, Args { pad: list(&[1 << 30, 1 << 30]), stride: list(&[1 << 29, 1 << 29]), ..Args::default() });
    fails(x, w, None, Args { pad: list(&[i64::MAX, 0]), ..Args::default() });
    fails(x, w, None, Args { stride: list(&[0, 1]), ..Args::default() });
    fails(x, w, None, Args { dilation: list(&[0, 1]), ..Args::default() });
    fails(x, w, None, Args { group: 0, ..Args::default() });
    fails(x, w, None, Args { base_axis: 4, ..Args::default() });
    fails(x, &[6, 3, 3, 2], None, Args::default());
    fails(x, &[6, 4, 3], None, Args::default());
    fails(x, &[5, 2, 3, 2], None, Args { group: 2, ..Args::default() });
    fails(x, w, Some(&[5]), Args::default());
    fails(x, w, Some(&[6, 1]), Args::default());
    fails(&[2, 4, 2, 6], w, None, Args::default());
    fails(&[2, 4], &[6, 4], None, Args::default());
    fails(&[2, 4, 0, 6], w, None, Args::default());
    let e = f::deconvolution(
        &Variable::new(x),
        &Variable::new([4, 6, 3, 2]),
        None,
        f::Deconvolution { stride: list(&[2, 2]), output_padding: list(&[2, 0]), ..Default::default() },
    );
    assert!(e.is_err());
}

#[test]
fn embedding() {
    for (indices, w) in
        [(vec![2.0, 2.0, 0.0, 2.0], &[3, 2][..]), (vec![1.0, 0.0, 1.7], &[3]), (vec![1.0, 0.0], &[2, 2, 2])]
    {
        let width = count(&w[1..]);
        let reference = |d: &[Vec<f64>]| {
            let row = |i: &f64| d[1][*i as usize * width..][..width].to_vec();
            vec![d[0].iter().flat_map(row).collect()]
        };
        let build = |v: &[Variable]| vec![f::embed(&v[0], &v[1]).unwrap()];
        let inputs = vec![given(&[indices.len()], indices), input(w, 3)];
        Check { name: "embed", inputs, build: &build, reference: &reference, second: true }.run();
    }
}

#[test]
fn embedding_in_many_parts() {
    let (rows, width, n) = (1000, 64, 3000);
    let index = |i: usize| (i * i * 31 + i * 7) % rows;
    let x = Variable::from_slice(&(0..n).map(|i| index(i) as i64).collect::<Vec<_>>(), [n].into()).unwrap();
    let w = Variable::from_slice(&noise(rows * width, 1), [rows, width].into()).unwrap().with_need_grad(true);
    let y = f::embed(&x, &w).unwrap();
    y.forward().unwrap();
    y.backward().unwrap();
    let (w0, got) = (w.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap());
    let mut counts = vec![0.0; rows];
    for i in 0..n {
        assert_eq!(got[i * width..][..width], w0[index(i) * width..][..width]);
        counts[index(i)] += 1.0;
    }
    let want: Vec<f64> = (0..rows * width).map(|i| counts[i / width]).collect();
    assert_eq!(crate::common::numbers(&w.grad()), want);
}

#[test]
fn indices_out_of_range_are_refused() {
    for bad in [-1i64, 3, i64::MAX, i64::MIN] {
        let x = Variable::from_slice(&[0, bad], [2].into()).unwrap();
        let e = f::embed(&x, &Variable::new([3, 2])).unwrap().forward().unwrap_err();
        assert_eq!(e.kind(), nnrs::ErrorKind::Argument);
    }
    assert!(f::embed(&Variable::new([1]), &Variable::new(&[][..])).is_err());
}
