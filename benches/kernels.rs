//! Times of the CPU kernels: `cargo bench -p nnrs-kernels [filter]`, on NNRS_BENCH_THREADS threads (1 unless told).

use nnrs_kernels::array::Output;
use nnrs_kernels::gemm::{Mat, MatMut, matmul};
use nnrs_kernels::kernel::convolution::cpu::{ChannelOrder, Conv};
use nnrs_kernels::kernel::convolution::winograd::set_exact;
use nnrs_kernels::kernel::pooling::cpu::{Border, Divisor, Pooling};
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
        (1, 1024, 1024),
        (4, 1024, 1024),
        (1024, 1, 1024),
        (32, 256, 1024),
        (32, 512, 1024),
        (64, 10, 64),
        (64, 64, 64),
        (256, 256, 256),
        (1024, 1024, 1024),
        (128, 1024, 1024),
        (2048, 256, 1024),
        (1024, 256, 2048),
    ] {
        let (a, b, mut c) = (noise(m * k), noise(k * n), vec![0.0; m * n]);
        let ours = time(|| matmul(Mat::new(&a, m, k), Mat::new(&b, k, n), MatMut::new(&mut c, m, n), Output::Write));
        let ours_t =
            time(|| matmul(Mat::new(&a, m, k), Mat::new(&b, n, k).t(), MatMut::new(&mut c, m, n), Output::Write));
        let gf = 2e-3 * (m * n * k) as f64;
        println!("gemm {m:5} {n:5} {k:5}: {ours:9.2} us {:6.1} GFLOP/s, B transposed {ours_t:9.2}", gf / ours);
    }
}

fn convolutions() {
    let square = |batch, in_channels, size, out_channels, k, p, s, layout| Conv {
        batch,
        group: 1,
        in_channels,
        out_channels,
        input: [1, size, size],
        kernel: [1, k, k],
        stride: [1, s, s],
        pad: [0, p, p],
        dilation: [1; 3],
        layout,
    };
    for layout in [ChannelOrder::ChannelFirst, ChannelOrder::ChannelLast] {
        convolution(&Conv { group: 128, ..square(8, 128, 28, 128, 3, 1, 1, layout) });
        convolution(&Conv { group: 128, ..square(8, 128, 28, 128, 3, 1, 2, layout) });
        convolution(&Conv { group: 256, ..square(16, 256, 14, 256, 3, 1, 1, layout) });
    }
    for (n, c, h, oc, k, p, s) in [
        (64, 1, 28, 16, 5, 0, 1),
        (64, 16, 12, 16, 5, 0, 1),
        (8, 64, 56, 64, 3, 1, 1),
        (8, 128, 28, 128, 3, 1, 1),
        (8, 256, 14, 256, 3, 1, 1),
        (8, 512, 7, 512, 3, 1, 1),
        (8, 64, 56, 128, 3, 1, 2),
        (8, 256, 14, 512, 1, 0, 1),
        (16, 256, 56, 64, 1, 0, 1),
        (16, 512, 14, 512, 1, 0, 1),
        (16, 512, 7, 2048, 1, 0, 1),
        (8, 3, 224, 64, 7, 3, 2),
        (16, 3, 112, 64, 7, 3, 2),
        (16, 64, 28, 128, 3, 1, 2),
        (16, 128, 14, 256, 3, 1, 2),
        (16, 256, 7, 512, 3, 1, 2),
        (16, 128, 14, 256, 1, 0, 2),
        (1, 64, 56, 128, 3, 1, 2),
        (1, 128, 28, 256, 3, 1, 2),
        (1, 256, 14, 512, 3, 1, 2),
        (1, 256, 14, 512, 1, 0, 2),
        (1, 512, 7, 512, 3, 1, 1),
    ] {
        for layout in [ChannelOrder::ChannelFirst, ChannelOrder::ChannelLast] {
            convolution(&square(n, c, h, oc, k, p, s, layout));
        }
    }
}

