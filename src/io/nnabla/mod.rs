//! NNabla's files: `.nnp`, `.nntxt`, `.protobuf` and `.h5`, one implementation for Rust and Python.
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
pub(crate) use files::read_path;
#[cfg(feature = "python")]
pub(crate) use loops::expanded;
#[cfg(feature = "python")]
pub(crate) use network::{Build, build};
pub use files::{Contents, Format, NamedState, Nnp, NnpToSave, read, write};
pub use message::{FieldValue, Message};
pub use network::Network;
pub use record::{NetworkToSave, parameter, record};
pub use schema::{FieldKind, FieldSpec, MessageSpec};
