//! Normalization of groups of channels in each sample.

use super::cpu::{ChannelGroups, InputGradient, Scale};
use super::layout::NormalizationLayout;
use super::{SavedStatistics, at, cuda, deliver, gradient_of_y, no_forward, on_gpu, slice_at, statistics, target};
use crate::array::scratch::{Scratch, counted};
use crate::array::{Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::with_real;

/// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`
pub struct GroupNormalization {
    /// Axes that number the samples.
    pub batch: Vec<usize>,
    /// The axis of the channels.
    pub channel: usize,
    pub layout: NormalizationLayout,
    pub groups: ChannelGroups,
    /// Elements of x.
    pub size: usize,
    /// Numbers of the inputs beta and gamma.
    pub beta: Option<usize>,
    pub gamma: Option<usize>,
    pub eps: f64,
}

impl GroupNormalization {
    fn forward_on_gpu(&self, run: &Run, x: &[View], y: &[ViewMut]) -> Result<()> {
        let (layout, groups) = (&self.layout, self.groups);
        let data = |i: Option<usize>| i.map(|i| &x[i].data);
        let copy = layout.read_on_gpu(&x[0].data)?;
        let scale = [data(self.gamma), data(self.beta)];
        run.save(layout.write_on_gpu(&y[0].data, Output::Write, |y0, _| {
            cuda::groups_forward(groups, &copy, y0, scale, statistics(y), self.eps)
        })?);
        Ok(())
    }

    fn backward_on_gpu(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let layout = &self.layout;
        let Some(s) = run.saved::<cuda::DeviceStatistics>() else { return Err(no_forward()) };
        let Some(gy0) = gradient_of_y(gy, gx, self.size)? else { return Ok(()) };
        let gy0 = layout.read_on_gpu(&gy0)?;
        let x0 = at(x, Some(0)).map(|x| layout.read_on_gpu(x)).transpose()?;
        let b = cuda::NormalizationBackward {
            gy: &gy0,
            x: x0.as_ref(),
            gamma: at(x, self.gamma),
            gmean: at(gy, Some(1)),
            gvariance: at(gy, Some(2)),
            own: true,
            to_x: None,
            to_beta: target(gx, self.beta),
            to_gamma: target(gx, self.gamma),
        };
        match target(gx, Some(0)) {
            None => cuda::groups_backward(self.groups, &s, b),
            Some((gx, output)) => layout.write_on_gpu(gx, output, |gx, output| {
                let b = cuda::NormalizationBackward { to_x: Some((gx, output)), ..b };
                cuda::groups_backward(self.groups, &s, b)
            }),
        }
    }
}

impl Call for GroupNormalization {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.forward_on_gpu(run, x, y);
        }
        with_real!(run.dtype, T => {
            let at = |i: Option<usize>| i.map(|i| x[i].slice::<T>());
            let scale = Scale { gamma: at(self.gamma), beta: at(self.beta), eps: self.eps };
            let moments = self.layout.read(x[0].slice::<T>(), |x| {
                self.layout.write(y[0].slice::<T>(), Output::Write, |y, _| self.groups.normalize(x, y, scale))
            });
            for (y, m) in y[1..].iter_mut().zip([&moments.mean, &moments.variance]) {
                y.slice::<T>().iter_mut().zip(m).for_each(|(y, &m)| *y = m as T);
            }
            run.save(SavedStatistics::new(moments.mean, &moments.variance, self.eps));
        });
        Ok(())
    }

    /// Backward has two numbers for each channel of each sample besides the copies.
    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let [forward, backward] = self.layout.scratch(self.size, dtype);
        [forward, backward + counted(size_of::<[f64; 2]>() * self.groups.channels().channels)]
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let x = want[0] || self.gamma.is_some_and(|g| want[g]);
        let scale = self.gamma.filter(|_| want[0]).map_or(0, |g| 1 << g);
        Some(Needs { x: x as u32 | scale, y: 0 })
    }

    fn backward(&self, run: &Run, gradients: Gradients) -> Result<()> {
        if on_gpu(gradients.gx) {
            return self.backward_on_gpu(run, gradients);
        }
        let (Gradients { x, gy, gx, .. }, layout) = (gradients, &self.layout);
        let Some(s) = run.saved::<SavedStatistics>() else { return Err(no_forward()) };
        with_real!(run.dtype, T => {
            let over = gx[0].as_ref().is_some_and(|gx| gx.over);
            let zeros = Scratch::filled(if gy[0].is_some() || over { 0 } else { self.size }, 0 as T);
            let x0 = slice_at::<T>(x, Some(0));
            let sums = layout.read(slice_at(gy, Some(0)).unwrap_or(&zeros), |gy0| {
                layout.read(x0.unwrap_or(&[]), |copy| {
                    let b = InputGradient {
                        gy: (!over).then_some(gy0),
                        x: x0.map(|_| copy),
                        mean: &s.mean,
                        inverse: &s.inverse,
                        gamma: slice_at(x, self.gamma),
                        gmean: slice_at(gy, Some(1)),
                        gvariance: slice_at(gy, Some(2)),
                        own: true,
                    };
                    let Some(gx) = &mut gx[0] else { return self.groups.backward(b, None) };
                    let output = gx.output;
                    layout.write(gx.slice::<T>(), output, |gx, o| self.groups.backward(b, Some((gx, o))))
                })
            });
            deliver::<T>(self.beta.and_then(|i| gx[i].as_mut()), sums.gy.iter().copied());
            deliver::<T>(self.gamma.and_then(|i| gx[i].as_mut()), sums.product.iter().copied());
        });
        Ok(())
    }

    fn grad_over(&self, i: usize) -> Option<usize> {
        (i == 0 && self.layout.is_direct()).then_some(0)
    }
}
