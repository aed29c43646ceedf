//! [`Nnp`]: the networks of a file as graphs, with their parameters in the tree of parameters.

use crate::graph::Variable;
use crate::io::nnabla::{Build, build, expanded, format_of, read_path, with_executors};
pub use crate::io::nnabla::{
    Contents, FieldKind, FieldSpec, FieldValue, Format, Message, MessageSpec, NamedState, Network, NetworkToSave,
    NnpToSave, parameter, read, record, write,
};
use crate::io::write_atomically;
use crate::parameter::{check_names, get_all_parameters, set_parameter};
use nnrs_kernels::error::{Error, Result};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A file with networks and their parameters.
///
/// ```
/// use nnrs::nnp::{Nnp, NetworkToSave};
/// use nnrs::{functions as f, parametric as pf, Variable};
/// let path = std::env::temp_dir().join(format!("nnrs-doc-{}.nnp", std::process::id()));
/// let x = Variable::new([16, 3]);
/// let y = f::tanh(&pf::affine("last", &x, 2, Default::default())?)?;
/// Nnp::save(&path, &[NetworkToSave {
///     name: "main", batch_size: 16, outputs: &[y.clone()], names: &[("x".into(), x), ("y".into(), y)],
///     parameters: &nnrs::parameter::get_all_parameters(), variable_batch_size: true,
/// }])?;
/// let main = Nnp::open(&path)?.network("main", Some(5))?;
/// main.input("x")?.data()?.fill(1.0)?;
/// let y = main.output("y")?;
/// y.forward()?;
/// assert_eq!(y.shape(), [5, 2].into());
/// std::fs::remove_file(&path)?;
/// # Ok::<(), nnrs::Error>(())
/// ```
pub struct Nnp {
    /// What it is, for messages.
    file: String,
    message: Message,
    parameters: Mutex<Vec<(String, Variable)>>,
}

impl Nnp {
    /// Reads a `.nnp`, `.nntxt` or `.protobuf` file.
    ///
    /// # Errors
    /// As [`read`]; `Io` where there is no such file.
    pub fn open(path: impl AsRef<Path>) -> Result<Nnp> {
        let path = path.as_ref();
        let made = read_path(path).and_then(Nnp::of).map_err(|e| e.function("Nnp::open"))?;
        Ok(Nnp { file: format!("'{}'", path.display()), ..made })
    }

    /// The networks of a file that was read.
    ///
    /// # Errors
    /// Names of parameters that cannot stand in one tree.
    pub fn of(contents: Contents) -> Result<Nnp> {
        check_names(contents.parameters.iter().map(|(name, ..)| name.as_str()))?;
        let variable = |(name, array, need_grad)| (name, Variable::from_array(array).with_need_grad(need_grad));
        let parameters = Mutex::new(contents.parameters.into_iter().map(variable).collect());
        Ok(Nnp { file: "the file".into(), message: contents.message, parameters })
    }

    /// All that the file says: networks, executors, optimizers.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The names of the networks.
    pub fn network_names(&self) -> Vec<&str> {
        self.message.list("network").iter().map(|n| n.text("name")).collect()
    }

    /// The parameters that the file has, and those that its networks made.
    pub fn parameters(&self) -> Vec<(String, Variable)> {
        self.parameters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the graph of a network, for `batch_size` samples or as many as the file says. Its parameters are those of this
    /// file's other networks too, and go into the current scope.
    ///
    /// # Errors
    /// There is no network of this name; what it asks for does not fit.
    pub fn network(&self, name: &str, batch_size: Option<i64>) -> Result<Network> {
        let unknown = || Error::arg("name", format!("one of the networks {}", self.network_names().join(", ")));
        let network = self.message.list("network").iter().find(|n| n.text("name") == name);
        let network = expanded(network.ok_or_else(|| unknown().actual(name))?)?;
        let mut own = self.parameters.lock().unwrap_or_else(PoisonError::into_inner);
        let there = |name: &str| own.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let made = build(
            &network,
            &Build { file: &self.file, batch_size, parameter: &there, given: &|_| None, frozen: &|_| false },
        )?;
        for (name, v) in &made.parameters {
            if !own.iter().any(|(n, _)| n == name) {
                own.push((name.clone(), v.clone()));
            }
            set_parameter(name, v)?;
        }
        Ok(made)
    }

    /// Writes networks, and the parameters of the current scope, to a file of the kind that its name says. Each network gets
    /// an executor `runtime`.
    ///
    /// # Errors
    /// As [`record`]; the file cannot be written. Then an old one is still there.
    pub fn save(path: impl AsRef<Path>, networks: &[NetworkToSave]) -> Result<()> {
        let path = path.as_ref();
        let save = || {
            let format = format_of(path)?;
            let message = with_executors(networks)?;
            let parameters = get_all_parameters();
            let save =
                NnpToSave { message: &message, parameters: &parameters, parameter_format: Format::Hdf5, states: &[] };
            let bytes = write(&save, format)?;
            write_atomically(path, |file| Ok(file.write_all(&bytes)?))
        };
        save().map_err(|e: Error| e.function("Nnp::save"))
    }
}
