//! What solvers do to gradients between backward and update: decay, scale, clip, look for infinities and NaN.

use super::params::Entry;
use nnrs_kernels::array::{Data, NdArray, Place};
use nnrs_kernels::context::compute_dtype;
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::Formula;
use nnrs_kernels::fork::at_fork;
use nnrs_kernels::kernel::reduction::whole::{self, DeviceReduction};
use nnrs_kernels::kernel::update::{ChunkList, TensorUpdate, Update, sum_squares};
use nnrs_kernels::simd::SimdReal;
use nnrs_kernels::with_real;
use smallvec::smallvec;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

/// `g = k g`
static SCALE: LazyLock<Update> =
    LazyLock::new(|| Update::new(Formula::with_scalars(1, 1, |x, k| vec![Some(&x[0] * &k[0])])));
/// `g = g + k w`
static DECAY: LazyLock<Update> =
    LazyLock::new(|| Update::new(Formula::with_scalars(2, 1, |x, k| vec![Some(&x[0] + &x[1] * &k[0])])));

at_fork!(Ready, (LazyLock::force(&SCALE), LazyLock::force(&DECAY)));

fn job_on_gradient(e: &Entry, factor: f64) -> Result<TensorUpdate> {
    e.check()?;
    e.fetch_gradient()?;
    let g = e.param.grad();
    let dtype = e.stored(g.dtype());
    let mut job = TensorUpdate::new(g.size(), dtype, g.storage().place(), smallvec![factor]);
    job.modify(&g, dtype)?;
    Ok(job)
}

/// Adds `rate * w` to each gradient.
pub(super) fn decay(entries: &[&Entry], rate: f64) -> Result<()> {
    let job = |e: &&Entry| {
        let mut job = job_on_gradient(e, rate)?;
        job.read(&e.param.data()?)?;
        Ok(job)
    };
    let jobs = entries.iter().map(job).collect::<Result<Vec<TensorUpdate>>>()?;
    DECAY.run(&jobs)
}

/// Multiplies each gradient by its own factor.
fn scale_each(entries: &[&Entry], factors: &[f64]) -> Result<()> {
    let changed = entries.iter().zip(factors).filter(|(_, f)| **f != 1.0);
    let jobs = changed.map(|(e, &f)| job_on_gradient(e, f)).collect::<Result<Vec<TensorUpdate>>>()?;
    SCALE.run(&jobs)
}

/// Those whose gradient has memory; one that was never touched is zero and stays so. One that backward has dropped is an error.
fn touched<'a>(entries: &[&'a Entry]) -> Result<Vec<&'a Entry>> {
    entries.iter().try_for_each(|e| e.fetch_gradient())?;
    Ok(entries.iter().filter(|e| !e.param.grad().storage().is_empty()).copied().collect())
}

/// Multiplies all gradients by `factor`.
pub(super) fn scale(entries: &[&Entry], factor: f64) -> Result<()> {
    scale_each(&touched(entries)?, &vec![factor; entries.len()])
}

/// Scales each gradient whose L2 norm is above `limit` down to it (each on its own).
pub(super) fn clip_by_norm(entries: &[&Entry], limit: f64) -> Result<()> {
    let factor = |norm: f64| if limit != 0.0 && norm > limit && norm > 0.0 { limit / norm } else { 1.0 };
    let mut entries = touched(entries)?;
    // A gradient that two parameters share is short enough when the second's turn comes; parts of one memory are several.
    let mut seen = BTreeSet::new();
    let place = |g: NdArray| (Arc::as_ptr(&g.storage()) as usize, g.offset(), g.size());
    entries.retain(|e| seen.insert(place(e.param.grad())));
    let factors: Vec<f64> = norms(&entries)?.into_iter().map(factor).collect();
    scale_each(&entries, &factors)
}

/// The gradients on the host for reading, in the types that kernels compute in.
fn contents<'a>(entries: impl Iterator<Item = &'a Entry>) -> Result<Vec<Data>> {
    entries.map(|e| e.param.grad()).map(|g| g.read(compute_dtype(g.dtype()))).collect()
}

fn is_here(e: &Entry) -> bool {
    e.param.grad().storage().place() == Place::Host
}

/// What `op` makes of each gradient that a GPU has.
fn reduced(entries: &[&Entry], op: DeviceReduction) -> Result<Vec<f64>> {
    let gradients: Vec<NdArray> = entries.iter().filter(|e| !is_here(e)).map(|e| e.param.grad()).collect();
    whole::on_gpus(&gradients, op)
}

fn norms(entries: &[&Entry]) -> Result<Vec<f64>> {
    let (here, away) = (host_norms(entries)?, reduced(entries, DeviceReduction::SumSquares)?);
    let (mut here, mut away) = (here.into_iter(), away.into_iter().map(f64::sqrt));
    let next = |e: &&Entry| if is_here(e) { here.next() } else { away.next() };
    Ok(entries.iter().filter_map(next).collect())
}

fn host_norms(entries: &[&Entry]) -> Result<Vec<f64>> {
    let data = contents(entries.iter().copied().filter(|e| is_here(e)))?;
    let grid = ChunkList::new(data.iter().map(Data::len));
    let sums: Vec<AtomicU64> = grid.parts().iter().map(|_| AtomicU64::new(0)).collect();
    grid.run(1, &|p| {
        let d = &data[p.array];
        let sum = with_real!(d.dtype(), T => sum_squares(&d.as_slice::<T>()[p.from..p.to]));
        sums[p.index].store(sum.to_bits(), Relaxed);
    });
    let mut totals = vec![0.0; data.len()];
    grid.parts().iter().for_each(|p| totals[p.array] += f64::from_bits(sums[p.index].load(Relaxed)));
    Ok(totals.into_iter().map(f64::sqrt).collect())
}

/// What `check_*_grad` looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    Inf,
    NaN,
    InfOrNaN,
}

/// True if any gradient has such an element.
pub(super) fn any(entries: &[&Entry], odd: Odd) -> Result<bool> {
    let entries = touched(entries)?;
    let counted = match odd {
        Odd::Inf => DeviceReduction::CountInf,
        Odd::NaN => DeviceReduction::CountNan,
        Odd::InfOrNaN => DeviceReduction::CountOdd,
    };
    if reduced(&entries, counted)?.iter().any(|n| *n > 0.0) {
        return Ok(true);
    }
    let data = contents(entries.into_iter().filter(|e| is_here(e)))?;
    let found = AtomicBool::new(false);
    ChunkList::new(data.iter().map(Data::len)).run(1, &|p| {
        let d = &data[p.array];
        let here = || with_real!(d.dtype(), T => has(&d.as_slice::<T>()[p.from..p.to], odd));
        if !found.load(Relaxed) && here() {
            found.store(true, Relaxed);
        }
    });
    Ok(found.into_inner())
}

fn has<T: SimdReal>(x: &[T], odd: Odd) -> bool {
    // Without an early exit the compiler makes vector loops of these.
    let nan = |x: &[T]| x.iter().fold(false, |any, v| any | v.is_nan());
    let inf = |x: &[T]| x.iter().fold(false, |any, v| any | (v.abs() == T::INFINITY));
    x.chunks(4096).any(|x| match odd {
        Odd::Inf => inf(x),
        Odd::NaN => nan(x),
        Odd::InfOrNaN => inf(x) | nan(x),
    })
}
