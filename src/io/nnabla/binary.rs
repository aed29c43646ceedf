//! Messages as bytes: protobuf's wire format. Nothing in the bytes is believed; what a newer NNabla adds is passed over.

use super::message::{FieldValue, Message, broken};
use super::schema::{self, FieldKind, FieldSpec, MessageSpec};
use crate::io::wire::{Field, Fields, number, put_bytes, put_field, put_head, put_number};
use nnrs_kernels::array::alloc::refused;
use nnrs_kernels::error::Result;

/// Reads a message of this kind.
///
/// # Errors
/// `Format` where the bytes are no such message.
pub fn decode(spec: &'static MessageSpec, bytes: &[u8]) -> Result<Message> {
    let mut message = Message::of(spec);
    for field in Fields::of(bytes) {
        let (number, value) = field?;
        if let Some(field) = spec.find_number(number)
            && let Some(value) = read(&spec.fields[field], value)?
        {
            message.put(field, value);
        }
    }
    Ok(message)
}

/// A field's value; `None` where its type is another one than the schema's, as of a field that has changed.
fn read(spec: &FieldSpec, field: Field) -> Result<Option<FieldValue>> {
    let value = match (spec.kind, field) {
        (FieldKind::Message(kind), Field::Bytes(b)) => FieldValue::Message(decode(&schema::messages()[kind], b)?),
        (FieldKind::Text, Field::Bytes(b)) => {
            let text = std::str::from_utf8(b).map_err(|_| broken(format!("field '{}' is no UTF-8 text", spec.name)))?;
            FieldValue::Text(text.to_string())
        }
        (FieldKind::Int, Field::Number(n)) => FieldValue::Int(n as i64),
        (FieldKind::Count, Field::Number(n)) => FieldValue::Int(n as u32 as i64),
        (FieldKind::Flag, Field::Number(n)) => FieldValue::Int((n != 0).into()),
        (FieldKind::Float, Field::Word(w)) => FieldValue::Number(f32::from_le_bytes(w).into()),
        (FieldKind::Double, Field::Long(w)) => FieldValue::Number(f64::from_le_bytes(w)),
        (FieldKind::Float, Field::Bytes(b)) if spec.repeated => FieldValue::Floats(floats(b)?),
        (FieldKind::Int | FieldKind::Count | FieldKind::Flag, Field::Bytes(b)) if spec.repeated => {
            FieldValue::Ints(ints(b)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

fn floats(bytes: &[u8]) -> Result<Vec<f32>> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(broken(format!("numbers of 4 bytes each in {} bytes", bytes.len())));
    }
    let mut list = Vec::new();
    list.try_reserve_exact(words.len()).map_err(|_| refused(bytes.len()))?;
    list.extend(words.iter().map(|w| f32::from_le_bytes(*w)));
    Ok(list)
}

fn ints(mut bytes: &[u8]) -> Result<Vec<i64>> {
    let mut list = Vec::new();
    while !bytes.is_empty() {
        list.push(number(&mut bytes)? as i64);
    }
    Ok(list)
}

/// Writes a message.
///
/// # Errors
/// There is no memory for it.
pub fn encode(message: &Message) -> Result<Vec<u8>> {
    let mut to = Vec::new();
    for (spec, value) in message.fields() {
        write(&mut to, spec, value)?;
    }
    Ok(to)
}

fn write(to: &mut Vec<u8>, spec: &FieldSpec, value: &FieldValue) -> Result<()> {
    match value {
        FieldValue::Int(0) if !spec.one_of => {}
        FieldValue::Int(n) => put_field(to, spec.number, *n as u64),
        FieldValue::Number(n) if n.to_bits() == 0 => {}
        FieldValue::Number(n) if spec.kind == FieldKind::Double => {
            put_number(to, spec.number << 3 | 1);
            to.extend_from_slice(&n.to_le_bytes());
        }
        FieldValue::Number(n) => {
            put_number(to, spec.number << 3 | 5);
            to.extend_from_slice(&(*n as f32).to_le_bytes());
        }
        FieldValue::Text(text) if text.is_empty() => {}
        FieldValue::Text(text) => put_bytes(to, spec.number, text.as_bytes())?,
        FieldValue::Message(m) => put_bytes(to, spec.number, &encode(m)?)?,
        FieldValue::Texts(list) => list.iter().try_for_each(|t| put_bytes(to, spec.number, t.as_bytes()))?,
        FieldValue::Messages(list) => list.iter().try_for_each(|m| put_bytes(to, spec.number, &encode(m)?))?,
        FieldValue::Ints(list) if list.is_empty() => {}
        FieldValue::Ints(list) => {
            let mut packed = Vec::new();
            list.iter().for_each(|&n| put_number(&mut packed, n as u64));
            put_bytes(to, spec.number, &packed)?;
        }
        FieldValue::Floats(list) if list.is_empty() => {}
        FieldValue::Floats(list) => {
            let bytes = list.len() * 4;
            put_head(to, spec.number, bytes);
            to.try_reserve(bytes).map_err(|_| refused(bytes))?;
            list.iter().for_each(|x| to.extend_from_slice(&x.to_le_bytes()));
        }
    }
    Ok(())
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(what_is_written_is_read);
    fn what_is_written_is_read() {
        let mut whole = Message::of(schema::root());
        let network = whole.add("network").unwrap();
        network.set("name", "main").set("batch_size", -3);
        network.add("variable").unwrap().set_sizes("shape", vec![-1, 300]).unwrap();
        let p = whole.add("parameter").unwrap();
        p.set("data", FieldValue::Floats(vec![1.5, -0.0])).set("need_grad", true);
        assert_eq!(decode(schema::root(), &encode(&whole).unwrap()).unwrap(), whole);
    }

    nnrs_kernels::unit_test!(bytes_that_are_none_are_errors);
    fn bytes_that_are_none_are_errors() {
        for bytes in [&b"\x0a"[..], b"\x0a\x05ab", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x0a\x01\xff"] {
            assert!(decode(schema::root(), bytes).is_err(), "{bytes:?}");
        }
        assert!(decode(schema::root(), b"").unwrap().fields().next().is_none());
    }
}
