//! On a GPU. Passes are counted on the host, so runs are not captured.

use super::{Inq, InqSelection, InqStep, Passes, cpu};
use crate::array::{Data, Output};
use crate::call::Run;
use crate::cuda::convert;
use crate::cuda::driver::LaunchGrid;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::axis::Axis;
use crate::kernel::gather::cuda::indices;
use crate::kernel::sort::{Order, order_of_lines};
use crate::kernel::{ops, random};

/// Bytes of what is known of all weights, and threads of the block that finds it, as in `cuda/inq.cu`.
const SIZES: usize = 24;
const THREADS: usize = 256;

impl Passes {
    /// The values of the weights that are fixed, in the memory of `like`.
    fn kept_beside(&mut self, like: &Data) -> Result<Data> {
        match &self.on_gpu {
            Some(kept) if kept.place() == like.place() && kept.len() == like.len() => Ok(kept.clone()),
            _ => {
                let kept = Data::new_at(like.place(), DType::F64, like.len())?;
                convert::fill(&kept, f64::NAN)?;
                Ok(self.on_gpu.insert(kept).clone())
            }
        }
    }
}

/// What a pass finds of the weights before it fixes any.
struct FreeWeights {
    is_free: Data,
    keys: Data,
    sizes: Data,
}

impl FreeWeights {
    fn new([w, given]: [&Data; 2], kept: &Data) -> Result<FreeWeights> {
        let (gpu, n) = (w.gpu(), w.len());
        let new = |dtype, n| Data::new_at(w.place(), dtype, n);
        let (is_free, magnitudes, keys) = (new(DType::U8, n)?, new(DType::F64, n)?, new(DType::F64, n)?);
        let sizes = new(DType::U8, SIZES)?;
        let launch = gpu.launch("inq", "inq_weights")?.array(w).array(given).data(kept).size(n);
        // SAFETY: arrays of one size.
        unsafe { launch.data(&is_free).data(&magnitudes).data(&keys).run(gpu.grid(n))? };
        let launch = gpu.launch("inq", "inq_sizes")?.data(&is_free).data(&magnitudes).size(n).data(&sizes);
        // SAFETY: one block, and room for what it finds.
        unsafe { launch.run(LaunchGrid::new(1, THREADS))? };
        Ok(FreeWeights { is_free, keys, sizes })
    }

    /// Marks half of them.
    fn half(&self, selection: &InqSelection, run: &Run) -> Result<Data> {
        let (gpu, n) = (self.keys.gpu(), self.keys.len());
        let chosen = Data::new_at(self.keys.place(), DType::U8, n)?;
        let launch = match selection {
            InqSelection::Largest => {
                let order = Order { magnitudes: false, reverse: true };
                let places = order_of_lines(Axis { outer: 1, n, inner: 1 }, order, &self.keys)?;
                gpu.launch("inq", "inq_largest")?.data(&places).data(&self.sizes)
            }
            InqSelection::Random(seed) => {
                convert::fill(&chosen, 0.0)?;
                let numbers = random::uniforms(random::next_or_last(seed, run, false)?, chosen.place(), n)?;
                gpu.launch("inq", "inq_random")?.data(&indices::chosen(&self.is_free, n)?).data(&numbers)
            }
        };
        // SAFETY: a place and a mark for each weight.
        unsafe { launch.size(n).data(&chosen).run(gpu.grid(n))? };
        Ok(chosen)
    }
}

/// Moves what is fixed, and writes weights and indicators; gives the weights.
pub(super) fn advance(c: &Inq, run: &Run, [w, given]: [&Data; 2], passes: &mut Passes) -> Result<Data> {
    let (pass, kept) = (passes.next(run.call), passes.kept_beside(w)?);
    if w.is_empty() {
        return Ok(w.clone());
    }
    let (gpu, n) = (w.gpu(), w.len());
    let free = FreeWeights::new([w, given], &kept)?;
    let step = c.step(pass);
    let chosen = match step {
        InqStep::Half => Some(free.half(&c.selection, run)?),
        _ => None,
    };
    let new = |like: &Data| Data::new_at(like.place(), like.dtype(), n);
    let (weights, indicators) = (new(w)?, new(given)?);
    let launch = gpu.launch("inq", "inq_fix")?.array(w).array(given).data(&kept).maybe(chosen.as_ref());
    let launch = launch.flag(matches!(step, InqStep::All)).data(&free.sizes).size(cpu::count(c.bits)).size(n);
    // SAFETY: arrays of one size.
    unsafe { launch.data(&weights).data(&indicators).run(gpu.grid(n))? };
    ops::put(&run.input_to_update(1, weights.place(), n)?, &weights, Output::Write)?;
    ops::put(&run.whole_input_to_update(2, indicators.place(), n)?, &indicators, Output::Write)?;
    Ok(weights)
}
