//! Times of the CPU kernels: `cargo bench --bench kernels [filter]`.

use nnrs::cpu::gemm::{Mat, MatMut, Output, matmul};
use std::time::Instant;

/// The best of a few means, in microseconds.
fn time(mut f: impl FnMut()) -> f64 {
    f();
    let mut best = f64::MAX;
    for _ in 0..6 {
        let (start, mut calls) = (Instant::now(), 0);
        while start.elapsed().as_secs_f64() < 0.05 {
            f();
            calls += 1;
        }
        best = best.min(start.elapsed().as_secs_f64() / calls as f64);
    }
    best * 1e6
}

fn noise(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5).collect()
}

fn products() {
    for (m, n, k) in [
        (4, 4, 4),
        (8, 8, 8),
        (15, 15, 15),
        (16, 16, 16),
        (1, 64, 64),
        (64, 10, 64),
        (64, 64, 64),
        (256, 256, 256),
        (1024, 1024, 1024),
    ] {
        let (a, b, mut c) = (noise(m * k), noise(k * n), vec![0.0; m * n]);
        let ours = time(|| matmul(Mat::new(&a, m, k), Mat::new(&b, k, n), MatMut::new(&mut c, m, n), Output::Write));
        let ours_t =
            time(|| matmul(Mat::new(&a, m, k), Mat::new(&b, n, k).t(), MatMut::new(&mut c, m, n), Output::Write));
        let mut unsplit = |rsb: isize, csb: isize| {
            // SAFETY: the slices have the sizes that the call says.
            time(|| unsafe {
                let (n, k) = (n as isize, k as isize);
                let (cp, ap, bp) = (c.as_mut_ptr(), a.as_ptr(), b.as_ptr());
                let none = gemm::Parallelism::None;
                gemm::gemm(
                    m, n as usize, k as usize, cp, 1, n, false, ap, 1, k, bp, csb, rsb, 1.0f32, 1.0, false, false,
                    false, none,
                );
            })
        };
        let (whole, whole_t) = (unsplit(n as isize, 1), unsplit(1, k as isize));
        let gf = 2e-3 * (m * n * k) as f64;
        println!(
            "gemm {m:5} {n:5} {k:5}: {ours:9.2} us {:6.1} GFLOP/s, B transposed {ours_t:9.2}, crate unsplit {whole:9.2} {whole_t:9.2}",
            gf / ours
        );
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    for (name, run) in [("gemm", products as fn())] {
        if name.contains(&filter) {
            run();
        }
    }
}
