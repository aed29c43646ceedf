//! `batch_normalization` by the statistics of the batch, or by running ones.

use super::layout::{Layout, check_shape, mask, sizes_at, slice_at};
use super::rule::{Normal, inverse, mul, sub};
use crate::function;
use crate::function::array::sum_to;
use crate::function::reduction::Mask;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::normalize::{Backward, Moments, Scale};
use nnrs_kernels::cpu::scratch::Scratch;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Batch normalization (Ioffe and Szegedy, 2015): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with a mean
    /// and a variance for each index of `axes`. With batch_stat they are those of x, and every forward pass moves the
    /// running ones: `mean = decay_rate mean + (1 - decay_rate) batch mean`, the variance likewise by the unbiased one.
    BatchNormalization batch_normalization in Normalization, any_device
    inputs {
        x: "N-D array.",
        beta [optional]: "Shift, of x's size at `axes` and size 1 elsewhere; left out if no_bias.",
        gamma [optional]: "Scale, of beta's shape; left out if no_scale.",
        mean [optional]: "Running mean, of beta's shape.",
        variance [optional]: "Running variance, of beta's shape.",
    }
    args {
        axes: Vec<i64> = vec![1], "Axes with statistics of their own; the others are averaged over.";
        decay_rate: f64 = 0.9, "How much of the running statistics each forward pass keeps.";
        eps: f64 = 1e-5, "Added to the variance.";
        batch_stat: bool = true, "Normalize by the statistics of x (training), not by the running ones.";
        no_scale: bool = false, "There is no gamma.";
        no_bias: bool = false, "There is no beta.";
        output_stat: bool = false, "Give mean and biased variance of the batch, too."
    }
    outputs { y: "Array of x's shape.", statistics [variadic]: "With output_stat: mean and variance of the batch." }
}

/// What forward keeps for backward.
struct Statistics {
    mean: Vec<f64>,
    /// `1 / sqrt(variance + eps)`
    inverse: Vec<f64>,
}

impl BatchNormalization {
    /// Numbers of the inputs beta and gamma, and of the first after them.
    pub(super) fn places(&self) -> (Option<usize>, Option<usize>, usize) {
        let beta = (!self.no_bias).then_some(1);
        let gamma = (!self.no_scale).then_some(1 + !self.no_bias as usize);
        (beta, gamma, 1 + !self.no_bias as usize + !self.no_scale as usize)
    }

    fn check_inputs(&self, n: usize) -> Result<()> {
        let (.., first) = self.places();
        if !self.batch_stat && n != first + 2 {
            return Err(Error::arg("batch_stat", "mean and variance, which are needed without batch_stat")
                .actual(format!("{n} inputs")));
        }
        if n != first && n != first + 2 {
            let want =
                format!("{first} or {} inputs with no_scale={} and no_bias={}", first + 2, self.no_scale, self.no_bias);
            return Err(Error::new(ErrorKind::Type, want).actual(n));
        }
        if self.output_stat && !self.batch_stat {
            return Err(Error::arg("output_stat", "batch_stat=True, since only a batch has statistics").actual("False"));
        }
        Ok(())
    }

    fn kept(&self, x: &Shape) -> Result<Mask> {
        mask("axes", &self.axes, x)
    }

    pub(super) fn layout(&self, x: &Shape) -> Result<Layout> {
        Ok(Layout::of_channels(x, &self.kept(x)?))
    }

    /// Moves the running statistics, inputs `first` and the next.
    fn run_on<T: nnrs_kernels::dtype::Real>(&self, run: &Run, first: usize, m: &Moments, count: f64) -> Result<()> {
        let unbiased = count / (count - 1.0);
        let step = |old: &mut T, new: f64| {
            *old = T::from_f64(self.decay_rate * old.to_f64() + (1.0 - self.decay_rate) * new);
        };
        run.update_input::<T>(first, m.mean.len(), |v| v.iter_mut().zip(&m.mean).for_each(|(v, &m)| step(v, m)))?;
        run.update_input::<T>(first + 1, m.mean.len(), |v| {
            v.iter_mut().zip(&m.variance).for_each(|(v, &m)| step(v, m * unbiased))
        })
    }

