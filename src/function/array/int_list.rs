//! A list of integers as an argument, where a single integer is not taken for a list.

use crate::function::{ArgKind, ArgType, ArgValue};
use std::ops::Deref;

/// A list of integers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List(pub Vec<i64>);

impl Deref for List {
    type Target = [i64];
    fn deref(&self) -> &[i64] {
        &self.0
    }
}

impl From<Vec<i64>> for List {
    fn from(v: Vec<i64>) -> List {
        List(v)
    }
}

impl From<&[usize]> for List {
    fn from(v: &[usize]) -> List {
        List(v.iter().map(|&i| i as i64).collect())
    }
}

impl ArgType for List {
    const KIND: ArgKind = ArgKind::Ints;
    fn from_value(v: ArgValue) -> Option<List> {
        match v {
            ArgValue::Int(_) | ArgValue::Float(_) => None,
            v => Vec::from_value(v).map(List),
        }
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Ints(self.0.clone())
    }
}
