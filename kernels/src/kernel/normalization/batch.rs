//! Normalization of channels, by the statistics of the batch or by running ones.

use super::cpu::{InputGradient, Moments, Scale, Sums};
use super::layout::NormalizationLayout;
use super::{SavedStatistics, at, cuda, deliver, gradient_of_y, no_forward, on_gpu, slice_at, statistics, target};
use crate::array::scratch::Scratch;
use crate::array::{Data, Output, Place};
use crate::call::{Call, GradMut, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::{DType, Element, Real};
use crate::error::Result;
use crate::finish::ChannelScaling;
use crate::with_real;

/// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`
pub struct BatchNormalization {
    /// Axes with statistics of their own.
    pub axes: Vec<usize>,
    pub layout: NormalizationLayout,
    /// Elements of x.
    pub size: usize,
    /// Numbers of the inputs beta, gamma and running mean, which the variance comes after.
    pub beta: Option<usize>,
    pub gamma: Option<usize>,
    pub running: Option<usize>,
    /// Normalize by x's own statistics, and move the running ones.
    pub own: bool,
    pub eps: f64,
    pub decay: f64,
}

impl BatchNormalization {
    pub(super) fn scale<'a, T: Element>(&self, x: &'a [View]) -> Scale<'a, T> {
        let at = |i: Option<usize>| i.map(|i| x[i].slice::<T>());
        Scale { gamma: at(self.gamma), beta: at(self.beta), eps: self.eps }
    }

    /// Moves the running statistics, if they are there, by those of `count` elements.
    pub(super) fn move_running<T: Real>(&self, run: &Run, m: &Moments, count: f64) -> Result<()> {
        let Some(first) = self.running.filter(|_| !run.again) else { return Ok(()) };
        let unbiased = count / (count - 1.0);
        let step = |old: &mut T, new: f64| {
            *old = T::from_f64(self.decay * old.to_f64() + (1.0 - self.decay) * new);
        };
        run.update_input::<T>(first, m.mean.len(), |v| v.iter_mut().zip(&m.mean).for_each(|(v, &m)| step(v, m)))?;
        run.update_input::<T>(first + 1, m.mean.len(), |v| {
            v.iter_mut().zip(&m.variance).for_each(|(v, &m)| step(v, m * unbiased))
        })
    }

    fn by_batch(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let layout = &self.layout;
        with_real!(run.dtype, T => {
            let scale = self.scale::<T>(x);
            let moments = layout.read(x[0].slice::<T>(), |x| {
                layout.write(y[0].slice::<T>(), Output::Write, |y, _| layout.channels.normalize(x, y, scale))
            });
            self.move_running::<T>(run, &moments, layout.count() as f64)?;
            give_statistics::<T>(y, &moments);
            run.save(SavedStatistics::new(moments.mean, &moments.variance, self.eps));
        });
        Ok(())
    }

    /// The running statistics, among the inputs.
    fn running_statistics<T: Real>(&self, x: &[View]) -> SavedStatistics {
        let first = self.running.expect("running statistics");
        let wide = |i: usize| x[i].slice::<T>().iter().map(|v| v.to_f64()).collect::<Vec<f64>>();
        SavedStatistics::new(wide(first), &wide(first + 1), self.eps)
    }

    /// By the running statistics.
    fn by_running(&self, run: &Run, x: &[View], y: &mut [ViewMut]) {
        let layout = &self.layout;
        with_real!(run.dtype, T => {
            let scale = self.scale::<T>(x);
            let s = self.running_statistics::<T>(x);
            layout.read(x[0].slice::<T>(), |x| {
                layout.write(y[0].slice::<T>(), Output::Write, |y, _| {
                    layout.channels.scale(x, y, &s.mean, &s.inverse, scale)
                })
            });
            run.save(s);
        });
    }

    /// The gradients of beta and gamma.
    pub(super) fn deliver_sums<T: Real>(&self, gx: &mut [Option<GradMut>], sums: &Sums, inverse: &[f64]) {
        let of_gamma = sums.product.iter().zip(inverse).map(|(p, i)| p * i);
        deliver::<T>(self.beta.and_then(|i| gx[i].as_mut()), sums.gy.iter().copied());
        deliver::<T>(self.gamma.and_then(|i| gx[i].as_mut()), of_gamma);
    }

    /// `f` with what a forward pass on a GPU is asked for.
    pub(super) fn on_gpu<R>(
        &self,
        run: &Run,
        x: &[View],
        y: &[ViewMut],
        f: impl FnOnce(cuda::NormalizationForward) -> Result<R>,
    ) -> Result<R> {
        let layout = &self.layout;
        let data = |i: Option<usize>| i.map(|i| &x[i].data);
        let (update, n) = (self.own && self.running.is_some() && !run.again, layout.channels.channels);
        let place = x[0].data.place();
        let running = match self.running {
            Some(first) if update => {
                Some([run.input_to_update(first, place, n)?, run.input_to_update(first + 1, place, n)?])
            }
            Some(first) => Some([x[first].data.clone(), x[first + 1].data.clone()]),
            None => None,
        };
        let copy = layout.read_on_gpu(&x[0].data)?;
        layout.write_on_gpu(&y[0].data, Output::Write, |y0: &Data, _| {
            f(cuda::NormalizationForward {
                x: &copy,
                y: y0,
                gamma: data(self.gamma),
                beta: data(self.beta),
                running: running.as_ref().map(|r| [&r[0], &r[1]]),
                own: self.own,
                update,
                statistics: statistics(y),
                eps: self.eps,
                decay: self.decay,
            })
        })
    }

    /// `f` with what a backward pass on a GPU is asked for.
    pub(super) fn back_on_gpu(
        &self,
        Gradients { x, gy, gx, .. }: Gradients,
        f: impl FnOnce(cuda::NormalizationBackward) -> Result<()>,
    ) -> Result<()> {
        let layout = &self.layout;
        let Some(gy0) = gradient_of_y(gy, gx, self.size)? else { return Ok(()) };
        let gy0 = layout.read_on_gpu(&gy0)?;
        let x0 = at(x, Some(0)).map(|x| layout.read_on_gpu(x)).transpose()?;
        let b = cuda::NormalizationBackward {
            gy: &gy0,
            x: x0.as_ref(),
            gamma: at(x, self.gamma),
            gmean: at(gy, Some(1)),
            gvariance: at(gy, Some(2)),
            own: self.own,
            to_x: None,
            to_beta: target(gx, self.beta),
            to_gamma: target(gx, self.gamma),
        };
        match target(gx, Some(0)) {
            None => f(b),
            Some((gx, output)) => layout.write_on_gpu(gx, output, |gx, output| {
                f(cuda::NormalizationBackward { to_x: Some((gx, output)), ..b })
            }),
        }
    }
}

