//! Types of elements: NumPy's, as HDF5 describes them.

use super::source::{Cursor, broken};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;

/// A type, and whether its bytes are swapped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ElementType {
    pub dtype: DType,
    pub swapped: bool,
}

pub(super) fn read(data: &[u8]) -> Result<ElementType> {
    let mut c = Cursor(data);
    let (class, bits) = (c.byte()?, c.take(3)?);
    let size = c.number(4)?;
    let swapped = bits[0] & 1 != 0;
    let dtype = match (class & 15, size) {
        (0, 1) => Some(if bits[0] & 8 != 0 { DType::I8 } else { DType::U8 }),
        (0, 2) => Some(if bits[0] & 8 != 0 { DType::I16 } else { DType::U16 }),
        (0, 4) => Some(if bits[0] & 8 != 0 { DType::I32 } else { DType::U32 }),
        (0, 8) => Some(if bits[0] & 8 != 0 { DType::I64 } else { DType::U64 }),
        (1, 2 | 4 | 8) if is_ieee(&mut c, size)? => match size {
            2 => Some(DType::F16),
            4 => Some(DType::F32),
            _ => Some(DType::F64),
        },
        // What h5py makes of NumPy's bool: a byte with two names.
        (8, 1) if bits[..2] == [2, 0] => Some(DType::Bool),
        _ => None,
    };
    let unknown = || {
        const CLASSES: [&str; 11] = [
            "whole numbers",
            "numbers",
            "times",
            "texts",
            "bit fields",
            "bytes",
            "records",
            "references",
            "names",
            "lists of any length",
            "arrays",
        ];
        let class = CLASSES.get(usize::from(class & 15)).unwrap_or(&"an unknown kind");
        broken(format!("elements are {class} of {size} bytes, expected numbers of up to 64 bits"))
    };
    Ok(ElementType { dtype: dtype.ok_or_else(unknown)?, swapped: swapped && class & 15 != 8 })
}

fn is_ieee(c: &mut Cursor, size: u64) -> Result<bool> {
    c.take(4)?;
    let exponent = [c.byte()?, c.byte()?];
    Ok(exponent == [[10, 5], [23, 8], [52, 11]][size as usize / 4])
}

/// The message that describes a type; a multiple of 8 bytes.
pub(super) fn write(dtype: DType) -> Vec<u8> {
    let whole = |signed: u8, size: u8| vec![0x10, signed << 3, 0, 0, size, 0, 0, 0, 0, 0, size * 8, 0, 0, 0, 0, 0];
    let real = |size: u8, places: [u8; 4], bias: [u8; 2]| {
        let mut t = vec![0x11, 0x20, size * 8 - 1, 0, size, 0, 0, 0, 0, 0, size * 8, 0];
        t.extend(places);
        t.extend([bias[0], bias[1], 0, 0, 0, 0, 0, 0]);
        t
    };
    match dtype {
        DType::I8 => whole(1, 1),
        DType::U8 => whole(0, 1),
        DType::I16 => whole(1, 2),
        DType::U16 => whole(0, 2),
        DType::I32 => whole(1, 4),
        DType::U32 => whole(0, 4),
        DType::I64 => whole(1, 8),
        DType::U64 => whole(0, 8),
        DType::F16 => real(2, [10, 5, 0, 10], [15, 0]),
        DType::F64 => real(8, [52, 11, 0, 52], [0xff, 3]),
        DType::F32 | DType::BF16 => real(4, [23, 8, 0, 23], [127, 0]),
        DType::Bool => {
            let mut t = vec![0x18, 2, 0, 0, 1, 0, 0, 0, 0x10, 8, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
            t.extend(b"FALSE\0\0\0TRUE\0\0\0\0\0\x01\0\0");
            t
        }
    }
}
