//! Images read at places that an array says: by coordinates from -1 to 1, or by distances in elements. Also the derivatives of that
//! along the axes, and the transpose.

mod cpu;
mod cuda;

use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::with_real;

/// What lies beyond an image; the numbers are those of `Padding` in `cuda/warp.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    Zero,
    /// The elements at its ends.
    Repeat,
    /// The image mirrored.
    Reflect,
}

/// The places of a deformable convolution: for each element of a kernel, which the first of three axes counts, its distances along
/// height and width are two planes of the image's size, which are read where the window begins if there is no padding.
#[derive(Clone, Debug)]
pub struct WarpWindow {
    /// Columns of the kernel.
    pub columns: usize,
    /// Of height and width.
    pub stride: [usize; 2],
    pub pad: [usize; 2],
    pub dilation: [usize; 2],
}

/// How images are read. Axes are depth, height and width; those that are not there are of size 1.
#[derive(Clone, Debug)]
pub struct Warp {
    pub batch: usize,
    pub channels: usize,
    pub channel_last: bool,
    pub from: [usize; 3],
    pub to: [usize; 3],
    pub dims: usize,
    /// Places are told by their distance from the element's own.
    pub flow: bool,
    /// With `flow`: the places are those of a kernel.
    pub window: Option<WarpWindow>,
    pub nearest: bool,
    pub padding: Padding,
    /// -1 and 1 are the first and the last element; else they are the image's edges.
    pub corners: bool,
    /// How often the image between its elements is differentiated along each axis.
    pub order: [u8; 3],
}

/// The elements before and behind a place, if they are in the image, and their weights.
#[derive(Clone, Copy)]
pub struct Pair {
    pub at: [Option<usize>; 2],
    pub weight: [f64; 2],
}

impl Warp {
    /// Elements of an image, and of the array that says the places, for a channel.
    pub fn image(&self) -> usize {
        self.from.iter().product()
    }

    pub fn places(&self) -> usize {
        self.to.iter().product()
    }

    /// Elements that make one of the result.
    pub fn taps(&self) -> usize {
        if self.nearest { 1 } else { 1 << self.dims }
    }

    /// Where on axis `a` distances count from, for an element of the result.
    fn origin(&self, a: usize, index: [usize; 3]) -> f64 {
        let Some(w) = &self.window else { return index[a] as f64 };
        let tap = [index[0] / w.columns, index[0] % w.columns][a - 1];
        (index[a] * w.stride[a - 1] + tap * w.dilation[a - 1]) as f64 - w.pad[a - 1] as f64
    }

    /// Which number of the array that says the places is about axis `a`, for element `p` of image `b`.
    fn number(&self, a: usize, b: usize, p: usize, index: [usize; 3]) -> usize {
        let component = 2 - a;
        match (&self.window, self.flow) {
            (Some(w), _) => self.in_plane(w, (b * self.to[0] + index[0]) * 2 + a - 1, index),
            (_, true) => (b * self.dims + component) * self.places() + p,
            (_, false) => (b * self.places() + p) * self.dims + component,
        }
    }

    /// Where a plane of numbers has that of an element of the result.
    fn in_plane(&self, w: &WarpWindow, plane: usize, index: [usize; 3]) -> usize {
        (plane * self.from[1] + index[1] * w.stride[0]) * self.from[2] + index[2] * w.stride[1]
    }

    /// Where the mask has the factor of element `p` of image `b`.
    fn factor(&self, b: usize, p: usize, index: [usize; 3]) -> usize {
        match &self.window {
            Some(w) => self.in_plane(w, b * self.to[0] + index[0], index),
            None => b * self.places() + p,
        }
    }

    /// The place on axis `a` of what number `v` says for an element of the result whose origin is `i`, and its derivative by `v`.
    fn place(&self, a: usize, i: f64, v: f64) -> (f64, f64) {
        let n = self.from[a] as f64;
        let by = self.slope(a);
        let place = match (self.flow, self.corners) {
            (true, _) => i + v,
            (_, true) => (v + 1.0) / 2.0 * (n - 1.0),
            _ => ((v + 1.0) * n - 1.0) / 2.0,
        };
        let clamped = |place: f64, by: f64| match place {
            p if p < 0.0 => (0.0, 0.0),
            p if p > n - 1.0 => (n - 1.0, 0.0),
            p => (p, by),
        };
        match self.padding {
            Padding::Zero => (place, by),
            Padding::Repeat => clamped(place, by),
            Padding::Reflect => {
                let (first, length) = if self.corners { (0.0, n - 1.0) } else { (-0.5, n) };
                if length == 0.0 {
                    return (0.0 * place, 0.0);
                }
                let (away, sign) = ((place - first).abs(), if place < first { -by } else { by });
                let turns = (away / length).floor();
                let rest = away - turns * length;
                match turns % 2.0 == 0.0 {
                    true => clamped(first + rest, sign),
                    false => clamped(first + length - rest, -sign),
                }
            }
        }
    }

