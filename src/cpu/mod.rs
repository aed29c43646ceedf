//! CPU kernels with a structure of their own.
