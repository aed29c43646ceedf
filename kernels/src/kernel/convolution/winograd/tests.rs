//! Against sums in double: odd sizes, paddings, groups and orders; the stated bounds; what is not finite.

use super::WinogradSizes;
use super::transform::TileForm;
use crate::array::Output;
use crate::kernel::convolution::cpu::{ChannelOrder, Conv};
use crate::tuned;

/// The bounds on errors that docs/migration.md states, in parts of the output's root of the mean square.
const RMS: f64 = 2e-6;
const LARGEST: f64 = 2e-5;

/// Numbers that are nearly normal: sums of twelve even ones.
fn noise(n: usize, seed: u64) -> Vec<f32> {
    let mut s = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..n).map(|_| (0..12).map(|_| next()).sum()).collect()
}

use TileForm::{Row, Square};

/// (batch, group, in, out, height, width, pad)
type WinogradCase = (usize, usize, usize, usize, usize, usize, [usize; 2]);

fn conv(form: TileForm, case: WinogradCase, layout: ChannelOrder) -> Conv {
    let (batch, group, in_channels, out_channels, h, w, [top, left]) = case;
    let (input, kernel, pad) = ([1, h, w], [1, form.rows(3), 3], [0, top, left]);
    let (stride, dilation) = ([1; 3], [1; 3]);
    let c = Conv { batch, group, in_channels, out_channels, input, kernel, stride, pad, dilation, layout };
    assert!(WinogradSizes::forward(&c).is_some(), "{c:?} goes this way");
    c
}

fn doubles(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| v as f64).collect()
}

/// The result and its gradients, in float32 by transforms and in double.
fn all(c: &Conv, x: &[f32], w: &[f32], gy: &[f32], b: &[f32]) -> [(Vec<f32>, Vec<f64>); 3] {
    let (mut y, mut gx, mut gw) = (gy.to_vec(), x.to_vec(), w.to_vec());
    c.forward(x, w, Some(b), &mut y);
    c.backward_data(gy, w, &mut gx, Output::Write);
    c.backward_weight(gy, x, &mut gw, Output::Write);
    let (mut y0, mut gx0, mut gw0) = (doubles(gy), doubles(x), doubles(w));
    c.forward(&doubles(x), &doubles(w), Some(&doubles(b)), &mut y0);
    c.backward_data(&doubles(gy), &doubles(w), &mut gx0, Output::Write);
    c.backward_weight(&doubles(gy), &doubles(x), &mut gw0, Output::Write);
    [(y, y0), (gx, gx0), (gw, gw0)]
}

/// The errors' root of the mean square and the largest, in parts of the output's root of the mean square.
fn errors(got: &[f32], want: &[f64]) -> [f64; 2] {
    let n = want.len() as f64;
    let scale = (want.iter().map(|v| v * v).sum::<f64>() / n).sqrt();
    let off = || got.iter().zip(want).map(|(&g, w)| g as f64 - w);
    [(off().map(|e| e * e).sum::<f64>() / n).sqrt() / scale, off().fold(0.0, |m: f64, e| m.max(e.abs())) / scale]
}

fn within(c: &Conv, x: &[f32], w: &[f32], gy: &[f32], b: &[f32]) {
    for (got, want) in all(c, x, w, gy, b) {
        let [rms, largest] = errors(&got, &want);
        assert!(rms < RMS && largest < LARGEST, "{c:?}: {rms:e}, {largest:e}");
    }
}

fn operands(c: &Conv) -> [Vec<f32>; 4] {
    let sizes = [c.input_len(), c.weight_len(), c.output_len(), c.out_channels];
    [0, 1, 2, 3].map(|i| noise(sizes[i], i as u64 + 1))
}

fn all_within(c: &Conv) {
    let [x, w, gy, b] = operands(c);
    within(c, &x, &w, &gy, &b);
}

