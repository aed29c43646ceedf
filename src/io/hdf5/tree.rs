//! HDF5's B-trees of the first version: nodes of keys and children.

use super::source::{Cursor, FileBytes, broken};
use nnrs_kernels::error::Result;

/// Calls `leaf` with the key and address of each child of the lowest nodes, in order. A level has nodes one lower than
/// its own only, so cycles end.
pub(super) fn visit<'a>(
    source: &FileBytes<'a>,
    root: u64,
    kind: u8,
    key_size: usize,
    mut leaf: impl FnMut(&'a [u8], u64) -> Result<()>,
) -> Result<()> {
    let mut todo = vec![(root, None)];
    while let Some((address, below)) = todo.pop() {
        let mut head = source.structure(address, 8 + 2 * source.offset_size)?;
        head.expect(b"TREE")?;
        let (of, level, n) = (head.byte()?, head.byte()?, head.short()?);
        if of != kind || below.is_some_and(|b| level.checked_add(1) != Some(b)) {
            return Err(broken("a node of a tree is at the wrong place"));
        }
        let start = address.saturating_add(8 + 2 * source.offset_size as u64);
        let mut c = source.structure(start, n * (key_size + source.offset_size) + key_size)?;
        let mut children = Vec::new();
        for _ in 0..n {
            children.push((c.take(key_size)?, source.offset(&mut c)?));
        }
        match level {
            0 => children.into_iter().try_for_each(|(key, child)| leaf(key, child))?,
            _ => todo.extend(children.into_iter().rev().map(|(_, child)| (child, Some(level)))),
        }
    }
    Ok(())
}

/// A cursor over a key.
pub(super) fn key(bytes: &[u8]) -> Cursor<'_> {
    Cursor(bytes)
}
