//! `global_average_pooling`: the mean of each image's channel.

use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::pool;
use nnrs_kernels::cpu::simd::{self, SimdReal};
use nnrs_kernels::cuda::program;
use nnrs_kernels::cuda::reduce::{self, Reduction};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;
use std::sync::Mutex;

function! {
    /// Mean over all axes after the first two.
    GlobalAveragePooling global_average_pooling in Layer, any_device
    inputs { x: "Array of shape (N, C, ..)." }
    args {}
    outputs { y: "Array of shape (N, C, 1, 1)." }
}

impl Function for GlobalAveragePooling {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        match x[0].ndim() {
            0 | 1 => Err(Error::shape("x", "two axes at least, (N, C, ..)").actual(&x[0])),
            _ => Ok(smallvec![Shape::from([x[0][0], x[0][1], 1, 1])]),
        }
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let n = x[0].shape.size_from(2);
        if let Place::Gpu(_) = y[0].data.place() {
            let rows = Shape::from([y[0].shape.size(), n]);
            let (sum, scale) = (Reduction::Sum, 1.0 / n as f64);
            return reduce::reduce(sum, &x[0].data, &rows, &[false, true], &y[0].data, scale, Output::Write);
        }
        with_real!(run.dtype, T => {
            let (x, y) = (x[0].slice::<T>(), y[0].slice::<T>());
            by_rows(y, 1, n, |first, y| {
                let mean = |(i, y): (usize, &mut T)| *y = simd::sum(&x[(first + i) * n..][..n]) / n as T;
                y.iter_mut().enumerate().for_each(mean);
            });
        });
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let (n, output) = (gx.shape.size_from(2), gx.output);
        if n == 0 {
            return Ok(());
        }
        if let Place::Gpu(_) = gx.data.place() {
            let (one, all) = (Shape::from([gy.shape.size(), 1]), Shape::from([gy.shape.size(), n]));
            return program::broadcast(&gy.data, &one, &gx.data, &all, 1.0 / n as f64, output);
        }
        with_real!(run.dtype, T => {
            let gy = gy.slice::<T>();
            by_rows(gx.slice::<T>(), n, n, |first, gx| {
                for (row, &g) in gx.chunks_exact_mut(n).zip(&gy[first..]) {
                    let g = g / n as T;
                    if output == Output::Write { row.fill(g) } else { simd::add_scalar(row, g) }
                }
            });
        });
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let x = g.x[0].shape();
        let ones: Shape = x.iter().enumerate().map(|(i, &n)| if i < 2 { n } else { 1 }).collect();
        let gy = f::reshape(&g.gy[0], f::Reshape::to(&ones))?;
        let all = f::broadcast(&gy, f::Broadcast { shape: x.iter().map(|&n| n as i64).collect() })?;
        let val = 1.0 / x.size_from(2).max(1) as f64;
        Ok(vec![Some(f::mul_scalar(&all, f::MulScalar { val, inplace: false })?)])
    }
}

/// Calls `f(first row, rows)` on parts of `y`, in rows of `width`, each of which costs `work`.
fn by_rows<T: SimdReal>(y: &mut [T], width: usize, work: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let each = ((1 << 14) / work.max(1)).max(1);
    let parts: Vec<_> = y.chunks_mut(each * width).map(Mutex::new).collect();
    pool::run(parts.len(), &|i| {
        let mut part = parts[i].lock().unwrap_or_else(|e| e.into_inner());
        f(i * each, &mut part);
    });
}
