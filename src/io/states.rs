//! NNabla's `.protobuf` file of a solver's states: an `Optimizer` message that has a solver, and in that nothing but a map
//! of states by parameter. Each has the count of updates, and a map of arrays by name. All numbers are float.

use super::wire::{Field, Fields, broken, number, put_bytes, put_field, put_head, put_number};
use super::{open, write_atomically};
use crate::graph::Variable;
use crate::solver::State;
use nnrs_kernels::array::alloc::refused;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Numbers of the fields of NNabla's messages.
mod at {
    pub const SOLVER: u64 = 30;
    pub const STATES: u64 = 40;
    pub const KEY: u64 = 1;
    pub const VALUE: u64 = 2;
    pub const COUNT: u64 = 1;
    pub const ARRAYS: u64 = 2;
    pub const SHAPE: u64 = 20;
    pub const SIZES: u64 = 1;
    pub const DATA: u64 = 100;
}

/// Axes that an array may have: a file with more is an attack.
const MOST_AXES: usize = 100;

/// Writes the states of a solver as NNabla's `.protobuf` file.
///
/// # Errors
/// A count of updates beyond 32 bits; the file cannot be written.
///
/// ```
/// use nnrs::{io::{read_states, write_states}, solver::{Momentum, Solver}, Variable};
/// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Momentum::default()));
/// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
/// w.grad().fill(1.0)?;
/// solver.update()?;
/// let path = std::env::temp_dir().join(format!("nnrs-doc-states-{}.protobuf", std::process::id()));
/// write_states(&path, &solver.get_states())?;
/// let states = read_states(&path)?;
/// assert_eq!((states[0].0.as_str(), states[0].1.t, states[0].1.arrays[0].0.as_str()), ("w", 1, "m"));
/// solver.set_states(&states)?;
/// std::fs::remove_file(&path)?;
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn write_states(path: &Path, states: &[(String, State)]) -> Result<()> {
    write_atomically(path, |file| write_to(file, states))
}

/// Writes a file in place.
pub(crate) fn write_to(file: &mut File, states: &[(String, State)]) -> Result<()> {
    let entries = states.iter().map(|(name, state)| entry(name, &message(name, state)?)).collect::<Result<Vec<_>>>()?;
    let heads = entries.iter().map(|e| head(at::STATES, e.len())).collect::<Vec<_>>();
    let solver = entries.iter().zip(&heads).map(|(e, h)| e.len() + h.len()).sum();
    file.write_all(&head(at::SOLVER, solver))?;
    for (entry, head) in entries.iter().zip(&heads) {
        file.write_all(head)?;
        file.write_all(entry)?;
    }
    Ok(())
}

fn head(field: u64, n: usize) -> Vec<u8> {
    let mut head = Vec::new();
    put_head(&mut head, field, n);
    head
}

/// An entry of a map.
fn entry(key: &str, value: &[u8]) -> Result<Vec<u8>> {
    let mut entry = Vec::new();
    put_bytes(&mut entry, at::KEY, key.as_bytes())?;
    put_bytes(&mut entry, at::VALUE, value)?;
    Ok(entry)
}

fn message(name: &str, state: &State) -> Result<Vec<u8>> {
    let count = u32::try_from(state.t).map_err(|_| {
        Error::arg("states", format!("counts of updates below 2**32, which the format holds, for parameter '{name}'"))
            .actual(state.t)
            .hint("a file of another kind holds larger ones")
    })?;
    let mut to = Vec::new();
    put_field(&mut to, at::COUNT, count.into());
    for (key, v) in &state.arrays {
        put_bytes(&mut to, at::ARRAYS, &entry(key, &array(v)?)?)?;
    }
    Ok(to)
}

fn array(v: &Variable) -> Result<Vec<u8>> {
    let (mut sizes, mut shape, mut to) = (Vec::new(), Vec::new(), Vec::new());
    v.shape().iter().for_each(|&n| put_number(&mut sizes, n as u64));
    if !sizes.is_empty() {
        put_bytes(&mut shape, at::SIZES, &sizes)?;
    }
    put_bytes(&mut to, at::SHAPE, &shape)?;
    let data = v.to_vec::<f32>()?;
    put_head(&mut to, at::DATA, data.len() * 4);
    to.try_reserve(data.len() * 4).map_err(|_| refused(data.len() * 4))?;
    data.iter().for_each(|x| to.extend_from_slice(&x.to_le_bytes()));
    Ok(to)
}

/// Reads the states of NNabla's `.protobuf` file, by parameter.
///
/// # Errors
/// `Io` if there is no such file or it cannot be read; `Format` if it is none of these, or broken.
///
/// ```
/// use nnrs::io::read_states;
/// let path = std::env::temp_dir().join(format!("nnrs-doc-broken-{}.protobuf", std::process::id()));
/// std::fs::write(&path, b"no states")?;
/// assert!(read_states(&path).is_err());
/// std::fs::remove_file(&path)?;
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn read_states(path: &Path) -> Result<Vec<(String, State)>> {
    let named = |e: Error| match e.kind() {
        ErrorKind::Format => broken(format!("cannot read '{}' as states of a solver: {e}", path.display())),
        _ => e.hint(format!("reading '{}'", path.display())),
    };
    read_from(path).map_err(|e| named(e).argument("path"))
}

/// As [`read_states`]; its errors do not know the file's name.
pub(crate) fn read_from(path: &Path) -> Result<Vec<(String, State)>> {
    let mut file = open(path)?;
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| refused(size))?;
    file.read_to_end(&mut bytes)?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Vec<(String, State)>> {
    let (mut found, mut has_solver) = (Vec::new(), false);
    for solver in Fields::of(bytes).messages(at::SOLVER) {
        has_solver = true;
        for entry in Fields::of(solver?).messages(at::STATES) {
            let (name, value) = key_and_value(entry?)?;
            found.push((name, state(value)?));
        }
    }
    if !has_solver {
        return Err(broken("it holds no states of a solver"));
    }
    Ok(last_of_each(found))
}

