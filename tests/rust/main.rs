//! The tests of the crate as a program uses it: one binary, which is compiled and linked once.

mod common;

mod arrays;
mod builders;
mod communicator;
mod cuda_source;
#[cfg(feature = "emulate")]
mod gpu;
mod graph;
mod layers;
mod normalization;
mod parameter;
mod rewire;
mod runs;
mod solver;
mod threads;
mod user_function;
mod variable;
