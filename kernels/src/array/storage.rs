//! The bytes of arrays: lazily zero or constant, in one element type at a time, converted on demand.

use super::alloc::Block;
use super::data::{Data, convert};
use super::mirror::Access;
use super::views::Export;
use crate::device::Place;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::with_dtype;
use std::any::Any;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// What a storage holds.
#[derive(Clone)]
pub enum Content {
    /// Nothing yet, or cleared: reads as zeros.
    Empty,
    /// All elements are 0; no memory yet.
    Zero,
    /// All elements are this number; no memory yet.
    Fill(f64),
    /// Memory.
    Bytes(Arc<Block>),
}

/// Can make the content of a storage again that was given up.
pub trait Maker: Send + Sync {
    /// Makes it; leaves it empty if it was never there.
    fn make(self: Arc<Self>, storage: &Arc<Storage>) -> Result<()>;

    /// For a caller that knows its type.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// What an empty storage stands for.
#[derive(Clone, Default)]
pub enum Absent {
    /// Zeros: nothing was ever there, or the user has cleared it.
    #[default]
    Unset,
    /// What a function has made, and can make again.
    Made(Weak<dyn Maker>),
    /// A gradient that a backward run has dropped.
    Gradient,
}

/// The clock of all contents: each modification of a storage gets a time of its own.
static CLOCK: AtomicU64 = AtomicU64::new(1);

/// The time now: what is written later has a later one.
#[inline]
pub fn now() -> u64 {
    CLOCK.load(Relaxed)
}

/// How many arrays were cleared by hand, not by a run.
static CLEARS: AtomicU64 = AtomicU64::new(1);

/// How many arrays were cleared by hand up to now, and one.
#[inline]
pub fn clears() -> u64 {
    CLEARS.load(Relaxed)
}

pub(super) fn note_clear() {
    CLEARS.fetch_add(1, Relaxed);
}

/// A time after all that was written.
#[inline]
pub fn next_time() -> u64 {
    CLOCK.fetch_add(1, Relaxed) + 1
}

pub(super) struct StorageState {
    pub(super) dtype: DType,
    pub(super) content: Content,
    /// When that came.
    since: u64,
    /// What it stands for while it is empty.
    pub(super) absent: Absent,
    /// It is empty because a run gave the content up.
    pub(super) lost: bool,
    /// Set by `clear`, unset by the next content.
    pub(super) cleared: bool,
    /// The memory may belong to another storage too: the first writer gets memory of its own.
    pub(super) shared: bool,
    /// What there was when the memory was last exported, to be read and perhaps written.
    pub(super) shown: Option<ExportChecksum>,
    /// Parts (where they begin and end) that were set to 0, and that were not taken for writing since.
    zeroed: Vec<(usize, usize)>,
}

/// The content's sum at the time of a modification; from then on to another one it was only shown.
#[derive(Clone, Copy)]
pub(super) struct ExportChecksum {
    from: u64,
    to: u64,
    sum: u64,
}

impl StorageState {
    pub(super) fn new(dtype: DType, content: Content) -> StorageState {
        StorageState {
            dtype,
            content,
            absent: Absent::Unset,
            lost: false,
            cleared: false,
            shared: false,
            shown: None,
            zeroed: Vec::new(),
            since: now(),
        }
    }

    /// Takes another content, of its own, and gives the old one. What was shown is the caller's affair.
    fn put(&mut self, dtype: DType, content: Content) -> Content {
        (self.dtype, self.lost, self.cleared, self.shared) = (dtype, false, false, false);
        (self.zeroed, self.since) = (Vec::new(), now());
        std::mem::replace(&mut self.content, content)
    }

    /// The memory has no other owner: no content, no thread that works on it.
    fn is_exclusive(&self) -> bool {
        matches!(&self.content, Content::Bytes(b) if Arc::strong_count(b) == 1)
    }

    /// The memory can be written without another storage noticing.
    fn is_own(&self) -> bool {
        matches!(self.content, Content::Bytes(_)) && (!self.shared || self.is_exclusive())
    }

    /// The memory can hold elements of another type.
    fn can_become(&self, dtype: DType) -> bool {
        self.dtype == dtype || (self.dtype.size() == dtype.size() && !self.is_exported())
    }

