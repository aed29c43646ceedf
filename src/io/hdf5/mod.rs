//! HDF5 files of arrays, as h5py and NNabla write them: groups that are symbol tables or lists of links, arrays in one
//! piece or in chunks (deflated, shuffled), numbers as attributes. What is written are symbol tables and whole arrays.
//!
//! HDF5 has much more (a complete library is larger than the rest of nnrs); the rest is an error that says what it is.
//! Nothing in a file is believed: links, continuations and values are paid from budgets of the file's size.

mod chunks;
mod datatype;
mod group;
mod header;
mod read;
mod source;
mod tree;
mod write;

use nnrs_kernels::array::NdArray;
pub use read::read;
pub(crate) use read::{check_unpacking, read_within};
pub use write::{DatasetToWrite, GroupAttributes, write};

/// An array of a file.
#[derive(Debug)]
pub struct Dataset {
    /// The names of its groups and its own, with "/" between.
    pub name: String,
    /// Its values.
    pub array: NdArray,
    /// Its attributes.
    pub attributes: Attributes,
}

/// Attributes by name; `None` for what is not one number.
pub type Attributes = Vec<(String, Option<f64>)>;

/// What was read from a file.
#[derive(Debug, Default)]
pub struct Hdf5Contents {
    /// The arrays.
    pub datasets: Vec<Dataset>,
    /// The groups that have attributes, by their names; that of the outermost one is empty.
    pub groups: Vec<(String, Attributes)>,
}

/// An attribute's value, to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Attribute {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Int(i64),
}

/// An address that is none.
const UNDEFINED: u64 = u64::MAX;

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Numbers of the messages in an object's header.
mod kind {
    pub const DATASPACE: u16 = 1;
    pub const LINK_INFO: u16 = 2;
    pub const DATATYPE: u16 = 3;
    pub const FILL_VALUE: u16 = 5;
    pub const LINK: u16 = 6;
    pub const EXTERNAL_FILES: u16 = 7;
    pub const LAYOUT: u16 = 8;
    pub const FILTERS: u16 = 11;
    pub const ATTRIBUTE: u16 = 12;
    pub const CONTINUATION: u16 = 16;
    pub const SYMBOL_TABLE: u16 = 17;
}
