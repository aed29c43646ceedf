//! Products and their gradients against loops.

use super::*;

unit_test!(products_and_gradients_match_loops);
fn products_and_gradients_match_loops() {
    let cases: &[(&[usize], &[bool])] = &[
        (&[3, 4, 5], &[false, true, false]),
        (&[3, 4, 5], &[true, false, true]),
        (&[3, 4, 5], &[true, true, true]),
        (&[3, 4, 5], &[false, false, false]),
        (&[40, 2000], &[true, false]),
        (&[2000, 40], &[false, true]),
        (&[2, 40_000], &[false, true]),
        (&[40, 3], &[false, true]),
        (&[300, 17], &[false, true]),
        (&[], &[]),
    ];
    for (shape, reduced) in cases {
        let shape = Shape::from(*shape);
        let x: Vec<f64> = (0..shape.size()).map(|i| 1.0 + ((i * 31 % 17) as f64 - 8.0) / 1e3).collect();
        let strides = shape.strides();
        let kept: Vec<usize> = (0..shape.ndim()).filter(|&a| !reduced[a]).collect();
        let number = |i: usize| kept.iter().fold(0, |n, &a| n * shape[a] + i / strides[a] % shape[a]);
        let mut want = vec![1.0; kept.iter().map(|&a| shape[a]).product()];
        x.iter().enumerate().for_each(|(i, v)| want[number(i)] *= v);
        let mut y = vec![0.0; want.len()];
        prod_axes(&x, &shape, reduced, &mut y);
        assert!(y.iter().zip(&want).all(|(y, w)| (y - w).abs() < 1e-10 * w.abs()), "{shape} {reduced:?}");
        let gy: Vec<f64> = (0..y.len()).map(|r| r as f64 + 1.0).collect();
        let mut gx = vec![0.25; x.len()];
        prod_backward(&x, &shape, reduced, &gy, &mut gx, Output::Accumulate);
        for (i, g) in gx.iter().enumerate() {
            let w = 0.25 + gy[number(i)] * want[number(i)] / x[i];
            assert!((g - w).abs() < 1e-9 * w.abs(), "{shape} {reduced:?}");
        }
    }
}

unit_test!(speed_of_products, ignore = "prints a measurement");
/// `cargo test --release --features emulate -- --ignored --nocapture speed_of_products`
fn speed_of_products() {
    let n = 1000;
    let (x, gy, mut gx) = (vec![1.001f32; n * n], vec![1f32; n], vec![0f32; n * n]);
    for reduced in [[false, true], [true, false]] {
        let mut gradient = || prod_backward(&x, &[n, n].into(), &reduced, &gy, &mut gx, Output::Accumulate);
        let best = (0..50).map(|_| (std::time::Instant::now(), gradient()).0.elapsed()).min();
        println!("{reduced:?}: {:.3} ns an element", best.unwrap().as_secs_f64() * 1e9 / (n * n) as f64);
    }
}

unit_test!(zeros);
fn zeros() {
    let mut gx = [9.0; 6];
    prod_backward(&[2.0, 0.0, 3.0, 0.0, 0.0, 5.0], &[2, 3].into(), &[false, true], &[1.0, 1.0], &mut gx, Output::Write);
    assert_eq!(gx, [0.0, 6.0, 0.0, 0.0, 0.0, 0.0]);
}
