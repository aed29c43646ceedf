//! Sums of rows on a GPU, and of the arrays of several GPUs of one process, which go from device to device.

use super::Gpu;
use crate::array::{Data, NdArray, Place};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};

/// `y` becomes the sum of the rows in `x`, from first to last, divided. It may be one of them.
pub(super) fn sum_rows(y: &Data, x: &Data, divide: usize) -> Result<()> {
    let (gpu, n) = (y.gpu(), y.len());
    let launch = gpu.launch("gpu_sums", "sum_rows")?.array(y).data(x);
    let launch = launch.size(x.len() / n).size(n).size(divide);
    // SAFETY: the rows are as long as `y`, of one type.
    unsafe { launch.run(gpu.grid(n)) }
}

/// Each array becomes the sum of all, added up from first to last and divided; each stays on its GPU. No number goes by the host.
///
/// # Errors
/// Other sizes or types than the first array's; not enough memory.
pub fn sum_over_gpus(arrays: &[(&'static Gpu, NdArray)], divide: usize) -> Result<()> {
    let Some((first, a)) = arrays.first() else { return Ok(()) };
    let (n, count) = (a.size(), arrays.len());
    if n == 0 {
        return Ok(());
    }
    let all: Vec<Data> = arrays.iter().map(|(gpu, x)| there(gpu, x, a)).collect::<Result<_>>()?;
    let rows = Data::new_at(Place::Gpu(*first), all[0].dtype(), n * count)?;
    for (i, x) in all.iter().enumerate() {
        copy(&rows.within(i * n, n), x)?;
    }
    sum_rows(&all[0], &rows, divide)?;
    all[1..].iter().try_for_each(|x| copy(x, &all[0]))?;
    for (x, (_, array)) in all.iter().zip(arrays) {
        x.note_written();
        array.note_whole();
    }
    Ok(())
}

/// An array's memory on its GPU.
fn there(gpu: &'static Gpu, a: &NdArray, first: &NdArray) -> Result<Data> {
    a.fetch()?;
    if (a.size(), a.dtype()) != (first.size(), first.dtype()) {
        let expected = format!("{} elements of {}, as of the first context", first.size(), first.dtype());
        return Err(Error::new(ErrorKind::Shape, expected).actual(format!("{} of {}", a.size(), a.dtype())));
    }
    a.modify_at(Place::Gpu(gpu), a.dtype())?.of(a.size())
}

/// Copies elements of one type, of as many.
fn copy(to: &Data, from: &Data) -> Result<()> {
    let (here, there) = (to.gpu(), from.gpu());
    let turn = here.turn_with_host()?;
    if here == there {
        // SAFETY: both have that many bytes.
        return unsafe { here.driver.copy(to.address(), from.address(), to.bytes(), None) };
    }
    let turns = [&there.turn_with_host()?, &turn];
    // SAFETY: as above.
    unsafe { here.copy_from(turns, to.address(), there, from.address(), to.bytes()) }
}
