//! What the parts of a file may unpack to, all together.

use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::cell::Cell;

/// As much for each byte of the file as it came, and as much in any case.
const MOST_PER_BYTE: usize = 100;
const MOST_FREE: usize = 1 << 26;

/// The bytes that may still be made which are not in a file: an archive, the files in it and their parts pay from one.
pub(crate) struct UnpackBudget {
    file: usize,
    left: Cell<usize>,
    is_overdrawn: Cell<bool>,
}

impl UnpackBudget {
    /// That of a file of so many bytes.
    pub fn of(file: usize) -> UnpackBudget {
        let left = Cell::new(file.saturating_mul(MOST_PER_BYTE).saturating_add(MOST_FREE));
        UnpackBudget { file, left, is_overdrawn: Cell::new(false) }
    }

    pub fn left(&self) -> usize {
        self.left.get()
    }

    /// Whether more was asked for than there was.
    pub fn is_overdrawn(&self) -> bool {
        self.is_overdrawn.get()
    }

    pub fn spend(&self, n: usize) -> Result<()> {
        let why = || format!("it unpacks to more than {MOST_PER_BYTE} times the file, which has {} bytes", self.file);
        let left = self.left().checked_sub(n);
        self.is_overdrawn.set(left.is_none());
        self.left.set(left.ok_or_else(|| Error::new(ErrorKind::Format, why()))?);
        Ok(())
    }
}
