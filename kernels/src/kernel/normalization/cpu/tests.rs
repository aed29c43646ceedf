//! Against plain loops in f64.

use super::*;

fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut s = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn close(what: &str, got: &[f64], want: &[f64], eps: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= eps * w.abs().max(1.0), "{what} at {i}: {g} for {w}");
    }
}

fn of<T: Real>(v: &[f64]) -> Vec<T> {
    v.iter().map(|&v| T::from_f64(v)).collect()
}

fn wide<T: Real>(v: &[T]) -> Vec<f64> {
    v.iter().map(|v| v.to_f64()).collect()
}

/// The means of each channel's numbers.
fn means(c: &Channels, x: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut m = vec![0.0; c.channels];
    (0..c.size()).for_each(|i| m[i / c.inner % c.channels] += x(i) / c.count() as f64);
    m
}

const ALL: [(usize, usize, usize); 9] = [
    (4, 3, 1),
    (5, 7, 3),
    (1, 1, 100),
    (3, 2, 65),
    (2, 40, 300),
    (700, 33, 1),
    (2000, 4, 40),
    (300, 3, 400),
    (1, 2, 9000),
];

fn forward<T: Real>(c: Channels, shift: f64, eps: f64) {
    let x: Vec<T> = of(&noise(c.size(), 1).iter().map(|v| v * 2.0 + shift).collect::<Vec<_>>());
    let x64 = wide(&x);
    let (gamma, beta) = (of::<T>(&noise(c.channels, 2)), of::<T>(&noise(c.channels, 3)));
    let at = |i: usize| i / c.inner % c.channels;
    let mean = means(&c, |i| x64[i]);
    let variance = means(&c, |i| (x64[i] - mean[at(i)]).powi(2));
    let norm = |i: usize| (x64[i] - mean[at(i)]) / (variance[at(i)] + 0.1).sqrt();
    let want: Vec<f64> = (0..c.size()).map(|i| norm(i) * gamma[at(i)].to_f64() + beta[at(i)].to_f64()).collect();
    let mut y = vec![T::ZERO; c.size()];
    let scale = Scale { gamma: Some(&gamma[..]), beta: Some(&beta[..]), eps: 0.1 };
    let m = c.normalize(&x, &mut y, scale);
    close("mean", &m.mean, &mean, eps);
    close("variance", &m.variance, &variance, eps);
    close("y", &wide(&y), &want, eps);
    y.fill(T::ZERO);
    let inverse: Vec<f64> = variance.iter().map(|v| 1.0 / (v + 0.1).sqrt()).collect();
    c.scale(&x, &mut y, &mean, &inverse, scale);
    close("scaled", &wide(&y), &want, eps);
    let want: Vec<f64> = (0..c.size()).map(norm).collect();
    c.normalize(&x, &mut y, Scale { gamma: None, beta: None, eps: 0.1 });
    close("plain", &wide(&y), &want, eps);
}

unit_test!(channels_forward);
fn channels_forward() {
    for (outer, channels, inner) in ALL {
        let c = Channels { outer, channels, inner };
        forward::<f64>(c, 3.0, 1e-12);
        forward::<f32>(c, 3.0, 3e-6);
        // Rounding of x itself is not part of the error: the reference sees the rounded numbers.
        forward::<f32>(c, 1000.0, 3e-6);
    }
}

fn backward<T: Real>(c: Channels, eps: f64) {
    let (x, gy): (Vec<T>, Vec<T>) =
        (of(&noise(c.size(), 1).iter().map(|v| v + 3.0).collect::<Vec<_>>()), of(&noise(c.size(), 4)));
    let (x64, g64, at) = (wide(&x), wide(&gy), |i: usize| i / c.inner % c.channels);
    let [gamma, gmean, gvariance] = [2, 5, 6].map(|s| of::<T>(&noise(c.channels, s)));
    let (mean, n) = (means(&c, |i| x64[i]), c.count() as f64);
    let variance = means(&c, |i| (x64[i] - mean[at(i)]).powi(2));
    let inverse: Vec<f64> = variance.iter().map(|v| 1.0 / (v + 0.1).sqrt()).collect();
    let norm = |i: usize| (x64[i] - mean[at(i)]) * inverse[at(i)];
    let (a, b) = (means(&c, |i| g64[i]), means(&c, |i| g64[i] * norm(i)));
    for output in [Output::Write, Output::Accumulate] {
        for own in [true, false] {
            let old = if output == Output::Write { 0.0 } else { 0.5 };
            let want = |i: usize| {
                let k = at(i);
                let through = if own { g64[i] - a[k] - norm(i) * b[k] } else { g64[i] };
                let stat = gmean[k].to_f64() / n + gvariance[k].to_f64() * 2.0 * (x64[i] - mean[k]) / n;
                old + through * inverse[k] * gamma[k].to_f64() + if own { stat } else { 0.0 }
            };
            let mut gx = vec![T::from_f64(0.5); c.size()];
            let given: InputGradient<T> = InputGradient {
                gy: Some(&gy[..]),
                x: Some(&x[..]),
                mean: &mean,
                inverse: &inverse,
                gamma: Some(&gamma),
                gmean: Some(&gmean),
                gvariance: Some(&gvariance),
                own,
            };
            let s = c.backward(given, Some((&mut gx, output)));
            if output == Output::Write {
                let mut over = gy.clone();
                c.backward(InputGradient { gy: None, ..given }, Some((&mut over, output)));
                assert!(wide(&over) == wide(&gx), "written over gy");
            }
            close("gx", &wide(&gx), &(0..c.size()).map(want).collect::<Vec<_>>(), eps);
            let product: Vec<f64> = (0..c.channels).map(|k| b[k] / inverse[k] * n).collect();
            close("sum", &s.gy, &a.iter().map(|a| a * n).collect::<Vec<_>>(), eps * n.sqrt());
            close("product", &s.product, &product, eps * n.sqrt());
        }
    }
}

