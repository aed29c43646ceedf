//! Batch and layer normalization of arrays on a GPU.

use super::batch_normalization::{BatchNormalization, no_forward};
use super::layer_normalization::LayerNormalization;
use super::layout::Layout;
use crate::function::{GradMut, Output, Run, View, ViewMut};
use nnrs_kernels::array::Data;
use nnrs_kernels::context::compute_dtype;
use nnrs_kernels::cpu::moves::Moves;
use nnrs_kernels::cuda::kernels::fill;
use nnrs_kernels::cuda::normalize::{
    Backward, Forward, RowsBackward, Statistics, backward, forward, rows_backward, rows_forward,
};
use nnrs_kernels::error::Result;

impl Layout {
    /// x as the kernels want it.
    fn read_on_gpu(&self, x: &Data) -> Result<Data> {
        let Some(order) = self.order() else { return Ok(x.clone()) };
        let copy = Data::new_at(x.place(), x.dtype(), x.len())?;
        let (moves, _) = order.iter().rev().fold((Moves::new(0, 0), 1), |(m, step), &(n, stride)| {
            (m.axis(n, step as isize, stride as isize), step * n)
        });
        moves.run_on_gpu(&copy, x, Output::Write)?;
        Ok(copy)
    }

    /// `f` with an array to write or add to, which then comes to `y`.
    fn write_on_gpu<R>(&self, y: &Data, output: Output, f: impl FnOnce(&Data, Output) -> Result<R>) -> Result<R> {
        let Some(order) = self.order() else { return f(y, output) };
        let copy = Data::new_at(y.place(), compute_dtype(y.dtype()), y.len())?;
        let result = f(&copy, Output::Write)?;
        let (moves, _) = order.iter().rev().fold((Moves::new(0, 0), 1), |(m, step), &(n, stride)| {
            (m.axis(n, stride as isize, step as isize), step * n)
        });
        moves.run_on_gpu(y, &copy, output)?;
        Ok(result)
    }
}

/// The data of view `i`, if it is there.
fn at<'a>(views: &'a [Option<View>], i: Option<usize>) -> Option<&'a Data> {
    views.get(i?)?.as_ref().map(|v| &v.data)
}

fn target<'a>(gx: &'a [Option<GradMut>], i: Option<usize>) -> Option<(&'a Data, Output)> {
    gx.get(i?)?.as_ref().map(|g| (&g.data, g.output))
}

/// Mean and variance among the outputs.
fn statistics<'a>(y: &'a [ViewMut]) -> Option<[&'a Data; 2]> {
    y.get(2).map(|variance| [&y[1].data, &variance.data])
}

/// The gradient of y, or zeros where none has come.
fn gradient_of_y(gy: &[Option<View>], gx: &[Option<GradMut>], n: usize) -> Result<Option<Data>> {
    if let Some(gy) = at(gy, Some(0)) {
        return Ok(Some(gy.clone()));
    }
    let like = gy.iter().flatten().map(|v| &v.data).chain(gx.iter().flatten().map(|g| &g.data)).next();
    let zeros = |like: &Data| {
        let zeros = Data::new_at(like.place(), like.dtype(), n)?;
        fill(&zeros, 0.0)?;
        Ok(zeros)
    };
    like.map(zeros).transpose()
}

impl BatchNormalization {
    pub(super) fn forward_on_gpu(&self, run: &Run, x: &[View], y: &[ViewMut]) -> Result<()> {
        let (beta, gamma, first) = self.places();
        let layout = self.layout(x[0].shape)?;
        let data = |i: Option<usize>| i.map(|i| &x[i].data);
        let (update, n) = (self.batch_stat && x.len() > first && !run.again, layout.channels.channels);
        let place = x[0].data.place();
        let running = match (update, x.len() > first) {
            (true, _) => Some([run.input_to_update(first, place, n)?, run.input_to_update(first + 1, place, n)?]),
            (false, true) => Some([x[first].data.clone(), x[first + 1].data.clone()]),
            (false, false) => None,
        };
        let copy = layout.read_on_gpu(&x[0].data)?;
        let f = |y0: &Data, _| {
            forward(
                layout.channels,
                Forward {
                    x: &copy,
                    y: y0,
                    gamma: data(gamma),
                    beta: data(beta),
                    running: running.as_ref().map(|r| [&r[0], &r[1]]),
                    own: self.batch_stat,
                    update,
                    statistics: statistics(y),
                    eps: self.eps,
                    decay: self.decay_rate,
                },
            )
        };
        run.save(layout.write_on_gpu(&y[0].data, Output::Write, f)?);
        Ok(())
    }

