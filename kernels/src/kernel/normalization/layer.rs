//! Normalization of samples, each by its own statistics.

use super::cpu::{LayerBackward, LayerGradients, LayerRows};
use super::layout::NormalizationLayout;
use super::{SavedStatistics, at, cuda, gradient_of_y, no_forward, on_gpu, slice_at, statistics, target};
use crate::array::scratch::Scratch;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::with_real;

/// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`
pub struct LayerNormalization {
    /// Axes that number the samples.
    pub axes: Vec<usize>,
    pub layout: NormalizationLayout,
    /// Elements of x.
    pub size: usize,
    /// Numbers of the inputs beta and gamma.
    pub beta: Option<usize>,
    pub gamma: Option<usize>,
    pub eps: f64,
}

impl LayerNormalization {
    fn layer(&self) -> LayerRows {
        LayerRows { rows: self.layout.channels.channels, width: self.layout.channels.inner }
    }

    fn forward_on_gpu(&self, run: &Run, x: &[View], y: &[ViewMut]) -> Result<()> {
        let layout = &self.layout;
        let data = |i: Option<usize>| i.map(|i| &x[i].data);
        let copy = layout.read_on_gpu(&x[0].data)?;
        let scale = [data(self.gamma), data(self.beta)];
        let f = |y0: &Data, _| cuda::rows_forward(self.layer(), &copy, y0, scale, statistics(y), self.eps);
        run.save(layout.write_on_gpu(&y[0].data, Output::Write, f)?);
        Ok(())
    }

    fn backward_on_gpu(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (layout, layer) = (&self.layout, self.layer());
        let Some(s) = run.saved::<cuda::DeviceStatistics>() else { return Err(no_forward()) };
        let Some(gy0) = gradient_of_y(gy, gx, self.size)? else { return Ok(()) };
        let gy0 = layout.read_on_gpu(&gy0)?;
        // Not read where the gradient of beta alone is wanted.
        let x0 = at(x, Some(0)).map_or_else(|| Ok(gy0.clone()), |x| layout.read_on_gpu(x))?;
        let b = cuda::RowsBackward {
            gy: &gy0,
            x: &x0,
            gamma: at(x, self.gamma),
            gmean: at(gy, Some(1)),
            gvariance: at(gy, Some(2)),
            to_x: None,
            to_beta: target(gx, self.beta),
            to_gamma: target(gx, self.gamma),
        };
        match target(gx, Some(0)) {
            None => cuda::rows_backward(layer, &s, b),
            Some((gx, output)) => layout.write_on_gpu(gx, output, |gx, output| {
                cuda::rows_backward(layer, &s, cuda::RowsBackward { to_x: Some((gx, output)), ..b })
            }),
        }
    }
}

impl Call for LayerNormalization {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.forward_on_gpu(run, x, y);
        }
        let (layout, layer) = (&self.layout, self.layer());
        with_real!(run.dtype, T => {
            let at = |i: Option<usize>| i.map(|i| x[i].slice::<T>());
            let moments = layout.read(x[0].slice::<T>(), |x| {
                layout.write(y[0].slice::<T>(), Output::Write, |y, _| {
                    layer.normalize(x, y, at(self.gamma), at(self.beta), self.eps)
                })
            });
            for (y, m) in y[1..].iter_mut().zip([&moments.mean, &moments.variance]) {
                y.slice::<T>().iter_mut().zip(m).for_each(|(y, &m)| *y = m as T);
            }
            run.save(SavedStatistics::new(moments.mean, &moments.variance, self.eps));
        });
        Ok(())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.layout.scratch(self.size, dtype)
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
        let (Gradients { x, gy, gx, .. }, layout, layer) = (gradients, &self.layout, self.layer());
        let Some(s) = run.saved::<SavedStatistics>() else { return Err(no_forward()) };
        let (mut first, mut of_beta, mut of_gamma) = (None, None, None);
        for (i, g) in gx.iter_mut().enumerate() {
            match (i, g) {
                (0, g) => first = g.as_mut(),
                (i, g) if Some(i) == self.beta => of_beta = g.as_mut(),
                (_, g) => of_gamma = g.as_mut(),
            }
        }
        with_real!(run.dtype, T => {
            let (x0, gy0, by) = (slice_at::<T>(x, Some(0)), slice_at::<T>(gy, Some(0)), slice_at::<T>(x, self.gamma));
            let zeros = Scratch::filled(if x0.is_some() && gy0.is_some() { 0 } else { self.size }, 0 as T);
            layout.read(gy0.unwrap_or(&zeros), |gy0| layout.read(x0.unwrap_or(&zeros), |x| {
                let (gmean, gvariance) = (slice_at(gy, Some(1)), slice_at(gy, Some(2)));
                let b = LayerBackward { gy: gy0, x, mean: &s.mean, inverse: &s.inverse, gamma: by, gmean, gvariance };
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
}
