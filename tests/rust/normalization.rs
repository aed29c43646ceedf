//! Batch and layer normalization against their formulas in f64.

use crate::common::{Check, Input, given, input, noise};
use nnrs::{ErrorKind, Variable, functions as f};

/// Sizes at the axes that are kept (or not), otherwise 1.
fn part(x: &[usize], axes: &[usize], kept: bool) -> Vec<usize> {
    x.iter().enumerate().map(|(i, &n)| if axes.contains(&i) == kept { n } else { 1 }).collect()
}

fn count(s: &[usize]) -> usize {
    s.iter().product()
}

/// The place in an array of sizes `to` (some of them 1) that element `i` of one of sizes `from` broadcasts with.
fn place(mut i: usize, from: &[usize], to: &[usize]) -> usize {
    let (mut at, mut stride) = (0, 1);
    for (&n, &m) in from.iter().zip(to).rev() {
        at += if m == 1 { 0 } else { i % n * stride };
        i /= n;
        stride *= m;
    }
    at
}

/// Means of `x` of sizes `from` over the axes where `to` has 1.
fn means(x: impl Fn(usize) -> f64, from: &[usize], to: &[usize]) -> Vec<f64> {
    let mut m = vec![0.0; count(to)];
    let n = (count(from) / count(to)) as f64;
    (0..count(from)).for_each(|i| m[place(i, from, to)] += x(i) / n);
    m
}

/// Output, mean and variance. `given`: the statistics to use instead of x's own.
fn normalized(
    x: &[f64],
    shape: &[usize],
    statistic: &[usize],
    scale: &[usize],
    gamma: Option<&[f64]>,
    beta: Option<&[f64]>,
    eps: f64,
    given: Option<(&[f64], &[f64])>,
) -> Vec<Vec<f64>> {
    let at = |i: usize| place(i, shape, statistic);
    let mut mean = means(|i| x[i], shape, statistic);
    let mut variance = means(|i| (x[i] - mean[at(i)]).powi(2), shape, statistic);
    if let Some((m, v)) = given {
        (mean, variance) = (m.to_vec(), v.to_vec());
    }
    let y = |i: usize| {
        let s = place(i, shape, scale);
        let norm = (x[i] - mean[at(i)]) / (variance[at(i)] + eps).sqrt();
        norm * gamma.map_or(1.0, |g| g[s]) + beta.map_or(0.0, |b| b[s])
    };
    vec![(0..x.len()).map(y).collect(), mean.clone(), variance.clone()]
}

struct Batch<'a> {
    shape: &'a [usize],
    axes: &'a [usize],
    no_scale: bool,
    no_bias: bool,
    batch_stat: bool,
    output_stat: bool,
    running: bool,
}

impl Default for Batch<'_> {
    fn default() -> Self {
        let (no_scale, no_bias, batch_stat, output_stat, running) = (false, false, true, false, true);
        Batch { shape: &[4, 3], axes: &[1], no_scale, no_bias, batch_stat, output_stat, running }
    }
}

impl Batch<'_> {
    fn check(&self) {
        let s = part(self.shape, self.axes, true);
        let mut inputs = vec![input(self.shape, 1)];
        if !self.no_bias {
            inputs.push(input(&s, 2));
        }
        if !self.no_scale {
            inputs.push(input(&s, 3));
        }
        let first = inputs.len();
        if self.running {
            inputs.push(given(&s, noise(count(&s), 4)));
            inputs.push(given(&s, noise(count(&s), 5).iter().map(|v| v * v + 0.5).collect()));
        }
        let args = f::BatchNormalization {
            axes: self.axes.iter().map(|&a| a as i64).collect(),
            eps: 0.01,
            batch_stat: self.batch_stat,
            no_scale: self.no_scale,
            no_bias: self.no_bias,
            output_stat: self.output_stat,
            ..Default::default()
        };
        let build = |v: &[Variable]| {
            let all: Vec<&Variable> = v.iter().collect();
            nnrs::function::call(args.clone(), &all).unwrap()
        };
        let reference = |d: &[Vec<f64>]| {
            let beta = (!self.no_bias).then(|| &d[1][..]);
            let gamma = (!self.no_scale).then(|| &d[first - 1][..]);
            let given = (!self.batch_stat).then(|| (&d[first][..], &d[first + 1][..]));
            let mut y = normalized(&d[0], self.shape, &s, &s, gamma, beta, 0.01, given);
            y.truncate(if self.output_stat { 3 } else { 1 });
            y
        };
        Check {
            name: &format!("{:?} {:?}", self.shape, self.axes),
            inputs,
            build: &build,
            reference: &reference,
            second: true,
        }
        .run();
    }
}

