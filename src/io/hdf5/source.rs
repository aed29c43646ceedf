//! The bytes of a file, and what may be spent on reading them.

use crate::io::unpack_budget::UnpackBudget;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::cell::Cell;

/// Bytes of arrays without values for each byte of the file.
const MOST_FILLED_PER_BYTE: usize = 100;

pub(super) fn broken(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, what)
}

/// Of a file that may be whole: what is not read here.
pub(super) fn unread(what: impl std::fmt::Display) -> Error {
    broken(format!(
        "{what} is not read: write the file again, with h5py, without libver and with compression 'gzip' or none"
    ))
}

/// Whether arrays get their values, or are only looked at.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum WantedValues {
    Read,
    Skipped,
}

/// A file: its bytes, the sizes of its addresses and lengths, and four budgets.
pub(super) struct FileBytes<'a> {
    bytes: &'a [u8],
    base: u64,
    pub offset_size: usize,
    pub length_size: usize,
    /// Bytes of structure that may still be read: honest files have each once.
    structure: Cell<usize>,
    /// Bytes of values that may still be read.
    values: Cell<usize>,
    /// Bytes of arrays that may still be made without values.
    filled: Cell<usize>,
    /// What may still be made that is not in the file, or in the archive that it is from.
    unpacked: &'a UnpackBudget,
}

impl<'a> FileBytes<'a> {
    pub fn new(bytes: &'a [u8], base: u64, sizes: [usize; 2], unpacked: &'a UnpackBudget) -> FileBytes<'a> {
        let structure = Cell::new(bytes.len().saturating_mul(4));
        let filled = Cell::new(bytes.len().saturating_mul(MOST_FILLED_PER_BYTE));
        let ([offset_size, length_size], values) = (sizes, Cell::new(bytes.len()));
        FileBytes { bytes, base, offset_size, length_size, structure, values, filled, unpacked }
    }

    /// `n` bytes at an address.
    pub fn at(&self, address: u64, n: usize) -> Result<&'a [u8]> {
        let start = usize::try_from(address.saturating_add(self.base)).unwrap_or(usize::MAX);
        let end = start.checked_add(n).filter(|end| *end <= self.bytes.len());
        end.map(|end| &self.bytes[start..end]).ok_or_else(|| {
            broken(format!("{n} bytes at {address} are asked for, but the file has {}", self.bytes.len()))
        })
    }

    /// `n` bytes of structure at an address.
    pub fn structure(&self, address: u64, n: usize) -> Result<Cursor<'a>> {
        self.spend(n)?;
        Ok(Cursor(self.at(address, n)?))
    }

    /// `n` bytes of values at an address.
    pub fn values(&self, address: u64, n: usize) -> Result<&'a [u8]> {
        let left = self.values.get().checked_sub(n);
        self.values.set(left.ok_or_else(|| broken("its arrays have more bytes than the file"))?);
        self.at(address, n)
    }

    /// Pays for structure that is read.
    pub fn spend(&self, n: usize) -> Result<()> {
        let left = self.structure.get().checked_sub(n);
        self.structure.set(left.ok_or_else(|| broken("its parts lie in one another"))?);
        Ok(())
    }

    /// Pays for `n` bytes that no value in the file is for.
    pub fn fill(&self, n: usize) -> Result<()> {
        let left = self.filled.get().checked_sub(n);
        self.filled.set(left.ok_or_else(|| broken("most values of its arrays are not in the file"))?);
        self.unpack(n)
    }

    /// Pays for `n` bytes that are made of less.
    pub fn unpack(&self, n: usize) -> Result<()> {
        self.unpacked.spend(n)
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes there are behind an address.
    pub fn left(&self, address: u64) -> usize {
        let start = usize::try_from(address.saturating_add(self.base)).unwrap_or(usize::MAX);
        self.bytes.len().saturating_sub(start)
    }

    pub fn offset(&self, c: &mut Cursor) -> Result<u64> {
        let n = c.number(self.offset_size)?;
        let none = u64::MAX >> (64 - 8 * self.offset_size);
        Ok(if n == none { super::UNDEFINED } else { n })
    }

    pub fn length(&self, c: &mut Cursor) -> Result<u64> {
        c.number(self.length_size)
    }
}

/// Bytes that are read from front to back.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let short = || broken(format!("{n} bytes are asked for, {} are left", self.0.len()));
        let (bytes, rest) = self.0.split_at_checked(n).ok_or_else(short)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A little-endian number of up to 8 bytes.
    pub fn number(&mut self, size: usize) -> Result<u64> {
        Ok(self.take(size)?.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub fn short(&mut self) -> Result<usize> {
        Ok(self.number(2)? as usize)
    }

    pub fn expect(&mut self, signature: &[u8]) -> Result<()> {
        match self.take(signature.len())? == signature {
            true => Ok(()),
            false => Err(broken(format!("'{}' is not where it should be", signature.escape_ascii()))),
        }
    }
}
