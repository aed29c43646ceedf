//! Element-wise expressions.

pub mod op;
