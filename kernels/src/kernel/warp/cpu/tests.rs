//! Channels side by side against channels at the end, which are read one place after the other.

use super::*;
use crate::kernel::warp::Padding;

fn numbers(n: usize, seed: usize, size: f64) -> Vec<f64> {
    (0..n).map(|i| (((i * 7919 + seed * 31 + i / 5 * 13) % 1009) as f64 / 504.5 - 1.0) * size).collect()
}

/// Channels at the end.
fn last(x: &[f64], channels: usize, n: usize) -> Vec<f64> {
    let size = channels * n;
    (0..x.len()).map(|i| x[i / size * size + i % channels * n + i % size / channels]).collect()
}

fn close(a: &[f64], b: &[f64], what: &str) {
    assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{what}: {a:?} {b:?}");
}

fn check(w: Warp) {
    let (image, places, all) = (w.image(), w.places(), w.batch * w.channels);
    let (x, gy) = (numbers(all * image, 1, 1.0), numbers(all * places, 2, 1.0));
    let grid = numbers(w.batch * places * w.dims, 3, if w.flow { 3.0 } else { 1.3 });
    let end = Warp { channel_last: true, ..w.clone() };
    assert!(sides::pay(&w) && !sides::pay(&end), "{w:?}");
    let (x_last, gy_last) = (last(&x, w.channels, image), last(&gy, w.channels, places));
    let (mut y, mut y_last) = (vec![9.0; all * places], vec![9.0; all * places]);
    gather(&w, &x, &grid, None, &mut y).unwrap();
    gather(&end, &x_last, &grid, None, &mut y_last).unwrap();
    close(&last(&y, w.channels, places), &y_last, "read");
    for output in [Output::Write, Output::Accumulate] {
        let (mut gx, mut gx_last) = (vec![0.5; all * image], vec![0.5; all * image]);
        spread(&w, &gy, &grid, None, &mut gx, output);
        spread(&end, &gy_last, &grid, None, &mut gx_last, output);
        close(&last(&gx, w.channels, image), &gx_last, "spread");
        let (mut to, mut to_last) = (vec![0.5; grid.len()], vec![0.5; grid.len()]);
        by_places(&w, [&x, &gy, &grid], &mut to, output).unwrap();
        by_places(&end, [&x_last, &gy_last, &grid], &mut to_last, output).unwrap();
        close(&to, &to_last, "places");
    }
}

unit_test!(channels_side_by_side);
fn channels_side_by_side() {
    for (channels, flow) in [(4, false), (16, true), (37, false), (37, true)] {
        for padding in [Padding::Zero, Padding::Repeat, Padding::Reflect] {
            let w = Warp {
                batch: 2,
                channels,
                channel_last: false,
                from: [1, 11, 13],
                to: if flow { [1, 11, 13] } else { [1, 9, 17] },
                dims: 2,
                flow,
                window: None,
                nearest: false,
                padding,
                corners: false,
                order: [0; 3],
            };
            check(w.clone());
            if !flow {
                check(Warp { from: [3, 4, 5], to: [2, 9, 17], dims: 3, corners: true, ..w });
            }
        }
    }
}
