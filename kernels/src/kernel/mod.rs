//! Structured kernels, a folder each: `mod.rs` has the call, which holds all sizes and runs where its arrays are; `cpu` and
//! `cuda` do the work.

pub mod affine;
pub mod axis;
pub mod batch_matmul;
pub mod convolution;
pub mod embed;
pub mod gather;
pub mod global_average_pooling;
pub mod labels;
pub mod ops;
pub mod pooling;
pub mod softmax;
