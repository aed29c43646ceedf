//! Reading: a walk over all groups, each object once.

use super::chunks::{Chunked, MOST_PER_BYTE, StoredChunk, filters};
use super::header::{HeaderMessage, messages, only};
use super::source::{Cursor, FileBytes, WantedValues, broken, unread};
use super::{Attributes, Dataset, Hdf5Contents, SIGNATURE, UNDEFINED, datatype, group, kind};
use crate::io::unpack_budget::UnpackBudget;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use std::collections::HashSet;

/// Groups in groups that a file may have; one with thousands is an attack.
const MOST_DEPTH: usize = 100;

/// Reads all arrays and the attributes of groups of a file, in the order of their names.
///
/// # Errors
/// `Format` where the bytes are no HDF5, or have what is not supported.
///
/// ```
/// use nnrs::io::hdf5::{read, write, Attribute};
/// use nnrs::NdArray;
/// let w = NdArray::from_slice(&[1.0f32, 2.0], [2].into())?;
/// let mut bytes = Vec::new();
/// write(&mut bytes, &[("layer/W".into(), w, vec![("need_grad", Attribute::Flag(true))])], &[])?;
/// let found = read(&bytes)?.datasets;
/// assert_eq!((found[0].name.as_str(), found[0].array.to_vec::<f32>()?), ("layer/W", vec![1.0, 2.0]));
/// assert_eq!(found[0].attributes, [("need_grad".to_string(), Some(1.0))]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn read(bytes: &[u8]) -> Result<Hdf5Contents> {
    read_within(bytes, &UnpackBudget::of(bytes.len()))
}

/// As [`read`], of a file that may be from an archive: what it unpacks to is paid from `budget`.
pub(crate) fn read_within(bytes: &[u8], budget: &UnpackBudget) -> Result<Hdf5Contents> {
    contents(bytes, budget, WantedValues::Read)
}

/// Lets `budget` pay for what a file will unpack to when it is read; nothing else is asked of it.
///
/// # Errors
/// `Format` where the budget is too small.
pub(crate) fn check_unpacking(bytes: &[u8], budget: &UnpackBudget) -> Result<()> {
    match contents(bytes, budget, WantedValues::Skipped) {
        Err(e) if budget.is_overdrawn() => Err(e),
        _ => Ok(()),
    }
}

fn contents(bytes: &[u8], budget: &UnpackBudget, wanted: WantedValues) -> Result<Hdf5Contents> {
    let (source, root) = superblock(bytes, budget)?;
    let (mut found, mut seen) = (Hdf5Contents::default(), HashSet::new());
    let mut todo = vec![(String::new(), 0, root)];
    while let Some((name, depth, address)) = todo.pop() {
        if !seen.insert(address) {
            continue;
        }
        if depth > MOST_DEPTH {
            let start: String = name.chars().take(40).collect();
            return Err(broken(format!("the name '{start}'... lies in more than {MOST_DEPTH} scopes")));
        }
        let messages = messages(&source, address)?;
        let Some(members) = group::members(&source, &messages, &name)? else {
            let dataset = dataset(&source, &name, &messages, wanted);
            let dataset = dataset.map_err(|e| broken(format!("parameter '{name}': {e}")))?;
            found.datasets.push(dataset);
            continue;
        };
        let attributes = attributes(&source, &messages)?;
        if !attributes.is_empty() {
            found.groups.push((name.clone(), attributes));
        }
        let full = |key: &str| if name.is_empty() { key.to_string() } else { format!("{name}/{key}") };
        for (key, address) in members.into_iter().rev() {
            source.spend(name.len() / 8)?;
            todo.push((full(&key), depth + 1, address));
        }
    }
    Ok(found)
}

