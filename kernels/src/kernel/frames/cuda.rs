//! On a GPU: frames become complex lines, which are transformed as `fft` does.

use super::Frames;
use crate::array::{Data, Output};
use crate::cuda::launch::Launch;
use crate::cuda::team::{is_double, named};
use crate::error::Result;
use crate::kernel::fft::cuda::transform;

fn sizes(launch: Launch, s: &Frames) -> Launch {
    let launch = launch.size(s.samples).size(s.border).flag(s.reflect).size(s.frames).size(s.stride);
    launch.size(s.size).size(s.width).long(s.window as i64).flag(s.inverse)
}

fn lines(s: &Frames, like: &Data) -> Result<Data> {
    Data::new_at(like.place(), like.dtype(), 2 * s.batch * s.frames * s.size)
}

pub(super) fn analyse(s: &Frames, x: &Data, y: [Option<(&Data, Output)>; 2]) -> Result<()> {
    let (gpu, frames, spectra) = (x.gpu(), lines(s, x)?, lines(s, x)?);
    let count = frames.len() / 2;
    let launch = gpu.launch("frames", &named("frames_load", is_double(x)))?.array(x).array(&frames);
    // SAFETY: x has the signals, the lines all frames.
    unsafe { sizes(launch.size(count), s).run(gpu.grid(count))? };
    transform(&[s.size], false, 1.0, &frames, &spectra, Output::Write)?;
    for (part, y) in y.into_iter().enumerate() {
        let Some((y, output)) = y else { continue };
        let launch = gpu.launch("frames", &named("frames_store", is_double(x)))?.data(&spectra).array(y).size(part);
        let launch = sizes(launch.flag(output == Output::Accumulate).size(y.len()), s);
        // SAFETY: y has the bins of all frames.
        unsafe { launch.run(gpu.grid(y.len()))? };
    }
    Ok(())
}

pub(super) fn synthesize(s: &Frames, [re, im]: [Option<&Data>; 2], x: &Data, output: Output) -> Result<()> {
    let (gpu, frames, spectra) = (x.gpu(), lines(s, x)?, lines(s, x)?);
    let count = frames.len() / 2;
    let launch = gpu.launch("frames", &named("frames_spread", is_double(x)))?.maybe(re).maybe(im).array(&spectra);
    // SAFETY: re and im have the bins of all frames, if they are there; the lines all their numbers.
    unsafe { sizes(launch.size(count), s).run(gpu.grid(count))? };
    transform(&[s.size], true, 1.0, &spectra, &frames, Output::Write)?;
    let launch = gpu.launch("frames", &named("frames_add", is_double(x)))?.data(&frames).array(x);
    let launch = sizes(launch.flag(output == Output::Accumulate).size(x.len()), s);
    // SAFETY: x has the signals.
    unsafe { launch.run(gpu.grid(x.len())) }
}
