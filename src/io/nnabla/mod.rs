//! NNabla's files: `.nnp`, `.nntxt`, `.protobuf` and `.h5`, one implementation for Rust ([`crate::nnp`]) and Python.
//!
//! All of them are messages ([`schema`]), as bytes ([`binary`]) or text ([`text`]), and arrays. A `.nnp` is an archive of
//! such files ([`archive`]). [`network`] makes graphs of messages, [`record`] messages of graphs.

mod archive;
mod arguments;
mod batch;
pub(crate) mod binary;
mod composed;
mod files;
mod initial;
mod lexer;
mod loops;
mod message;
pub(crate) mod network;
mod record;
pub(crate) mod schema;
pub(crate) mod text;

#[cfg(feature = "python")]
pub(crate) use batch::open as open_batch;
#[cfg(feature = "python")]
pub(crate) use files::bytes_of;
pub use files::{Contents, Format, NamedState, NnpToSave, read, write};
pub(crate) use files::{format_of, read_path, with_executors};
pub(crate) use loops::expanded;
pub use message::{FieldValue, Message};
pub use network::Network;
pub(crate) use network::{Build, build};
#[cfg(feature = "python")]
pub(crate) use record::function;
pub use record::{NetworkToSave, parameter, record};
pub use schema::{FieldKind, FieldSpec, MessageSpec};
