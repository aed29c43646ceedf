//! Structured kernels, a folder each: `mod.rs` has the call, which holds all sizes and runs where its arrays are; `cpu` and
//! `cuda` do the work.

pub mod affine;
pub mod assign;
pub mod axis;
pub mod batch_matmul;
pub mod bool_scatter;
pub mod broadcast;
pub mod constant;
pub mod convolution;
pub mod cumsum;
pub mod embed;
pub mod flip;
pub mod gather;
pub mod gather_nd;
pub mod global_average_pooling;
pub mod halves;
pub mod join;
pub mod labels;
pub mod matrix_diag;
pub mod normalization;
pub mod one_hot;
pub mod ops;
pub mod pad;
pub mod pooling;
pub mod prelu;
pub mod random;
pub mod range;
pub mod reduction;
pub mod reshape;
pub mod scatter_add;
pub mod sink;
pub mod slice;
pub mod softmax;
pub mod tile;
pub mod transpose;
pub mod where_;
