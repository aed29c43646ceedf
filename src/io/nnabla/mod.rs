//! NNabla's files: `.nnp`, `.nntxt`, `.protobuf` and `.h5`, one implementation for Rust ([`crate::nnp`]) and Python.
//!
//! All of them are messages ([`schema`]), as bytes ([`binary`]) or text ([`text`]), and arrays. A `.nnp` is an archive of
//! such files ([`archive`]). [`network`] makes graphs of messages, [`record`] messages of graphs.

mod archive;
mod arguments;
mod batch;
#[doc(hidden)]
pub mod binary;
mod composed;
mod files;
mod initial;
mod lexer;
mod loops;
mod message;
pub(crate) mod network;
mod record;
#[doc(hidden)]
pub mod schema;
#[doc(hidden)]
pub mod text;

#[doc(hidden)]
pub use batch::open as open_batch;
#[doc(hidden)]
pub use files::bytes_of;
pub use files::{Contents, Format, NamedState, NnpToSave, read, write};
pub(crate) use files::{format_of, read_path, with_executors};
#[doc(hidden)]
pub use loops::expanded;
pub use message::{FieldValue, Message};
pub use network::Network;
#[doc(hidden)]
pub use network::{Build, build};
#[doc(hidden)]
pub use record::function;
pub use record::{NetworkToSave, parameter, record};
pub use schema::{FieldKind, FieldSpec, MessageSpec};