unit_test!(channels_backward);
fn channels_backward() {
    for (outer, channels, inner) in ALL {
        let c = Channels { outer, channels, inner };
        backward::<f64>(c, 1e-11);
        backward::<f32>(c, 3e-6);
    }
}

fn layer<T: SimdReal>(rows: usize, width: usize, eps: f64) {
    let (l, size) = (LayerRows { rows, width }, rows * width);
    let (x, gy): (Vec<T>, Vec<T>) =
        (of(&noise(size, 1).iter().map(|v| v + 3.0).collect::<Vec<_>>()), of(&noise(size, 4)));
    let (x64, g64) = (wide(&x), wide(&gy));
    let [gamma, beta] = [2, 3].map(|s| of::<T>(&noise(width, s)));
    let [gmean, gvariance] = [5, 6].map(|s| of::<T>(&noise(rows, s)));
    let c = Channels { outer: 1, channels: rows, inner: width };
    let mean = means(&c, |i| x64[i]);
    let variance = means(&c, |i| (x64[i] - mean[i / width]).powi(2));
    let inverse: Vec<f64> = variance.iter().map(|v| 1.0 / (v + 0.1).sqrt()).collect();
    let norm = |i: usize| (x64[i] - mean[i / width]) * inverse[i / width];
    for (gamma, beta) in [(Some(&gamma[..]), Some(&beta[..])), (None, Some(&beta[..])), (Some(&gamma[..]), None)] {
        let (by, plus) = (
            |i: usize| gamma.map_or(1.0, |g| g[i % width].to_f64()),
            |i: usize| beta.map_or(0.0, |b| b[i % width].to_f64()),
        );
        let mut y = vec![T::ZERO; size];
        let m = l.normalize(&x, &mut y, gamma, beta, 0.1);
        close("mean", &m.mean, &mean, eps);
        close("variance", &m.variance, &variance, eps);
        close("y", &wide(&y), &(0..size).map(|i| norm(i) * by(i) + plus(i)).collect::<Vec<_>>(), eps);
        for output in [Output::Write, Output::Accumulate] {
            let old = if output == Output::Write { 0.0 } else { 0.5 };
            let (a, b) = (means(&c, |i| g64[i] * by(i)), means(&c, |i| g64[i] * by(i) * norm(i)));
            let want = |i: usize| {
                let (r, n) = (i / width, width as f64);
                let stat = gmean[r].to_f64() / n + gvariance[r].to_f64() * 2.0 * (x64[i] - mean[r]) / n;
                old + (g64[i] * by(i) - a[r] - norm(i) * b[r]) * inverse[r] + stat
            };
            let [mut gx, mut gb, mut gg] = [size, width, width].map(|n| vec![T::from_f64(0.5); n]);
            l.backward(
                LayerBackward {
                    gy: &gy,
                    x: &x,
                    mean: &mean,
                    inverse: &inverse,
                    gamma,
                    gmean: Some(&gmean),
                    gvariance: Some(&gvariance),
                },
                LayerGradients {
                    x: Some((&mut gx, output)),
                    beta: Some((&mut gb, output)),
                    gamma: Some((&mut gg, output)),
                },
            );
            close("gx", &wide(&gx), &(0..size).map(want).collect::<Vec<_>>(), eps);
            let column = |f: &dyn Fn(usize) -> f64, j: usize| (0..rows).map(|r| f(r * width + j)).sum::<f64>() + old;
            let all = |f: &dyn Fn(usize) -> f64| (0..width).map(|j| column(f, j)).collect::<Vec<_>>();
            close("gbeta", &wide(&gb), &all(&|i| g64[i]), eps * 4.0);
            close("ggamma", &wide(&gg), &all(&|i| g64[i] * norm(i)), eps * 4.0);
        }
    }
}

