//! Files as a whole: reading and writing.

use super::archive::{pack, unpack};
use super::message::{Message, broken};
use super::network::Wiring;
use super::record::{NetworkToSave, parameter, record};
use super::{binary, schema, text};
use crate::graph::Variable;
use crate::io::hdf5::{self, Attribute};
use crate::io::open;
use crate::io::unpack_budget::UnpackBudget;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::array::alloc::refused;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::Path;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.nnp`: networks as text and parameters in an archive.
    Nnp,
    /// `.nntxt` or `.prototxt`: all as text.
    Text,
    /// `.protobuf`: all as bytes.
    Protobuf,
    /// `.h5`: parameters alone.
    Hdf5,
}

impl Format {
    /// The kind that a file's name says, or an extension with its dot.
    ///
    /// ```
    /// use nnrs::nnp::Format;
    /// assert_eq!((Format::of("model.nnp"), Format::of(".H5"), Format::of("a.txt")), (Some(Format::Nnp), Some(Format::Hdf5), None));
    /// ```
    pub fn of(name: &str) -> Option<Format> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "nnp" => Some(Format::Nnp),
            "nntxt" | "prototxt" => Some(Format::Text),
            "protobuf" => Some(Format::Protobuf),
            "h5" => Some(Format::Hdf5),
            _ => None,
        }
    }
}

/// The states of a solver as they lie in a `.nnp`: the name of the file within, and its bytes.
pub type NamedState = (String, Vec<u8>);

/// What was read from a file.
#[derive(Debug)]
pub struct Contents {
    /// Networks, executors and all else, as `NNablaProtoBuf`; without parameters.
    pub message: Message,
    /// The parameters: name, values, `need_grad`; each once, in the order of the file.
    pub parameters: Vec<(String, NdArray, bool)>,
    /// States of solvers.
    pub states: Vec<NamedState>,
}

/// Reads a file from its bytes.
///
/// # Errors
/// `Format` where the bytes are none of that kind.
///
/// ```
/// use nnrs::nnp::{read, Format};
/// let contents = read(b"network { name: 'main' }", Format::Text)?;
/// assert_eq!(contents.message.list("network")[0].text("name"), "main");
/// assert!(read(b"network { nane: 'main' }", Format::Text).is_err());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn read(bytes: &[u8], format: Format) -> Result<Contents> {
    let budget = UnpackBudget::of(bytes.len());
    let mut contents = Contents { message: Message::of(schema::root()), parameters: Vec::new(), states: Vec::new() };
    match format {
        Format::Nnp => {
            for (name, data) in unpack(bytes, &budget)? {
                let inside = |e: Error| broken(format!("in '{name}': {e}"));
                match Format::of(&name) {
                    Some(Format::Nnp) | None if name.ends_with(".optimizer") => {
                        hdf5::check_unpacking(&data, &budget).map_err(inside)?;
                        contents.states.push((name, data));
                    }
                    Some(Format::Nnp) | None => {}
                    Some(format) => contents.add(&data, format, &budget).map_err(inside)?,
                }
            }
        }
        format => contents.add(bytes, format, &budget)?,
    }
    contents.keep_the_last_of_each();
    Ok(contents)
}

impl Contents {
    fn add(&mut self, bytes: &[u8], format: Format, budget: &UnpackBudget) -> Result<()> {
        if format == Format::Hdf5 {
            self.parameters.extend(from_hdf5(bytes, budget)?);
            return Ok(());
        }
        let mut message = match format {
            Format::Protobuf => binary::decode(schema::root(), bytes)?,
            _ => {
                let text = std::str::from_utf8(bytes).map_err(|_| broken("it is no UTF-8 text"))?;
                text::parse(schema::root(), text)?
            }
        };
        for p in message.take_list("parameter") {
            self.parameters.push(array_of(&p)?);
        }
        self.message.merge(message);
        Ok(())
    }

    fn keep_the_last_of_each(&mut self) {
        let last: HashMap<String, usize> =
            self.parameters.iter().enumerate().map(|(i, (name, ..))| (name.clone(), i)).collect();
        let mut place = 0;
        self.parameters.retain(|(name, ..)| {
            place += 1;
            last.get(name) == Some(&(place - 1))
        });
    }
}

fn from_hdf5(bytes: &[u8], budget: &UnpackBudget) -> Result<Vec<(String, NdArray, bool)>> {
    let mut found: Vec<(f64, (String, NdArray, bool))> = Vec::new();
    for d in hdf5::read_within(bytes, budget)?.datasets {
        let of = |name: &str, usual: f64| {
            let found = d.attributes.iter().find(|(n, _)| n == name).map_or(Some(usual), |(_, v)| *v);
            found.ok_or_else(|| broken(format!("attribute '{name}' of parameter '{}' is no number", d.name)))
        };
        let (index, need_grad) = (of("index", f64::INFINITY)?, of("need_grad", 1.0)? != 0.0);
        found.push((index, (d.name, d.array, need_grad)));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0)); // stable: those without an index come last, by their names
    Ok(found.into_iter().map(|(_, p)| p).collect())
}

/// Axes that a parameter may have: a file with more is an attack.
const MOST_AXES: usize = 100;