unit_test!(sizes_paddings_groups_and_orders);
fn sizes_paddings_groups_and_orders() {
    let _choice = tuned::ask(&tuned::ALWAYS);
    for layout in [ChannelOrder::ChannelFirst, ChannelOrder::ChannelLast] {
        for case in [
            (10, 1, 32, 32, 8, 8, [1, 1]),
            (7, 1, 33, 47, 7, 11, [1, 1]),
            (3, 1, 40, 32, 18, 15, [0, 0]),
            (5, 1, 32, 70, 10, 14, [2, 2]),
            (4, 1, 48, 32, 14, 22, [0, 2]),
            (3, 2, 64, 96, 16, 18, [1, 0]),
            (11, 1, 64, 64, 7, 7, [1, 1]),
            (16, 1, 160, 96, 4, 4, [1, 1]),
            (2, 1, 40, 70, 9, 11, [1, 1]),
            (1, 1, 128, 32, 30, 57, [1, 1]),
            // Fewest tiles.
            (1, 1, 35, 47, 7, 7, [1, 1]),
            (1, 1, 300, 70, 4, 5, [1, 1]),
            (3, 1, 37, 33, 4, 4, [1, 1]),
            (5, 1, 32, 40, 3, 4, [1, 1]),
            (2, 2, 66, 80, 7, 7, [1, 1]),
            (1, 1, 48, 48, 9, 10, [0, 0]),
        ] {
            all_within(&conv(Square, case, layout));
        }
        for case in [
            (1, 1, 32, 48, 1, 200, [0, 1]),
            (3, 1, 33, 47, 1, 61, [0, 0]),
            (2, 2, 64, 96, 1, 30, [0, 2]),
            (5, 1, 40, 70, 1, 7, [0, 1]),
            (1, 1, 300, 64, 1, 18, [0, 1]),
            (1, 1, 64, 40, 1, 1000, [0, 1]),
            (2, 1, 35, 32, 9, 22, [0, 1]),
            (1, 1, 48, 130, 6, 57, [0, 0]),
        ] {
            all_within(&conv(Row, case, layout));
        }
    }
}

unit_test!(errors_keep_their_bounds);
fn errors_keep_their_bounds() {
    let _choice = tuned::ask(&tuned::ALWAYS);
    for channels in [32, 64, 256] {
        for (form, pad) in [(Square, [1, 1]), (Row, [0, 1])] {
            let c = conv(form, (1, 1, channels, 64, 28, 28, pad), ChannelOrder::ChannelFirst);
            let [x, w, gy, b] = operands(&c);
            let plane = 28 * 28;
            let constant = vec![0.7; x.len()];
            let offset: Vec<f32> = x.iter().map(|v| v + 100.0).collect();
            let scaled: Vec<f32> = x.iter().enumerate().map(|(i, v)| v * [1e-4, 1.0, 1e4][i / plane % 3]).collect();
            for x in [&x, &constant, &offset, &scaled] {
                within(&c, x, &w, &gy, &b);
            }
        }
    }
}

unit_test!(long_sums_keep_the_bounds);
fn long_sums_keep_the_bounds() {
    let _choice = tuned::ask(&tuned::ALWAYS);
    for (form, case) in [
        (Square, (1, 1, 1024, 48, 8, 8, [1, 1])),
        (Square, (4, 1, 1024, 80, 8, 8, [1, 1])),
        (Square, (20, 1, 32, 40, 56, 56, [1, 1])),
        (Row, (1, 1, 1024, 48, 1, 64, [0, 1])),
        (Row, (1, 1, 1024, 40, 1, 500, [0, 1])),
        (Row, (3, 1, 32, 40, 1, 9000, [0, 1])),
    ] {
        all_within(&conv(form, case, ChannelOrder::ChannelFirst));
    }
}