unit_test!(layers);
fn layers() {
    for (rows, width) in [(3, 4), (1, 9000), (500, 1), (300, 700), (40, 64)] {
        layer::<f64>(rows, width, 1e-11);
        layer::<f32>(rows, width, 4e-6);
    }
}

use crate::simd::SimdReal;

/// Forward and backward, each against the sums that say what they are.
fn groups<T: SimdReal>(g: ChannelGroups, eps: f64) {
    let (length, rows) = (g.length(), g.rows());
    let size = rows * length;
    let (x, gy): (Vec<T>, Vec<T>) =
        (of(&noise(size, 1).iter().map(|v| v + 3.0).collect::<Vec<_>>()), of(&noise(size, 4)));
    let (x64, g64, n) = (wide(&x), wide(&gy), length as f64);
    let [gamma, beta] = [2, 3].map(|s| of::<T>(&noise(g.scales(), s)));
    let [gmean, gvariance] = [5, 6].map(|s| of::<T>(&noise(rows, s)));
    let scale = |i: usize| {
        let (row, channel) = (i / length, i % length / g.inner);
        let group = if g.by_sample { row } else { row / g.after % g.groups };
        group * g.width + channel
    };
    let mean_of = |f: &dyn Fn(usize) -> f64, row: usize| (0..length).map(|k| f(row * length + k)).sum::<f64>() / n;
    let mean: Vec<f64> = (0..rows).map(|r| mean_of(&|i| x64[i], r)).collect();
    let variance: Vec<f64> = (0..rows).map(|r| mean_of(&|i| (x64[i] - mean[r]).powi(2), r)).collect();
    let inverse: Vec<f64> = variance.iter().map(|v| 1.0 / (v + 0.1).sqrt()).collect();
    let norm = |i: usize| (x64[i] - mean[i / length]) * inverse[i / length];
    let want: Vec<f64> = (0..size).map(|i| norm(i) * gamma[scale(i)].to_f64() + beta[scale(i)].to_f64()).collect();
    let mut y = vec![T::ZERO; size];
    let m = g.normalize(&x, &mut y, Scale { gamma: Some(&gamma[..]), beta: Some(&beta[..]), eps: 0.1 });
    close("mean", &m.mean, &mean, eps);
    close("variance", &m.variance, &variance, eps);
    close("y", &wide(&y), &want, eps);

    let scaled = |i: usize| g64[i] * gamma[scale(i)].to_f64();
    let a: Vec<f64> = (0..rows).map(|r| mean_of(&scaled, r)).collect();
    let b: Vec<f64> = (0..rows).map(|r| mean_of(&|i| scaled(i) * norm(i), r)).collect();
    let of_x = |i: usize| {
        let r = i / length;
        let statistics = (gmean[r].to_f64() + 2.0 * gvariance[r].to_f64() * (x64[i] - mean[r])) / n;
        (scaled(i) - a[r] - norm(i) * b[r]) * inverse[r] + statistics
    };
    let (mut of_beta, mut of_gamma) = (vec![0.0; g.scales()], vec![0.0; g.scales()]);
    for i in 0..size {
        of_beta[scale(i)] += g64[i];
        of_gamma[scale(i)] += g64[i] * norm(i);
    }
    let given: InputGradient<T> = InputGradient {
        gy: Some(&gy[..]),
        x: Some(&x[..]),
        mean: &mean,
        inverse: &inverse,
        gamma: Some(&gamma),
        gmean: Some(&gmean),
        gvariance: Some(&gvariance),
        own: true,
    };
    for (output, old) in [(Output::Write, 0.0), (Output::Accumulate, 0.5)] {
        let mut gx = vec![T::from_f64(0.5); size];
        let s = g.backward(given, Some((&mut gx, output)));
        close("gx", &wide(&gx), &(0..size).map(|i| old + of_x(i)).collect::<Vec<_>>(), eps);
        close("beta", &s.gy, &of_beta, eps * n.sqrt() * 8.0);
        close("gamma", &s.product, &of_gamma, eps * n.sqrt() * 8.0);
    }
    let mut over = gy.clone();
    g.backward(InputGradient { gy: None, ..given }, Some((&mut over, Output::Write)));
    close("written over gy", &wide(&over), &(0..size).map(of_x).collect::<Vec<_>>(), eps);
}

unit_test!(groups_of_channels);
fn groups_of_channels() {
    let sizes =
        [(2, 3, 1, 2, 5), (3, 2, 4, 3, 1), (1, 1, 1, 7, 6000), (2, 1, 1, 33, 1500), (40, 4, 1, 8, 49), (1, 2, 1, 1, 9)];
    for (before, groups_, after, width, inner) in sizes {
        for by_sample in [false, true] {
            let g = ChannelGroups { before, groups: groups_, after, width, inner, by_sample };
            groups::<f64>(g, 1e-11);
            groups::<f32>(g, 5e-6);
        }
    }
}
