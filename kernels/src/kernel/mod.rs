//! Structured kernels, a folder each: `mod.rs` has the call, which holds all sizes and runs where its arrays are; `cpu` and
//! `cuda` do the work.

pub mod affine;
pub mod axis;
pub mod gather;
pub mod halves;
pub mod labels;
pub mod normalization;
pub mod ops;
pub mod prelu;
pub mod random;
pub mod reduction;
pub mod softmax;
pub mod where_;
