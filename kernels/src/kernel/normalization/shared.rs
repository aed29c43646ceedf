//! Batch normalization by statistics that several ranks share.

use super::batch::{BatchNormalization, give_statistics};
use super::cpu::{InputGradient, Moments};
use super::{SavedStatistics, cuda, no_forward, on_gpu, slice_at};
use crate::array::scratch::Scratch;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::{DType, Real};
use crate::error::Result;
use crate::with_real;
use std::any::Any;
use std::sync::Arc;

/// Sums over the ranks of a group.
pub trait SumOverRanks: Any + Send + Sync {
    /// Each of the doubles, wherever they are, becomes the sum of it over all ranks, which ask for it in one order.
    ///
    /// # Errors
    /// What the exchange fails with.
    fn sum(&self, values: &Data) -> Result<()>;
}

/// The numbers summed up over all ranks.
fn summed(values: impl Iterator<Item = f64>, all: &dyn SumOverRanks) -> Result<Vec<f64>> {
    let values: Vec<f64> = values.collect();
    let data = Data::new(DType::F64, values.len())?;
    data.as_mut_slice().copy_from_slice(&values);
    all.sum(&data)?;
    Ok(data.as_slice().to_vec())
}

/// `of` by the mean and variance of the batches of all ranks.
pub struct SharedBatchNormalization {
    pub of: BatchNormalization,
    pub all: Arc<dyn SumOverRanks>,
}

/// What forward keeps for backward, and to run again: nobody may wait for the others then.
struct SavedSharedStatistics {
    own: SavedStatistics,
    variance: Vec<f64>,
    /// Elements of a channel, of all ranks.
    count: f64,
}

impl SharedBatchNormalization {
    /// What all ranks find together, and how many elements each channel has.
    fn find<T: Real>(&self, x: &[T]) -> Result<(Moments, f64)> {
        let channels = self.of.layout.channels;
        let (own, n) = (channels.moments(x), channels.count() as f64);
        let mut mean = summed(own.iter().map(|m| m[0] * n).chain([n]), &*self.all)?;
        let count = mean.pop().unwrap_or(f64::NAN);
        mean.iter_mut().for_each(|m| *m /= count);
        let away = own.iter().zip(&mean).map(|(own, m)| own[1] + n * (own[0] - m) * (own[0] - m));
        let mut variance = summed(away, &*self.all)?;
        variance.iter_mut().for_each(|v| *v /= count);
        Ok((Moments { mean, variance }, count))
    }

    fn run<T: Real>(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (of, layout) = (&self.of, &self.of.layout);
        layout.read(x[0].slice::<T>(), |x0| {
            if x0.is_empty() {
                return Ok(());
            }
            let known = run.saved::<SavedSharedStatistics>().filter(|_| run.again);
            let (moments, count) = match known {
                Some(s) => (Moments { mean: s.own.mean.clone(), variance: s.variance.clone() }, s.count),
                None => self.find(x0)?,
            };
            of.move_running::<T>(run, &moments, count)?;
            give_statistics::<T>(y, &moments);
            let Moments { mean, variance } = moments;
            let own = SavedStatistics::new(mean, &variance, of.eps);
            layout.write(y[0].slice::<T>(), Output::Write, |y, _| {
                layout.channels.scale(x0, y, &own.mean, &own.inverse, of.scale::<T>(x))
            });
            run.save(SavedSharedStatistics { own, variance, count });
            Ok(())
        })
    }

    fn back<T: Real>(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (of, layout) = (&self.of, &self.of.layout);
        let Some(s) = run.saved::<SavedSharedStatistics>() else { return Err(no_forward()) };
        let zeros;
        let over = gx[0].as_ref().filter(|gx| gx.over).map(|gx| gx.data.clone());
        let gy0 = match (&over, slice_at::<T>(gy, Some(0))) {
            (Some(over), _) => over.as_slice(),
            (None, Some(gy)) => gy,
            (None, None) => {
                zeros = Scratch::filled(of.size, T::ZERO);
                &zeros
            }
        };
        layout.read(gy0, |gy0| {
            layout.read(slice_at::<T>(x, Some(0)).unwrap_or(&[]), |x0| {
                let b = InputGradient {
                    gy: Some(gy0),
                    x: (!x0.is_empty()).then_some(x0),
                    mean: &s.own.mean,
                    inverse: &s.own.inverse,
                    gamma: slice_at(x, of.gamma),
                    gmean: slice_at(gy, Some(1)),
                    gvariance: slice_at(gy, Some(2)),
                    own: true,
                };
                let sums = layout.channels.backward(b, None);
                of.deliver_sums::<T>(gx, &sums, &s.own.inverse);
                let Some(gx) = &mut gx[0] else { return Ok(()) };
                let slopes = summed(b.own_slopes(&sums, s.count).into_iter().flatten(), &*self.all)?;
                let b = InputGradient { gy: over.is_none().then_some(gy0), ..b };
                let output = gx.output;
                layout.write(gx.slice::<T>(), output, |gx, output| {
                    layout.channels.descend(b, slopes.as_chunks().0, (gx, output))
                });
                Ok(())
            })
        })
    }
}

impl Call for SharedBatchNormalization {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let known = run.saved::<cuda::SharedDeviceStatistics>().filter(|_| run.again);
            let known = known.as_ref().map(|s| &s.all);
            run.save(
                self.of.on_gpu(run, x, y, |f| cuda::shared_forward(self.of.layout.channels, f, known, &*self.all))?,
            );
            return Ok(());
        }
        with_real!(run.dtype, T => self.run::<T>(run, x, y))
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.of.scratch(dtype)
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        self.of.needs(want)
    }

    fn backward(&self, run: &Run, gradients: Gradients) -> Result<()> {
        if on_gpu(gradients.gx) {
            let Some(s) = run.saved::<cuda::SharedDeviceStatistics>() else { return Err(no_forward()) };
            let channels = self.of.layout.channels;
            return self.of.back_on_gpu(gradients, |b| cuda::shared_backward(channels, &s, b, &*self.all));
        }
        with_real!(run.dtype, T => self.back::<T>(run, gradients))
    }

    fn grad_over(&self, i: usize) -> Option<usize> {
        self.of.grad_over(i)
    }
}

/// `y = sum(x) / sum(count)` over all ranks: of sums of `count` elements each the mean of all.
pub struct SharedMean {
    pub count: usize,
    pub all: Arc<dyn SumOverRanks>,
}

/// What all ranks have found: sums, and how many elements they are of.
struct SavedSums(Vec<f64>);

impl SharedMean {
    fn run<T: Real>(&self, run: &Run, x: &View, y: &mut ViewMut) -> Result<()> {
        if run.saved::<SavedSums>().is_none_or(|_| !run.again) {
            let own = x.slice::<T>().iter().map(|v| v.to_f64()).chain([self.count as f64]);
            run.save(SavedSums(summed(own, &*self.all)?));
        }
        let found = run.saved::<SavedSums>().expect("it was saved");
        let (count, sums) = found.0.split_last().expect("the count at least");
        y.slice::<T>().iter_mut().zip(sums).for_each(|(y, &v)| *y = T::from_f64(v / count));
        Ok(())
    }
}

impl Call for SharedMean {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let known = run.saved::<cuda::SharedSums>().filter(|_| run.again);
            run.save(cuda::shared_mean(&x[0].data, self.count, &y[0].data, known.as_deref(), &*self.all)?);
            return Ok(());
        }
        with_real!(run.dtype, T => self.run::<T>(run, &x[0], &mut y[0]))
    }
}