    fn by_batch(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (beta, gamma, first) = self.places();
        let layout = self.layout(x[0].shape)?;
        with_real!(run.dtype, T => {
            let at = |i: Option<usize>| i.map(|i| x[i].slice::<T>());
            let scale = Scale { gamma: at(gamma), beta: at(beta), eps: self.eps };
            let moments = layout.read(x[0].slice::<T>(), |x| {
                layout.write(y[0].slice::<T>(), Output::Write, |y, _| layout.channels.normalize(x, y, scale))
            });
            if x.len() > first && !run.again {
                self.run_on::<T>(run, first, &moments, layout.channels.count() as f64)?;
            }
            for (y, m) in y[1..].iter_mut().zip([&moments.mean, &moments.variance]) {
                y.slice::<T>().iter_mut().zip(m).for_each(|(y, &m)| *y = m as T);
            }
            run.save(self.statistics(moments.mean, &moments.variance));
        });
        Ok(())
    }

    fn by_running(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (beta, gamma, first) = self.places();
        let layout = self.layout(x[0].shape)?;
        with_real!(run.dtype, T => {
            let at = |i: Option<usize>| i.map(|i| x[i].slice::<T>());
            let scale = Scale { gamma: at(gamma), beta: at(beta), eps: self.eps };
            let wide = |i: usize| x[i].slice::<T>().iter().map(|v| nnrs_kernels::dtype::Element::to_f64(*v)).collect::<Vec<f64>>();
            let s = self.statistics(wide(first), &wide(first + 1));
            layout.read(x[0].slice::<T>(), |x| {
                layout.write(y[0].slice::<T>(), Output::Write, |y, _| {
                    layout.channels.scale(x, y, &s.mean, &s.inverse, scale)
                })
            });
            run.save(s);
        });
        Ok(())
    }

    fn statistics(&self, mean: Vec<f64>, variance: &[f64]) -> Statistics {
        Statistics { mean, inverse: variance.iter().map(|v| 1.0 / (v + self.eps).sqrt()).collect() }
    }
}

