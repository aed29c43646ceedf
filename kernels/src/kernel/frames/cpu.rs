//! On the host, by the crate realfft.

use super::Frames;
use crate::array::Output;
use crate::array::scratch::{self, Scratch};
use crate::dtype::{Element, Real};
use crate::kernel::fft::cpu::{Transformed, ask, complex};
use crate::kernel::short_rows::RowGroup;
use crate::pool::tasks::{self, Shared};
use crate::simd;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Neighbouring frames whose spectra are turned together: they lie beside each other in the result.
pub(super) const TOGETHER: usize = 16;
/// Frames' lengths of a signal that a task adds up.
const BLOCK: usize = 16;

type FramePlan<T> = (Arc<dyn RealToComplex<T>>, Arc<dyn ComplexToReal<T>>);

/// How a frame is transformed: made when it is first wanted.
#[derive(Default)]
pub struct FramePlans {
    float: OnceLock<FramePlan<f32>>,
    double: OnceLock<FramePlan<f64>>,
}

impl std::fmt::Debug for FramePlans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "plans")
    }
}

/// Numbers that there are spectra of.
pub(super) trait Sampled: Transformed {
    fn plan(plans: &FramePlans) -> &OnceLock<FramePlan<Self>>;
}

impl Sampled for f32 {
    fn plan(plans: &FramePlans) -> &OnceLock<FramePlan<f32>> {
        &plans.float
    }
}

impl Sampled for f64 {
    fn plan(plans: &FramePlans) -> &OnceLock<FramePlan<f64>> {
        &plans.double
    }
}

fn planned<T: Sampled>(s: &Frames) -> &FramePlan<T> {
    T::plan(&s.plans).get_or_init(|| {
        ask(s.size * 4 * size_of::<T>());
        let mut planner = RealFftPlanner::new();
        (planner.plan_fft_forward(s.size), planner.plan_fft_inverse(s.size))
    })
}

impl Frames {
    /// The sample that position `p` with the border shows.
    fn source(&self, p: usize) -> Option<usize> {
        if p >= self.border && p - self.border < self.samples {
            return Some(p - self.border);
        }
        if !self.reflect {
            return None;
        }
        let last = self.samples as i64 - 1;
        if last == 0 {
            return Some(0);
        }
        let at = (p as i64 - self.border as i64).rem_euclid(2 * last);
        Some(at.min(2 * last - at) as usize)
    }

    fn window<T: Real>(&self) -> Scratch<T> {
        Scratch::each(self.size, |i| T::from_f64(self.weight(i)))
    }
}

/// Whether v is a number. A transform leaves out products with what is 0 or known otherwise: NaN and infinities would not reach
/// all that they are part of. Where a frame has one, its transform is NaN.
fn is_finite<T: Real>(v: T) -> bool {
    v.to_f64().is_finite()
}

/// The spectra of one signal with its border.
fn spectra<T: Sampled>(
    s: &Frames,
    plan: &FramePlan<T>,
    window: &[T],
    signal: &[T],
    y: &[Option<(Shared<T>, Output)>; 2],
    first: usize,
) {
    let (bins, size) = (s.bins(), s.size);
    tasks::share(s.frames.div_ceil(TOGETHER), s.frames * size, move |task| {
        let from = task * TOGETHER;
        let count = TOGETHER.min(s.frames - from);
        let mut spectra = Scratch::filled(2 * bins * count, <T as Real>::ZERO);
        let mut frame = Scratch::filled(size, <T as Real>::ZERO);
        scratch::with(2 * plan.0.get_scratch_len(), |room: &mut [T]| {
            for (k, spectrum) in spectra.chunks_exact_mut(2 * bins).enumerate() {
                let samples = &signal[(from + k) * s.stride..][..size];
                frame.iter_mut().zip(samples.iter().zip(window)).for_each(|(f, (&x, &w))| *f = x * w);
                plan.0.process_with_scratch(&mut frame, complex(spectrum), complex(room)).expect("the plan's sizes");
                // The sum is finite where all samples are, or has overflowed.
                if !is_finite(spectrum[0]) && samples.iter().zip(window).any(|(&x, &w)| !is_finite(x * w)) {
                    spectrum.fill(<T as Element>::from_f64(f64::NAN));
                }
            }
        });
        let mut turned = Scratch::filled(spectra.len(), <T as Real>::ZERO);
        RowGroup { first: 0, rows: count, width: 2 * bins }.turn(&spectra, &mut turned);
        for bin in 0..bins {
            let scale = <T as Element>::from_f64(s.scale(bin));
            for (part, y) in y.iter().enumerate() {
                let Some((y, output)) = y else { continue };
                let at = (first + bin) * s.frames + from;
                // SAFETY: `count` frames of a bin, inside y; no other task has these frames.
                let row = unsafe { std::slice::from_raw_parts_mut(y.0.add(at), count) };
                let values = row.iter_mut().zip(&turned[(2 * bin + part) * count..]);
                match output {
                    Output::Write => values.for_each(|(y, &v)| *y = v * scale),
                    Output::Accumulate => values.for_each(|(y, &v)| *y += v * scale),
                }
            }
        }
    });
}

