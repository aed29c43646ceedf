//! `sum_pooling`: the sum of each window.

use super::pooling::{SumPoolingBackward, alike, divisor, spec, sum_pooling_backward, sums};
use crate::function;
use crate::function::{Function, Grad, GradMut, Needs, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Sum of each window over the last two or three axes.
    SumPooling sum_pooling in Layer, any_device
    inputs { x: "N-D array; its last axes (before the channels, if channel_last) are pooled." }
    args {
        kernel: Vec<i64>, "Sizes of the window, for 2 or 3 axes.";
        stride: Option<Vec<i64>> = None, "Distance of windows; None: the kernel's sizes.";
        ignore_border: bool = true, "Leave out windows that reach over the far border; if not, they are cut.";
        pad: Option<Vec<i64>> = None, "Padding with zeros on both ends of each axis; None: none.";
        channel_last: bool = false, "Whether the channels are the last axis."
    }
    outputs { y: "Sums." }
}

sums!(SumPooling, average: false, including_pad: |_f| true);
