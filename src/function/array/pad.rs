//! `pad`: an array with a border: a constant, its reflection, or its edge; and the reverse, the derivative.

use super::List;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::moves::Moves;
use nnrs_kernels::cpu::scratch::{Scratch, counted};
use nnrs_kernels::cpu::simd::{self, SimdReal};
use nnrs_kernels::cpu::tasks::{Shared, share};
use nnrs_kernels::cuda::pad::{Mode, backward as unpad_on_gpu, forward as pad_on_gpu};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::{SmallVec, smallvec};

function! {
    /// Puts a border around an array. With mode 'reflect' the array is mirrored at its first and last elements, which are not repeated;
    /// with 'repeat' they are the border.
    Pad pad in Array, any_device
    inputs { x: "N-D array." }
    args {
        pad_width: List, "Widths before and after each of the last axes: (before, after, before, after, ..).";
        mode: String = "constant".to_string(), "'constant', 'reflect' or 'repeat'.";
        constant_value: f64 = 0.0, "The border's value for mode 'constant'."
    }
    outputs { y: "N-D array." }
}

/// Size of an axis, and of its border on both sides.
type Axis = (usize, usize, usize);

impl Pad {
    fn axes(&self, x: &Shape) -> Result<SmallVec<[Axis; 6]>> {
        let widths = &self.pad_width;
        if !widths.len().is_multiple_of(2) || widths.len() > 2 * x.ndim() || widths.iter().any(|w| *w < 0) {
            let expected = format!("pairs of widths, 0 or more, for at most the {} axes of x {x}", x.ndim());
            return Err(Error::arg("pad_width", expected).actual(format!("{:?}", widths.0)));
        }
        let lead = x.ndim() - widths.len() / 2;
        let width = |a: usize, side: usize| if a < lead { 0 } else { widths[2 * (a - lead) + side] as usize };
        Ok(x.iter().enumerate().map(|(a, &n)| (n, width(a, 0), width(a, 1))).collect())
    }

    fn inferred(&self, x: &Shape) -> Result<Shape> {
        let sum = |(n, before, after): &Axis| n.saturating_add(*before).saturating_add(*after);
        Ok(self.axes(x)?.iter().map(sum).collect())
    }

    /// For mode 'constant' the copy of x into the middle of y, or the way back.
    fn moves(&self, x: &Shape, to_y: bool) -> Result<Moves> {
        let (axes, y) = (self.axes(x)?, self.inferred(x)?);
        let (xs, ys) = (x.strides(), y.strides());
        let first = axes.iter().zip(&ys).map(|(a, s)| a.1 * s).sum();
        let start = if to_y { Moves::new(first, 0) } else { Moves::new(0, first) };
        Ok((0..x.ndim()).fold(start, |m, a| {
            let (x, y) = (xs[a] as isize, ys[a] as isize);
            if to_y { m.axis(axes[a].0, y, x) } else { m.axis(axes[a].0, x, y) }
        }))
    }

    fn borders(&self, x: &Shape) -> Result<Borders> {
        let reflect = self.mode == "reflect";
        Ok(Borders { axes: self.axes(x)?, xs: x.strides(), reflect, size: x.size() })
    }

    fn is_constant(&self) -> bool {
        self.mode == "constant"
    }

    fn on_gpus(&self) -> Mode {
        match &*self.mode {
            "constant" => Mode::Constant,
            "reflect" => Mode::Reflect,
            _ => Mode::Repeat,
        }
    }

    /// Sums a border made of elements of `x`'s shape onto them.
    fn sum_border(&self, run: &Run, x: &Shape, gy: &Data, gx: &Data, output: Output) -> Result<()> {
        match gx.place() {
            Place::Gpu(_) => unpad_on_gpu(&self.axes(x)?, self.on_gpus(), gy, gx, output),
            Place::Host => {
                let b = self.borders(x)?;
                with_real!(run.dtype, T => b.backward(gy.as_slice::<T>(), gx.as_mut_slice(), output));
                Ok(())
            }
        }
    }
}

impl Function for Pad {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if !["constant", "reflect", "repeat"].contains(&&*self.mode) {
            return Err(Error::arg("mode", "'constant', 'reflect' or 'repeat'").actual(format!("'{}'", self.mode)));
        }
        let hollow = |&(n, before, after): &Axis| n == 0 && before + after > 0;
        if !self.is_constant() && self.axes(&x[0])?.iter().any(hollow) {
            return Err(Error::shape("x", "elements to fill the border with").actual(&x[0]));
        }
        Ok(smallvec![self.inferred(&x[0])?])
    }

    fn scratch(&self, _x: &[&Shape], y: &[&Shape], _dtype: DType) -> [usize; 2] {
        let width = y[0].last().copied().unwrap_or(1);
        [if self.is_constant() { 0 } else { counted(width * size_of::<usize>()) }; 2]
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            // In one pass over the result.
            let v = self.constant_value;
            let value = if run.dtype == DType::F64 { v } else { v as f32 as f64 };
            return pad_on_gpu(&self.axes(x[0].shape)?, self.on_gpus(), value, &x[0].data, &y[0].data);
        }
        if !self.is_constant() {
            let b = self.borders(x[0].shape)?;
            with_real!(run.dtype, T => b.forward(x[0].slice::<T>(), y[0].slice()));
            return Ok(());
        }
        let moves = self.moves(x[0].shape, true)?;
        ops::fill(&y[0].data, self.constant_value)?;
        ops::moves(moves, &y[0].data, &x[0].data, Output::Write)
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
        let output = gx.output;
        match self.is_constant() {
            true => ops::moves(self.moves(gx.shape, false)?, &gx.data, &gy.data, output),
            false => self.sum_border(run, gx.shape, &gy.data, &gx.data, output),
        }
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let x = g.x[0].shape();
        if !self.is_constant() {
            let shape = x[..].into();
            let back = Unpad { shape, pad_width: self.pad_width.clone(), mode: self.mode.clone() };
            return Ok(vec![Some(unpad(&g.gy[0], back)?)]);
        }
        let axes = self.axes(&x)?;
        let start = Some(axes.iter().map(|a| a.1 as i64).collect::<Vec<_>>().into());
        let stop = Some(axes.iter().map(|a| (a.1 + a.0) as i64).collect::<Vec<_>>().into());
        Ok(vec![Some(f::slice(&g.gy[0], f::Slice { start, stop, step: None })?)])
    }
}