    fn is_exported(&self) -> bool {
        matches!(&self.content, Content::Bytes(b) if b.views.any())
    }
}

/// Elements shared by arrays. All access goes through [`Data`], which keeps the memory alive.
///
/// Two threads that write one array at the same time get mixed numbers, as with NumPy; never a crash.
///
/// ```
/// let a = nnrs_kernels::NdArray::from_slice(&[1i32, 2, 3], [3].into())?;
/// let storage = a.narrow(0, 1, 1)?.storage();
/// assert_eq!((storage.size(), storage.dtype(), storage.modification_count()), (3, nnrs_kernels::DType::I32, a.modification_count()));
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub struct Storage {
    size: usize,
    state: Mutex<StorageState>,
    /// The time of the last modification; 0 without any.
    modified: AtomicU64,
    /// Some run has marked it: only then a sum will be asked for.
    was_marked: AtomicBool,
    /// A view of another library was made since a mark found none.
    was_exported: AtomicBool,
    /// Threads that show it, and in steps of `SHOW` how many ever did: what such a thread has not noted yet looks like a change.
    showing: AtomicU64,
}

const SHOW: u64 = 1 << 16;
/// How often it is asked again while a thread shows it. One that waits for a captured run, or that a fork has left behind, ends no more.
const PATIENCE: usize = 10_000;

/// Threads that show some array.
static SHOWING: AtomicU64 = AtomicU64::new(0);

/// Some thread is just showing some array. Memory that the caller has written and given back is whole for those that begin
/// to show it after this.
#[inline]
pub fn is_any_shown() -> bool {
    SHOWING.load(SeqCst) != 0
}

/// A thread shows an array, until it is dropped.
struct Showing<'a>(&'a AtomicU64);

impl Showing<'_> {
    fn new(count: &AtomicU64) -> Showing<'_> {
        SHOWING.fetch_add(1, SeqCst);
        count.fetch_add(SHOW + 1, SeqCst);
        Showing(count)
    }

    fn is_any(count: &AtomicU64) -> bool {
        !count.load(SeqCst).is_multiple_of(SHOW)
    }
}

impl Drop for Showing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
        SHOWING.fetch_sub(1, SeqCst);
    }
}

impl Storage {
    /// Number of elements.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::NdArray::new([2, 3].into()).storage().size(), 6);
    /// ```
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The element type; float32 while there is no content.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::NdArray::from_slice(&[1u8], [1].into())?.storage().dtype(), nnrs_kernels::DType::U8);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn dtype(&self) -> DType {
        self.state().dtype
    }

    /// Bytes of memory that are really held.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([100].into());
    /// a.fill(1.0)?;
    /// assert_eq!(a.storage().bytes(), 0); // a constant needs none
    /// a.modify(nnrs_kernels::DType::F32)?;
    /// assert!(a.storage().bytes() >= 400);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn bytes(&self) -> usize {
        match &self.state().content {
            Content::Bytes(b) => b.bytes(),
            _ => 0,
        }
    }

    /// When the content was written last (or may have been), on a clock that counts the writes to all arrays; 0 if never.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([2].into());
    /// let before = a.storage().modification_count();
    /// a.fill(1.0)?;
    /// assert!(a.storage().modification_count() > before);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn modification_count(&self) -> u64 {
        self.modified.load(Relaxed)
    }

    /// True if there is nothing to read.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([2].into());
    /// assert!(a.storage().is_empty());
    /// a.fill(1.0)?;
    /// assert!(!a.storage().is_empty());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn is_empty(&self) -> bool {
        matches!(self.state().content, Content::Empty)
    }

    /// True if the content is a lazy zero.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[0.0f32], [1].into())?;
    /// assert!(!a.storage().is_zero()); // memory, whatever is in it
    /// a.zero()?;
    /// assert!(a.storage().is_zero());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn is_zero(&self) -> bool {
        matches!(self.state().content, Content::Zero)
    }

    /// True if `clear` was called since the last content.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([2].into());
    /// a.clear();
    /// assert!(a.storage().is_cleared() && !nnrs_kernels::NdArray::new([2].into()).storage().is_cleared());
    /// ```
    #[inline]
    pub fn is_cleared(&self) -> bool {
        self.state().cleared
    }

    /// Drops the content; the next reading finds zeros, or what the function makes again whose output it is.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1.0f32], [1].into())?;
    /// a.storage().clear();
    /// assert!(a.storage().is_empty() && a.to_vec::<f32>()? == [0.0]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn clear(&self) {
        let dtype = self.dtype();
        self.replace(dtype, Content::Empty, true, false);
    }
}

