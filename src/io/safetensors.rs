//! The safetensors format: a JSON header with names, types, shapes and places, then the bytes of all tensors.
//!
//! Tensors are written in the order given, and read straight into the memory of their arrays. Nothing in a file is
//! believed: the header must fit the file's real size before memory is taken for what it promises.

use super::open;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

/// A tensor to write: its type as the format spells it ("F32", "BOOL", ...), and its little-endian bytes.
pub struct Part<'a> {
    /// Its name.
    pub name: &'a str,
    /// The element type as the format calls it: `F32`, `I64`.
    pub kind: &'a str,
    /// Its shape.
    pub shape: &'a [usize],
    /// Its elements, row by row, little-endian.
    pub bytes: &'a [u8],
}

/// A tensor that was read.
#[derive(Debug)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// The type as the format spells it.
    pub kind: String,
    /// Its shape.
    pub shape: Shape,
    /// The elements; see [`Elements`].
    pub array: NdArray,
}

/// What the arrays of [`read`] hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Elements of the tensor's own type, in its shape; a type that arrays do not have is an error.
    Typed,
    /// Bytes in one row.
    Raw,
}

/// Free text of a file, by key.
pub type Notes = BTreeMap<String, String>;

/// The format's own limit on the header.
const MOST_HEADER: u64 = 100_000_000;

/// The format's name of an element type.
pub fn kind_of(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "BOOL",
        DType::I8 => "I8",
        DType::U8 => "U8",
        DType::I16 => "I16",
        DType::U16 => "U16",
        DType::I32 => "I32",
        DType::U32 => "U32",
        DType::I64 => "I64",
        DType::U64 => "U64",
        DType::F16 => "F16",
        DType::BF16 => "BF16",
        DType::F32 => "F32",
        DType::F64 => "F64",
    }
}

fn dtype_of(kind: Dtype) -> Option<DType> {
    DType::ALL.into_iter().find(|d| kind_of(*d) == kind.to_string())
}

/// Writes a file in place; [`write_atomically`](super::write_atomically) makes it safe.
pub fn write(file: &mut File, parts: &[Part], notes: &Notes) -> Result<()> {
    let header = header(parts, notes)?;
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    parts.iter().try_for_each(|p| Ok(file.write_all(p.bytes)?))
}

/// The header, filled up with spaces so that the tensors begin at a multiple of 8.
fn header(parts: &[Part], notes: &Notes) -> Result<Vec<u8>> {
    let mut map = serde_json::Map::new();
    if !notes.is_empty() {
        map.insert("__metadata__".into(), json(notes)?);
    }
    let mut at = 0;
    for p in parts {
        let dtype: Dtype = serde_json::from_value(p.kind.into())
            .map_err(|_| Error::arg("kind", "an element type of safetensors").actual(p.kind))?;
        let info = TensorInfo { dtype, shape: p.shape.to_vec(), data_offsets: (at, at + p.bytes.len()) };
        if bytes_of(&info) != Some(p.bytes.len()) {
            let want = format!("the bytes of {} elements of shape {}", p.kind, Shape::from(p.shape));
            return Err(Error::arg(p.name, want).actual(format!("{} bytes", p.bytes.len())));
        }
        at += p.bytes.len();
        if p.name == "__metadata__" || map.insert(p.name.into(), json(&info)?).is_some() {
            return Err(Error::arg("name", "names that differ, none of them '__metadata__'").actual(p.name));
        }
    }
    let mut text = json_bytes(&map)?;
    text.resize(text.len().next_multiple_of(8), b' ');
    Ok(text)
}

fn bytes_of(info: &TensorInfo) -> Option<usize> {
    let n = info.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    let bits = n.checked_mul(info.dtype.bitsize())?;
    (bits % 8 == 0).then_some(bits / 8)
}

fn json(v: &impl serde::Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(v).map_err(|e| Error::arg("tensors", "names and notes that JSON can hold").actual(e))
}

fn json_bytes(v: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(v).map_err(|e| Error::arg("tensors", "names and notes that JSON can hold").actual(e))
}

