//! Products against naive sums in f64.

use super::*;
use crate::tuned;

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

fn check<T: Real>(m: usize, n: usize, k: usize, ta: bool, tb: bool, batch: usize, eps: f64) {
    let (a, b) = (noise::<T>(batch * m * k, 1), noise::<T>(batch * k * n, 2));
    let view_a = if ta { Mat::new(&a, k, m).each().t() } else { Mat::new(&a, m, k).each() };
    let view_b = if tb { Mat::new(&b, n, k).each().t() } else { Mat::new(&b, k, n).each() };
    for output in [Output::Write, Output::Accumulate] {
        let old = noise::<T>(batch * m * n, 3);
        let mut c = old.clone();
        batch_matmul(batch, view_a, view_b, MatMut::new(&mut c, m, n), output);
        for e in 0..batch * m * n {
            let (p, i, j) = (e / (m * n), e / n % m, e % n);
            let at = |l: usize| p * m * k + if ta { l * m + i } else { i * k + l };
            let bt = |l: usize| p * k * n + if tb { j * k + l } else { l * n + j };
            let sum: f64 = (0..k).map(|l| a[at(l)].to_f64() * b[bt(l)].to_f64()).sum();
            let want = sum + if output == Output::Accumulate { old[e].to_f64() } else { 0.0 };
            let close = (c[e].to_f64() - want).abs() <= eps * (k as f64 + 1.0).sqrt();
            assert!(close, "{m} {n} {k} {ta} {tb}: {:?} for {want}", c[e]);
        }
    }
}

unit_test!(products_of_all_shapes);
fn products_of_all_shapes() {
    for (m, n, k) in [
        (1, 1, 1),
        (3, 5, 2),
        (7, 1, 9),
        (1, 8, 33),
        (16, 16, 16),
        (17, 65, 3),
        (70, 33, 40),
        (5, 4, 0),
        (5000, 4, 4),
        (100, 16, 3),
        (90, 3, 16),
        (9, 40, 1),
        (300, 70, 1),
        (40, 2, 1),
    ] {
        for t in 0..4 {
            check::<f32>(m, n, k, t & 1 > 0, t & 2 > 0, 1, 1e-6);
            check::<f64>(m, n, k, t & 1 > 0, t & 2 > 0, 3, 1e-15);
        }
    }
}

unit_test!(each_way_of_thin_products);
fn each_way_of_thin_products() {
    for choice in [&tuned::ALWAYS, &tuned::NOWHERE] {
        let _choice = tuned::ask(choice);
        for m in [1, 2, 3, 5, 6] {
            for (n, k) in [(1, 70), (7, 9), (40, 100), (300, 17), (600, 900), (90, 6000)] {
                for t in 0..4 {
                    check::<f32>(m, n, k, t & 1 > 0, t & 2 > 0, 1, 1e-6);
                    check::<f32>(n, m, k, t & 1 > 0, t & 2 > 0, 2, 1e-6);
                }
            }
        }
    }
}

unit_test!(products_of_few_numbers);
/// Many small products, columns and rows among them, and sums of nothing.
fn products_of_few_numbers() {
    for (m, n, k) in
        [(1, 1, 3), (3, 1, 1), (1, 3, 1), (4, 4, 4), (3, 1, 5), (2, 16, 32), (5, 13, 7), (64, 1, 1), (3, 2, 0)]
    {
        for t in 0..4 {
            check::<f32>(m, n, k, t & 1 > 0, t & 2 > 0, 71, 1e-6);
            check::<f64>(m, n, k, t & 1 > 0, t & 2 > 0, 2, 1e-15);
        }
    }
}

unit_test!(few_numbers_give_the_bits_of_one_product);
/// The bits do not tell whether a product was one of many.
fn few_numbers_give_the_bits_of_one_product() {
    let (m, n, k) = (5, 7, 6);
    let (a, b) = (noise::<f32>(9 * m * k, 1), noise::<f32>(9 * k * n, 2));
    let (mut all, mut one) = (vec![0.5; 9 * m * n], vec![0.5; 9 * m * n]);
    let of = |i: usize| (Mat::new(&a[i * m * k..], m, k), Mat::new(&b[i * k * n..], n, k).t());
    batch_matmul(9, of(0).0.each(), of(0).1.each(), MatMut::new(&mut all, m, n), Output::Accumulate);
    for (i, c) in one.chunks_exact_mut(m * n).enumerate() {
        matmul(of(i).0, of(i).1, MatMut::new(c, m, n), Output::Accumulate);
    }
    assert_eq!(all, one);
}

