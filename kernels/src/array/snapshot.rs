//! What a storage holds, noted to be compared or put back later.

use super::alloc::Block;
use super::data::Data;
use super::mirror::Access;
use super::storage::{Content, Storage};
use crate::device::{Device, DeviceMemory, Place};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::with_dtype;
use half::{bf16, f16};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A storage's content as it was at some time.
pub struct ContentSnapshot {
    dtype: DType,
    content: Content,
    lost: bool,
    cleared: bool,
    shared: bool,
    /// The copy on a GPU.
    memory: Option<Arc<DeviceMemory>>,
}

/// True if a number that an array of `dtype` holds is read as the same number whether it lies in memory or not.
fn survives(v: f64, dtype: DType, double: bool) -> bool {
    let own = with_dtype!(dtype, T => T::from_f64(v).to_f64());
    let same = |f: fn(f64) -> f64| f(own) == f(v);
    let halves = same(|v| f16::from_f64(v).to_f64()) && same(|v| bf16::from_f64(v).to_f64());
    own == v || (dtype == DType::F32 && !double && halves)
}

/// A content that a plan keeps from run to run. That it does so makes the memory no array's.
pub struct PlanContent(ContentSnapshot);

impl PlanContent {
    #[inline]
    pub fn new(kept: ContentSnapshot) -> PlanContent {
        if let Content::Bytes(b) = &kept.content {
            b.held.fetch_add(1, Relaxed);
        }
        PlanContent(kept)
    }
}

impl std::ops::Deref for PlanContent {
    type Target = ContentSnapshot;
    #[inline]
    fn deref(&self) -> &ContentSnapshot {
        &self.0
    }
}

impl Drop for PlanContent {
    #[inline]
    fn drop(&mut self) {
        if let Content::Bytes(b) = &self.content {
            b.held.fetch_sub(1, Relaxed);
        }
    }
}

impl ContentSnapshot {
    fn address(&self) -> Option<u64> {
        self.memory.as_ref().map(|m| m.address())
    }

    #[inline]
    pub fn is(&self, other: &ContentSnapshot) -> bool {
        self.dtype == other.dtype
            && self.content.is(&other.content)
            && (self.memory.is_none() || self.address() == other.address())
    }

    /// True if it is memory that a run worked on which has touched these blocks.
    #[inline]
    pub fn is_among(&self, touched: &BTreeSet<usize>) -> bool {
        matches!(&self.content, Content::Bytes(b) if touched.contains(&(Arc::as_ptr(b) as usize)))
    }

    /// True if it is memory that another storage may have too.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.shared && matches!(self.content, Content::Bytes(_))
    }

    /// How often another storage has come to share the memory.
    #[inline]
    pub fn shares(&self) -> usize {
        match &self.content {
            Content::Bytes(b) => b.shares.load(Relaxed),
            _ => 0,
        }
    }

    /// A number that tells contents apart, as far as it is worth it.
    pub fn mark(&self) -> usize {
        match &self.content {
            Content::Empty => 0,
            Content::Zero => 1,
            Content::Fill(v) => v.to_bits() as usize | 2,
            Content::Bytes(b) => Arc::as_ptr(b) as usize,
        }
    }

    /// True if it is what the host has written, and what had this mark was another number or other memory.
    pub fn has_left(&self, mark: usize) -> bool {
        let by_host = match &self.content {
            Content::Fill(_) => true,
            Content::Bytes(b) => b.is_unseen_on_host(),
            _ => false,
        };
        by_host && mark > 1 && mark != self.mark()
    }

    /// The memory, of elements of this type.
    fn block(&self, dtype: DType) -> Option<&Arc<Block>> {
        match &self.content {
            Content::Bytes(b) if self.dtype == dtype => Some(b),
            _ => None,
        }
    }

    /// True if the memory is that of `other`.
    #[inline]
    pub fn has_memory_of(&self, other: &ContentSnapshot) -> bool {
        matches!((&self.content, &other.content), (Content::Bytes(a), Content::Bytes(b)) if Arc::ptr_eq(a, b))
    }

    /// Brings memory that the GPU had then up to date there, where it must be.
    #[inline]
    pub fn bring(&self, gpu: &'static dyn Device, array: &super::NdArray) -> Result<()> {
        let (Content::Bytes(block), Some(address)) = (&self.content, self.address()) else { return Ok(()) };
        match block.at(Place::Gpu(gpu), Access::Read)?.0 as u64 == address {
            true => Ok(()),
            false => Err(Error::graph(format!("the memory of {array:?} has moved"))),
        }
    }

    /// The GPU has written the memory.
    #[inline]
    pub fn written_on(&self, gpu: &'static dyn Device) -> Result<()> {
        match (&self.content, &self.memory) {
            (Content::Bytes(block), Some(_)) => block.at(Place::Gpu(gpu), Access::Overwrite).map(drop),
            _ => Ok(()),
        }
    }
}

