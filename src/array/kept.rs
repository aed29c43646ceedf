//! What a storage holds, noted to be compared or put back later.

use super::mirror::{Access, Place};
use super::storage::{Content, State, Storage};
use crate::cuda;
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A storage's content as it was at some time.
pub(crate) struct Kept {
    dtype: DType,
    content: Content,
    cleared: bool,
    shared: bool,
    /// The copy on a GPU.
    memory: Option<Arc<cuda::Memory>>,
}

impl Kept {
    fn address(&self) -> Option<u64> {
        self.memory.as_ref().map(|m| m.address())
    }

    pub(crate) fn is(&self, other: &Kept) -> bool {
        self.dtype == other.dtype
            && self.content.is(&other.content)
            && (self.memory.is_none() || self.address() == other.address())
    }

    /// True if it is memory that a run worked on which has touched these blocks.
    pub(crate) fn is_among(&self, touched: &BTreeSet<usize>) -> bool {
        matches!(&self.content, Content::Bytes(b) if touched.contains(&(Arc::as_ptr(b) as usize)))
    }

    /// True if it is memory that another storage may have too.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared && matches!(self.content, Content::Bytes(_))
    }

    /// How often another storage has come to share the memory.
    pub(crate) fn shares(&self) -> usize {
        match &self.content {
            Content::Bytes(b) => b.shares.load(Relaxed),
            _ => 0,
        }
    }

    /// A number that tells contents apart, as far as it is worth it.
    pub(crate) fn mark(&self) -> usize {
        match &self.content {
            Content::Empty => 0,
            Content::Zero => 1,
            Content::Fill(v) => v.to_bits() as usize | 2,
            Content::Bytes(b) => Arc::as_ptr(b) as usize,
        }
    }

    /// Brings memory that the GPU had then up to date there, where it must be.
    pub(crate) fn bring(&self, gpu: &'static cuda::Gpu, array: &super::NdArray) -> Result<()> {
        let (Content::Bytes(block), Some(address)) = (&self.content, self.address()) else { return Ok(()) };
        match block.at(Place::Gpu(gpu), Access::Read)?.0 as u64 == address {
            true => Ok(()),
            false => Err(Error::graph(format!("the memory of {array:?} has moved"))),
        }
    }

    /// The GPU has written the memory.
    pub(crate) fn written_on(&self, gpu: &'static cuda::Gpu) -> Result<()> {
        match (&self.content, &self.memory) {
            (Content::Bytes(block), Some(_)) => block.at(Place::Gpu(gpu), Access::Overwrite).map(drop),
            _ => Ok(()),
        }
    }
}

impl Storage {
    /// The content as it is now.
    pub(crate) fn keep(&self) -> Kept {
        let s = self.state();
        let memory = match &s.content {
            Content::Bytes(b) => b.gpu_memory(),
            _ => None,
        };
        Kept { dtype: s.dtype, content: s.content.clone(), cleared: s.cleared, shared: s.shared, memory }
    }

    /// Makes the content what it was.
    pub(crate) fn restore(&self, k: &Kept) {
        let (dtype, content) = (k.dtype, k.content.clone());
        self.replace(State { cleared: k.cleared, shared: k.shared, ..State::new(dtype, content) });
    }
}
