//! Protocol buffers as they lie in a file: fields of a number and a value, one after the other. Nothing in them is believed.

use nnrs_kernels::array::alloc::refused;
use nnrs_kernels::error::{Error, ErrorKind, Result};

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field<'a> {
    Number(u64),
    /// Four bytes, little-endian.
    Word([u8; 4]),
    /// Text, numbers one after the other, or a message.
    Bytes(&'a [u8]),
    /// Eight bytes, little-endian.
    Long([u8; 8]),
}

/// The fields of a message, each with its number; ends behind the first error.
#[derive(Clone)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields(message)
    }

    /// The bytes of each field of that number.
    pub fn messages(self, number: u64) -> impl Iterator<Item = Result<&'a [u8]>> {
        self.filter_map(move |field| match field {
            Ok((n, Field::Bytes(bytes))) if n == number => Some(Ok(bytes)),
            Err(e) => Some(Err(e)),
            _ => None,
        })
    }

    fn field(&mut self) -> Result<(u64, Field<'a>)> {
        let tag = number(&mut self.0)?;
        let value = match tag & 7 {
            0 => Field::Number(number(&mut self.0)?),
            1 => {
                self.bytes(8)?.first_chunk().map(|b| Field::Long(*b)).ok_or_else(|| broken("a number is cut short"))?
            }
            2 => {
                let n = number(&mut self.0)?;
                Field::Bytes(self.bytes(usize::try_from(n).unwrap_or(usize::MAX))?)
            }
            5 => match *self.bytes(4)? {
                [a, b, c, d] => Field::Word([a, b, c, d]),
                _ => return Err(broken("a number is cut short")),
            },
            kind => return Err(broken(format!("a field of kind {kind}"))),
        };
        Ok((tag >> 3, value))
    }

    fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let short = || broken(format!("a field of {n} bytes, {} are left", self.0.len()));
        let (bytes, rest) = self.0.split_at_checked(n).ok_or_else(short)?;
        self.0 = rest;
        Ok(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// Takes a number off the front: seven bits a byte, the lowest first.
pub(super) fn number(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(|| broken("a number is cut short"))?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(broken("a number of more than 64 bits"));
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(broken("a number of more than 64 bits"))
}

pub(super) fn broken(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, what)
}

/// Adds a number.
pub(super) fn put_number(to: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        to.push(n as u8 | 0x80);
        n >>= 7;
    }
    to.push(n as u8);
}

/// Adds a field that is a number.
pub(super) fn put_field(to: &mut Vec<u8>, field: u64, n: u64) {
    put_number(to, field << 3);
    put_number(to, n);
}

/// Adds what comes before a field of `n` bytes.
pub(super) fn put_head(to: &mut Vec<u8>, field: u64, n: usize) {
    put_number(to, field << 3 | 2);
    put_number(to, n as u64);
}

/// Adds a field of bytes.
pub(super) fn put_bytes(to: &mut Vec<u8>, field: u64, bytes: &[u8]) -> Result<()> {
    put_head(to, field, bytes.len());
    to.try_reserve(bytes.len()).map_err(|_| refused(bytes.len()))?;
    to.extend_from_slice(bytes);
    Ok(())
}
