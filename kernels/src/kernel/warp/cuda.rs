//! On a GPU.

use super::{Warp, WarpWindow};
use crate::array::{Data, Output};
use crate::call::View;
use crate::cuda::launch::Launch;
use crate::cuda::team::{is_double, named};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::Formula;
use crate::kernel::gather::Picks;
use crate::kernel::gather::cuda::scatter;
use crate::kernel::moves::Moves;
use crate::kernel::ops;
use crate::shape::Shape;
use crate::tile::Walk;

fn sizes(launch: Launch, w: &Warp) -> Launch {
    let launch = launch.size(w.channels).flag(w.channel_last);
    let launch = w.from.iter().chain(&w.to).fold(launch, |launch, &n| launch.size(n));
    let launch = launch.size(w.dims).flag(w.flow).flag(w.nearest).long(w.padding as i64).flag(w.corners);
    let launch = w.order.iter().fold(launch, |launch, &o| launch.long(o.into()));
    let none = WarpWindow { columns: 0, stride: [0; 2], pad: [0; 2], dilation: [0; 2] };
    let window = w.window.as_ref().unwrap_or(&none);
    let pairs = [window.stride, window.pad, window.dilation];
    pairs.iter().flatten().fold(launch.size(window.columns), |launch, &n| launch.size(n))
}

pub(super) fn gather(w: &Warp, x: &Data, grid: &Data, mask: Option<&Data>, y: &Data) -> Result<()> {
    let launch = y.gpu().launch("warp", &named("warp_gather", is_double(y)))?.array(x).data(grid);
    let launch = launch.maybe(mask).data(y);
    // SAFETY: the arrays have the sizes of the images, and of the places.
    unsafe { sizes(launch.size(y.len()), w).run(y.gpu().grid(y.len())) }
}

/// Numbers of elements and what is added to them, which are sorted by these numbers then.
pub(super) fn spread(w: &Warp, gy: &Data, grid: &Data, mask: Option<&Data>, gx: &Data, output: Output) -> Result<()> {
    let (gpu, picks) = (gx.gpu(), w.places() * w.taps());
    let numbers = Data::new_at(gx.place(), DType::I64, w.batch * picks)?;
    let parts = Data::new_at(gx.place(), gx.dtype(), gy.len() * w.taps())?;
    if !parts.is_empty() {
        let launch = gpu.launch("warp", &named("warp_parts", is_double(gx)))?.array(gy).data(grid);
        let launch = launch.maybe(mask).data(&parts);
        // SAFETY: gy has the places of all channels, the other two one number for each tap.
        unsafe { sizes(launch.data(&numbers).size(parts.len()), w).run(gpu.grid(parts.len()))? };
    }
    let (outer, inner) = if w.channel_last { (1, w.channels) } else { (w.channels, 1) };
    let picks = Picks { batch: w.batch, outer, n: w.image(), inner, picks };
    scatter(&picks, &numbers, &parts, gx, output)
}

/// The images differentiated along each axis, times the gradient, summed over the channels.
pub(super) fn by_places(w: &Warp, [x, gy, grid]: [&Data; 3], to: &Data, output: Output) -> Result<()> {
    let (places, channels) = (w.places(), w.channels);
    let read = Data::new_at(to.place(), to.dtype(), gy.len())?;
    let sums = Data::new_at(to.place(), to.dtype(), w.batch * places)?;
    let product = Formula::new(2, |v| vec![Some(&v[0] * &v[1])]);
    let (shape, summed) = match w.channel_last {
        true => ([w.batch, places, channels], [false, false, true]),
        false => ([w.batch, channels, places], [false, true, false]),
    };
    for component in 0..w.dims {
        let mut along = w.clone();
        along.order[2 - component] += 1;
        gather(&along, x, grid, None, &read)?;
        ops::formula(&product, &[(&read, Walk::Dense), (gy, Walk::Dense)], &read, Output::Write)?;
        ops::sum(&View::new(&Shape::from(shape), read.clone()), &summed, &sums, Output::Write)?;
        let (first, stride) = if w.flow { (component * places, 1) } else { (component, w.dims) };
        let moves = Moves::new(first, 0).axis(w.batch, (w.dims * places) as isize, places as isize);
        ops::moves(moves.axis(places, stride as isize, 1), to, &sums, output)?;
    }
    Ok(())
}
