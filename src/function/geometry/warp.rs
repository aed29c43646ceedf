//! `warp_by_grid`, `warp_by_flow`: images read at places that an array says. The derivative by the places is again images read there,
//! differentiated along an axis between their elements.

use crate::function::array::List;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::warp::{Padding, Warp, WarpGather, WarpScatter};
use nnrs_kernels::shape::Shape;

function! {
    /// Images read at the places of a grid (Jaderberg et al., 2015). Along an axis places go from -1 to 1, which are the image's
    /// edges, or, with align_corners, its first and its last element.
    WarpByGrid warp_by_grid in Geometry, any_device
    inputs {
        x: "Images of shape (B, C, H, W), or volumes (B, C, D, H, W); (B, .., C) if channel_last.",
        grid: "Places of shape (B, H', W', 2) as (x, y), or (B, D', H', W', 3) as (x, y, z).",
    }
    args {
        mode: String = "linear".to_string(), "'linear', or 'nearest', which has no gradient by the grid.";
        padding_mode: String = "zero".to_string(),
            "What lies beyond the image: 'zero', 'repeat', its elements at the ends, or 'reflect', the image mirrored.";
        align_corners: bool = false, "Whether -1 and 1 are the first and the last element.";
        channel_last: bool = false, "Whether the channels are the last axis."
    }
    outputs { y: "Images with the grid's sizes." }
}

function! {
    /// Images moved by a flow: each element is read, between elements linearly, at its own place and the distance that the flow
    /// says. Beyond the image are the elements at its ends.
    WarpByFlow warp_by_flow in Geometry, any_device
    inputs { data: "Images of shape (N, C, H, W).", flow: "Distances in elements, of shape (N, 2, H, W), as (x, y)." }
    args {}
    outputs { warped_image: "Images of data's shape." }
}

function! {
    /// As `warp_by_grid` or `warp_by_flow`, with images differentiated between their elements.
    WarpDerivative warp_derivative in Special, any_device
    inputs { x: "Images.", grid: "Places, or distances." }
    args {
        flow: bool, "Whether it is that of `warp_by_flow`.";
        mode: String, "As of `warp_by_grid`.";
        padding_mode: String, "As of `warp_by_grid`.";
        align_corners: bool, "As of `warp_by_grid`.";
        channel_last: bool, "As of `warp_by_grid`.";
        order: List, "How often along depth, height and width."
    }
    outputs { y: "Images with the grid's sizes." }
}

function! {
    /// Adds each element of a result of `warp_derivative` to those that it was read from: its derivative.
    WarpSpread warp_spread in Special, any_device
    inputs { gy: "Gradient of the result.", grid: "Places, or distances." }
    args {
        flow: bool, "As of `warp_derivative`.";
        mode: String, "As of `warp_derivative`.";
        padding_mode: String, "As of `warp_derivative`.";
        align_corners: bool, "As of `warp_derivative`.";
        channel_last: bool, "As of `warp_derivative`.";
        order: List, "As of `warp_derivative`.";
        shape: List, "Shape of the images."
    }
    outputs { gx: "Gradient of the images." }
}

impl WarpByGrid {
    fn derivative(&self) -> WarpDerivative {
        WarpDerivative {
            flow: false,
            mode: self.mode.clone(),
            padding_mode: self.padding_mode.clone(),
            align_corners: self.align_corners,
            channel_last: self.channel_last,
            order: vec![0; 3].into(),
        }
    }
}

impl WarpByFlow {
    fn derivative() -> WarpDerivative {
        WarpDerivative {
            flow: true,
            mode: "linear".to_string(),
            padding_mode: "repeat".to_string(),
            align_corners: false,
            channel_last: false,
            order: vec![0; 3].into(),
        }
    }
}

impl WarpSpread {
    fn derivative(&self) -> WarpDerivative {
        let WarpSpread { flow, mode, padding_mode, align_corners, channel_last, order, .. } = self.clone();
        WarpDerivative { flow, mode, padding_mode, align_corners, channel_last, order }
    }
}

impl WarpDerivative {
    fn spread(&self, shape: &Shape) -> WarpSpread {
        let WarpDerivative { flow, mode, padding_mode, align_corners, channel_last, order } = self.clone();
        WarpSpread { flow, mode, padding_mode, align_corners, channel_last, order, shape: shape[..].into() }
    }

    fn nearest(&self) -> Result<bool> {
        match &*self.mode {
            "linear" => Ok(false),
            "nearest" => Ok(true),
            mode => Err(Error::arg("mode", "'linear' or 'nearest'").actual(format!("'{mode}'"))),
        }
    }

    fn padding(&self) -> Result<Padding> {
        match &*self.padding_mode {
            "zero" => Ok(Padding::Zero),
            "repeat" => Ok(Padding::Repeat),
            "reflect" => Ok(Padding::Reflect),
            mode => Err(Error::arg("padding_mode", "'zero', 'repeat' or 'reflect'").actual(format!("'{mode}'"))),
        }
    }