/// For the engine.
#[doc(hidden)]
impl Storage {
    #[inline]
    pub(super) fn new(size: usize) -> Storage {
        let state = StorageState::new(DType::F32, Content::Empty);
        let (modified, was_marked, was_exported) = Default::default();
        let showing = AtomicU64::new(0);
        Storage { size, state: Mutex::new(state), modified, was_marked, was_exported, showing }
    }

    /// An empty storage in the place of another, which is not taken for unchanged.
    #[inline]
    pub(super) fn in_place_of_another(size: usize) -> Storage {
        let new = Storage::new(size);
        new.touch();
        new
    }

    #[inline]
    pub(super) fn state(&self) -> MutexGuard<'_, StorageState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn touch(&self) {
        self.modified.store(next_time(), Relaxed);
    }

    /// True if there is nothing to read, or a lazy zero.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        matches!(self.state().content, Content::Empty | Content::Zero)
    }

    /// The number that all elements have, if the content is kept as such.
    #[inline]
    pub fn constant(&self) -> Option<f64> {
        self.state().content.number()
    }

    /// Puts another content in the place of this one. What was there is freed without the lock: a fork in between, which
    /// waits for the allocator, would leave it locked in the child.
    pub(super) fn replace(&self, dtype: DType, content: Content, cleared: bool, shared: bool) {
        let mut s = self.state();
        let old = s.put(dtype, content);
        (s.cleared, s.shared, s.shown) = (cleared, shared, None);
        drop(s);
        drop(old);
        self.touch();
    }

    /// Gives the content up: no reader wants it. Not a modification.
    #[inline]
    pub fn release(&self) -> Content {
        std::mem::replace(&mut self.state().content, Content::Empty)
    }

    /// As [`Storage::release`]; a later reader has it made again. `clear`: the array says that it was cleared.
    /// What it held is the caller's to drop, without locks.
    pub(super) fn lose(&self, maker: &Weak<dyn Maker>, clear: bool) -> impl Sized + use<> {
        let mut s = self.state();
        let is_known = matches!(&s.absent, Absent::Made(m) if m.ptr_eq(maker));
        let before = (!is_known).then(|| std::mem::replace(&mut s.absent, Absent::Made(maker.clone())));
        let old = std::mem::replace(&mut s.content, Content::Empty);
        (s.lost, s.cleared) = (true, s.cleared || clear);
        (old, before)
    }

    /// Drops a gradient for good: reading it is an error until something is written.
    pub fn lose_gradient(&self) {
        let mut s = self.state();
        let old =
            (std::mem::replace(&mut s.content, Content::Empty), std::mem::replace(&mut s.absent, Absent::Gradient));
        s.cleared = true;
        drop(s);
        drop(old);
    }

    /// It is a gradient that was dropped, and nothing makes it again.
    #[inline]
    pub fn is_dropped_gradient(&self) -> bool {
        let s = self.state();
        matches!((&s.content, &s.absent), (Content::Empty, Absent::Gradient))
    }

    /// While it is empty, it is a gradient that was dropped, unless something makes it.
    #[inline]
    pub fn mark_dropped(&self) {
        let mut s = self.state();
        if matches!((&s.content, &s.absent), (Content::Empty, Absent::Unset)) {
            s.absent = Absent::Gradient;
        }
    }

    /// Says what it stands for while it is empty; gives what that was.
    #[inline]
    pub fn swap_absent(&self, absent: Absent) -> Absent {
        std::mem::replace(&mut self.state().absent, absent)
    }

    /// No function makes the content any more: cleared, it reads as zeros. What was lost is lost.
    #[inline]
    pub fn set_free(&self) {
        if !self.is_lost() {
            drop(self.swap_absent(Absent::Unset));
        }
    }

    /// The content is what it was at a time, made again: what views that ended wrote before is gone.
    #[inline]
    pub fn set_modified(&self, time: u64) {
        self.state().since = now();
        self.modified.store(time, Relaxed);
    }

    /// What an empty storage stands for; `None` if it is not empty.
    #[inline]
    pub fn absent(&self) -> Option<Absent> {
        let s = self.state();
        matches!(s.content, Content::Empty).then(|| s.absent.clone())
    }

    /// The function whose output it is.
    #[inline]
    pub fn made_by(&self) -> Option<Weak<dyn Maker>> {
        match &self.state().absent {
            Absent::Made(maker) => Some(maker.clone()),
            _ => None,
        }
    }

    /// It is empty because a run gave the content up.
    #[inline]
    pub fn is_lost(&self) -> bool {
        let s = self.state();
        s.lost && matches!(s.content, Content::Empty)
    }

    /// What makes a content again that was given up.
    #[inline]
    pub fn maker(&self) -> Option<Arc<dyn Maker>> {
        match self.absent() {
            Some(Absent::Made(maker)) if self.is_lost() => maker.upgrade(),
            _ => None,
        }
    }

    /// Has a content that was given up made again.
    ///
    /// # Errors
    /// It cannot be: something that it was made from has changed, or is gone.
    pub fn fetch(self: &Arc<Storage>) -> Result<()> {
        match self.absent() {
            None | Some(Absent::Unset) => Ok(()),
            Some(Absent::Made(maker)) => match maker.upgrade() {
                Some(maker) => maker.make(self),
                None if self.is_lost() => Err(gone()),
                None => Ok(()), // the user has cleared it
            },
            Some(Absent::Gradient) => Err(dropped_gradient()),
        }
    }

    /// Takes over memory of this storage's size.
    #[inline]
    pub fn adopt(&self, dtype: DType, content: Content) {
        self.replace(dtype, content, false, false);
    }

    /// Takes memory that another library has too.
    pub(super) fn adopt_foreign(&self, dtype: DType, block: Block) {
        self.was_exported.store(true, Relaxed);
        self.adopt(dtype, Content::Bytes(Arc::new(block)));
    }

    /// Addresses of the memory, if there is any and no other thread is just changing it.
    #[inline]
    pub(super) fn try_addresses(&self) -> Option<impl Iterator<Item = usize> + use<>> {
        match &self.state.try_lock().ok()?.content {
            Content::Bytes(b) => Some(b.try_addresses()),
            _ => None,
        }
    }

    /// True if a view of another library over the memory is alive.
    #[inline]
    pub fn is_exported(&self) -> bool {
        self.state().is_exported()
    }

    /// Where the content is; a GPU if it is there too.
    #[inline]
    pub fn place(&self) -> Place {
        match &self.state().content {
            Content::Bytes(b) => b.place(),
            _ => Place::Host,
        }
    }

    /// True if the memory has no other owner.
    #[inline]
    pub fn is_exclusive(&self) -> bool {
        self.state().is_exclusive()
    }

    /// Gives its memory to `other`, if it is of type `dtype` and of that one's size, and no other array has it: at once,
    /// whatever other threads make of it.
    ///
    /// ```
    /// use nnrs_kernels::{DType, NdArray};
    /// let (a, b) = (NdArray::from_slice(&[1i8, 2], [2].into())?, NdArray::new([2].into()));
    /// assert!(!a.storage().give_to(&b.storage(), DType::F32) && a.storage().give_to(&b.storage(), DType::I8));
    /// assert_eq!((b.to_vec::<f32>()?, a.is_empty()), (vec![1.0, 2.0], true));
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn give_to(&self, other: &Storage, dtype: DType) -> bool {
        let content = {
            let mut s = self.state();
            if s.dtype != dtype || self.size != other.size || !s.is_exclusive() {
                return false;
            }
            std::mem::replace(&mut s.content, Content::Empty)
        };
        other.adopt(dtype, content);
        true
    }

    /// Takes the content of `other` as a whole, if it is memory of this size without views. It is shared until one
    /// of the two writes.
    pub(super) fn adopt_shared(&self, other: &Storage) -> bool {
        let mut from = other.state();
        let Content::Bytes(block) = from.content.clone() else { return false };
        if from.is_exported() || other.size != self.size {
            return false;
        }
        from.shared = true;
        block.shares.fetch_add(1, Relaxed);
        let dtype = from.dtype;
        drop(from);
        self.replace(dtype, Content::Bytes(block), false, true);
        true
    }

    #[inline]
    pub(super) fn set_content(&self, content: Content) {
        self.replace(self.dtype(), content, false, false);
    }

    /// Makes memory in `dtype` out of whatever there is. Works without the lock, and again if another thread was faster.
    fn own(self: &Arc<Storage>, place: Place, dtype: DType) -> Result<Arc<Block>> {
        Ok(self.own_as(place, &|_| dtype)?.0)
    }

    /// The same in the type that `wanted` gives for that which there is: a reader that asked before would turn what another
    /// thread writes meanwhile in another type into memory of its own, and the writing be lost.
    fn own_as(self: &Arc<Storage>, place: Place, wanted: &impl Fn(DType) -> DType) -> Result<(Arc<Block>, DType)> {
        let mut is_asked = false;
        loop {
            let (content, from, dtype) = {
                let mut s = self.state();
                let dtype = wanted(s.dtype);
                if let (true, Content::Bytes(block)) = (s.is_own() && s.dtype == dtype, &s.content) {
                    let block = block.clone();
                    s.shared = false;
                    return Ok((block, dtype));
                }
                (s.content.clone(), s.dtype, dtype)
            };
            if matches!(content, Content::Empty) && !std::mem::replace(&mut is_asked, true) {
                self.fetch()?;
                continue;
            }
            let data = match &content {
                Content::Bytes(old) => {
                    Data::over(old.clone(), from, place, Access::Read)?.whole(self.size).converted(dtype)?
                }
                lazy => Data::constant(lazy, place, dtype, self.size)?,
            };
            let mut s = self.state();
            if s.dtype == from && s.content.is(&content) {
                let block = data.block().clone();
                s.shown = s.shown.filter(|_| from == dtype);
                let old = s.put(dtype, Content::Bytes(block.clone()));
                drop(s);
                drop(old);
                return Ok((block, dtype));
            }
        }
    }

    /// Makes sure that there is memory in `dtype`, of this storage alone.
    #[inline]
    pub(super) fn lay_out(self: &Arc<Storage>, dtype: DType) -> Result<()> {
        self.own(Place::Host, dtype).map(drop)
    }

    /// The content and its type.
    #[inline]
    pub(super) fn look(&self) -> (Content, DType) {
        let s = self.state();
        (s.content.clone(), s.dtype)
    }

    pub(super) fn read(self: &Arc<Storage>, place: Place, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        let (content, now) = self.look();
        let part = |data: Data| data.part(offset, len);
        match content {
            Content::Bytes(block) => {
                let data = part(Data::over(block, now, place, Access::Read)?);
                if now == dtype { Ok(data) } else { data.converted(dtype) }
            }
            // Rounded to the type that is asked for, not first to the array's own.
            lazy @ (Content::Zero | Content::Fill(_)) if now != dtype => Data::constant(&lazy, place, dtype, len),
            _ => Ok(part(Data::over(self.own(place, dtype)?, dtype, place, Access::Read)?)),
        }
    }

    #[inline]
    pub(super) fn modify(self: &Arc<Storage>, place: Place, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        let data = Data::over(self.own(place, dtype)?, dtype, place, Access::Modify)?;
        self.state().zeroed.retain(|&(from, to)| offset + len <= from || to <= offset);
        self.touch();
        Ok(data.part(offset, len))
    }

    /// A part was set to 0.
    #[inline]
    pub(super) fn note_zeroed(&self, offset: usize, len: usize) {
        self.state().zeroed.push((offset, offset + len));
    }

    /// True if the part was not taken for writing since it was set to 0.
    #[inline]
    pub(super) fn is_part_zeroed(&self, offset: usize, len: usize) -> bool {
        self.state().zeroed.iter().any(|&(from, to)| from <= offset && offset + len <= to)
    }

    pub(super) fn overwrite(
        self: &Arc<Storage>,
        place: Place,
        dtype: DType,
        offset: usize,
        len: usize,
    ) -> Result<Data> {
        if len != self.size {
            return self.modify(place, dtype, offset, len);
        }
        let old = {
            let mut s = self.state();
            if s.is_own() && s.can_become(dtype) {
                (s.dtype, s.cleared, s.shared, s.shown) = (dtype, false, false, None);
                s.zeroed.clear();
                let Content::Bytes(block) = &s.content else { unreachable!("it is its own memory") };
                let block = block.clone();
                drop(s);
                self.touch();
                return Ok(Data::over(block, dtype, place, Access::Overwrite)?.whole(len));
            }
            std::mem::replace(&mut s.content, Content::Empty)
        };
        drop(old); // first: its memory may do
        let data = Data::new_at(place, dtype, len)?;
        self.replace(dtype, Content::Bytes(data.block().clone()), false, false);
        Ok(data)
    }

    /// A view to read and write by: as `modify`, for a caller that will rather read the elements than write them.
    pub(super) fn show(
        self: &Arc<Storage>,
        shown: impl Fn(DType) -> DType,
        offset: usize,
        len: usize,
    ) -> Result<Export> {
        self.fetch()?;
        let _until_it_is_noted = Showing::new(&self.showing);
        loop {
            let (block, dtype) = self.own_as(Place::Host, &shown)?;
            let data = Data::over(block, dtype, Place::Host, Access::Modify)?;
            self.state().zeroed.retain(|&(from, to)| offset + len <= from || to <= offset);
            if self.note_shown() {
                return Ok(self.export(data.part(offset, len), true));
            }
        }
    }

    /// A view of memory that it has, for another library.
    pub fn export(&self, data: Data, writes: bool) -> Export {
        let export = Export::new(data, writes);
        let _no_mark_is_just_made = self.state();
        self.was_exported.store(true, Relaxed);
        export
    }

    /// Counts as a modification, with which goes what there was; false where another thread came between, or a GPU.
    fn note_shown(&self) -> bool {
        let before = self.modification_count();
        let mut s = self.state();
        let shown = if self.is_watched() {
            let known = s.shown.filter(|shown| shown.to == before).map(|shown| (shown.from, shown.sum));
            drop(s);
            let known = known.or_else(|| Some((before, self.content_sum()?)));
            s = self.state();
            known
        } else {
            None
        };
        let now = next_time();
        let is_away = matches!(&s.content, Content::Bytes(block) if block.is_away());
        if is_away || self.modified.compare_exchange(before, now, Relaxed, Relaxed).is_err() {
            return false;
        }
        s.shown = shown.map(|(from, sum)| ExportChecksum { from, to: now, sum });
        true
    }

    /// A function has written it: what was shown meanwhile, or is just being shown, was not whole.
    pub fn note_whole(&self) {
        while self.state().shown.is_some() || Showing::is_any(&self.showing) {
            let before = self.modification_count();
            let sum = self.content_sum();
            let mut s = self.state();
            let now = next_time();
            if self.modified.compare_exchange(before, now, Relaxed, Relaxed).is_ok() {
                s.shown = sum.map(|sum| ExportChecksum { from: now, to: now, sum });
                return;
            }
        }
    }

    /// Looks from now on whether the content is what it was at some time: see [`is_as_at`](Storage::is_as_at).
    #[inline]
    pub fn watch(&self) {
        if !self.is_watched() {
            let _no_other_thread_shows_it = self.state();
            self.was_marked.store(true, Relaxed);
        }
    }

    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.was_marked.load(Relaxed)
    }

    /// There may be a view, and with it something to [mark](Storage::mark).
    #[inline]
    pub(super) fn may_be_exported(&self) -> bool {
        self.was_exported.load(Relaxed)
    }

    /// Notes what there is now: a view of the memory could be written unnoticed.
    pub(super) fn mark(&self) {
        let is_exported = {
            let s = self.state();
            self.was_exported.store(s.is_exported(), Relaxed);
            s.is_exported()
        };
        while !self.note_content(is_exported) {}
    }

    /// False where another thread came between.
    fn note_content(&self, is_exported: bool) -> bool {
        let time = self.modification_count();
        if !is_exported && self.state().shown.is_none_or(|shown| shown.to != time) {
            return true;
        }
        let sum = self.content_sum();
        let mut s = self.state();
        if self.modification_count() != time {
            return false;
        }
        let Some(sum) = sum else {
            s.shown = None;
            return true;
        };
        let known = s.shown.filter(|shown| shown.to == time);
        s.shown = Some(match known {
            Some(shown) if shown.sum == sum => shown,
            Some(_) => {
                let now = next_time(); // a view has written it
                self.modified.store(now, Relaxed);
                ExportChecksum { from: now, to: now, sum }
            }
            None => ExportChecksum { from: time, to: time, sum },
        });
        true
    }

    /// True if the content is what it was at a time (see [`now`]), as far as one can know: it was not taken for writing since,
    /// or it was only shown and has the same sum.
    pub fn is_as_at(&self, time: u64) -> bool {
        for _ in 0..PATIENCE {
            let (shows, found) = (self.showing.load(SeqCst), self.looks_as_at(time));
            if found || (shows == self.showing.load(SeqCst) && shows.is_multiple_of(SHOW)) {
                return found;
            }
            std::thread::yield_now();
        }
        false
    }

    fn looks_as_at(&self, time: u64) -> bool {
        if self.modification_count() <= time && !self.could_be_written_after(time) {
            return true;
        }
        let (modified, shown) = {
            let s = self.state();
            (self.modification_count(), s.shown)
        };
        shown.is_some_and(|s| s.from <= time && s.to == modified && self.content_sum() == Some(s.sum))
    }

    /// By a view, if the content was here already. What is on a GPU alone was not.
    fn could_be_written_after(&self, time: u64) -> bool {
        let s = self.state();
        matches!(&s.content, Content::Bytes(b) if b.views.could_write_after(time.max(s.since)) && !b.is_away())
    }

    /// A number that tells contents apart, also where all elements are one number that is kept as such: of real ones as in
    /// memory of type `real`. The same for all that lie on a GPU alone.
    pub fn sum(&self, real: DType) -> u64 {
        let of_one = || {
            let (content, now) = self.look();
            content.number()?;
            let dtype = if now.is_float() { real } else { now };
            Data::constant(&content, Place::Host, dtype, self.size).ok().map(|data| data.sum())
        };
        self.content_sum().or_else(of_one).unwrap_or(0)
    }

    fn content_sum(&self) -> Option<u64> {
        let s = self.state();
        let Content::Bytes(block) = s.content.clone() else { return None };
        let dtype = s.dtype;
        drop(s);
        let data = if block.is_away() { None } else { Data::over(block, dtype, Place::Host, Access::Read).ok() };
        data.map(|data| data.whole(self.size).sum())
    }

    #[inline]
    pub(super) fn fill_part(self: &Arc<Storage>, offset: usize, len: usize, value: f64) -> Result<()> {
        let dtype = self.dtype();
        let data = self.modify(Place::Host, dtype, offset, len)?;
        with_dtype!(dtype, T => data.as_mut_slice::<T>().fill(T::from_f64(value)));
        Ok(())
    }

    /// Copies values in, converting to this storage's type; an empty storage takes theirs.
    #[inline]
    pub(super) fn write_from<T: Element>(self: &Arc<Storage>, offset: usize, values: &[T]) -> Result<()> {
        let dtype = if self.is_empty() { T::DTYPE } else { self.dtype() };
        let data = self.overwrite_or_modify(dtype, offset, values.len())?;
        convert(data.ptr(), dtype, values.as_ptr() as *const u8, T::DTYPE, values.len());
        Ok(())
    }

    fn overwrite_or_modify(self: &Arc<Storage>, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        match len == self.size {
            true => self.overwrite(Place::Host, dtype, offset, len),
            false => self.modify(Place::Host, dtype, offset, len),
        }
    }
}

/// What reading an intermediate value gives that nothing can make any more.
#[inline]
pub fn gone() -> Error {
    Error::graph(
        "the data of this intermediate variable was not kept, and the graph that could compute it again is gone",
    )
    .hint("hold the Variable while forward runs without clear_buffer, or set its persistent flag, to keep its data")
}

/// What reading a gradient gives that a backward run has dropped.
#[inline]
pub fn dropped_gradient() -> Error {
    Error::graph("the gradient of this variable was not kept by backward, or not finished").hint(
        "hold the Variable while backward runs, without clear_buffer, or set its persistent flag, to keep its gradient; to write it, assign .g",
    )
}

impl Content {
    /// The number that all elements have, if it is kept as such.
    #[inline]
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Content::Zero => Some(0.0),
            Content::Fill(v) => Some(*v),
            _ => None,
        }
    }

    /// The same memory, or the same constant.
    #[inline]
    pub(super) fn is(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::Bytes(a), Content::Bytes(b)) => Arc::ptr_eq(a, b),
            (Content::Fill(a), Content::Fill(b)) => a.to_bits() == b.to_bits(),
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}