    /// The derivative of a place on axis `a` by what says it, inside the image.
    fn slope(&self, a: usize) -> f64 {
        let n = self.from[a] as f64;
        match (self.flow, self.corners) {
            (true, _) => 1.0,
            (_, true) => (n - 1.0) / 2.0,
            _ => n / 2.0,
        }
    }

    /// What the result is made of along axis `a`, differentiated `order` times.
    fn pair(&self, a: usize, order: u8, i: f64, v: f64) -> Pair {
        let n = self.from[a] as f64;
        let (place, by) = self.place(a, i, v);
        let inside = |p: f64| match self.padding {
            Padding::Zero if p < 0.0 || p > n - 1.0 => None,
            _ => Some(p.clamp(0.0, n - 1.0) as usize),
        };
        if self.nearest {
            // NaN stays NaN.
            let weight = if order > 0 { 0.0 } else { 1.0 + 0.0 * place };
            return Pair { at: [inside(place.round()), None], weight: [weight, 0.0] };
        }
        let (first, t) = (place.floor(), place - place.floor());
        let weight = match order {
            0 => [1.0 - t, t],
            1 => [-by + 0.0 * t, by + 0.0 * t],
            _ => [0.0; 2],
        };
        Pair { at: [inside(first), inside(first + 1.0)], weight }
    }

    /// Writes what is read, times a number for each place if there is a `mask`.
    pub(crate) fn gather(&self, x: &Data, grid: &Data, mask: Option<&Data>, y: &Data) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            return cuda::gather(self, x, grid, mask, y);
        }
        with_real!(y.dtype(), T => {
            cpu::gather(self, x.as_slice::<T>(), grid.as_slice(), mask.map(|m| m.as_slice()), y.as_mut_slice())
        })
    }

    /// Bytes that [`Warp::gather`] works in.
    pub(crate) fn scratch(&self, dtype: DType) -> usize {
        cpu::counted_sides(self, dtype)[0]
    }

    /// The gradient by what says the places, of a result with the gradient gy.
    fn by_places(&self, [x, gy, grid]: [&Data; 3], to: &Data, output: Output) -> Result<()> {
        if let Place::Gpu(_) = to.place() {
            return cuda::by_places(self, [x, gy, grid], to, output);
        }
        with_real!(to.dtype(), T => {
            cpu::by_places(self, [x.as_slice::<T>(), gy.as_slice(), grid.as_slice()], to.as_mut_slice(), output)
        })
    }

    /// The transpose.
    pub(crate) fn spread(&self, gy: &Data, grid: &Data, mask: Option<&Data>, gx: &Data, output: Output) -> Result<()> {
        if let Place::Gpu(_) = gx.place() {
            return cuda::spread(self, gy, grid, mask, gx, output);
        }
        with_real!(gx.dtype(), T => {
            let mask = mask.map(|m| m.as_slice());
            cpu::spread(self, gy.as_slice::<T>(), grid.as_slice(), mask, gx.as_mut_slice(), output)
        });
        Ok(())
    }
}

/// Reads images.
pub struct WarpGather(pub Warp);

impl WarpGather {
    /// Whether there is a kernel for the gradient of the places too.
    fn tells_places(&self) -> bool {
        self.0.window.is_none() && !self.0.nearest && self.0.order == [0; 3]
    }
}

impl Call for WarpGather {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.gather(&x[0].data, &x[1].data, x.get(2).map(|m| &m.data), &y[0].data)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let [read, added] = cpu::counted_sides(&self.0, dtype);
        [read, if self.tells_places() { read.max(added) } else { added }]
    }

    /// The rule makes images read along an axis, and their products, for the gradient of the places.
    fn backward_scratch(&self, want: &[bool]) -> usize {
        let has_kernel = self.0.nearest || !want[1] || self.tells_places();
        if has_kernel { 0 } else { 2 * self.0.batch * self.0.channels * self.0.places() }
    }

    /// Not that of a mask, nor that of the places where they are those of a kernel.
    fn needs(&self, want: &[bool]) -> Option<Needs> {
        match want {
            [_, false, rest @ ..] if !rest.contains(&true) => Some(Needs { x: 0b110, y: 0 }),
            [_, true] if self.tells_places() => Some(Needs { x: 0b11, y: 0 }),
            _ => None,
        }
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(grid)) = (&gy[0], &x[1]) else { return Ok(()) };
        if let Some(gx) = &gx[0] {
            let mask = x.get(2).and_then(|m| m.as_ref()).map(|m| &m.data);
            self.0.spread(&gy.data, &grid.data, mask, &gx.data, gx.output)?;
        }
        match (&x[0], &gx[1]) {
            (Some(x), Some(to)) => self.0.by_places([&x.data, &gy.data, &grid.data], &to.data, to.output),
            _ => Ok(()),
        }
    }
}

/// Adds each element of a result to those of the image that it was made of.
pub struct WarpScatter(pub Warp);

impl Call for WarpScatter {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.spread(&x[0].data, &x[1].data, x.get(2).map(|m| &m.data), &y[0].data, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [cpu::counted_sides(&self.0, dtype)[1], 0]
    }
}
