//! On a GPU: a thread an element of a pass's result.

use super::{AxisPass, Resample, Sampling};
use crate::array::{Data, Output};
use crate::cuda::launch::Launch;
use crate::cuda::team::{is_double, named};
use crate::error::Result;

fn sampling(launch: Launch, s: &Sampling) -> Launch {
    let launch = launch.size(s.n).size(s.m).double(s.scale).double(s.shift).double(s.by);
    launch.long(s.way as i64).double(s.cubic).flag(s.cut)
}

fn pass(p: &AxisPass, x: &Data, y: &Data, output: Output) -> Result<()> {
    let launch = y.gpu().launch("resample", &named("resample", is_double(y)))?.array(x).array(y);
    let launch = sampling(launch.size(p.result()).size(p.behind), &p.sampling);
    let launch = launch.flag(p.transposed).flag(output == Output::Accumulate);
    // SAFETY: the arrays have the sizes of the pass.
    unsafe { launch.run(y.gpu().grid(p.result())) }
}

pub(super) fn resample(r: &Resample, x: &Data, y: &Data, transposed: bool, output: Output) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let passes = r.passes(r.outer, transposed);
    let mut now: Option<Data> = None;
    for (k, p) in passes.iter().enumerate() {
        let from = now.as_ref().unwrap_or(x);
        if k + 1 == passes.len() {
            pass(p, from, y, output)?;
            break;
        }
        let next = Data::new_at(y.place(), y.dtype(), p.result())?;
        pass(p, from, &next, Output::Write)?;
        now = Some(next);
    }
    if transposed || output == Output::Accumulate {
        return Ok(());
    }
    let mut behind = r.inner;
    for s in r.axes.iter().rev() {
        if s.cut {
            let launch = y.gpu().launch("resample", "resample_beyond")?.array(y);
            let launch = sampling(launch.size(y.len()).size(behind), s).double(r.beyond);
            // SAFETY: y has the sizes of the axes.
            unsafe { launch.run(y.gpu().grid(y.len()))? };
        }
        behind *= s.m;
    }
    Ok(())
}
