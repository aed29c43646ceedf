//! Arrays in chunks: a tree of pieces, each through filters, put together.

use super::source::{Cursor, FileBytes, broken, unread};
use super::tree;
use nnrs_kernels::error::Result;
use std::io::Read;

/// Deflate shrinks by no more.
pub(super) const MOST_PER_BYTE: usize = 1032;

const DEFLATE: usize = 1;
const SHUFFLE: usize = 2;
const CHECKSUM: usize = 3;

/// The numbers of an array's filters, in the order in which they were applied.
pub(super) fn filters(data: &[u8]) -> Result<Vec<usize>> {
    let mut c = Cursor(data);
    let (version, n) = (c.byte()?, c.byte()?);
    c.take(if version == 1 { 6 } else { 0 })?;
    let mut found = Vec::new();
    for _ in 0..n {
        let id = c.short()?;
        let name = if version == 1 || id >= 256 { c.short()? } else { 0 };
        c.take(2)?;
        let values = c.short()?;
        c.take(if version == 1 { name.next_multiple_of(8) } else { name })?;
        c.take(4 * (values + if version == 1 { values % 2 } else { 0 }))?;
        if ![DEFLATE, SHUFFLE, CHECKSUM].contains(&id) {
            return Err(unread(format!("what went through filter {id} (not deflate or shuffle)")));
        }
        found.push(id);
    }
    Ok(found)
}

/// How the values of an array lie.
pub(super) struct Chunked<'a> {
    pub shape: &'a [usize],
    pub chunk: Vec<usize>,
    pub size: usize,
    pub filters: Vec<usize>,
}

/// One piece of an array.
pub(super) struct StoredChunk<'a> {
    stored: &'a [u8],
    /// A bit for each filter that it did not go through.
    mask: u64,
    at: Vec<usize>,
    /// The sizes of what lies in the array.
    part: Vec<usize>,
}

impl Chunked<'_> {
    /// All chunks of a tree, and for how many of an array's bytes there is none. Nothing is unpacked.
    pub fn list<'a>(&self, source: &FileBytes<'a>, root: u64, bytes: usize) -> Result<(Vec<StoredChunk<'a>>, usize)> {
        let (mut chunks, mut left) = (Vec::new(), bytes);
        let chunk_bytes = self.bytes()?;
        tree::visit(source, root, 1, 8 + 8 * (self.chunk.len() + 1), |key, address| {
            let mut c = tree::key(key);
            let (stored, mask) = (c.number(4)? as usize, c.number(4)?);
            let at = |_| Ok(usize::try_from(c.number(8)?).unwrap_or(usize::MAX));
            let at = self.chunk.iter().map(at).collect::<Result<Vec<usize>>>()?;
            let part = self.part_inside(&at)?;
            if chunk_bytes > stored.saturating_mul(MOST_PER_BYTE) {
                return Err(broken(format!("a chunk claims {chunk_bytes} bytes, but {stored} are stored")));
            }
            source.unpack(chunk_bytes.saturating_sub(stored))?;
            let here = part.iter().product::<usize>() * self.size;
            left = left.checked_sub(here).ok_or_else(|| broken("chunks overlap"))?;
            chunks.push(StoredChunk { stored: source.values(address, stored)?, mask, at, part });
            Ok(())
        })?;
        Ok((chunks, left))
    }

    /// The sizes of what lies in the array of the chunk that begins there.
    fn part_inside(&self, at: &[usize]) -> Result<Vec<usize>> {
        let inside = |(i, n): (usize, &usize)| self.chunk[i].min(n.saturating_sub(at[i]));
        let part: Vec<usize> = self.shape.iter().enumerate().map(inside).collect();
        match part.contains(&0) || at.iter().zip(&self.chunk).any(|(a, c)| a % c != 0) {
            true => Err(broken("a chunk lies outside of its array")),
            false => Ok(part),
        }
    }

    fn bytes(&self) -> Result<usize> {
        let n = self.chunk.iter().try_fold(self.size, |n, d| n.checked_mul(*d));
        n.filter(|n| *n > 0).ok_or_else(|| broken("a chunk has no size that a computer can hold"))
    }

    fn unfiltered(&self, chunk: &StoredChunk) -> Result<Vec<u8>> {
        let bytes = self.bytes()?;
        let mut values = chunk.stored.to_vec();
        for (_, filter) in self.filters.iter().enumerate().rev().filter(|(i, _)| chunk.mask >> i & 1 == 0) {
            values = match *filter {
                DEFLATE => inflate(&values, bytes + 4)?,
                SHUFFLE => unshuffle(&values, self.size),
                _ => values[..values.len().saturating_sub(4)].to_vec(),
            };
        }
        match values.len() == bytes {
            true => Ok(values),
            false => Err(broken(format!("a chunk has {} bytes, expected {bytes}", values.len()))),
        }
    }

    /// Copies the rows of a chunk that lie in the array into the array's bytes.
    pub fn place(&self, chunk: &StoredChunk, to: &mut [u8]) -> Result<()> {
        let (values, at, part) = (self.unfiltered(chunk)?, &chunk.at, &chunk.part);
        let last = part.len() - 1;
        let row = part[last] * self.size;
        let rows: usize = part[..last].iter().product();
        for r in 0..rows {
            let (mut from, mut into, mut rest) = (0, at[last], r);
            let (mut from_step, mut into_step) = (self.chunk[last], self.shape[last]);
            for i in (0..last).rev() {
                let index = rest % part[i];
                rest /= part[i];
                from += index * from_step;
                into += (at[i] + index) * into_step;
                from_step *= self.chunk[i];
                into_step *= self.shape[i];
            }
            let (from, into) = (from * self.size, into * self.size);
            to[into..into + row].copy_from_slice(&values[from..from + row]);
        }
        Ok(())
    }
}

/// Unpacks what is at most `most` bytes.
fn inflate(packed: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut values = Vec::new();
    let read = flate2::read::ZlibDecoder::new(packed).take(most as u64).read_to_end(&mut values);
    read.map_err(|e| broken(format!("a chunk cannot be unpacked: {e}")))?;
    Ok(values)
}

/// Puts the bytes of each element together again, of which all first ones lie first, then all second ones.
fn unshuffle(values: &[u8], size: usize) -> Vec<u8> {
    let n = values.len() / size;
    let mut whole = values.to_vec();
    for (i, b) in values[..n * size].iter().enumerate() {
        whole[i % n * size + i / n] = *b;
    }
    whole
}
