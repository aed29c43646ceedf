//! Every kernel against naive loops in f64.

use super::*;
use crate::tuned::{self, ALWAYS, NOWHERE, Tuning};

fn noise<T: Real>(n: usize, seed: u64) -> Vec<T> {
    let mut s = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        T::from_f64((s >> 40) as f64 / (1u64 << 24) as f64 - 0.5)
    };
    (0..n).map(|_| next()).collect()
}

/// Calls `f(x index, w index, y index)` for every product of the convolution.
fn each_product(c: &Conv, mut f: impl FnMut(usize, usize, usize)) {
    let (out, cg, og) = (c.output(), c.in_channels / c.group, c.out_channels / c.group);
    let flat = |p: [usize; 3], s: [usize; 3]| (p[0] * s[1] + p[1]) * s[2] + p[2];
    let count = |s: [usize; 3]| s.iter().product::<usize>();
    let point = |i: usize, s: [usize; 3]| [i / s[2] / s[1], i / s[2] % s[1], i % s[2]];
    let place = |n: usize, ch: usize, channels: usize, p: usize, size: usize| match c.layout {
        ChannelOrder::ChannelFirst => (n * channels + ch) * size + p,
        ChannelOrder::ChannelLast => (n * size + p) * channels + ch,
    };
    for n in 0..c.batch {
        for o in 0..c.out_channels {
            for p in 0..count(out) {
                for k in 0..count(c.kernel) {
                    let (q, t) = (point(p, out), point(k, c.kernel));
                    let at: [isize; 3] = std::array::from_fn(|i| {
                        (q[i] * c.stride[i] + t[i] * c.dilation[i]) as isize - c.pad[i] as isize
                    });
                    if (0..3).any(|i| at[i] < 0 || at[i] >= c.input[i] as isize) {
                        continue;
                    }
                    let at = flat(at.map(|v| v as usize), c.input);
                    for ch in 0..cg {
                        let x = place(n, o / og * cg + ch, c.in_channels, at, count(c.input));
                        f(x, place(o, ch, cg, k, count(c.kernel)), place(n, o, c.out_channels, p, count(out)));
                    }
                }
            }
        }
    }
}

fn close<T: Real>(what: &str, c: &Conv, got: &[T], want: &[f64], eps: f64) {
    let worst = want.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g.to_f64() - w).abs() <= eps * worst, "{what} of {c:?} at {i}: {g:?} for {w}");
    }
}

fn floats<T: Real>(v: &[T]) -> Vec<f64> {
    v.iter().map(|v| v.to_f64()).collect()
}