/// Of entries with one key the last one counts.
fn last_of_each<T>(entries: Vec<(String, T)>) -> Vec<(String, T)> {
    let last: HashMap<String, usize> = entries.iter().enumerate().map(|(i, (name, _))| (name.clone(), i)).collect();
    entries.into_iter().enumerate().filter(|(i, (name, _))| last.get(name) == Some(i)).map(|(_, e)| e).collect()
}

/// The key of a map's entry and its value; what is left out is empty.
fn key_and_value(entry: &[u8]) -> Result<(String, &[u8])> {
    let last = |n| Fields::of(entry).messages(n).try_fold(&[][..], |_, bytes| bytes);
    let key = str::from_utf8(last(at::KEY)?).map_err(|_| broken("a name that is no text"))?;
    Ok((key.to_string(), last(at::VALUE)?))
}

fn state(message: &[u8]) -> Result<State> {
    let (mut t, mut arrays) = (0, Vec::new());
    for field in Fields::of(message) {
        match field? {
            (at::COUNT, Field::Number(n)) => t = n,
            (at::ARRAYS, Field::Bytes(entry)) => {
                let (key, value) = key_and_value(entry)?;
                arrays.push((key, variable(value)?));
            }
            _ => {}
        }
    }
    if t > u64::from(u32::MAX) {
        return Err(broken(format!("a count of updates of {t}, which is beyond 32 bits")));
    }
    Ok(State { t, arrays: last_of_each(arrays) })
}

fn variable(message: &[u8]) -> Result<Variable> {
    let (mut sizes, mut data) = (Vec::new(), Vec::new());
    let float = |bytes: &[u8]| bytes.first_chunk().map_or(0.0, |b| f32::from_le_bytes(*b));
    for field in Fields::of(message) {
        match field? {
            (at::SHAPE, Field::Bytes(shape)) => add_sizes(shape, &mut sizes)?,
            (at::DATA, Field::Bytes(all)) if all.len() % 4 == 0 => {
                data.try_reserve(all.len() / 4).map_err(|_| refused(all.len()))?;
                data.extend(all.chunks_exact(4).map(float));
            }
            (at::DATA, Field::Word(one)) => data.push(float(&one)),
            (at::DATA, _) => return Err(broken("numbers that are cut short")),
            _ => {}
        }
    }
    let n = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    if n != Some(data.len()) {
        return Err(broken(format!("{} numbers for an array of sizes {sizes:?}", data.len())));
    }
    Variable::from_slice(&data, Shape::from(&sizes[..]))
}

fn add_sizes(shape: &[u8], sizes: &mut Vec<usize>) -> Result<()> {
    let size =
        |n: u64| i64::try_from(n).ok().and_then(|n| usize::try_from(n).ok()).ok_or_else(|| broken("a size below 0"));
    for field in Fields::of(shape) {
        match field? {
            (at::SIZES, Field::Number(n)) => sizes.push(size(n)?),
            (at::SIZES, Field::Bytes(mut all)) => {
                while !all.is_empty() && sizes.len() <= MOST_AXES {
                    sizes.push(size(number(&mut all)?)?);
                }
            }
            _ => {}
        }
        if sizes.len() > MOST_AXES {
            return Err(broken(format!("an array of more than {MOST_AXES} axes")));
        }
    }
    Ok(())
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    /// What NNabla 1.39 wrote for Momentum after two updates of `b ()` and `a/W (2, 3)`.
    const NNABLA: &str = "f20150c202180a016212130802120f0a016d120aa20100a206046c09793bc202320a03612f57122b080212270a016d1222\
                          a201040a020203a20618000000006c09f93a6c09793b10c7ba3b6c09f93be4a51b3c";

    nnrs_kernels::unit_test!(nnablas_bytes_are_read_and_written);
    fn nnablas_bytes_are_read_and_written() {
        let bytes = hex(NNABLA);
        let states = parse(&bytes).unwrap();
        let names: Vec<(&str, u64, Shape)> =
            states.iter().map(|(n, s)| (n.as_str(), s.t, s.arrays[0].1.shape())).collect();
        assert_eq!(names, [("b", 2, [].into()), ("a/W", 2, [2, 3].into())]);
        assert_eq!(states[0].1.arrays[0].1.to_vec::<f32>().unwrap(), [0.0038]);
        let path = std::env::temp_dir().join(format!("nnrs-states-{}.protobuf", std::process::id()));
        write_states(&path, &states).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        std::fs::remove_file(&path).unwrap();
    }

    nnrs_kernels::unit_test!(any_bytes_are_states_or_an_error);
    fn any_bytes_are_states_or_an_error() {
        let bytes = hex(NNABLA);
        for end in 0..bytes.len() {
            assert!(parse(&bytes[..end]).is_err());
        }
        let mut seed = 1u32;
        for i in (0..bytes.len()).cycle().take(20_000) {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mut changed = bytes.clone();
            changed[i] ^= (seed >> 24) as u8;
            changed[(seed >> 8) as usize % bytes.len()] ^= 1 << (seed >> 16 & 7);
            let _ = parse(&changed);
        }
    }

    nnrs_kernels::unit_test!(numbers_have_64_bits);
    fn numbers_have_64_bits() {
        let of = |mut bytes: &[u8]| number(&mut bytes).ok();
        assert_eq!(of(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), Some(u64::MAX));
        assert_eq!(of(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
        assert_eq!((of(&[0x80, 1]), of(&[0x80]), of(&[])), (Some(128), None, None));
    }
}
