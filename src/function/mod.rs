//! Functions: the trait, the registry, and the groups.

pub mod expr;
