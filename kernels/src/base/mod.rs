//! What everything else stands on: errors, types, shapes, settings, and what is to be done around a fork.

pub mod dtype;
pub mod error;
pub mod fork;
pub mod saved;
pub mod shape;
pub mod stack;
pub mod switch;