impl Block {
    /// True if no array has it, and there is no view.
    fn is_free(self: &Arc<Block>) -> bool {
        Arc::strong_count(self) == self.held.load(Relaxed) && !self.views.any()
    }

    /// True if it is on the host alone, and there is no view.
    fn is_unseen_on_host(&self) -> bool {
        self.place() == Place::Host && !self.views.any()
    }
}

/// For the engine.
#[doc(hidden)]
impl Storage {
    /// The content as it is now.
    pub fn keep(&self) -> ContentSnapshot {
        let s = self.state();
        let memory = match &s.content {
            Content::Bytes(b) => b.gpu_memory(),
            _ => None,
        };
        ContentSnapshot {
            dtype: s.dtype,
            content: s.content.clone(),
            lost: s.lost,
            cleared: s.cleared,
            shared: s.shared,
            memory,
        }
    }

    /// What the host has written goes to the memory of `cell`, which becomes the content: so runs find it at one place,
    /// though an array of one number has no memory, and one that others share gets memory anew. `double`: a reader may want
    /// more of a number's digits than an array of floats has.
    pub fn settle(&self, cell: &mut Option<PlanContent>, gpu: &'static dyn Device, double: bool) -> Result<()> {
        let (content, dtype) = self.look();
        // Another thread may have given the array another shape since.
        let old = cell.as_ref().and_then(|k| k.block(dtype)).filter(|b| b.is_free() && self.holds(b, dtype)).cloned();
        let new = match &content {
            number if number.number().is_some_and(|v| survives(v, dtype, double)) => self.put(number, old, dtype)?,
            Content::Bytes(b) if b.is_unseen_on_host() => match old {
                Some(old) => self.send(b, old, dtype, gpu)?,
                None => b.clone(),
            },
            _ => return Ok(()),
        };
        let mut s = self.state();
        if s.content.is(&content) && s.dtype == dtype {
            let before = std::mem::replace(&mut s.content, Content::Bytes(new));
            s.shared &= s.content.is(&before);
            drop(s);
            drop(before);
            *cell = Some(PlanContent::new(self.keep()));
        }
        Ok(())
    }

    /// A number in memory.
    fn put(&self, number: &Content, old: Option<Arc<Block>>, dtype: DType) -> Result<Arc<Block>> {
        let data = match old {
            Some(block) => Data::over(block, dtype, Place::Host, Access::Overwrite)?.whole(self.size()),
            None => Data::new_at(Place::Host, dtype, self.size())?,
        };
        data.fill_with(number)?;
        Ok(data.block().clone())
    }

    /// The host's elements of `from` in the memory that `to` has on the GPU.
    fn send(&self, from: &Arc<Block>, to: Arc<Block>, dtype: DType, gpu: &'static dyn Device) -> Result<Arc<Block>> {
        let source = Data::over(from.clone(), dtype, Place::Host, Access::Read)?;
        let (_, memory) = to.at(Place::Gpu(gpu), Access::Overwrite)?;
        if let Some(memory) = memory {
            let bytes = self.size() * dtype.size();
            // SAFETY: both have that many bytes.
            unsafe { memory.upload(source.address() as *const u8, bytes)? };
        }
        Ok(to)
    }

    /// True if the block has this storage's elements in `dtype`, and no more.
    fn holds(&self, block: &Block, dtype: DType) -> bool {
        block.asked() == self.size() * dtype.size()
    }

    /// Makes the content what it was; not one of another size, of an array that another thread has given another shape since.
    #[inline]
    pub fn restore(&self, k: &ContentSnapshot) {
        if matches!(&k.content, Content::Bytes(b) if !self.holds(b, k.dtype)) {
            return;
        }
        let (dtype, content) = (k.dtype, k.content.clone());
        self.replace(dtype, content, k.cleared, k.shared);
        self.state().lost = k.lost;
    }
}
