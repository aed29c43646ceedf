//! The header of an object: its messages, wherever its continuations are.

use super::kind;
use super::source::{Cursor, FileBytes, broken};
use nnrs_kernels::error::Result;

/// A message of a header.
pub(super) struct HeaderMessage<'a> {
    pub kind: u16,
    pub data: &'a [u8],
    /// The data says where the message is.
    pub shared: bool,
}

/// All messages of the object at an address.
pub(super) fn messages<'a>(source: &FileBytes<'a>, address: u64) -> Result<Vec<HeaderMessage<'a>>> {
    match source.at(address, 4)? == b"OHDR" {
        true => second_version(source, address),
        false => first_version(source, address),
    }
}

fn first_version<'a>(source: &FileBytes<'a>, address: u64) -> Result<Vec<HeaderMessage<'a>>> {
    let mut head = source.structure(address, 16)?;
    if head.byte()? != 1 {
        return Err(broken("an object's header is of an unknown version"));
    }
    head.take(7)?;
    let size = head.number(4)? as usize;
    let mut blocks = vec![source.structure(address.saturating_add(16), size)?];
    let mut found = Vec::new();
    while let Some(mut c) = blocks.pop() {
        while c.0.len() >= 8 {
            let (kind, n, flags) = (c.short()? as u16, c.short()?, c.byte()?);
            c.take(3)?;
            let message = HeaderMessage { kind, data: c.take(n)?, shared: flags & 2 != 0 };
            match continuation(source, &message)? {
                Some((address, n)) => blocks.push(source.structure(address, n)?),
                None => found.push(message),
            }
        }
    }
    Ok(found)
}

fn second_version<'a>(source: &FileBytes<'a>, address: u64) -> Result<Vec<HeaderMessage<'a>>> {
    let mut head = Cursor(source.at(address, source.left(address).min(64))?);
    head.expect(b"OHDR\x02")?;
    let flags = head.byte()?;
    head.take(if flags & 0x20 != 0 { 16 } else { 0 } + if flags & 0x10 != 0 { 4 } else { 0 })?;
    let width = 1 << (flags & 3);
    let size = usize::try_from(head.number(width)?).unwrap_or(usize::MAX);
    let start = source.left(address).min(64) - head.0.len();
    let mut blocks = vec![source.structure(address + start as u64, size)?];
    let mut found = Vec::new();
    let rest = if flags & 4 != 0 { 6 } else { 4 };
    while let Some(mut c) = blocks.pop() {
        while c.0.len() >= rest {
            let (kind, n, own_flags) = (c.byte()?.into(), c.short()?, c.byte()?);
            c.take(rest - 4)?;
            let message = HeaderMessage { kind, data: c.take(n)?, shared: own_flags & 2 != 0 };
            match continuation(source, &message)? {
                Some((address, n)) => {
                    let mut block = source.structure(address, n)?;
                    block.expect(b"OCHK")?;
                    blocks.push(Cursor(block.take(block.0.len().saturating_sub(4))?)); // but for its checksum
                }
                None => found.push(message),
            }
        }
    }
    Ok(found)
}

/// Where more messages are, if this one says so.
fn continuation(source: &FileBytes, message: &HeaderMessage) -> Result<Option<(u64, usize)>> {
    if message.kind != kind::CONTINUATION {
        return Ok(None);
    }
    let mut c = Cursor(message.data);
    let (address, n) = (source.offset(&mut c)?, source.length(&mut c)?);
    source.spend(1)?;
    Ok(Some((address, usize::try_from(n).unwrap_or(usize::MAX))))
}

/// The data of the only message of that kind.
pub(super) fn only<'a>(messages: &[HeaderMessage<'a>], kind: u16, what: &str) -> Result<Option<&'a [u8]>> {
    let Some(m) = messages.iter().find(|m| m.kind == kind) else { return Ok(None) };
    match m.shared {
        true => Err(broken(format!("its {what} is shared with other objects, which is not supported"))),
        false => Ok(Some(m.data)),
    }
}