/// Winograd's way beside the direct kernels, turn about.
fn winograds() {
    for (channels, size) in [(32, 56), (64, 56), (128, 28), (256, 14), (256, 7), (512, 7), (512, 4)] {
        for batch in [1, 4, 16] {
            let sides = [1, size, size];
            let (kernel, pad, layout) = ([1, 3, 3], [0, 1, 1], ChannelOrder::ChannelFirst);
            let (in_channels, out_channels) = (channels, channels);
            let (stride, dilation, group) = ([1; 3], [1; 3], 1);
            let c =
                Conv { batch, group, in_channels, out_channels, input: sides, kernel, stride, pad, dilation, layout };
            beside(&c);
        }
    }
}

fn beside(c: &Conv) {
    let (x, w) = (noise(c.input_len()), noise(c.weight_len()));
    let (mut y, mut gx) = (x.clone(), x.clone());
    let (mut gw, mut best) = (w.clone(), [[f64::MAX; 3]; 2]);
    for round in 0..6 {
        let old = set_exact(round % 2 == 0);
        let forward = time(|| c.forward(&x, &w, None, &mut y));
        let data = time(|| c.backward_data(&x, &w, &mut gx, Output::Write));
        let weight = time(|| c.backward_weight(&y, &x, &mut gw, Output::Write));
        set_exact(old);
        let best = &mut best[round % 2];
        *best = [best[0].min(forward), best[1].min(data), best[2].min(weight)];
    }
    let rate = 2e-3 * (y.len() * w.len() / c.out_channels) as f64;
    let [direct, winograd] = best;
    println!(
        "conv {:2}x{:3}x{:2}: forward {:4.0} -> {:4.0} GFLOP/s ({:.2}), data {:4.0} -> {:4.0} ({:.2}), weight {:4.0} -> {:4.0} ({:.2})",
        c.batch,
        c.in_channels,
        c.input[2],
        rate / direct[0],
        rate / winograd[0],
        direct[0] / winograd[0],
        rate / direct[1],
        rate / winograd[1],
        direct[1] / winograd[1],
        rate / direct[2],
        rate / winograd[2],
        direct[2] / winograd[2]
    );
}

fn convolution(c: &Conv) {
    let (x, w, b, gy) = (noise(c.input_len()), noise(c.weight_len()), noise(c.out_channels), noise(c.output_len()));
    let (mut y, mut gx, mut gw, mut gb) = (gy.clone(), x.clone(), w.clone(), b.clone());
    let forward = time(|| c.forward(&x, &w, Some(&b), &mut y));
    let data = time(|| c.backward_data(&gy, &w, &mut gx, Output::Write));
    let weight = time(|| {
        c.backward_weight(&gy, &x, &mut gw, Output::Write);
        c.backward_bias(&gy, &mut gb, Output::Write);
    });
    let gf = 2e-3 * (gy.len() * w.len() / c.out_channels) as f64;
    println!(
        "conv g{} {:3}x{:3}x{:3} -> {:3} k{} s{} {:?}: forward {forward:7.0} us {:4.0} GFLOP/s, data {data:7.0} {:4.0}, weight+bias {weight:7.0} {:4.0}",
        c.group,
        c.batch,
        c.in_channels,
        c.input[2],
        c.out_channels,
        c.kernel[2],
        c.stride[2],
        c.layout,
        gf / forward,
        gf / data,
        gf / weight
    );
}

fn poolings() {
    for (outer, inner, size, k, s, p) in [
        (64 * 16, 1, 24, 2, 2, 0),
        (64 * 16, 1, 8, 2, 2, 0),
        (64, 16, 24, 2, 2, 0),
        (512, 1, 112, 3, 2, 1),
        (4096, 1, 56, 3, 2, 1),
        (512, 1, 56, 3, 2, 1),
        (8, 64, 112, 3, 2, 1),
    ] {
        let p = Pooling {
            outer,
            inner,
            input: [1, size, size],
            kernel: [1, k, k],
            stride: [1, s, s],
            pad: [0, p, p],
            border: Border::Keep,
        };
        let (x, gy) = (noise(p.input_len()), noise(p.output_len()));
        let (mut y, mut gx) = (gy.clone(), x.clone());
        let max = time(|| p.max_forward(&x, &mut y));
        let max_back = time(|| p.max_backward(&gy, &x, &mut gx, Output::Write));
        let mean = time(|| p.sum_forward(&x, &mut y, Divisor::Padded));
        let mean_back = time(|| p.sum_backward(&gy, &mut gx, Divisor::Padded, Output::Write));
        println!(
            "pooling {outer}x{size}x{size}x{inner} k{k}: max {max:6.0} us, backward {max_back:6.0}, average {mean:6.0}, backward {mean_back:6.0}"
        );
    }
}