#[test]
fn batch_normalization_of_all_kinds() {
    let shapes: [(&[usize], &[usize]); 7] = [
        (&[4, 3], &[1]),
        (&[2, 3, 2, 2], &[1]),
        (&[2, 3, 4], &[2]),
        (&[4, 2, 3], &[1, 2]),
        (&[2, 3, 4], &[0, 2]),
        (&[2, 1, 2, 3], &[0, 1, 3]),
        (&[5], &[]),
    ];
    for (shape, axes) in shapes {
        for batch_stat in [true, false] {
            Batch { shape, axes, batch_stat, ..Batch::default() }.check();
        }
        Batch { shape, axes, output_stat: true, running: false, ..Batch::default() }.check();
    }
    for batch_stat in [true, false] {
        Batch { no_scale: true, batch_stat, ..Batch::default() }.check();
        Batch { no_bias: true, batch_stat, ..Batch::default() }.check();
        Batch { no_bias: true, no_scale: true, batch_stat, ..Batch::default() }.check();
    }
    Batch { no_bias: true, no_scale: true, running: false, ..Batch::default() }.check();
}

#[test]
fn running_statistics_move() {
    let (shape, s) = ([4, 3, 2], [1, 3, 1]);
    let x = noise(24, 1);
    let v = |d: &[f64], s: &[usize]| Variable::from_slice(d, s.into()).unwrap();
    let (mean, variance) = (v(&[0.5, 0.0, -1.0], &s), v(&[1.0, 2.0, 3.0], &s));
    let args = f::BatchNormalization { decay_rate: 0.25, ..Default::default() };
    let (b, g) = (v(&[0.0; 3], &s), v(&[1.0; 3], &s));
    let y = f::batch_normalization(&v(&x, &shape), Some(&b), Some(&g), Some(&mean), Some(&variance), args).unwrap();
    let own = normalized(&x, &shape, &s, &s, None, None, 0.0, None);
    let (mut m, mut q) = ([0.5, 0.0, -1.0], [1.0, 2.0, 3.0]);
    for _ in 0..2 {
        y[0].forward().unwrap();
        for c in 0..3 {
            m[c] = 0.25 * m[c] + 0.75 * own[1][c];
            q[c] = 0.25 * q[c] + 0.75 * own[2][c] * 8.0 / 7.0;
        }
        let near = |got: Vec<f64>, want: &[f64]| got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-6);
        assert!(near(mean.to_vec().unwrap(), &m) && near(variance.to_vec().unwrap(), &q));
    }
}

#[test]
fn wrong_batch_normalizations_are_refused() {
    let fails = |shapes: &[&[usize]], args: f::BatchNormalization, kind: ErrorKind| {
        let v: Vec<Variable> = shapes.iter().map(|s| Variable::new(*s)).collect();
        let e = nnrs::function::call(args, &v.iter().collect::<Vec<_>>()).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
    };
    type Args = f::BatchNormalization;
    let s = &[1, 3][..];
    fails(&[&[4, 3], &[3], &[3], s, s], Args::default(), ErrorKind::Shape);
    fails(&[&[4, 3], s, s, s, &[1, 2]], Args::default(), ErrorKind::Shape);
    fails(&[&[4, 3], s, s, s, s], Args { axes: vec![2], ..Args::default() }, ErrorKind::Argument);
    fails(&[&[4, 3], s, s, s, s], Args { axes: vec![1, -1], ..Args::default() }, ErrorKind::Argument);
    fails(&[&[4, 3], s, s], Args { batch_stat: false, ..Args::default() }, ErrorKind::Argument);
    fails(&[&[4, 3], s], Args::default(), ErrorKind::Type);
    let both = Args { batch_stat: false, output_stat: true, ..Args::default() };
    fails(&[&[4, 3], s, s, s, s], both, ErrorKind::Argument);
    fails(&[&[0, 3], s, s, s, s], Args::default(), ErrorKind::Shape);
}