impl Function for BatchNormalization {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let kept = self.kept(&x[0])?;
        self.check_inputs(x.len())?;
        let statistic = sizes_at(&x[0], &kept, true);
        let (beta, gamma, first) = self.places();
        let named = [(beta, "beta"), (gamma, "gamma"), (Some(first), "mean"), (Some(first + 1), "variance")];
        for (i, name) in named {
            if let Some(s) = i.and_then(|i| x.get(i)) {
                check_shape(name, s, &statistic)?;
            }
        }
        if self.batch_stat && self.layout(&x[0])?.channels.count() == 0 {
            return Err(Error::shape("x", "at least one element for each mean").actual(&x[0]));
        }
        Ok(match self.output_stat {
            true => smallvec![x[0].clone(), statistic.clone(), statistic],
            false => smallvec![x[0].clone()],
        })
    }

    fn has_state(&self) -> bool {
        self.batch_stat // else it only reads the running statistics
    }

    fn updates_input(&self, i: usize) -> bool {
        self.batch_stat && i >= self.places().2
    }

    fn input_name(&self, i: usize) -> &'static str {
        let (beta, gamma, mean) = self.places();
        match i {
            0 => "x",
            i if Some(i) == beta => "beta",
            i if Some(i) == gamma => "gamma",
            i if i == mean => "mean",
            _ => "variance",
        }
    }

    fn differentiable(&self, i: usize) -> bool {
        i < self.places().2
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.forward_on_gpu(run, x, y);
        }
        if self.batch_stat { self.by_batch(run, x, y) } else { self.by_running(run, x, y) }
    }

    fn scratch(&self, x: &[&Shape], _y: &[&Shape], dtype: DType) -> [usize; 2] {
        self.layout(x[0]).map_or([0; 2], |l| l.scratch(x[0].size(), dtype))
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let (_, gamma, _) = self.places();
        let of_gamma = gamma.is_some_and(|g| want[g]);
        let x = (want[0] && self.batch_stat) || of_gamma;
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
        let (beta, gamma, _) = self.places();
        let shape = run.shape(0);
        let layout = self.layout(shape)?;
        let Some(s) = run.saved::<Statistics>() else { return Err(no_forward()) };
        with_real!(run.dtype, T => {
            let over = gx[0].as_ref().is_some_and(|gx| gx.over);
            let zeros = Scratch::filled(if gy[0].is_some() || over { 0 } else { shape.size() }, 0 as T);
            let (x0, by) = (slice_at::<T>(x, Some(0)), slice_at::<T>(x, gamma));
            let sums = layout.read(slice_at(gy, Some(0)).unwrap_or(&zeros), |gy0| {
                layout.read(x0.unwrap_or(&[]), |copy| {
                    let b = Backward {
                        gy: (!over).then_some(gy0),
                        x: x0.map(|_| copy),
                        mean: &s.mean,
                        inverse: &s.inverse,
                        gamma: by,
                        gmean: slice_at(gy, Some(1)),
                        gvariance: slice_at(gy, Some(2)),
                        own: self.batch_stat,
                    };
                    let Some(gx) = &mut gx[0] else { return layout.channels.backward(b, None) };
                    let output = gx.output;
                    layout.write(gx.slice::<T>(), output, |gx, o| layout.channels.backward(b, Some((gx, o))))
                })
            });
            deliver::<T>(beta.and_then(|i| gx[i].as_mut()), sums.gy.iter().copied());
            deliver::<T>(gamma.and_then(|i| gx[i].as_mut()), sums.product.iter().zip(&s.inverse).map(|(p, i)| p * i));
        });
        Ok(())
    }

    fn grad_over(&self, i: usize, x: &[&Shape], _y: &[&Shape]) -> Option<usize> {
        let direct = i == 0 && self.layout(x[0]).is_ok_and(|layout| layout.is_direct());
        direct.then_some(0)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (beta, gamma, first) = self.places();
        let (x, gy) = (&g.x[0], &g.gy[0]);
        let scaled = match gamma {
            Some(i) => mul(gy, &g.x[i])?,
            None => gy.clone(),
        };
        let mut grads: Vec<Option<Variable>> = vec![None; g.x.len()];
        let norm = if self.batch_stat {
            let kept = self.kept(&x.shape())?;
            let reduced = (0..x.ndim()).filter(|&i| !kept[i]).map(|i| i as i64).collect();
            let normal = Normal::new(x, reduced, self.eps)?;
            let statistics = self.output_stat.then(|| (&g.gy[1], &g.gy[2]));
            grads[0] = g.want[0].then(|| normal.gradient(&scaled, statistics)).transpose()?;
            normal.norm
        } else {
            let inverse = inverse(&g.x[first + 1], self.eps)?;
            grads[0] = g.want[0].then(|| mul(&scaled, &inverse)).transpose()?;
            mul(&sub(x, &g.x[first])?, &inverse)?
        };
        if let Some(i) = beta.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(gy, &g.x[i].shape())?);
        }
        if let Some(i) = gamma.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(&mul(gy, &norm)?, &g.x[i].shape())?);
        }
        Ok(grads)
    }
}

/// Writes or adds numbers to a gradient.
fn deliver<T: nnrs_kernels::dtype::Real>(to: Option<&mut GradMut>, from: impl Iterator<Item = f64>) {
    let Some(to) = to else { return };
    let output = to.output;
    for (to, v) in to.slice::<T>().iter_mut().zip(from) {
        *to = if output == Output::Write { T::from_f64(v) } else { *to + T::from_f64(v) };
    }
}

/// There are no statistics to go back with.
pub(super) fn no_forward() -> Error {
    Error::graph("the statistics of the forward pass are missing").hint("call forward() before backward()")
}