fn check<T: Real>(c: &Conv, eps: f64) {
    let (x, w, b) = (noise::<T>(c.input_len(), 1), noise::<T>(c.weight_len(), 2), noise::<T>(c.out_channels, 3));
    let gy = noise::<T>(c.output_len(), 4);
    let points = c.output().iter().product::<usize>();
    let channel = |i: usize| match c.layout {
        ChannelOrder::ChannelFirst => i / points % c.out_channels,
        ChannelOrder::ChannelLast => i % c.out_channels,
    };
    let (old_x, old_w, old_b) = (noise::<T>(x.len(), 5), noise::<T>(w.len(), 6), noise::<T>(b.len(), 7));
    let (mut y0, mut gx0, mut gw0) = (vec![0.0; gy.len()], vec![0.0; x.len()], vec![0.0; w.len()]);
    let mut gb0 = vec![0.0; b.len()];
    each_product(c, |i, k, o| {
        y0[o] += x[i].to_f64() * w[k].to_f64();
        gx0[i] += gy[o].to_f64() * w[k].to_f64();
        gw0[k] += gy[o].to_f64() * x[i].to_f64();
    });
    gy.iter().enumerate().for_each(|(i, g)| gb0[channel(i)] += g.to_f64());
    let mut y = noise::<T>(gy.len(), 8);
    c.forward(&x, &w, None, &mut y);
    close("y", c, &y, &y0, eps);
    c.forward(&x, &w, Some(&b), &mut y);
    y0.iter_mut().enumerate().for_each(|(i, v)| *v += b[channel(i)].to_f64());
    close("y with bias", c, &y, &y0, eps);
    for output in [Output::Write, Output::Accumulate] {
        let (mut gx, mut gw, mut gb) = (old_x.clone(), old_w.clone(), old_b.clone());
        c.backward_data(&gy, &w, &mut gx, output);
        c.backward_weight(&gy, &x, &mut gw, output);
        c.backward_bias(&gy, &mut gb, output);
        if output == Output::Write && gx.len() == gy.len() {
            let mut over = gy.clone();
            c.backward_data_over(&w, &mut over);
            assert!(floats(&over) == floats(&gx), "gx over gy of {c:?}");
        }
        if output == Output::Accumulate {
            let add = |to: &mut Vec<f64>, old: Vec<f64>| to.iter_mut().zip(old).for_each(|(t, o)| *t += o);
            add(&mut gx0, floats(&old_x));
            add(&mut gw0, floats(&old_w));
            add(&mut gb0, floats(&old_b));
        }
        close("gx", c, &gx, &gx0, eps);
        close("gw", c, &gw, &gw0, eps);
        close("gb", c, &gb, &gb0, eps);
    }
}

/// (batch, group, in, out, input, kernel, stride, pad, dilation)
type ConvolutionCase = (usize, usize, usize, usize, [usize; 3], [usize; 3], [usize; 3], [usize; 3], [usize; 3]);

fn cases(all: &[ConvolutionCase]) {
    for &(batch, group, in_channels, out_channels, input, kernel, stride, pad, dilation) in all {
        for layout in [ChannelOrder::ChannelFirst, ChannelOrder::ChannelLast] {
            let c = Conv { batch, group, in_channels, out_channels, input, kernel, stride, pad, dilation, layout };
            check::<f32>(&c, 1e-5);
            check::<f64>(&c, 1e-13);
        }
    }
}

const ONE: [usize; 3] = [1; 3];
const NO: [usize; 3] = [0; 3];

