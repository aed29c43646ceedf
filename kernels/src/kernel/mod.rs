//! Structured kernels, a folder each: `mod.rs` has the call, which holds all sizes and runs where its arrays are; `cpu` and
//! `cuda` do the work.

pub mod affine;
pub mod axis;
pub mod gather;
pub mod labels;
pub mod ops;
pub mod softmax;