struct Rows<'a> {
    shape: &'a [usize],
    batch: &'a [usize],
    no_scale: bool,
    no_bias: bool,
    output_stat: bool,
}

impl Rows<'_> {
    fn check(&self) {
        let (s, scale) = (part(self.shape, self.batch, true), part(self.shape, self.batch, false));
        let mut inputs: Vec<Input> = vec![input(self.shape, 1)];
        if !self.no_bias {
            inputs.push(input(&scale, 2));
        }
        if !self.no_scale {
            inputs.push(input(&scale, 3));
        }
        let last = inputs.len() - 1;
        let args = f::LayerNormalization {
            batch_axis: self.batch.iter().map(|&a| a as i64).collect(),
            eps: 0.01,
            no_scale: self.no_scale,
            no_bias: self.no_bias,
            output_stat: self.output_stat,
        };
        let build = |v: &[Variable]| nnrs::function::call(args.clone(), &v.iter().collect::<Vec<_>>()).unwrap();
        let reference = |d: &[Vec<f64>]| {
            let beta = (!self.no_bias).then(|| &d[1][..]);
            let gamma = (!self.no_scale).then(|| &d[last][..]);
            let mut y = normalized(&d[0], self.shape, &s, &scale, gamma, beta, 0.01, None);
            y.truncate(if self.output_stat { 3 } else { 1 });
            y
        };
        let name = format!("layer {:?} {:?}", self.shape, self.batch);
        Check { name: &name, inputs, build: &build, reference: &reference, second: true }.run();
    }
}

#[test]
fn layer_normalization_of_all_kinds() {
    let shapes: [(&[usize], &[usize]); 7] = [
        (&[2, 4], &[0]),
        (&[2, 3, 4], &[0]),
        (&[2, 3, 4], &[0, 1]),
        (&[2, 3, 4], &[1]),
        (&[2, 3, 4], &[2]),
        (&[2, 3], &[]),
        (&[2, 3], &[0, 1]),
    ];
    for (shape, batch) in shapes {
        for (no_scale, no_bias, output_stat) in
            [(false, false, false), (true, false, false), (false, true, true), (true, true, true)]
        {
            Rows { shape, batch, no_scale, no_bias, output_stat }.check();
        }
    }
}

#[test]
fn edges_of_layer_normalization() {
    let plain = |no_scale| f::LayerNormalization { no_scale, no_bias: no_scale, ..Default::default() };
    let run = |x: &[f32], s: &[usize]| {
        let x = Variable::from_slice(x, s.into()).unwrap();
        let y = f::layer_normalization(&x, None, None, plain(true)).unwrap();
        y[0].forward().unwrap();
        y[0].to_vec::<f64>().unwrap()
    };
    assert_eq!(run(&[1.0; 6], &[2, 3]), [0.0; 6]);
    assert!(run(&[], &[0, 3]).is_empty() && run(&[], &[3, 0]).is_empty());
    let fails = |s: &[usize], args: f::LayerNormalization| {
        let p = Variable::new(s);
        let p = (!args.no_scale).then_some(&p);
        let e = f::layer_normalization(&Variable::new([2, 3]), p, p, args).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Shape | ErrorKind::Argument), "{e}");
    };
    fails(&[3], plain(false));
    fails(&[2, 3], plain(false));
    fails(&[1, 1], plain(false));
    fails(&[], f::LayerNormalization { batch_axis: vec![2], ..plain(true) });
    fails(&[], f::LayerNormalization { batch_axis: vec![0, 0], ..plain(true) });
}

#[test]
fn backward_needs_a_forward_pass() {
    let x = Variable::from_slice(&[1.0f32, 2.0], [2, 1].into()).unwrap().with_need_grad(true);
    let args = f::BatchNormalization { no_scale: true, no_bias: true, ..Default::default() };
    let y = f::batch_normalization(&x, None, None, None, None, args).unwrap();
    assert_eq!(y[0].backward().unwrap_err().kind(), ErrorKind::Graph);
}