fn superblock<'a>(bytes: &'a [u8], budget: &'a UnpackBudget) -> Result<(FileBytes<'a>, u64)> {
    // Behind what a user keeps before it, whose length is a power of two.
    let mut places = [0].into_iter().chain((9..48).map(|k| 1 << k)).take_while(|at| at + 8 <= bytes.len());
    let Some(at) = places.find(|&at| bytes[at..].starts_with(&SIGNATURE)) else {
        let start = bytes[..bytes.len().min(8)].escape_ascii();
        return Err(broken(format!("it starts with '{start}', not with HDF5's signature")));
    };
    let mut c = Cursor(&bytes[at + 8..]);
    let version = c.byte()?;
    c.take(if version < 2 { 4 } else { 0 })?;
    let (offset_size, length_size) = (c.byte()?.into(), c.byte()?.into());
    if version > 3 || ![2, 4, 8].contains(&offset_size) || ![2, 4, 8].contains(&length_size) {
        return Err(broken(format!("a superblock of version {version} with addresses of {offset_size} bytes")));
    }
    c.take(match version {
        0 => 1 + 8,
        1 => 1 + 12,
        _ => 1,
    })?;
    let base = c.number(offset_size)?;
    let source = FileBytes::new(bytes, base, [offset_size, length_size], budget);
    // Two more addresses and, in the older versions, that of drivers and the name of the root.
    c.take(offset_size * if version < 2 { 4 } else { 2 })?;
    let root = source.offset(&mut c)?;
    Ok((source, root))
}

fn dataset(source: &FileBytes, name: &str, messages: &[HeaderMessage], wanted: WantedValues) -> Result<Dataset> {
    let need = |kind: u16, what: &str| {
        only(messages, kind, what)?
            .ok_or_else(|| broken(format!("it is neither a group nor an array: it has no {what}")))
    };
    let shape = dataspace(source, need(kind::DATASPACE, "shape")?)?;
    let shape = shape.ok_or_else(|| broken("it has no values"))?;
    let element = datatype::read(need(kind::DATATYPE, "type")?)?;
    if messages.iter().any(|m| m.kind == kind::EXTERNAL_FILES) {
        return Err(broken("it keeps its values in another file"));
    }
    let size = element.dtype.size();
    let bytes = shape.iter().try_fold(size, |n, d| n.checked_mul(*d));
    let claim = || broken(format!("it claims shape {shape}, but the file has {} bytes", source.len()));
    let bytes = bytes.filter(|n| *n <= source.len().saturating_mul(MOST_PER_BYTE)).ok_or_else(claim)?;
    let filters = only(messages, kind::FILTERS, "filters")?.map_or(Ok(Vec::new()), filters)?;
    let mut chunked = Chunked { shape: &shape, chunk: Vec::new(), size, filters };
    let fill = fill_value(messages, size)?;
    let stored = stored(source, need(kind::LAYOUT, "layout")?, &mut chunked, bytes)?;
    let array = NdArray::new(shape.clone());
    if wanted == WantedValues::Read {
        put_values(&array, &stored, &chunked, element, &fill)?;
    }
    let attributes = attributes(source, messages)?;
    Ok(Dataset { name: name.to_string(), array, attributes })
}

fn attributes(source: &FileBytes, messages: &[HeaderMessage]) -> Result<Attributes> {
    let own = messages.iter().filter(|m| m.kind == kind::ATTRIBUTE && !m.shared);
    own.map(|m| attribute(source, m.data)).collect()
}

/// The shape; `None` of what has no values.
fn dataspace(source: &FileBytes, data: &[u8]) -> Result<Option<Shape>> {
    let mut c = Cursor(data);
    let (version, rank, _) = (c.byte()?, c.byte()?, c.byte()?);
    match version {
        1 => c.take(5).map(drop)?,
        2 if c.byte()? == 2 => return Ok(None),
        2 => {}
        _ => return Err(broken("its shape is of an unknown version")),
    }
    let size = |n: u64| usize::try_from(n).map_err(|_| broken("its shape is too large"));
    let sizes = (0..rank).map(|_| source.length(&mut c).and_then(size)).collect::<Result<Vec<usize>>>()?;
    Shape::from(sizes).checked().map(Some)
}

