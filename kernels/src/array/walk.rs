//! How a program over many elements reads an array: in order, broadcast, or with strides; and the arrays of one run.

use super::Strided;
use crate::dtype::DType;
use crate::shape::Shape;
use smallvec::SmallVec;

/// How a program walks over an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Walk {
    /// Element by element, as the outputs.
    Dense,
    /// One value for all, read from the array.
    Splat,
    /// A number; there is no array.
    Constant(f64),
    /// Broadcast, or at other places: the first element, sizes and strides of merged axes (stride 0 where the input repeats).
    Strided(usize, WalkAxes),
}

/// Sizes and strides of axes.
pub type WalkAxes = SmallVec<[(usize, isize); 4]>;

impl Walk {
    /// How an input of shape `from` is read in a loop over `over`.
    pub fn new(from: &Shape, over: &Shape) -> Walk {
        if from == over {
            return Walk::Dense;
        }
        if from.size() == 1 {
            return Walk::Splat;
        }
        Walk::over(&Strided::dense(from), over)
    }

    /// How a view of an array is read in a loop over `over`, to which the view's shape broadcasts.
    pub fn over(from: &Strided, over: &Shape) -> Walk {
        let lead = over.ndim() - from.shape.ndim();
        let mut axes = WalkAxes::new();
        for (i, &n) in over.iter().enumerate().filter(|(_, n)| **n != 1) {
            let stride = if i < lead || from.shape[i - lead] == 1 { 0 } else { from.strides[i - lead] };
            match axes.last_mut() {
                Some((m, s)) if *s == stride * n as isize => (*m, *s) = (*m * n, stride),
                _ => axes.push((n, stride)),
            }
        }
        if axes.is_empty() {
            axes.push((1, 1)); // one element
        }
        if from.first == 0 && axes.len() == 1 && axes[0].1 == 1 { Walk::Dense } else { Walk::Strided(from.first, axes) }
    }

    /// Elements of the array that a loop over `n` elements goes over, from the array's first one on; `None` if it begins before.
    #[inline]
    pub(crate) fn extent(&self, n: usize) -> Option<usize> {
        match self {
            _ if n == 0 => Some(0),
            Walk::Dense => Some(n),
            Walk::Splat => Some(1),
            Walk::Constant(_) => Some(0),
            Walk::Strided(first, axes) => {
                let far = axes.iter().map(|(size, stride)| (size - 1) as isize * stride);
                let (low, high) = far.fold((0, 0), |(l, h), d| (l + d.min(0), h + d.max(0)));
                (*first as isize + low >= 0).then_some((*first as isize + high) as usize + 1)
            }
        }
    }
}

/// An input of a run; a strided walk begins with its first element.
#[derive(Clone)]
pub struct Source {
    pub ptr: *const u8,
    pub dtype: DType,
    pub walk: Walk,
}

/// An output of a run; always dense.
#[derive(Clone, Copy)]
pub struct Destination {
    pub ptr: *mut u8,
    pub dtype: DType,
}