fn softmaxes() {
    use nnrs_kernels::kernel::axis::Axis;
    use nnrs_kernels::kernel::softmax::cpu as softmax;
    for (outer, n, inner) in [(64, 10, 1), (256, 1000, 1), (4096, 512, 1), (8, 21, 65536), (32, 1000, 49)] {
        let a = Axis { outer, n, inner };
        let (x, gy, mut y) = (noise(outer * n * inner), noise(outer * n * inner), vec![0.0; outer * n * inner]);
        let label: Vec<i64> = (0..outer * inner).map(|i| (i * 7 % n) as i64).collect();
        let (ones, mut loss) = (vec![1.0; outer * inner], vec![0.0; outer * inner]);
        let entropy = time(|| softmax::cross_entropy(a, &x, &label, &mut loss));
        let (mut terms, mut sums) = (x.clone(), ones.clone());
        softmax::cross_entropy_keeping(a, &x, &label, &mut loss, &mut terms, &mut sums);
        let entropy_back =
            time(|| softmax::cross_entropy_backward(a, &terms, &sums, &label, &ones, &mut y, Output::Write));
        let log = time(|| softmax::log_softmax(a, &x, &mut y));
        let log_back = time(|| softmax::log_softmax_backward(a, &x, &gy, &mut y, Output::Write));
        let soft = time(|| softmax::softmax(a, &x, &mut y));
        let soft_back = time(|| softmax::softmax_backward(a, &x, &gy, &mut y, Output::Write));
        println!(
            "softmax {outer}x{n}x{inner}: {soft:7.1} us, backward {soft_back:7.1}, log {log:7.1}, backward {log_back:7.1}, cross entropy {entropy:7.1}, backward {entropy_back:7.1}"
        );
    }
}

/// Vector loops over a tile that stays in the L1 cache: nanoseconds for 16 elements.
fn loops() {
    use nnrs_kernels::expr::op::{Binary, Unary};
    use nnrs_kernels::simd;
    const N: usize = 512;
    let (a, b, mut y) = (noise(N), noise(N), vec![0f32; N]);
    for op in [Unary::Neg, Unary::Exp, Unary::Sigmoid, Unary::Tanh, Unary::Log, Unary::Erf, Unary::Sin, Unary::Sqrt] {
        // SAFETY: all have N elements.
        let t = time(|| (0..64).for_each(|_| unsafe { simd::unary(op, y.as_mut_ptr(), a.as_ptr(), N) }));
        println!("{op:?}: {:.2} ns", t * 1e3 / 64.0 / (N / 16) as f64);
    }
    for op in [Binary::Add, Binary::Mul, Binary::Div, Binary::Gt] {
        // SAFETY: all have N elements.
        let t = time(|| (0..64).for_each(|_| unsafe { simd::binary(op, y.as_mut_ptr(), a.as_ptr(), b.as_ptr(), N) }));
        println!("{op:?}: {:.2} ns", t * 1e3 / 64.0 / (N / 16) as f64);
    }
}

fn main() {
    let threads = std::env::var("NNRS_BENCH_THREADS").ok().and_then(|v| v.parse().ok());
    nnrs_kernels::pool::set_num_threads(threads.unwrap_or(1));
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    for (name, run) in [
        ("gemm", products as fn()),
        ("conv", convolutions),
        ("winograd", winograds),
        ("pooling", poolings),
        ("softmax", softmaxes),
        ("loops", loops),
    ] {
        if name.contains(&filter) {
            run();
        }
    }
}