/// Borders that are made of x's elements.
struct Borders {
    axes: SmallVec<[Axis; 6]>,
    xs: SmallVec<[usize; 6]>,
    reflect: bool,
    size: usize,
}

impl Borders {
    /// The position on an axis of x that position `i` on the padded axis shows.
    fn source(&self, (n, before, _): Axis, i: usize) -> usize {
        if i >= before && i - before < n || n == 1 {
            return if n == 1 { 0 } else { i - before };
        }
        let (i, n) = (i as i64 - before as i64, n as i64);
        if !self.reflect {
            return i.clamp(0, n - 1) as usize;
        }
        let at = i.rem_euclid(2 * (n - 1));
        at.min(2 * (n - 1) - at) as usize
    }

    fn last(&self) -> Axis {
        self.axes.last().copied().unwrap_or((1, 0, 0))
    }

    /// Where row `r` of the result (all axes but the last) comes from.
    fn row(&self, mut r: usize) -> usize {
        let mut offset = 0;
        for (a, &axis) in self.axes.iter().enumerate().rev().skip(1) {
            let n = axis.0 + axis.1 + axis.2;
            offset += self.source(axis, r % n) * self.xs[a];
            r /= n;
        }
        offset
    }

    fn forward<T: SimdReal>(&self, x: &[T], y: &mut [T]) {
        let (n, before, after) = self.last();
        let width = n + before + after;
        if y.is_empty() {
            return;
        }
        let table = Scratch::each(width, |i| self.source(self.last(), i));
        let (rows, size, shared) = (y.len() / width, y.len(), Shared(y.as_mut_ptr()));
        let (shared, table) = (&shared, &table[..]);
        share(rows, size, move |r| {
            let x = &x[self.row(r)..][..n];
            // SAFETY: row r is inside y, and this task's own.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(r * width), width) };
            y[before..before + n].copy_from_slice(x);
            (0..before).chain(before + n..width).for_each(|i| y[i] = x[table[i]]);
        });
    }

    /// Adds up what shows the same element; batches (axes without a border in front) are shared out.
    fn backward<T: SimdReal>(&self, gy: &[T], gx: &mut [T], output: Output) {
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        let (n, before, after) = self.last();
        let width = n + before + after;
        let batches: usize = self.axes.iter().take_while(|a| a.1 + a.2 == 0).map(|a| a.0).product();
        if gy.is_empty() || batches == 0 {
            return;
        }
        let rows = gy.len() / width;
        // With no border at all the last axis is among the batches too.
        let batches = batches.min(rows);
        let table = Scratch::each(width, |i| self.source(self.last(), i));
        let shared = Shared(gx.as_mut_ptr());
        let (shared, table, per) = (&shared, &table[..], rows / batches);
        share(batches, gy.len(), move |b| {
            for r in b * per..(b + 1) * per {
                let gy = &gy[r * width..][..width];
                let base = self.row(r);
                debug_assert!(base + n <= self.size);
                // SAFETY: a row of the gradient, in this task's batch.
                let gx = unsafe { std::slice::from_raw_parts_mut(shared.0.add(base), n) };
                simd::add_assign(gx, &gy[before..before + n]);
                (0..before).chain(before + n..width).for_each(|i| gx[table[i]] += gy[i]);
            }
        });
    }
}

function! {
    /// Sums the border that `pad` made of x's elements onto them: the reverse of `pad`, its derivative.
    Unpad unpad in Special, any_device
    inputs { x: "N-D array with a border." }
    args {
        shape: List, "Shape without the border.";
        pad_width: List, "As of `pad`.";
        mode: String = "reflect".to_string(), "'reflect' or 'repeat'."
    }
    outputs { y: "N-D array of the given shape." }
}

impl Unpad {
    fn pad(&self) -> Pad {
        Pad { pad_width: self.pad_width.clone(), mode: self.mode.clone(), constant_value: 0.0 }
    }

    fn whole(&self) -> Shape {
        self.shape.iter().map(|&d| d.max(0) as usize).collect()
    }
}

impl Function for Unpad {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let padded = self.pad().inferred(&self.whole())?;
        if padded != x[0] {
            return Err(Error::shape("x", format!("shape {padded}")).actual(&x[0]));
        }
        Ok(smallvec![self.whole()])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.pad().sum_border(run, y[0].shape, &x[0].data, &y[0].data, Output::Write)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(pad(&g.gy[0], self.pad())?)])
    }
}