/// Where the values of an array lie.
enum StoredValues<'a> {
    Whole(&'a [u8]),
    /// Elements of which there are none have the fill value.
    Chunks(Vec<StoredChunk<'a>>),
}

/// Pays for all values of an array; nothing is unpacked.
fn stored<'a>(
    source: &FileBytes<'a>,
    layout: &'a [u8],
    chunked: &mut Chunked,
    bytes: usize,
) -> Result<StoredValues<'a>> {
    let mut c = Cursor(layout);
    let (version, class) = (c.byte()?, c.byte()?);
    if version != 3 {
        return Err(unread(format!("a layout of version {version} (not 3)")));
    }
    let whole = match class {
        0 => {
            let n = c.short()?;
            Some(c.take(n)?)
        }
        1 => match source.offset(&mut c)? {
            UNDEFINED => {
                source.fill(bytes)?;
                return Ok(StoredValues::Chunks(Vec::new()));
            }
            address => Some(source.values(address, bytes)?),
        },
        _ => None,
    };
    if let Some(whole) = whole {
        return match whole.len() == bytes {
            true => Ok(StoredValues::Whole(whole)),
            false => Err(broken(format!("it has {} bytes, expected {bytes}", whole.len()))),
        };
    }
    let rank = usize::from(c.byte()?);
    let root = source.offset(&mut c)?;
    if rank != chunked.shape.len() + 1 || rank < 2 {
        return Err(broken("its chunks have another number of axes"));
    }
    chunked.chunk = (1..rank).map(|_| Ok(c.number(4)? as usize)).collect::<Result<_>>()?;
    if chunked.chunk.contains(&0) || c.number(4)? != chunked.size as u64 {
        return Err(broken("its chunks have no size"));
    }
    let (chunks, left) = match root {
        root if bytes != 0 && root != UNDEFINED => chunked.list(source, root, bytes)?,
        _ => (Vec::new(), bytes),
    };
    source.fill(left)?;
    Ok(StoredValues::Chunks(chunks))
}

fn put_values(
    array: &NdArray,
    stored: &StoredValues,
    chunked: &Chunked,
    element: datatype::ElementType,
    fill: &[u8],
) -> Result<()> {
    let data = array.overwrite(element.dtype)?;
    let to = data.bytes_mut();
    match stored {
        StoredValues::Whole(whole) => to.copy_from_slice(whole),
        StoredValues::Chunks(chunks) => {
            to.chunks_exact_mut(chunked.size).for_each(|element| element.copy_from_slice(fill));
            chunks.iter().try_for_each(|chunk| chunked.place(chunk, to))?;
        }
    }
    settle(array, element, chunked.size)
}

/// The bytes of an element that nobody has written.
fn fill_value(messages: &[HeaderMessage], size: usize) -> Result<Vec<u8>> {
    let zeros = vec![0; size];
    let Some(data) = only(messages, kind::FILL_VALUE, "fill value")? else { return Ok(zeros) };
    let mut c = Cursor(data);
    let (version, flags) = (c.byte()?, c.byte()?);
    let is_there = match version {
        1 | 2 => {
            c.byte()?;
            c.byte()? != 0 || version == 1
        }
        3 => flags & 0x20 != 0,
        _ => return Err(broken(format!("a fill value of version {version}"))),
    };
    match if is_there { c.number(4)? } else { 0 } {
        0 => Ok(zeros),
        n if n == size as u64 => Ok(c.take(size)?.to_vec()),
        n if n == u64::from(u32::MAX) => Ok(zeros), // undefined
        n => Err(broken(format!("a fill value of {n} bytes for elements of {size}"))),
    }
}

/// Bytes in this machine's order, booleans 0 and 1.
fn settle(array: &NdArray, element: datatype::ElementType, size: usize) -> Result<()> {
    let data = array.modify(element.dtype)?;
    if element.swapped {
        data.bytes_mut().chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    if element.dtype == DType::Bool {
        data.settle_booleans();
    }
    Ok(())
}

/// An attribute: its name, and its value if it is one number.
fn attribute(source: &FileBytes, data: &[u8]) -> Result<(String, Option<f64>)> {
    let mut c = Cursor(data);
    let version = c.byte()?;
    let shared = version > 1 && c.byte()? & 3 != 0 || version == 1 && c.byte()? > 1;
    if !(1..=3).contains(&version) {
        return Err(broken(format!("an attribute of version {version}")));
    }
    let sizes = [c.short()?, c.short()?, c.short()?];
    c.take(if version == 3 { 1 } else { 0 })?;
    let padded = |n: usize| if version == 1 { n.next_multiple_of(8) } else { n };
    let (name, kind, space) = (c.take(padded(sizes[0]))?, c.take(padded(sizes[1]))?, c.take(padded(sizes[2]))?);
    let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_string();
    let is_one = !shared && dataspace(source, space)?.is_some_and(|s| s.size() == 1);
    let Some(element) = datatype::read(kind).ok().filter(|_| is_one) else { return Ok((name, None)) };
    let array = NdArray::new([1].into());
    let bytes = array.overwrite(element.dtype)?;
    bytes.bytes_mut().copy_from_slice(c.take(element.dtype.size())?);
    settle(&array, element, element.dtype.size())?;
    Ok((name, array.to_vec::<f64>()?.first().copied()))
}
