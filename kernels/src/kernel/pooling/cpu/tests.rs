//! Pooling against naive windows in f64, and against what NNabla 1.39 gave.

use super::*;

/// Few different numbers, so that there are ties.
fn steps(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + seed * 31 + i / 5 * 13) % 11) as f64 - 5.0).collect()
}

/// Every output's input places, in order, and the number of padded positions.
fn windows(p: &Pooling) -> Vec<(Vec<usize>, usize)> {
    let (out, mut all) = (p.output(), Vec::new());
    for e in 0..p.output_len() {
        let (c, o) = (e % p.inner, e / p.inner);
        let at = [o / out[2] / out[1] % out[0], o / out[2] % out[1], o % out[2]];
        let from: [isize; 3] = std::array::from_fn(|i| (at[i] * p.stride[i]) as isize - p.pad[i] as isize);
        let (mut places, mut padded) = (Vec::new(), 0);
        for k in 0..p.kernel.iter().product::<usize>() {
            let t = [k / p.kernel[2] / p.kernel[1], k / p.kernel[2] % p.kernel[1], k % p.kernel[2]];
            let q: [isize; 3] = std::array::from_fn(|i| from[i] + t[i] as isize);
            padded += (0..3).all(|i| q[i] < (p.input[i] + p.pad[i]) as isize) as usize;
            if (0..3).all(|i| (0..p.input[i] as isize).contains(&q[i])) {
                let plane = o / (out[0] * out[1] * out[2]);
                let row = (plane * p.input[0] + q[0] as usize) * p.input[1] + q[1] as usize;
                places.push((row * p.input[2] + q[2] as usize) * p.inner + c);
            }
        }
        all.push((places, padded));
    }
    all
}

fn same<T: SimdReal>(what: &str, p: &Pooling, got: &[T], want: &[f64]) {
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let g = g.to_f64();
        let equal = g == *w || (g.is_nan() && w.is_nan()) || (g - w).abs() < 1e-5 * (1.0 + w.abs());
        assert!(equal, "{what} of {p:?} at {i}: {g} for {w}");
    }
}

fn first_largest(places: &[usize], x: &[f64]) -> Option<usize> {
    places.iter().copied().reduce(|m, v| if x[v] > x[m] { v } else { m })
}

fn kept<T: SimdReal, I: WindowIndex>(p: &Pooling, x: &[T]) -> Vec<T> {
    let mut y = vec![T::ONE; p.output_len()];
    p.max_forward_keeping(x, &mut y, &mut vec![I::new(0); p.output_len()]);
    y
}

fn by_places<T: SimdReal, I: WindowIndex>(p: &Pooling, x: &[T], gy: &[T], mut gx: Vec<T>, output: Output) -> Vec<T> {
    let mut places = vec![I::new(0); gy.len()];
    p.max_forward_keeping(x, &mut gy.to_vec(), &mut places);
    p.max_backward_to(gy, &places, &mut gx, output);
    gx
}

fn check<T: SimdReal>(p: &Pooling) {
    let (x, gy, old) = (steps(p.input_len(), 1), steps(p.output_len(), 2), steps(p.input_len(), 3));
    let of = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
    let windows = windows(p);
    let mut y = vec![T::ONE; gy.len()];
    let largest = windows.iter().map(|(w, _)| first_largest(w, &x));
    let want: Vec<f64> = largest.clone().map(|i| i.map_or(f64::NEG_INFINITY, |i| x[i])).collect();
    p.max_forward(&of(&x), &mut y);
    same("max", p, &y, &want);
    let maxima = want;
    for output in [Output::Write, Output::Accumulate] {
        let start = if output == Output::Write { vec![0.0; old.len()] } else { old.clone() };
        let (mut want, mut gx) = (start.clone(), of(&old));
        largest.clone().zip(&gy).for_each(|(i, g)| {
            if let Option::Some(i) = i {
                want[i] += g
            }
        });
        p.max_backward(&of(&gy), &of(&x), &mut gx, output);
        same("gradient of max", p, &gx, &want);
        let mut places = vec![
            (kept::<T, u32>(p, &of(&x)), by_places::<T, u32>(p, &of(&x), &of(&gy), of(&old), output)),
            (kept::<T, u16>(p, &of(&x)), by_places::<T, u16>(p, &of(&x), &of(&gy), of(&old), output)),
        ];
        if p.place_type().unwrap() == DType::U8 {
            places.push((kept::<T, u8>(p, &of(&x)), by_places::<T, u8>(p, &of(&x), &of(&gy), of(&old), output)));
        }
        for (y, gx) in &places {
            same("max with places", p, y, &maxima);
            same("gradient of max by places", p, gx, &want);
        }
        for divisor in [Divisor::One, Divisor::Padded, Divisor::Inside] {
            let (mut want, mut gx) = (start.clone(), of(&old));
            let mut sums = Vec::new();
            for ((places, padded), g) in windows.iter().zip(&gy) {
                let by = [1, *padded, places.len()][divisor as usize] as f64;
                places.iter().for_each(|&i| want[i] += g / by);
                sums.push(places.iter().map(|&i| x[i]).sum::<f64>() / by);
            }
            p.sum_forward(&of(&x), &mut y, divisor);
            same("sum", p, &y, &sums);
            p.sum_backward(&of(&gy), &mut gx, divisor, output);
            same("gradient of sum", p, &gx, &want);
        }
    }
}

