//! Copies between strided boxes on a GPU.

use crate::array::Data;
use crate::array::Output;
use crate::cuda::driver::LaunchGrid;
use crate::error::{Error, Result};
use smallvec::SmallVec;

/// Axes that the kernel has room for.
const AXES: usize = 12;
/// Sides of the tiles of a transposition, and the shortest sides that are worth one.
const TILE: usize = 32;
const SHORT: usize = 8;

/// An axis: its size and the strides in `y` and in `x`.
type DeviceAxis = (usize, isize, isize);

/// A box: its axes, the outermost axis of y first, and the first elements in `y` and in `x`.
#[derive(Clone)]
struct Box {
    axes: SmallVec<[DeviceAxis; 6]>,
    to: isize,
    from: isize,
}

impl Box {
    fn table(&self) -> Vec<u8> {
        let mut words = vec![self.axes.len() as i64, self.to as i64, self.from as i64];
        words.extend(self.axes.iter().flat_map(|&(n, to, from)| [n as i64, to as i64, from as i64]));
        words.resize(3 + 3 * AXES, 0);
        words.into_iter().flat_map(i64::to_le_bytes).collect()
    }

    fn size(&self) -> usize {
        self.axes.iter().map(|a| a.0).product()
    }

    /// How many neighbours can be copied as one word of 16 bytes at most.
    fn neighbours(&self, y: &Data, x: &Data) -> usize {
        let Some(&(n, 1, 1)) = self.axes.last() else { return 1 };
        let size = x.dtype().size();
        let outer = &self.axes[..self.axes.len() - 1];
        let fits = |k: &usize| {
            let whole = |v: isize| v % *k as isize == 0;
            let aligned = |data: &Data| data.address().is_multiple_of((k * size) as u64);
            let strides = outer.iter().all(|a| whole(a.1) && whole(a.2));
            n % k == 0 && whole(self.to) && whole(self.from) && strides && aligned(y) && aligned(x)
        };
        [16, 8, 4, 2].into_iter().filter(|k| k * size <= 16).find(fits).unwrap_or(1)
    }

    /// The box of words of `k` elements.
    fn words(mut self, k: usize) -> Box {
        let s = k as isize;
        if let Some((last, outer)) = self.axes.split_last_mut() {
            last.0 /= k;
            outer.iter_mut().for_each(|a| (a.1, a.2) = (a.1 / s, a.2 / s));
        }
        (self.to, self.from) = (self.to / s, self.from / s);
        self
    }

    /// With the axis along which x runs before the last one, along which y runs, where that makes two long sides.
    fn tiled(&self) -> Option<Box> {
        let &(n, to, from) = self.axes.last()?;
        let across = self.axes.iter().position(|a| a.2 == 1 && a.0 >= SHORT)?;
        if to != 1 || n < SHORT || from.unsigned_abs() < 2 {
            return None;
        }
        let mut tiled = self.clone();
        let axis = tiled.axes.remove(across);
        tiled.axes.insert(tiled.axes.len() - 1, axis);
        Some(tiled)
    }
}

/// Copies (or adds) a box of elements: for each axis its size and the strides in `y` and in `x`, the outermost axis of y
/// first. `to` and `from` are the first elements.
///
/// # Safety
/// The box lies in both arrays, and its elements of `y` are distinct.
pub unsafe fn run(axes: &[DeviceAxis], to: isize, from: isize, y: &Data, x: &Data, output: Output) -> Result<()> {
    if axes.len() > AXES {
        return Err(Error::unsupported(format!("a copy over more than {AXES} separate axes has no kernel on a GPU")));
    }
    let (b, gpu) = (Box { axes: axes.into(), to, from }, y.gpu());
    if output == Output::Accumulate || x.dtype() != y.dtype() {
        let launch = gpu.launch("moves", "move_add")?.array(y).array(x).flag(output == Output::Accumulate);
        let n = b.size();
        // SAFETY: the caller's promise.
        return unsafe { launch.table(&b.table())?.size(n).run(gpu.grid(n)) };
    }
    if let Some(tiled) = b.tiled()
        // SAFETY: as above; the tiled box is the same one.
        && unsafe { run_tiled(&tiled, y, x)? }
    {
        return Ok(());
    }
    let k = b.neighbours(y, x);
    let b = b.words(k);
    let launch = gpu.launch("moves", "move")?.data(y).data(x).size(k * x.dtype().size()).table(&b.table())?;
    let n = b.size();
    // SAFETY: as above.
    unsafe { launch.size(n).run(gpu.grid(n)) }
}

/// False if there are too many tiles.
///
/// # Safety
/// As [`run`].
unsafe fn run_tiled(b: &Box, y: &Data, x: &Data) -> Result<bool> {
    let [rest @ .., a, last] = &b.axes[..] else { return Ok(false) };
    let wide = last.0.div_ceil(TILE);
    let blocks = rest.iter().map(|a| a.0).product::<usize>() * a.0.div_ceil(TILE) * wide;
    if blocks >= 1 << 31 {
        return Ok(false);
    }
    let name = match x.dtype().size() {
        1 => "move_tiles_1",
        2 => "move_tiles_2",
        4 => "move_tiles_4",
        _ => "move_tiles_8",
    };
    let launch = y.gpu().launch("moves", name)?.data(y).data(x).table(&b.table())?.size(wide);
    // SAFETY: the caller's promise.
    unsafe { launch.run(LaunchGrid::new(blocks, 8 * TILE))? };
    Ok(true)
}