fn array_of(p: &Message) -> Result<(String, NdArray, bool)> {
    let name = p.text("variable_name");
    let (sizes, data) = (p.sizes("shape"), p.floats("data"));
    let of = |n: &i64| usize::try_from(*n).ok();
    let shape = sizes.iter().map(of).collect::<Option<Vec<usize>>>().filter(|s| s.len() <= MOST_AXES);
    let count = shape.as_ref().and_then(|s| s.iter().try_fold(1usize, |n, d| n.checked_mul(*d)));
    match (shape, count) {
        (Some(shape), Some(n)) if n == data.len() => {
            Ok((name.to_string(), NdArray::from_slice(data, Shape::from(shape))?, p.int("need_grad") != 0))
        }
        _ => Err(broken(format!("parameter '{name}' has {} values for sizes {sizes:?}", data.len()))),
    }
}

/// What [`write`] writes.
pub struct NnpToSave<'a> {
    /// Networks, executors and all else.
    pub message: &'a Message,
    /// The parameters by name, in this order.
    pub parameters: &'a [(String, Variable)],
    /// How a `.nnp` holds its parameters: [`Format::Hdf5`] keeps their types, [`Format::Protobuf`] makes them floats.
    pub parameter_format: Format,
    /// States of solvers, which only a `.nnp` holds.
    pub states: &'a [NamedState],
}

/// The bytes of a file. Where it is no `.nnp`, the message's own parameters are those of the file, and `.h5` holds nothing else.
///
/// # Errors
/// There is no memory for it; names that are no names of parameters.
pub fn write(save: &NnpToSave, format: Format) -> Result<Vec<u8>> {
    match format {
        Format::Text => Ok(text::print(&save.whole()?).into_bytes()),
        Format::Protobuf => binary::encode(&save.whole()?),
        Format::Hdf5 => hdf5_bytes(save.parameters),
        Format::Nnp => {
            let mut files = vec![
                ("nnp_version.txt".to_string(), b"0.1\n".to_vec()),
                ("network.nntxt".to_string(), text::print(save.message).into_bytes()),
            ];
            files.push(match save.parameter_format {
                Format::Hdf5 => ("parameter.h5".to_string(), hdf5_bytes(save.parameters)?),
                _ => ("parameter.protobuf".to_string(), binary::encode(&with_parameters(None, save.parameters)?)?),
            });
            files.extend_from_slice(save.states);
            let mut bytes = Cursor::new(Vec::new());
            pack(&mut bytes, &files)?;
            Ok(bytes.into_inner())
        }
    }
}

impl NnpToSave<'_> {
    fn whole(&self) -> Result<Message> {
        with_parameters(Some(self.message), self.parameters)
    }
}

fn with_parameters(message: Option<&Message>, parameters: &[(String, Variable)]) -> Result<Message> {
    let mut whole = message.cloned().unwrap_or_else(|| Message::of(schema::root()));
    let list = parameters.iter().map(|(name, v)| parameter(name, v)).collect::<Result<Vec<Message>>>()?;
    if !list.is_empty() {
        whole.extend("parameter", list);
    }
    Ok(whole)
}

/// Parameters as `.h5`, with their order and `need_grad`.
fn hdf5_bytes(parameters: &[(String, Variable)]) -> Result<Vec<u8>> {
    let dataset = |(i, (name, v)): (usize, &(String, Variable))| {
        let attributes = vec![("need_grad", Attribute::Flag(v.need_grad_state())), ("index", Attribute::Int(i as i64))];
        Ok((name.clone(), v.data()?, attributes))
    };
    let datasets = parameters.iter().enumerate().map(dataset).collect::<Result<Vec<_>>>()?;
    let bytes = parameters.iter().map(|(_, v)| v.raw_data().size() * v.raw_data().dtype().size()).sum();
    let mut to = Vec::new();
    to.try_reserve(bytes).map_err(|_| refused(bytes))?;
    hdf5::write(&mut to, &datasets, &[])?;
    Ok(to)
}

/// All bytes of a file.
pub(crate) fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    let mut file = open(path)?;
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| refused(size))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file by its name's kind; its errors name it.
pub(crate) fn read_path(path: &Path) -> Result<Contents> {
    let format = format_of(path)?;
    let named = |e: Error| match e.kind() {
        ErrorKind::Format => broken(format!("cannot read '{}': {e}", path.display()))
            .hint("the file may be cut short, of another kind than its name says, or hold what is not supported"),
        ErrorKind::Io => e.hint(format!("reading '{}'", path.display())),
        _ => e,
    };
    bytes_of(path).and_then(|bytes| read(&bytes, format)).map_err(|e| named(e).argument("path"))
}

pub(crate) fn format_of(path: &Path) -> Result<Format> {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let unknown = || Error::arg("path", "a file of kind '.nnp', '.nntxt', '.prototxt', '.protobuf' or '.h5'");
    Format::of(name).ok_or_else(|| unknown().actual(path.display()))
}

/// Networks, each with an executor for all of its inputs and outputs.
pub(crate) fn with_executors(networks: &[NetworkToSave]) -> Result<Message> {
    let mut message = Message::of(schema::root());
    for save in networks {
        let network = record(save)?;
        message.extend("executor", vec![executor(save.name, &network)?]);
        message.extend("network", vec![network]);
    }
    Ok(message)
}

fn executor(name: &str, network: &Message) -> Result<Message> {
    let wiring = Wiring::of(network)?;
    let mut executor = Message::new("Executor")?;
    executor.set("name", "runtime").set("network_name", name);
    for v in network.list("variable") {
        let name = v.text("name");
        let list = match (wiring.is_parameter(name), wiring.is_input(name), wiring.is_output(name)) {
            (true, ..) => "parameter_variable",
            (_, true, _) => "data_variable",
            (.., true) => "output_variable",
            _ => continue,
        };
        executor.add(list)?.set("variable_name", name).set("data_name", name);
    }
    Ok(executor)
}