    pub(super) fn backward_on_gpu(
        &self,
        run: &Run,
        x: &[Option<View>],
        gy: &[Option<View>],
        gx: &[Option<GradMut>],
    ) -> Result<()> {
        let (beta, gamma, _) = self.places();
        let shape = run.shape(0);
        let layout = self.layout(shape)?;
        let Some(s) = run.saved::<Statistics>() else { return Err(no_forward()) };
        let Some(gy0) = gradient_of_y(gy, gx, shape.size())? else { return Ok(()) };
        let gy0 = layout.read_on_gpu(&gy0)?;
        let x0 = at(x, Some(0)).map(|x| layout.read_on_gpu(x)).transpose()?;
        let b = Backward {
            gy: &gy0,
            x: x0.as_ref(),
            gamma: at(x, gamma),
            gmean: at(gy, Some(1)),
            gvariance: at(gy, Some(2)),
            own: self.batch_stat,
            to_x: None,
            to_beta: target(gx, beta),
            to_gamma: target(gx, gamma),
        };
        match target(gx, Some(0)) {
            None => backward(layout.channels, &s, b),
            Some((gx, output)) => layout.write_on_gpu(gx, output, |gx, output| {
                backward(layout.channels, &s, Backward { to_x: Some((gx, output)), ..b })
            }),
        }
    }
}

impl LayerNormalization {
    pub(super) fn forward_on_gpu(&self, run: &Run, x: &[View], y: &[ViewMut]) -> Result<()> {
        let (layout, layer) = self.layout(x[0].shape)?;
        let (beta, gamma) = self.places();
        let data = |i: Option<usize>| i.map(|i| &x[i].data);
        let copy = layout.read_on_gpu(&x[0].data)?;
        let f = |y0: &Data, _| rows_forward(layer, &copy, y0, [data(gamma), data(beta)], statistics(y), self.eps);
        run.save(layout.write_on_gpu(&y[0].data, Output::Write, f)?);
        Ok(())
    }

    pub(super) fn backward_on_gpu(
        &self,
        run: &Run,
        x: &[Option<View>],
        gy: &[Option<View>],
        gx: &[Option<GradMut>],
    ) -> Result<()> {
        let (beta, gamma) = self.places();
        let shape = run.shape(0);
        let (layout, layer) = self.layout(shape)?;
        let Some(s) = run.saved::<Statistics>() else { return Err(no_forward()) };
        let Some(gy0) = gradient_of_y(gy, gx, shape.size())? else { return Ok(()) };
        let gy0 = layout.read_on_gpu(&gy0)?;
        // Not read where the gradient of beta alone is wanted.
        let x0 = at(x, Some(0)).map_or_else(|| Ok(gy0.clone()), |x| layout.read_on_gpu(x))?;
        let b = RowsBackward {
            gy: &gy0,
            x: &x0,
            gamma: at(x, gamma),
            gmean: at(gy, Some(1)),
            gvariance: at(gy, Some(2)),
            to_x: None,
            to_beta: target(gx, beta),
            to_gamma: target(gx, gamma),
        };
        match target(gx, Some(0)) {
            None => rows_backward(layer, &s, b),
            Some((gx, output)) => layout.write_on_gpu(gx, output, |gx, output| {
                rows_backward(layer, &s, RowsBackward { to_x: Some((gx, output)), ..b })
            }),
        }
    }
}
