//! The list of all functions.

use super::describe::Def;
use super::*;

const GROUPS: &[&[&Def]] = &[
    layer::FUNCTIONS,
    activation::FUNCTIONS,
    normalization::FUNCTIONS,
    reduction::FUNCTIONS,
    arithmetic::FUNCTIONS,
    logical::FUNCTIONS,
    math::FUNCTIONS,
    array::FUNCTIONS,
    random::FUNCTIONS,
    loss::FUNCTIONS,
    quantization::FUNCTIONS,
    signal::FUNCTIONS,
    geometry::FUNCTIONS,
    special::FUNCTIONS,
    validation::FUNCTIONS,
];

/// All functions, in the order of the documentation.
pub fn registry() -> impl Iterator<Item = &'static Def> {
    GROUPS.iter().flat_map(|g| g.iter().copied())
}

/// The function with the given Python name.
pub fn find(snake: &str) -> Option<&'static Def> {
    registry().find(|d| d.snake == snake)
}
