//! `layer_normalization`: each sample by its own statistics.

use super::batch_normalization::no_forward;
use super::layout::{Layout, check_shape, mask, sizes_at, slice_at};
use super::rule::{Normal, mul};
use crate::function;
use crate::function::array::sum_to;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::normalize::{Layer, LayerBackward, LayerGradients};
use nnrs_kernels::cpu::scratch::Scratch;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Layer normalization (Ba et al., 2016): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with mean and
    /// variance over all axes but the batch axes.
    LayerNormalization layer_normalization in Normalization, any_device
    inputs {
        x: "N-D array.",
        beta [optional]: "Shift, of x's size but 1 at the batch axes; left out if no_bias.",
        gamma [optional]: "Scale, of beta's shape; left out if no_scale.",
    }
    args {
        batch_axis: Vec<i64> = vec![0], "Axes that number the samples; they may count from the end.";
        eps: f64 = 1e-5, "Added to the variance.";
        no_scale: bool = false, "There is no gamma.";
        no_bias: bool = false, "There is no beta.";
        output_stat: bool = false, "Give mean and biased variance, too."
    }
    outputs { y: "Array of x's shape.", statistics [variadic]: "With output_stat: mean and variance of the samples." }
}

/// What forward keeps for backward: mean and `1 / sqrt(variance + eps)`.
struct Statistics(Vec<f64>, Vec<f64>);

impl LayerNormalization {
    /// Numbers of the inputs beta and gamma.
    pub(super) fn places(&self) -> (Option<usize>, Option<usize>) {
        ((!self.no_bias).then_some(1), (!self.no_scale).then_some(1 + !self.no_bias as usize))
    }

    pub(super) fn layout(&self, x: &Shape) -> Result<(Layout, Layer)> {
        let layout = Layout::of_rows(x, &mask("batch_axis", &self.batch_axis, x)?);
        let layer = Layer { rows: layout.channels.channels, width: layout.channels.inner };
        Ok((layout, layer))
    }
}

impl Function for LayerNormalization {
    fn input_name(&self, i: usize) -> &'static str {
        match i {
            0 => "x",
            i if Some(i) == self.places().0 => "beta",
            _ => "gamma",
        }
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let batch = mask("batch_axis", &self.batch_axis, &x[0])?;
        let (beta, gamma) = self.places();
        let want = 1 + beta.is_some() as usize + gamma.is_some() as usize;
        if x.len() != want {
            let want = format!("{want} inputs with no_scale={} and no_bias={}", self.no_scale, self.no_bias);
            return Err(Error::new(ErrorKind::Type, want).actual(x.len()));
        }
        for (i, name) in [(beta, "beta"), (gamma, "gamma")] {
            if let Some(i) = i {
                check_shape(name, &x[i], &sizes_at(&x[0], &batch, false))?;
            }
        }
        let statistic = sizes_at(&x[0], &batch, true);
        Ok(match self.output_stat {
            true => smallvec![x[0].clone(), statistic.clone(), statistic],
            false => smallvec![x[0].clone()],
        })
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.forward_on_gpu(run, x, y);
        }
        let (layout, layer) = self.layout(x[0].shape)?;
        let (beta, gamma) = self.places();
        with_real!(run.dtype, T => {
            let at = |i: Option<usize>| i.map(|i| x[i].slice::<T>());
            let moments = layout.read(x[0].slice::<T>(), |x| {
                layout.write(y[0].slice::<T>(), Output::Write, |y, _| {
                    layer.normalize(x, y, at(gamma), at(beta), self.eps)
                })
            });
            for (y, m) in y[1..].iter_mut().zip([&moments.mean, &moments.variance]) {
                y.slice::<T>().iter_mut().zip(m).for_each(|(y, &m)| *y = m as T);
            }
            let inverse = moments.variance.iter().map(|v| 1.0 / (v + self.eps).sqrt()).collect();
            run.save(Statistics(moments.mean, inverse));
        });
        Ok(())
    }

    fn scratch(&self, x: &[&Shape], _y: &[&Shape], dtype: DType) -> [usize; 2] {
        self.layout(x[0]).map_or([0; 2], |l| l.0.scratch(x[0].size(), dtype))
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let (_, gamma) = self.places();
        let x = want[0] || gamma.is_some_and(|g| want[g]);
        let scale = gamma.filter(|_| want[0]).map_or(0, |g| 1 << g);
        Some(Needs { x: x as u32 | scale, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        if gx.iter().flatten().any(|g| g.data.place().gpu().is_some()) {
            return self.backward_on_gpu(run, x, gy, gx);
        }
        let (beta, gamma) = self.places();
        let shape = run.shape(0);
        let (layout, layer) = self.layout(shape)?;
        let Some(s) = run.saved::<Statistics>() else { return Err(no_forward()) };
        let (mut first, mut of_beta, mut of_gamma) = (None, None, None);
        for (i, g) in gx.iter_mut().enumerate() {
            match (i, g) {
                (0, g) => first = g.as_mut(),
                (i, g) if Some(i) == beta => of_beta = g.as_mut(),
                (_, g) => of_gamma = g.as_mut(),
            }
        }
        with_real!(run.dtype, T => {
            let (x0, gy0, by) = (slice_at::<T>(x, Some(0)), slice_at::<T>(gy, Some(0)), slice_at::<T>(x, gamma));
            let zeros = Scratch::filled(if x0.is_some() && gy0.is_some() { 0 } else { shape.size() }, 0 as T);
            layout.read(gy0.unwrap_or(&zeros), |gy0| layout.read(x0.unwrap_or(&zeros), |x| {
                let (gmean, gvariance) = (slice_at(gy, Some(1)), slice_at(gy, Some(2)));
                let b = LayerBackward { gy: gy0, x, mean: &s.0, inverse: &s.1, gamma: by, gmean, gvariance };
                let (beta, gamma) = (of_beta.map(|g| (g.output, g)), of_gamma.map(|g| (g.output, g)));
                let (beta, gamma) = (beta.map(|(o, g)| (g.slice::<T>(), o)), gamma.map(|(o, g)| (g.slice::<T>(), o)));
                let Some(gx) = first else { return layer.backward(b, LayerGradients { x: None, beta, gamma }) };
                let output = gx.output;
                layout.write(gx.slice::<T>(), output, |gx, o| {
                    layer.backward(b, LayerGradients { x: Some((gx, o)), beta, gamma })
                })
            }));
        });
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (beta, gamma) = self.places();
        let (x, gy) = (&g.x[0], &g.gy[0]);
        let batch = mask("batch_axis", &self.batch_axis, &x.shape())?;
        let reduced = (0..x.ndim()).filter(|&i| !batch[i]).map(|i| i as i64).collect();
        let normal = Normal::new(x, reduced, self.eps)?;
        let scaled = match gamma {
            Some(i) => mul(gy, &g.x[i])?,
            None => gy.clone(),
        };
        let statistics = self.output_stat.then(|| (&g.gy[1], &g.gy[2]));
        let mut grads: Vec<Option<Variable>> = vec![None; g.x.len()];
        grads[0] = g.want[0].then(|| normal.gradient(&scaled, statistics)).transpose()?;
        if let Some(i) = beta.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(gy, &g.x[i].shape())?);
        }
        if let Some(i) = gamma.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(&mul(gy, &normal.norm)?, &g.x[i].shape())?);
        }
        Ok(grads)
    }
}