/// Reads a file: its tensors in the order in which they lie there, and its notes.
///
/// # Errors
/// `Io` if there is no such file or it cannot be read; `Format` if it is not a safetensors file from end to end.
///
/// ```
/// use nnrs::io::safetensors::{read, write, Elements, Notes, Part};
/// let path = std::env::temp_dir().join(format!("nnrs-doc-{}.safetensors", std::process::id()));
/// let part = Part { name: "a", kind: "I16", shape: &[2], bytes: &[1, 0, 2, 0] };
/// nnrs::io::write_atomically(&path, |file| write(file, &[part], &Notes::new()))?;
/// let (tensors, _) = read(&path, Elements::Typed)?;
/// assert_eq!((tensors[0].name.as_str(), tensors[0].array.to_vec::<i16>()?), ("a", vec![1, 2]));
/// std::fs::remove_file(&path)?;
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn read(path: &Path, elements: Elements) -> Result<(Vec<Tensor>, Notes)> {
    let named = |e: Error| match e.kind() {
        ErrorKind::Format => broken(format!("cannot read '{}' as safetensors: {e}", path.display()))
            .hint("the file may be cut short, or of another kind than its name says"),
        ErrorKind::Io => e.hint(format!("reading '{}'", path.display())),
        _ => e,
    };
    open(path).and_then(|mut file| read_open(&mut file, elements)).map_err(|e| named(e).argument("path"))
}

fn broken(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, what)
}

/// As [`read`], from an open file; its errors do not know the file's name.
pub fn read_open(file: &mut File, elements: Elements) -> Result<(Vec<Tensor>, Notes)> {
    let size = file.metadata()?.len();
    let metadata = read_header(file, size)?;
    let mut tensors = Vec::new();
    for name in metadata.offset_keys() {
        let info = metadata.info(&name).ok_or_else(|| broken("the header contradicts itself"))?;
        tensors.push(read_tensor(file, name, info, elements)?);
    }
    Ok((tensors, metadata.metadata().clone().unwrap_or_default().into_iter().collect()))
}

/// The header, checked against the size of the file: the tensors fill the rest of it, without gaps or overlaps.
fn read_header(file: &mut File, size: u64) -> Result<Metadata> {
    if size < 8 {
        return Err(broken(format!("it has only {size} bytes")));
    }
    let mut length = [0; 8];
    exact(file, &mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MOST_HEADER || length > size - 8 {
        return Err(broken(format!("its header should have {length} bytes, in a file of {size}")));
    }
    let mut text = vec![0; length as usize];
    exact(file, &mut text)?;
    refuse_duplicates(&text)?;
    let metadata: Metadata = serde_json::from_slice(&text).map_err(|e| broken(format!("in its header, {e}")))?;
    let here = file.stream_position()?;
    match here.checked_add(metadata.data_len() as u64) {
        Some(end) if end == size => Ok(metadata),
        _ => Err(broken(format!("its tensors should have {} bytes, but it has {}", metadata.data_len(), size - here))),
    }
}

/// JSON readers keep the last of several equal names; here they are an error.
fn refuse_duplicates(text: &[u8]) -> Result<()> {
    struct DuplicateCheck;
    impl<'de> Visitor<'de> for DuplicateCheck {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            let mut seen = HashSet::new();
            while let Some((name, IgnoredAny)) = map.next_entry::<String, _>()? {
                if seen.contains(&name) {
                    return Err(serde::de::Error::custom(format!("'{name}' comes twice")));
                }
                seen.insert(name);
            }
            Ok(())
        }
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    reader.deserialize_map(DuplicateCheck).map_err(|e| broken(format!("in its header, {e}")))
}

fn read_tensor(file: &mut File, name: String, info: &TensorInfo, elements: Elements) -> Result<Tensor> {
    let kind = info.dtype.to_string();
    let shape = Shape::from(info.shape.clone());
    let bytes = info.data_offsets.1 - info.data_offsets.0;
    let (array, dtype) = match elements {
        Elements::Raw => (NdArray::new([bytes].into()), DType::U8),
        Elements::Typed => {
            let dtype = dtype_of(info.dtype).ok_or_else(|| {
                let known = DType::ALL.map(kind_of).join(", ");
                broken(format!("tensor '{name}' has elements of type {kind}, which arrays do not have ({known})"))
            })?;
            (NdArray::new(shape.clone().checked().map_err(|e| broken(format!("tensor '{name}': {e}")))?), dtype)
        }
    };
    let data = array.overwrite(dtype)?;
    exact(file, data.bytes_mut())?;
    if info.dtype == Dtype::BOOL {
        data.settle_booleans();
    }
    Ok(Tensor { name, kind, shape, array })
}

/// Reads all of `bytes`; a file that ends too early was changed while it was read.
fn exact(file: &mut File, bytes: &mut [u8]) -> Result<()> {
    file.read_exact(bytes).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => broken("it ends too early"),
        _ => e.into(),
    })
}