/// Those of the two parts that are wanted.
pub(super) fn analyse<T: Sampled>(s: &Frames, x: &[T], y: [Option<(&mut [T], Output)>; 2]) {
    let (plan, window) = (planned::<T>(s), s.window::<T>());
    let squares = |i: usize| window[i].to_f64();
    let y = y.map(|y| y.map(|(y, output)| (Shared(y.as_mut_ptr()), output)));
    let (y, window) = (&y, &window);
    tasks::share(s.batch, s.batch * s.padded(), |b| {
        let x = &x[b * s.samples..][..s.samples];
        let value = |p: usize| match s.source(p) {
            Some(i) if s.inverse => <T as Element>::from_f64(x[i].to_f64() / s.overlap(p, squares)),
            Some(i) => x[i],
            None => <T as Real>::ZERO,
        };
        let signal = Scratch::each(s.padded(), value);
        spectra(s, plan, window, &signal, y, b * s.bins());
    });
}

/// The samples from `first` on of the sum of all frames of one signal.
fn sum<T: Sampled>(
    s: &Frames,
    plan: &FramePlan<T>,
    window: &[T],
    y: [Option<&[T]>; 2],
    first: usize,
    signal: &mut [T],
) {
    let (bins, size) = (s.bins(), s.size);
    signal.fill(<T as Real>::ZERO);
    let last = first + signal.len() - 1;
    let frames = s.over(first).start..s.over(last).end;
    let mut spectra = Scratch::filled(2 * bins * TOGETHER, <T as Real>::ZERO);
    let mut turned = Scratch::filled(spectra.len(), <T as Real>::ZERO);
    let mut frame = Scratch::filled(size, <T as Real>::ZERO);
    let has_infinite = |f: usize| {
        let of = |part: usize, mut bins: Range<usize>| {
            bins.any(|b| y[part].is_some_and(|y| !is_finite(y[b * s.frames + f])))
        };
        of(0, 0..bins) || of(1, 1..size.div_ceil(2))
    };
    for from in frames.clone().step_by(TOGETHER) {
        let count = TOGETHER.min(frames.end - from);
        for bin in 0..bins {
            // A bin in the middle stands for two.
            let ends = bin == 0 || 2 * bin == size;
            let scale = <T as Element>::from_f64(s.scale(bin) * if ends { 1.0 } else { 0.5 });
            for (part, y) in y.iter().enumerate() {
                let row = &mut turned[(2 * bin + part) * count..][..count];
                match y.filter(|_| part == 0 || !ends) {
                    Some(y) => {
                        let values = &y[bin * s.frames + from..][..count];
                        row.iter_mut().zip(values).for_each(|(to, &v)| *to = v * scale);
                    }
                    None => row.fill(<T as Real>::ZERO),
                }
            }
        }
        let (all, group) = (2 * bins * count, RowGroup { first: 0, rows: count, width: 2 * bins });
        group.turn_back(&turned[..all], &mut spectra[..all], Output::Write);
        scratch::with(2 * plan.1.get_scratch_len(), |room: &mut [T]| {
            for (k, spectrum) in spectra.chunks_exact_mut(2 * bins).take(count).enumerate() {
                let spectrum: &mut [Complex<T>] = complex(spectrum);
                plan.1.process_with_scratch(spectrum, &mut frame, complex(room)).expect("the plan's sizes");
                // Real parts are all in the first number, imaginary ones in the second.
                if !frame.iter().take(2).all(|&v| is_finite(v)) && has_infinite(from + k) {
                    frame.fill(<T as Element>::from_f64(f64::NAN));
                }
                let start = (from + k) * s.stride;
                let (skip, to) = (first.saturating_sub(start), start.saturating_sub(first));
                let parts = frame.iter().zip(window).skip(skip);
                signal[to..].iter_mut().zip(parts).for_each(|(y, (&f, &w))| *y += f * w);
            }
        });
    }
}

/// A part that is not there is zeros.
pub(super) fn synthesize<T: Sampled>(s: &Frames, y: [Option<&[T]>; 2], x: &mut [T], output: Output) {
    let (plan, window) = (planned::<T>(s), s.window::<T>());
    let squares = |i: usize| window[i].to_f64();
    let (spectrum, window) = (s.bins() * s.frames, &window[..]);
    let block = (BLOCK * s.size).max(1 << 12);
    tasks::parts(x, s.samples, |b, x| {
        let y = y.map(|y| y.map(|y| &y[b * spectrum..][..spectrum]));
        let mut signal = Scratch::filled(s.padded(), <T as Real>::ZERO);
        tasks::parts(&mut signal, block, |task, part| {
            sum(s, plan, window, y, task * block, part);
            if s.inverse {
                let divide = |(i, y): (usize, &mut T)| {
                    *y = <T as Element>::from_f64(y.to_f64() / s.overlap(task * block + i, squares));
                };
                part.iter_mut().enumerate().for_each(divide);
            }
        });
        let own = &signal[s.border..][..s.samples];
        match output {
            Output::Write => x.copy_from_slice(own),
            _ => simd::add_assign(x, own),
        }
        if s.reflect {
            let borders = (0..s.border).chain(s.border + s.samples..s.padded());
            borders.for_each(|p| s.source(p).into_iter().for_each(|i| x[i] += signal[p]));
        }
    });
}