unit_test!(split_products);
fn split_products() {
    check::<f32>(260, 150, 40, false, true, 1, 1e-6);
    check::<f32>(150, 300, 31, true, false, 1, 1e-6);
    check::<f64>(8, 12, 33_000, false, false, 1, 1e-13);
    check::<f32>(12, 8, 33_000, true, true, 1, 1e-4);
    check::<f32>(130, 130, 64, false, false, 2, 1e-6);
}

unit_test!(products_of_any_operands);
/// Operands that lie in order and across, over many columns, over few, with sums long and short.
fn products_of_any_operands() {
    let sizes = [
        (1, 1, 40),
        (1, 300, 70),
        (2, 16, 16),
        (3, 17, 65),
        (5, 301, 100),
        (4, 97, 5000),
        (2, 40, 6000),
        (5, 1100, 9),
        (6, 5, 300),
        (6, 16, 385),
        (7, 33, 769),
        (12, 64, 100),
        (13, 63, 400),
        (14, 64, 900),
        (20, 48, 1300),
        (33, 500, 1030),
        (129, 130, 67),
        (300, 9, 50),
        (400, 3, 90),
        (61, 7, 800),
        // Rows of B that lie where few of a cache's sets are, panels that the first tile lays, A's rows in several pieces.
        (14, 1024, 300),
        (8, 1040, 200),
        (40, 256, 500),
        (180, 200, 400),
        (70, 600, 300),
    ];
    for (m, n, k) in sizes {
        for t in 0..4 {
            check::<f32>(m, n, k, t & 1 > 0, t & 2 > 0, 1, 1e-6);
            check::<f64>(m, n, k, t & 1 > 0, t & 2 > 0, 2, 1e-15);
        }
    }
}

unit_test!(wide_and_tall_products);
/// More columns than are packed at a time, and more rows.
fn wide_and_tall_products() {
    check::<f32>(7, 4000, 5, false, false, 1, 1e-6);
    check::<f32>(4000, 8, 6, true, true, 1, 1e-6);
    check::<f64>(1, 3000, 40, false, true, 1, 1e-15);
    check::<f64>(3000, 1, 400, false, true, 1, 1e-15);
}

unit_test!(products_of_views);
/// Rows and columns with gaps, backward ones that are one row again, and C's numbers beside the product.
fn products_of_views() {
    let (m, n, k) = (9, 21, 33);
    let (a, b) = (noise::<f32>(m * k * 3, 1), noise::<f32>(k * n * 6, 2));
    for (a_strides, b_strides) in
        [([3 * k, 3], [6 * n, 2]), ([0, 1], [n, 1]), ([2, 2 * m], [3, 3 * k]), ([k, 1], [0, 1]), ([1, m], [1, 0])]
    {
        let mut c = vec![0.0; m * n];
        let (x, y) = (Mat::strided(&a, [m, k], a_strides, 0, &[]), Mat::strided(&b, [k, n], b_strides, 0, &[]));
        matmul(x, y, MatMut::new(&mut c, m, n), Output::Write);
        for (e, &c) in c.iter().enumerate() {
            let (i, j) = (e / n, e % n);
            let one = |l: usize| {
                a[i * a_strides[0] + l * a_strides[1]] as f64 * b[l * b_strides[0] + j * b_strides[1]] as f64
            };
            assert!((c as f64 - (0..k).map(one).sum::<f64>()).abs() < 1e-5, "{a_strides:?} {b_strides:?}");
        }
    }
}

