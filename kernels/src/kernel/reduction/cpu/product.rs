//! Products over axes, and their gradient, which is right where elements are zero: no division.

use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::expr::op::Binary;
use crate::kernel::reduction::axes::ReductionAxes;
use crate::pool::tasks::{Shared, share};
use crate::shape::Shape;
use crate::simd::{self, SimdReal};

/// Neighbouring elements that one task multiplies.
const PART: usize = 1 << 15;
const LANES: usize = 16;
/// Neighbouring results that are made together.
const COLUMNS: usize = 1024;

/// The product of neighbours, in lanes.
fn product<T: SimdReal>(x: &[T]) -> T {
    let mut lanes = [T::ONE; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    for c in chunks {
        lanes.iter_mut().zip(c).for_each(|(l, &v)| *l = *l * v);
    }
    lanes.iter_mut().zip(rest).for_each(|(l, &v)| *l = *l * v);
    lanes.iter().fold(T::ONE, |p, &l| p * l)
}

/// Multiplies over the axes that are reduced.
pub fn prod_axes<T: SimdReal>(x: &[T], shape: &Shape, reduced: &[bool], y: &mut [T]) {
    if x.is_empty() {
        return y.fill(T::ONE);
    }
    let axes = ReductionAxes::new(shape, reduced);
    match axes.reduced_last() {
        Some(n) => rows(x, &axes, n, y),
        None => columns(x, &axes, y),
    }
}

/// Results over runs of `n` neighbours; the runs are multiplied in parts of a fixed size.
fn rows<T: SimdReal>(x: &[T], axes: &ReductionAxes, n: usize, y: &mut [T]) {
    let (runs, parts) = (axes.count(true) / n, n.div_ceil(PART));
    let mut products = Scratch::filled(y.len() * runs * parts, T::ONE);
    let shared = Shared(products.as_mut_ptr());
    let shared = &shared;
    share(products.len(), x.len(), move |i| {
        let (r, run, first) = (i / parts / runs, i / parts % runs, i % parts * PART);
        let run = &x[axes.row_offset(r) + axes.reduced_offset(run * n)..][..n];
        // SAFETY: task i alone writes element i.
        unsafe { shared.0.add(i).write(product(&run[first..n.min(first + PART)])) };
    });
    y.iter_mut().zip(products.chunks(runs * parts)).for_each(|(y, p)| *y = product(p));
}

/// Neighbouring results, some columns at a time.
fn columns<T: SimdReal>(x: &[T], axes: &ReductionAxes, y: &mut [T]) {
    let (inner, rows) = (axes.inner(), y.len() / axes.inner());
    let blocks = inner.div_ceil(COLUMNS);
    let shared = Shared(y.as_mut_ptr());
    let shared = &shared;
    share(rows * blocks, x.len(), move |task| {
        let (row, first) = (task / blocks, task % blocks * COLUMNS);
        let width = COLUMNS.min(inner - first);
        // SAFETY: tasks write disjoint parts of y.
        let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(row * inner + first), width) };
        let base = axes.row_offset(row) + first;
        y.copy_from_slice(&x[base..base + width]);
        for k in 1..axes.count(true) {
            let x = &x[base + axes.reduced_offset(k)..][..width];
            // SAFETY: both have `width` elements.
            unsafe { simd::binary(Binary::Mul, y.as_mut_ptr(), y.as_ptr(), x.as_ptr(), width) };
        }
    });
}

/// The gradient: of each element the product of all others, from the left and from the right.
pub fn prod_backward<T: SimdReal>(x: &[T], shape: &Shape, reduced: &[bool], gy: &[T], gx: &mut [T], output: Output) {
    if x.is_empty() {
        return;
    }
    let axes = ReductionAxes::new(shape, reduced);
    let (inner, count) = (axes.inner(), axes.count(true));
    let mut offsets = Scratch::filled(count, 0);
    offsets.iter_mut().enumerate().for_each(|(k, o)| *o = axes.reduced_offset(k));
    let shared = Shared(gx.as_mut_ptr());
    let (shared, offsets, axes) = (&shared, &offsets[..], &axes);
    share(gy.len(), x.len(), move |r| {
        let base = axes.row_offset(r / inner) + r % inner;
        let mut left = Scratch::filled(count, T::ONE);
        let mut product = gy[r];
        for (left, o) in left.iter_mut().zip(offsets) {
            *left = product;
            product = product * x[base + o];
        }
        let mut right = T::ONE;
        for (o, &left) in offsets.iter().zip(left.iter()).rev() {
            // SAFETY: inside the gradient; each result has elements of its own.
            let g = unsafe { &mut *shared.0.add(base + o) };
            *g = left * right + if output == Output::Write { T::ZERO } else { *g };
            right = right * x[base + o];
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_gradients_match_loops() {
        let cases: &[(&[usize], &[bool])] = &[
            (&[3, 4, 5], &[false, true, false]),
            (&[3, 4, 5], &[true, false, true]),
            (&[3, 4, 5], &[true, true, true]),
            (&[3, 4, 5], &[false, false, false]),
            (&[40, 2000], &[true, false]),
            (&[2000, 40], &[false, true]),
            (&[2, 40_000], &[false, true]),
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

    #[test]
    fn zeros() {
        let mut gx = [9.0; 6];
        prod_backward(
            &[2.0, 0.0, 3.0, 0.0, 0.0, 5.0],
            &[2, 3].into(),
            &[false, true],
            &[1.0, 1.0],
            &mut gx,
            Output::Write,
        );
        assert_eq!(gx, [0.0, 6.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
