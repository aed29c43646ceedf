//! What a group has: the names and addresses of its objects.

use super::header::{HeaderMessage, only};
use super::source::{Cursor, FileBytes, broken, unread};
use super::{UNDEFINED, kind, tree};
use nnrs_kernels::error::Result;

/// The objects of a group, by name; `None` if the object is no group. Links by name to other objects are left out, as
/// they are by those who walk over all objects; links into other files are errors.
pub(super) fn members(
    source: &FileBytes,
    messages: &[HeaderMessage],
    name: &str,
) -> Result<Option<Vec<(String, u64)>>> {
    if let Some(table) = only(messages, kind::SYMBOL_TABLE, "list of objects")? {
        let mut c = Cursor(table);
        let (tree, heap) = (source.offset(&mut c)?, source.offset(&mut c)?);
        return symbols(source, tree, heap).map(Some);
    }
    let Some(info) = only(messages, kind::LINK_INFO, "list of links")? else { return Ok(None) };
    refuse_dense(source, info)?;
    let mut found = Vec::new();
    for m in messages.iter().filter(|m| m.kind == kind::LINK) {
        found.extend(link(source, m.data, name)?);
    }
    Ok(Some(found))
}

fn symbols(source: &FileBytes, tree: u64, heap: u64) -> Result<Vec<(String, u64)>> {
    let names = heap_data(source, heap)?;
    let mut found = Vec::new();
    tree::visit(source, tree, 0, source.length_size, |_, node| {
        let mut head = source.structure(node, 8)?;
        head.expect(b"SNOD")?;
        head.take(2)?;
        let n = head.short()?;
        let mut c = source.structure(node.saturating_add(8), n * (2 * source.offset_size + 24))?;
        for _ in 0..n {
            let (name, address, cached) = (source.offset(&mut c)?, source.offset(&mut c)?, c.number(4)?);
            c.take(20)?;
            if cached != 2 {
                found.push((text_at(names, name)?, address));
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// The names of a group's objects, one after the other.
fn heap_data<'a>(source: &FileBytes<'a>, heap: u64) -> Result<&'a [u8]> {
    let mut c = source.structure(heap, 8 + 2 * source.length_size + source.offset_size)?;
    c.expect(b"HEAP")?;
    c.take(4)?;
    let size = source.length(&mut c)?;
    source.length(&mut c)?;
    let address = source.offset(&mut c)?;
    source.at(address, usize::try_from(size).unwrap_or(usize::MAX))
}

fn text_at(names: &[u8], at: u64) -> Result<String> {
    let from = usize::try_from(at).ok().and_then(|at| names.get(at..));
    let name = from.and_then(|n| Some(&n[..n.iter().position(|b| *b == 0)?]));
    text(name.ok_or_else(|| broken("the name of an object lies outside of its group's names"))?)
}

fn text(bytes: &[u8]) -> Result<String> {
    let name = std::str::from_utf8(bytes).map_err(|_| broken("the name of an object is no UTF-8"))?;
    Ok(name.to_string())
}

/// Groups of the newer kind with many objects keep them in a structure that is not read here.
fn refuse_dense(source: &FileBytes, info: &[u8]) -> Result<()> {
    let mut c = Cursor(info);
    c.byte()?;
    let flags = c.byte()?;
    c.take(if flags & 1 != 0 { 8 } else { 0 })?;
    match source.offset(&mut c)? {
        UNDEFINED => Ok(()),
        _ => Err(unread("a group that keeps its objects in a heap (with track_order or libver='latest')")),
    }
}

fn link(source: &FileBytes, data: &[u8], group: &str) -> Result<Option<(String, u64)>> {
    let mut c = Cursor(data);
    if c.byte()? != 1 {
        return Err(broken("a link is of an unknown version"));
    }
    let flags = c.byte()?;
    let kind = if flags & 8 != 0 { c.byte()? } else { 0 };
    c.take(if flags & 4 != 0 { 8 } else { 0 })?;
    c.take(if flags & 16 != 0 { 1 } else { 0 })?;
    let n = usize::try_from(c.number(1 << (flags & 3))?).unwrap_or(usize::MAX);
    let name = text(c.take(n)?)?;
    match kind {
        0 => Ok(Some((name, source.offset(&mut c)?))),
        1 => Ok(None),
        _ => Err(broken(format!(
            "'{group}{}{name}' is a link into another file",
            if group.is_empty() { "" } else { "/" }
        ))),
    }
}