unit_test!(across_changes_no_bit);
/// A product of more than a few rows is the same to the bit whether B lies in order or across.
fn across_changes_no_bit() {
    for (m, n, k) in [
        (6, 96, 700),
        (32, 400, 1024),
        (70, 200, 513),
        (130, 61, 64),
        (32, 144, 1024),
        (16, 129, 1500),
        (20, 1024, 900),
    ] {
        let (a, b) = (noise::<f32>(m * k, 1), noise::<f32>(k * n, 2));
        let turned: Vec<f32> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
        // Where B begins in a cache line decides whether it is read there.
        let mut moved = vec![0.0; n * k + 1];
        moved[1..].copy_from_slice(&b);
        for output in [Output::Write, Output::Accumulate] {
            let products = [Mat::new(&b, k, n), Mat::new(&turned, n, k).t(), Mat::new(&moved[1..], k, n)].map(|b| {
                let mut c = vec![0.5; m * n];
                matmul(Mat::new(&a, m, k), b, MatMut::new(&mut c, m, n), output);
                c
            });
            assert!(products[0] == products[1] && products[0] == products[2], "{m} {n} {k}");
        }
    }
}

unit_test!(empty_products);
fn empty_products() {
    let mut c = [5.0f32; 4];
    matmul(Mat::new(&[], 0, 3), Mat::new(&[1.0; 6], 3, 2), MatMut::new(&mut c, 0, 2), Output::Write);
    assert_eq!(c, [5.0; 4]);
    matmul(Mat::new(&[], 2, 0), Mat::new(&[], 0, 2), MatMut::new(&mut c, 2, 2), Output::Accumulate);
    assert_eq!(c, [5.0; 4]);
    matmul(Mat::new(&[], 2, 0), Mat::new(&[], 0, 2), MatMut::new(&mut c, 2, 2), Output::Write);
    assert_eq!(c, [0.0; 4]);
    let large = vec![1.0f32; 600 * 600];
    for b in [Mat::new(&large, 600, 600), Mat::new(&large, 600, 600).t()] {
        matmul(Mat::new(&[], 0, 600), b, MatMut::new(&mut c, 0, 600), Output::Write);
        matmul(b, Mat::new(&[], 600, 0), MatMut::new(&mut c, 600, 0), Output::Write);
    }
}

unit_test!(one_operand_for_the_whole_batch);
fn one_operand_for_the_whole_batch() {
    let (a, b) = (noise::<f64>(6, 1), noise::<f64>(4 * 12, 2));
    let (mut c, mut d) = (vec![0.0; 4 * 8], vec![0.0; 8]);
    batch_matmul(4, Mat::new(&a, 2, 3), Mat::new(&b, 3, 4).each(), MatMut::new(&mut c, 2, 4), Output::Write);
    for i in 0..4 {
        matmul(Mat::new(&a, 2, 3), Mat::new(&b[i * 12..], 3, 4), MatMut::new(&mut d, 2, 4), Output::Write);
        assert_eq!(d, c[i * 8..][..8]);
    }
}

unit_test!(results_do_not_depend_on_the_thread_count);
fn results_do_not_depend_on_the_thread_count() {
    let before = pool::num_threads();
    for (m, n, k) in [
        (300, 260, 70),
        (12, 20, 40_000),
        (64, 2000, 30),
        (1, 1500, 800),
        (1500, 2, 800),
        (700, 90, 1000),
        (64, 1024, 512),
        (200, 1024, 400),
    ] {
        let (a, b) = (noise::<f32>(m * k, 1), noise::<f32>(k * n, 2));
        let results = [1, 2, 3].map(|threads| {
            pool::set_num_threads(threads);
            let mut c = vec![0.0; 2 * m * n];
            for (b, c) in [Mat::new(&b, k, n), Mat::new(&b, n, k).t()].iter().zip(c.chunks_mut(m * n)) {
                matmul(Mat::new(&a, m, k), *b, MatMut::new(c, m, n), Output::Write);
            }
            c
        });
        pool::set_num_threads(before);
        assert!(results[0] == results[1] && results[0] == results[2], "{m} {n} {k}");
    }
}

unit_test!(a_long_product_of_one_thread_is_stopped);
fn a_long_product_of_one_thread_is_stopped() {
    let (m, n, k) = (4000, 3000, 3000);
    let (a, b, mut c) = (vec![0f32; m * k], vec![0f32; k * n], vec![0f32; m * n]);
    let before = pool::num_threads();
    pool::set_num_threads(1);
    let stopped = pool::contained(Some(|| true), || {
        matmul(Mat::new(&a, m, k), Mat::new(&b, k, n), MatMut::new(&mut c, m, n), Output::Write)
    });
    pool::set_num_threads(before);
    assert!(matches!(stopped, Err(pool::End::Stopped)));
}