unit_test!(windows_of_all_kinds);
fn windows_of_all_kinds() {
    for border in [Border::Ignore, Border::Keep] {
        for (outer, inner) in [(3, 1), (2, 5), (0, 1), (21, 1)] {
            for (input, kernel, stride, pad) in [
                ([1, 4, 6], [1, 2, 2], [1, 2, 2], [0, 0, 0]),
                ([1, 3, 3], [1, 3, 3], [1, 3, 3], [0, 0, 0]),
                ([1, 5, 5], [1, 3, 3], [1, 1, 1], [0, 1, 1]),
                ([1, 5, 7], [1, 2, 2], [1, 2, 2], [0, 0, 0]),
                ([1, 4, 71], [1, 2, 2], [1, 2, 2], [0, 0, 0]),
                ([1, 2, 33], [1, 2, 2], [1, 2, 2], [0, 0, 0]),
                ([1, 7, 9], [1, 3, 3], [1, 2, 2], [0, 1, 1]),
                ([1, 9, 56], [1, 3, 3], [1, 2, 2], [0, 1, 1]),
                ([1, 2, 37], [1, 1, 5], [1, 1, 2], [0, 0, 2]),
                ([2, 5, 40], [2, 3, 4], [1, 2, 2], [1, 1, 3]),
                ([1, 3, 66], [1, 2, 1], [1, 1, 2], [0, 0, 1]),
                ([1, 7, 20], [1, 3, 2], [1, 1, 1], [0, 1, 1]),
                ([3, 5, 6], [2, 3, 2], [2, 1, 3], [1, 0, 1]),
                ([1, 2, 2], [1, 2, 2], [1, 2, 2], [0, 2, 2]),
                ([1, 1, 11], [1, 1, 3], [1, 1, 4], [0, 0, 2]),
                ([1, 3, 3], [1, 5, 5], [1, 5, 5], [0, 3, 3]),
                ([1, 14, 28], [1, 5, 5], [1, 5, 5], [0, 0, 0]),
                ([3, 4, 11], [2, 3, 3], [1, 3, 3], [1, 1, 1]),
            ] {
                let p = Pooling { outer, inner, input, kernel, stride, pad, border };
                check::<f32>(&p);
                check::<f64>(&p);
            }
        }
    }
}

unit_test!(sizes_as_nnabla_has_them);
fn sizes_as_nnabla_has_them() {
    let size = |n, k, s, p, border| {
        Pooling { outer: 1, inner: 1, input: [1, 1, n], kernel: [1, 1, k], stride: [1, 1, s], pad: [0, 0, p], border }
            .output()[2]
    };
    // (input, kernel, stride, pad) and the sizes without and with the cut windows, as NNabla 1.39 gave them.
    for (n, k, s, p, ignore, keep) in
        [(4, 2, 1, 0, 3, 4), (4, 2, 2, 2, 4, 3), (7, 3, 2, 1, 4, 4), (7, 2, 3, 2, 4, 3), (5, 2, 3, 0, 2, 2)]
    {
        assert_eq!((size(n, k, s, p, Border::Ignore), size(n, k, s, p, Border::Keep)), (ignore, keep));
    }
}

unit_test!(not_a_number_wins_wherever_it_is);
fn not_a_number_wins_wherever_it_is() {
    for (kernel, n) in [([1, 2, 2], 2), ([1, 2, 4], 1)] {
        let p = Pooling {
            outer: 1,
            inner: 1,
            input: [1, 2, 4],
            kernel,
            stride: kernel,
            pad: [0; 3],
            border: Border::Ignore,
        };
        // One in the first window, at each place; or two, of which the last one has the gradient.
        for (first, last) in [(0, 0), (1, 1), (4, 4), (5, 5), (0, 5), (1, 4)] {
            let mut x = [0.0f32, 1.0, 2.0, 4.0, 1.0, 3.0, 2.0, 5.0];
            (x[first], x[last]) = (f32::NAN, f32::NAN);
            let (mut y, mut gx) = (vec![0.0; n], [0.0; 8]);
            p.max_forward(&x, &mut y);
            assert!(y[0].is_nan() && (n == 1 || y[1] == 5.0));
            p.max_backward(&[1.0, 2.0][..n], &x, &mut gx, Output::Write);
            let mut want = [0.0; 8];
            (want[last], want[7]) = (1.0, if n == 2 { 2.0 } else { 0.0 });
            assert_eq!(gx, want);
            assert_eq!(by_places::<f32, u16>(&p, &x, &[1.0, 2.0][..n], gx.to_vec(), Output::Write), want);
        }
    }
}

unit_test!(the_first_of_minus_infinities_counts);
fn the_first_of_minus_infinities_counts() {
    for (input, kernel, stride, pad) in
        [([1, 4, 41], [1, 3, 3], [1, 2, 2], [0, 1, 1]), ([1, 4, 7], [1, 2, 2], [1, 1, 1], [0, 0, 0])]
    {
        let p = Pooling { outer: 1, inner: 1, input, kernel, stride, pad, border: Border::Ignore };
        let x = vec![f32::NEG_INFINITY; p.input_len()];
        let mut want = vec![0.0f32; p.input_len()];
        for (places, _) in windows(&p) {
            want[places[0]] += 1.0;
        }
        let gy = vec![1.0f32; p.output_len()];
        assert_eq!(by_places::<f32, u16>(&p, &x, &gy, vec![0.0; x.len()], Output::Write), want);
    }
}