unit_test!(gradients_of_many_tiles_keep_the_bounds);
fn gradients_of_many_tiles_keep_the_bounds() {
    let _choice = tuned::ask(&tuned::ALWAYS);
    for (form, batch, size, pad) in
        [(Square, 8, [112, 112], [1, 1]), (Square, 4, [224, 224], [1, 1]), (Row, 4, [1, 50_000], [0, 1])]
    {
        let c = conv(form, (batch, 1, 16, 16, size[0], size[1], pad), ChannelOrder::ChannelFirst);
        let [x, w, gy, _] = operands(&c);
        let constant = vec![1.0; gy.len()];
        let offset: Vec<f32> = gy.iter().map(|v| v + 1000.0).collect();
        let positive: Vec<f32> = gy.iter().map(|v| v.abs()).collect();
        for gy in [gy, constant, offset, positive] {
            let (mut gw, mut want) = (w.clone(), doubles(&w));
            c.backward_weight(&gy, &x, &mut gw, Output::Write);
            c.backward_weight(&doubles(&gy), &doubles(&x), &mut want, Output::Write);
            let [rms, largest] = errors(&gw, &want);
            assert!(rms < RMS && largest < LARGEST, "{c:?}: {rms:e}, {largest:e}");
        }
    }
}

unit_test!(what_is_not_finite_stays_in_its_sums);
fn what_is_not_finite_stays_in_its_sums() {
    let _choice = tuned::ask(&tuned::ALWAYS);
    for (form, pad) in [(Square, [1, 1]), (Row, [0, 1])] {
        what_is_not_finite_stays(&conv(form, (6, 1, 32, 32, 12, 12, pad), ChannelOrder::ChannelFirst));
    }
}

fn what_is_not_finite_stays(c: &Conv) {
    let [mut x, w, gy, b] = operands(c);
    x[5 * 12 + 5] = f32::INFINITY;
    x[40] = f32::NAN;
    // Its transform overflows, its sums do not.
    x[144 + 100] = 3e38;
    let mut small = w.clone();
    small.iter_mut().for_each(|w| *w *= 1e-3);
    for (got, want) in all(c, &x, &small, &gy, &b) {
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            let same = if (*w as f32).is_finite() { g.is_finite() } else { g.is_nan() == w.is_nan() };
            assert!(same, "{g} for {w} at {i}");
        }
    }
}

unit_test!(gradients_of_weights_are_added);
fn gradients_of_weights_are_added() {
    let _choice = tuned::ask(&tuned::ALWAYS);
    let c = conv(Square, (9, 2, 64, 80, 15, 13, [1, 1]), ChannelOrder::ChannelFirst);
    let [mut x, w, gy, _] = operands(&c);
    for round in 0..2 {
        let (mut sum, mut alone) = (w.clone(), w.clone());
        c.backward_weight(&gy, &x, &mut sum, Output::Accumulate);
        c.backward_weight(&gy, &x, &mut alone, Output::Write);
        for (i, ((s, a), w)) in sum.iter().zip(&alone).zip(&w).enumerate() {
            let same = if a.is_finite() { (s - (a + w)).abs() < 1e-3 } else { s.to_bits() == a.to_bits() };
            assert!(same, "{s} for {a} + {w} at {i} in round {round}");
        }
        // Of the second group, which is done directly then, and the first is not done again.
        x[40 * 15 * 13] = f32::INFINITY;
    }
}

unit_test!(threads_and_batches_change_no_bit);
fn threads_and_batches_change_no_bit() {
    let _choice = tuned::ask(&tuned::ALWAYS);
    let before = crate::pool::num_threads();
    for (form, pad) in [(Square, [1, 1]), (Row, [0, 1])] {
        threads_and_batches_change_none(&conv(form, (2, 1, 64, 40, 27, 28, pad), ChannelOrder::ChannelFirst));
    }
    crate::pool::set_num_threads(before);
}

fn threads_and_batches_change_none(c: &Conv) {
    let [x, w, gy, _] = operands(c);
    let [one, two] = [1, 2].map(|threads| {
        crate::pool::set_num_threads(threads);
        let (mut y, mut gw) = (vec![0.0; c.output_len()], w.clone());
        c.forward(&x, &w, None, &mut y);
        c.backward_weight(&gy, &x, &mut gw, Output::Write);
        (y, gw)
    });
    assert!(one == two, "threads change bits");
    let first = Conv { batch: 1, ..c.clone() };
    let mut y = vec![0.0; first.output_len()];
    first.forward(&x[..first.input_len()], &w, None, &mut y);
    assert!(y == one.0[..y.len()], "the batch changes bits");
}