unit_test!(plain_layers);
fn plain_layers() {
    cases(&[
        (2, 1, 1, 1, [1, 1, 1], ONE, ONE, NO, ONE),
        (2, 1, 1, 16, [1, 14, 14], [1, 5, 5], ONE, NO, ONE),
        (2, 1, 16, 16, [1, 12, 12], [1, 5, 5], ONE, NO, ONE),
        (1, 1, 3, 33, [1, 9, 11], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (1, 1, 17, 5, [1, 7, 7], ONE, ONE, NO, ONE),
        (1, 1, 40, 48, [1, 8, 7], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (3, 1, 2, 3, [1, 1, 19], [1, 1, 4], ONE, [0, 0, 2], ONE),
        (1, 1, 2, 4, [5, 6, 7], [3, 2, 3], ONE, [1, 0, 1], ONE),
    ]);
}

unit_test!(one_point_with_strides);
fn one_point_with_strides() {
    cases(&[
        (3, 2, 6, 10, [1, 9, 11], ONE, [1, 2, 2], NO, ONE),
        (2, 1, 5, 3, [5, 6, 8], ONE, [2, 1, 3], NO, ONE),
        (2, 1, 3, 17, [4, 7, 5], ONE, [3, 2, 1], NO, [1, 2, 3]),
        (5, 1, 4, 2, [1, 2, 2], ONE, [1, 4, 4], NO, ONE),
        // More points than are gathered at a time.
        (3, 1, 64, 2, [1, 95, 96], ONE, [1, 2, 2], NO, ONE),
    ]);
}

unit_test!(strides_pads_dilations_and_groups);
fn strides_pads_dilations_and_groups() {
    let range = |a: usize, b: usize| a..=b;
    for (s, p, d, k) in
        range(1, 3).flat_map(|s| (0..4).flat_map(move |p| (1..3).flat_map(move |d| (1..4).map(move |k| (s, p, d, k)))))
    {
        cases(&[
            (2, 1, 2, 3, [1, 7, 8], [1, k, k], [1, s, s], [0, p, p], [1, d, d]),
            (2, 2, 2, 4, [1, 7, 8], [1, k, k + 1], [1, s, 3], [0, p, 1], [1, d, 1]),
        ]);
    }
    cases(&[
        (2, 2, 4, 6, [1, 6, 6], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (2, 6, 6, 6, [1, 9, 9], [1, 3, 3], [1, 2, 2], [0, 1, 1], ONE),
        (1, 4, 4, 8, [3, 5, 5], [2, 3, 3], [2, 1, 2], [1, 1, 0], [1, 2, 1]),
        (2, 70, 70, 70, [1, 6, 5], [1, 3, 3], [1, 2, 1], [0, 1, 1], ONE),
        (1, 2, 2, 2, [3, 4, 20], [2, 3, 3], [1, 2, 2], [0, 2, 4], [1, 1, 2]),
        (0, 2, 2, 2, [1, 4, 4], [1, 3, 3], ONE, NO, ONE),
        (2, 2, 2, 6, [1, 9, 8], [1, 3, 5], [1, 2, 1], [0, 0, 2], [1, 1, 2]),
        (2, 3, 3, 3, [1, 1, 30], [1, 1, 7], [1, 1, 2], [0, 0, 3], ONE),
        (1, 2, 2, 4, [1, 120, 150], [1, 3, 3], [1, 2, 2], [0, 1, 1], ONE),
        (1, 2, 2, 2, [1, 120, 150], [1, 5, 3], ONE, [0, 2, 1], [1, 2, 1]),
        (1, 2, 2, 2, [1, 3, 9000], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (1, 2, 2, 2, [1, 3, 40000], [1, 1, 3], ONE, [0, 0, 1], ONE),
        (1, 3, 3, 3, [1, 8, 40], [1, 3, 5], ONE, [0, 1, 2], ONE),
        (2, 1, 3, 2, [4, 5, 6], [3, 3, 1], [2, 2, 3], [2, 4, 1], [1, 1, 2]),
        (1, 1, 2, 2, [1, 9, 9], [1, 2, 2], [1, 5, 4], [0, 3, 2], ONE),
    ]);
}

unit_test!(rows_of_all_widths);
fn rows_of_all_widths() {
    for width in (1..=72).chain([96, 125, 127, 128, 129, 130, 257]) {
        let stride = [1, 1 + width % 2, 1 + width / 2 % 2];
        cases(&[
            (2, 2, 2, 2, [1, 4, width], [1, 3, 3], [1, 1, stride[2]], [0, 1, 1], ONE),
            (1, 2, 2, 4, [1, 5, width + 4], [1, 3, 3], stride, [0, 1, width % 3], ONE),
            (1, 2, 2, 2, [1, 6, width + 4], [1, 5, 5], [1, 1, stride[1]], [0, 2, 2], ONE),
            (2, 2, 2, 4, [1, 5, width + 4], [1, 3, 3], [1, 2, 2], [0, 1, width % 4], [1, 2, 1]),
            (1, 2, 2, 2, [1, 6, width + 4], [1, 3, 5], [1, stride[1], 2], [0, 1, width % 5], ONE),
        ]);
    }
}

unit_test!(blocks_of_channels_and_bands);
fn blocks_of_channels_and_bands() {
    cases(&[
        (1, 1, 600, 40, [1, 3, 5], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (2, 1, 601, 40, [1, 3, 5], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (1, 2, 602, 36, [1, 4, 4], [1, 3, 5], ONE, [0, 0, 3], ONE),
        (2, 1, 40, 601, [1, 3, 5], [1, 3, 3], [1, 2, 2], [0, 1, 1], ONE),
        (1, 1, 8, 8, [1, 70, 90], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (1, 1, 1, 2, [1, 1, 5000], [1, 1, 9], ONE, [0, 0, 4], ONE),
        (9, 1, 3, 34, [1, 24, 26], [1, 3, 3], ONE, NO, ONE),
        (1, 1, 70, 3, [1, 40, 41], [1, 2, 2], ONE, NO, ONE),
    ]);
}

unit_test!(few_made_channels);
fn few_made_channels() {
    cases(&[
        (2, 1, 3, 70, [1, 18, 75], [1, 7, 7], [1, 2, 2], [0, 3, 3], ONE),
        (2, 1, 70, 3, [1, 9, 130], [1, 3, 3], ONE, [0, 1, 1], [1, 1, 2]),
        (1, 2, 150, 8, [1, 5, 21], [1, 3, 3], [1, 2, 1], [0, 1, 1], ONE),
        (2, 2, 4, 2, [3, 5, 33], [2, 3, 4], [2, 1, 1], [1, 1, 0], [1, 2, 1]),
        (3, 1, 2, 5, [1, 4, 41], [1, 3, 1], [1, 3, 4], [0, 0, 2], ONE),
        (1, 1, 4, 4, [1, 1, 300], [1, 1, 9], ONE, [0, 0, 8], ONE),
    ]);
}

unit_test!(parts_of_long_rows);
fn parts_of_long_rows() {
    cases(&[
        (1, 1, 5, 6, [1, 1, 1000], [1, 1, 3], ONE, [0, 0, 1], ONE),
        (2, 1, 17, 40, [1, 1, 900], [1, 1, 4], [1, 1, 2], [0, 0, 3], [1, 1, 9]),
        (1, 2, 12, 6, [1, 1, 1300], [1, 1, 2], ONE, NO, [1, 1, 130]),
        (1, 1, 3, 9, [1, 1, 1500], [1, 1, 3], [1, 1, 4], [0, 0, 30], ONE),
        (1, 1, 2, 5, [1, 1, 800], [1, 1, 700], ONE, [0, 0, 350], ONE),
        (1, 1, 9, 5, [1, 1, 700], [1, 1, 3], ONE, [0, 0, 600], ONE),
        (1, 1, 90, 5, [1, 5, 700], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (1, 1, 4, 70, [3, 1, 600], [2, 1, 5], ONE, [1, 0, 2], ONE),
    ]);
}

unit_test!(few_points_and_many_weights);
fn few_points_and_many_weights() {
    cases(&[
        (1, 1, 130, 40, [1, 7, 7], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (2, 2, 128, 70, [1, 9, 8], [1, 3, 3], [1, 2, 2], [0, 1, 1], ONE),
        (3, 1, 200, 96, [1, 5, 11], ONE, [1, 2, 3], NO, ONE),
        (1, 1, 90, 33, [3, 4, 5], [2, 3, 3], [1, 2, 1], [1, 1, 0], [2, 1, 2]),
        (1, 1, 600, 32, [1, 2, 3], [1, 5, 5], [1, 3, 1], [0, 4, 2], ONE),
        (1, 1, 512, 300, [1, 1, 1], ONE, ONE, NO, ONE),
        (4, 1, 64, 256, [1, 16, 16], ONE, ONE, NO, ONE),
        (1, 1, 3, 128, [1, 6, 6], [1, 3, 3], ONE, NO, ONE),
        (2, 2, 14, 130, [2, 7, 9], [1, 4, 3], [1, 2, 2], [0, 1, 2], [1, 1, 2]),
    ]);
}

unit_test!(windows_as_a_matrix);
/// By the products of [`columns`], whatever the tables of this processor say.
fn windows_as_a_matrix() {
    let Tuning { columns, many_columns, .. } = ALWAYS;
    let tuning: &'static Tuning = Box::leak(Box::new(Tuning { columns, many_columns, ..NOWHERE }));
    let _choice = tuned::ask(tuning);
    for images in [1, 3, 20] {
        cases(&[
            (images, 1, 33, 40, [1, 1, 1], [1, 3, 3], ONE, [0, 1, 1], ONE),
            (images, 2, 16, 70, [1, 2, 3], [1, 3, 2], ONE, [0, 1, 1], ONE),
            (images, 1, 130, 17, [1, 4, 5], [1, 3, 3], [1, 2, 2], [0, 1, 1], ONE),
            (images, 1, 5, 3, [2, 3, 2], [2, 2, 3], ONE, [1, 0, 2], [1, 2, 2]),
            (images, 1, 20, 30, [1, 3, 4], [1, 1, 1], [1, 2, 3], NO, ONE),
            (images, 1, 4, 20, [1, 2, 2], [1, 3, 3], ONE, [0, 4, 4], ONE),
            (images, 4, 8, 64, [1, 3, 3], [1, 3, 3], [1, 5, 5], [0, 2, 3], ONE),
            (images, 1, 6, 20, [1, 5, 39], [1, 2, 4], [1, 1, 1], [0, 0, 2], [1, 3, 2]),
        ]);
    }
    // Several matrices, the last one smaller.
    cases(&[
        (70, 1, 7, 19, [1, 5, 6], [1, 3, 3], [1, 2, 2], [0, 1, 1], ONE),
        (5, 2, 8, 32, [1, 20, 21], [1, 3, 3], [1, 2, 2], [0, 1, 1], ONE),
    ]);
}

unit_test!(points_of_many_images_in_panels);
/// Points that fill panels and some that are left, of images larger and smaller than a panel; blocks of channels; rows in pieces.
fn points_of_many_images_in_panels() {
    cases(&[
        (5, 1, 20, 40, [1, 9, 16], ONE, ONE, NO, ONE),
        (2, 1, 70, 16, [1, 16, 16], ONE, ONE, NO, ONE),
        (3, 1, 400, 200, [1, 10, 13], ONE, ONE, NO, ONE),
        (2, 1, 390, 7, [1, 6, 32], ONE, ONE, NO, ONE),
        (7, 3, 18, 12, [1, 7, 7], ONE, ONE, NO, ONE),
        (70, 1, 17, 9, [1, 1, 2], ONE, ONE, NO, ONE),
        (70, 2, 24, 14, [1, 1, 1], ONE, ONE, NO, ONE),
        (3, 1, 33, 40, [1, 9, 11], ONE, ONE, NO, ONE),
        (0, 1, 40, 33, [1, 9, 11], ONE, ONE, NO, ONE),
        (20, 2, 48, 28, [1, 3, 4], ONE, ONE, NO, ONE),
        (1, 1, 70, 16, [1, 1, 1], ONE, ONE, NO, ONE),
        (3, 1, 5, 1, [2, 6, 11], ONE, ONE, NO, ONE),
        (2, 1, 0, 3, [1, 4, 5], ONE, ONE, NO, ONE),
    ]);
}

unit_test!(infinite_numbers_stay_in_their_sums);
/// What is infinite meets zeros between the rows of a plane, which must not show.
fn infinite_numbers_stay_in_their_sums() {
    let (input, kernel) = ([1, 4, 5], [1, 3, 3]);
    let (group, stride, pad, dilation) = (2, ONE, [0, 1, 1], ONE);
    let layout = ChannelOrder::ChannelFirst;
    let c = Conv { batch: 1, group, in_channels: 2, out_channels: 2, input, kernel, stride, pad, dilation, layout };
    let (mut x, gy) = (noise::<f32>(c.input_len(), 1), vec![1.0; c.output_len()]);
    x[5] = f32::INFINITY;
    let mut want = vec![0.0f32; c.weight_len()];
    each_product(&c, |i, k, o| want[k] += gy[o] * x[i]);
    let mut gw = want.clone();
    c.backward_weight(&gy, &x, &mut gw, Output::Write);
    for (got, want) in gw.iter().zip(&want) {
        assert!(got == want || (got - want).abs() < 1e-4, "{gw:?} for {want}");
    }
}

unit_test!(empty_sizes);
fn empty_sizes() {
    cases(&[
        (0, 1, 2, 3, [1, 5, 5], [1, 3, 3], ONE, NO, ONE),
        (2, 1, 2, 3, [1, 2, 5], [1, 3, 3], ONE, NO, ONE),
        (2, 1, 2, 3, [1, 0, 5], [1, 3, 3], ONE, NO, ONE),
        (2, 1, 0, 3, [1, 4, 5], [1, 3, 3], ONE, NO, ONE),
        (2, 1, 3, 0, [1, 4, 5], [1, 3, 3], ONE, NO, ONE),
        (2, 1, 2, 3, [1, 1, 1], [1, 3, 3], ONE, [0, 5, 5], ONE),
        (1, 1, 0, 4, [1, 8, 8], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (1, 1, 4, 0, [1, 8, 8], [1, 3, 3], ONE, [0, 1, 1], ONE),
    ]);
}

unit_test!(taps_that_meet_padding_only);
fn taps_that_meet_padding_only() {
    cases(&[
        (3, 1, 40, 50, [1, 1, 1], [1, 3, 3], ONE, [0, 1, 1], ONE),
        (9, 1, 20, 3, [1, 1, 2], [1, 5, 5], ONE, [0, 2, 2], ONE),
        (2, 2, 8, 70, [1, 2, 5], [1, 3, 5], ONE, [0, 4, 8], [1, 4, 4]),
        (2, 1, 33, 34, [1, 2, 2], [1, 3, 3], [1, 2, 2], [0, 1, 1], ONE),
        (2, 1, 5, 6, [2, 1, 3], [3, 3, 3], ONE, ONE, ONE),
    ]);
}

unit_test!(results_do_not_depend_on_the_thread_count);
fn results_do_not_depend_on_the_thread_count() {
    let sizes = [
        (9, 3, 34, [1, 24, 24], 3, 0, 1),
        (2, 40, 70, [1, 20, 20], 3, 1, 1),
        (4, 16, 16, [1, 33, 33], 3, 1, 2),
        (16, 16, 16, [1, 12, 12], 3, 4, 1),
        (1, 300, 200, [1, 7, 7], 3, 1, 2),
        (1, 40, 20, [1, 3, 5000], 3, 1, 1),
        (20, 300, 200, [1, 7, 10], 1, 0, 1),
        (2, 70, 260, [1, 20, 16], 1, 0, 1),
    ];
    let before = crate::pool::num_threads();
    for (batch, in_channels, out_channels, input, k, p, s) in sizes {
        for layout in [ChannelOrder::ChannelFirst, ChannelOrder::ChannelLast] {
            let (kernel, stride, pad) = ([1, k, k], [1, s, s], [0, p, p]);
            let c =
                Conv { batch, group: 1, in_channels, out_channels, input, kernel, stride, pad, dilation: ONE, layout };
            let (x, w, gy) = (noise::<f32>(c.input_len(), 1), noise(c.weight_len(), 2), noise(c.output_len(), 3));
            let results = [1, 2, 3].map(|threads| {
                crate::pool::set_num_threads(threads);
                let (mut y, mut gx, mut gw, mut gb) = (gy.clone(), x.clone(), w.clone(), vec![0.0; out_channels]);
                c.forward(&x, &w, None, &mut y);
                c.backward_data(&gy, &w, &mut gx, Output::Write);
                c.backward_weight(&gy, &x, &mut gw, Output::Write);
                c.backward_bias(&gy, &mut gb, Output::Write);
                (y, gx, gw, gb)
            });
            crate::pool::set_num_threads(before);
            assert!(results[0] == results[1] && results[0] == results[2], "{c:?}");
        }
    }
}