/// Mean and variance, where they are asked for.
pub(super) fn give_statistics<T: Real>(y: &mut [ViewMut], m: &Moments) {
    for (y, m) in y[1..].iter_mut().zip([&m.mean, &m.variance]) {
        y.slice::<T>().iter_mut().zip(m).for_each(|(y, &m)| *y = T::from_f64(m));
    }
}

impl Call for BatchNormalization {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            run.save(self.on_gpu(run, x, y, |f| cuda::forward(self.layout.channels, f))?);
            return Ok(());
        }
        if !self.own && self.running.is_some() {
            self.by_running(run, x, y);
            return Ok(());
        }
        self.by_batch(run, x, y)
    }

    fn scales(&self) -> Option<[usize; 3]> {
        let c = self.layout.channels;
        (!self.own && self.running.is_some() && self.layout.is_direct()).then_some([c.outer, c.channels, c.inner])
    }

    fn scaling(&self, run: &Run, x: &[View]) -> ChannelScaling {
        with_real!(run.dtype, T => {
            let s = self.running_statistics::<T>(x);
            let scaling = self.layout.channels.scaling(&s.mean, &s.inverse, self.scale::<T>(x));
            run.save(s);
            scaling
        })
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.layout.scratch(self.size, dtype)
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let of_gamma = self.gamma.is_some_and(|g| want[g]);
        let x = (want[0] && self.own) || of_gamma;
        let scale = self.gamma.filter(|_| want[0]).map_or(0, |g| 1 << g);
        Some(Needs { x: x as u32 | scale, y: 0 })
    }

    fn backward(&self, run: &Run, gradients: Gradients) -> Result<()> {
        if on_gpu(gradients.gx) {
            let Some(s) = run.saved::<cuda::DeviceStatistics>() else { return Err(no_forward()) };
            return self.back_on_gpu(gradients, |b| cuda::backward(self.layout.channels, &s, b));
        }
        let (Gradients { x, gy, gx, .. }, layout) = (gradients, &self.layout);
        let Some(s) = run.saved::<SavedStatistics>() else { return Err(no_forward()) };
        with_real!(run.dtype, T => {
            let over = gx[0].as_ref().is_some_and(|gx| gx.over);
            let zeros = Scratch::filled(if gy[0].is_some() || over { 0 } else { self.size }, 0 as T);
            let (x0, by) = (slice_at::<T>(x, Some(0)), slice_at::<T>(x, self.gamma));
            let sums = layout.read(slice_at(gy, Some(0)).unwrap_or(&zeros), |gy0| {
                layout.read(x0.unwrap_or(&[]), |copy| {
                    let b = InputGradient {
                        gy: (!over).then_some(gy0),
                        x: x0.map(|_| copy),
                        mean: &s.mean,
                        inverse: &s.inverse,
                        gamma: by,
                        gmean: slice_at(gy, Some(1)),
                        gvariance: slice_at(gy, Some(2)),
                        own: self.own,
                    };
                    let Some(gx) = &mut gx[0] else { return layout.channels.backward(b, None) };
                    let output = gx.output;
                    layout.write(gx.slice::<T>(), output, |gx, o| layout.channels.backward(b, Some((gx, o))))
                })
            });
            self.deliver_sums::<T>(gx, &sums, &s.inverse);
        });
        Ok(())
    }

    fn grad_over(&self, i: usize) -> Option<usize> {
        (i == 0 && self.layout.is_direct()).then_some(0)
    }
}
