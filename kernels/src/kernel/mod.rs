//! Structured kernels, a file each: sizes, resolved once, and the call, which runs where the arrays are.

pub mod gather;