    /// All sizes, where `x` and `grid` are of these shapes and the images are called `name`.
    fn warp(&self, name: &str, x: &Shape, grid: &Shape) -> Result<Warp> {
        let n = x.ndim();
        let dims = if self.flow { 2 } else { n.saturating_sub(2) };
        if n != dims + 2 || !(2..=3).contains(&dims) {
            let expected = if self.flow { "shape (N, C, H, W)" } else { "shape (B, C, H, W) or (B, C, D, H, W)" };
            return Err(Error::shape(name, expected).actual(x));
        }
        let (channels, spatial) = if self.channel_last { (x[n - 1], &x[1..n - 1]) } else { (x[1], &x[2..]) };
        if spatial.contains(&0) {
            return Err(Error::shape(name, "sizes of at least 1 along the axes that are read").actual(x));
        }
        let (places, fits) = match self.flow {
            true => (spatial, grid.ndim() == 4 && grid[..2] == [x[0], 2] && grid[2..] == *spatial),
            false => (grid.get(1..dims + 1).unwrap_or(&[]), grid.ndim() == n && grid[0] == x[0] && grid[n - 1] == dims),
        };
        if !fits {
            let (name, expected) = match self.flow {
                true => ("flow", format!("shape ({}, 2, {}, {})", x[0], spatial[0], spatial[1])),
                false => ("grid", format!("shape ({}, {}{dims}), places for each image", x[0], ".., ")),
            };
            return Err(Error::shape(name, expected).actual(grid));
        }
        let three = |sizes: &[usize]| -> [usize; 3] {
            let missing = 3 - sizes.len();
            std::array::from_fn(|i| if i < missing { 1 } else { sizes[i - missing] })
        };
        Ok(Warp {
            batch: x[0],
            channels,
            channel_last: self.channel_last,
            from: three(spatial),
            to: three(places),
            dims,
            flow: self.flow,
            window: None,
            nearest: self.nearest()?,
            padding: self.padding()?,
            corners: self.align_corners,
            order: std::array::from_fn(|a| self.order.get(a).map_or(0, |&o| o.clamp(0, 2) as u8)),
        })
    }

    fn gather(&self, name: &str, x: &Shape, grid: &Shape) -> Result<Resolved> {
        let warp = self.warp(name, x, grid)?;
        let (lead, places) = (&x[..1], &warp.to[3 - warp.dims..]);
        let (first, last) = if self.channel_last { (None, Some(warp.channels)) } else { (Some(warp.channels), None) };
        let y: Shape = lead.iter().copied().chain(first).chain(places.iter().copied()).chain(last).collect();
        Ok(Resolved::one(y.checked()?, WarpGather(warp)))
    }

    /// The gradient by the places of the sum of a result, made of images `x`, times `weights`.
    fn by_places(&self, x: &Variable, grid: &Variable, weights: &Variable) -> Result<Option<Variable>> {
        let dims = if self.flow { 2 } else { x.ndim() - 2 };
        if self.mode == "nearest" {
            return Ok(None);
        }
        let channel = if self.channel_last { x.ndim() as i64 - 1 } else { 1 };
        let component = |axis: usize| -> Result<Variable> {
            let mut order = self.order.clone();
            order.0[axis] += 1;
            let moved = warp_derivative(x, grid, WarpDerivative { order, ..self.clone() })?;
            let product = f::mul2(weights, &moved, f::Mul2::default())?;
            f::sum(&product, f::Sum { axis: Some(vec![channel]), keepdims: false })
        };
        // The components are x, y and z.
        let parts = (0..dims).map(|c| component(2 - c)).collect::<Result<Vec<_>>>()?;
        let parts: Vec<&Variable> = parts.iter().collect();
        let axis = if self.flow { 1 } else { -1 };
        Ok(Some(f::stack(&parts, f::Stack { axis })?))
    }

    fn gradients(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, grid, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let gx = g.want[0].then(|| warp_spread(gy, grid, self.spread(&x.shape()))).transpose()?;
        let places = if g.want[1] { self.by_places(x, grid, gy)? } else { None };
        Ok(vec![gx, places])
    }
}

impl Function for WarpByGrid {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        self.derivative().gather("x", &x[0], &x[1])
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0 || self.mode != "nearest"
    }

    fn refuses_gradient(&self, i: usize) -> bool {
        !self.differentiable(i)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        self.derivative().gradients(g)
    }
}

impl Function for WarpByFlow {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        WarpByFlow::derivative().gather("data", &x[0], &x[1])
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        WarpByFlow::derivative().gradients(g)
    }
}

impl Function for WarpDerivative {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        self.gather("x", &x[0], &x[1])
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        self.gradients(g)
    }
}

impl Function for WarpSpread {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let shape: Shape = self.shape.iter().map(|&n| n.max(0) as usize).collect();
        let resolved = self.derivative().gather("shape", &shape, &x[1])?;
        if resolved.shapes[0] != x[0] {
            return Err(Error::shape("gy", format!("shape {}", resolved.shapes[0])).actual(&x[0]));
        }
        let warp = self.derivative().warp("shape", &shape, &x[1])?;
        Ok(Resolved::one(shape, WarpScatter(warp)))
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0 || self.mode != "nearest"
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (gy, grid, back) = (&g.x[0], &g.x[1], &g.gy[0]);
        let derivative = self.derivative();
        let by_gy = g.want[0].then(|| warp_derivative(back, grid, derivative.clone())).transpose()?;
        let by_places = if g.want[1] { derivative.by_places(back, grid, gy)? } else { None };
        Ok(vec![by_gy, by_places])
    }
}
