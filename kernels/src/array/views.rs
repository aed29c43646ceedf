//! Views of other libraries (NumPy) over memory: how many there are, and until when one could write unnoticed.

use super::data::Data;
use super::storage::next_time;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The views over one block of memory.
#[derive(Default)]
pub struct Views {
    all: AtomicUsize,
    /// Those that may write it at any time.
    writers: AtomicUsize,
    /// When the last writer ended.
    ended: AtomicU64,
}

impl Views {
    /// Another library has the memory, and may write it at any time.
    pub(super) fn endless() -> Views {
        Views { all: AtomicUsize::new(1), writers: AtomicUsize::new(1), ended: AtomicU64::default() }
    }

    /// There is one.
    #[inline]
    pub fn any(&self) -> bool {
        self.all.load(Relaxed) > 0
    }

    /// One that was there at a time, or came later, could write.
    #[inline]
    pub fn could_write_after(&self, time: u64) -> bool {
        self.writers.load(Relaxed) > 0 || self.ended.load(Relaxed) > time
    }
}

/// A view: it keeps the memory alive.
pub struct Export {
    data: Data,
    writes: bool,
}

impl Export {
    #[inline]
    pub fn new(data: Data, writes: bool) -> Export {
        let views = data.views();
        views.all.fetch_add(1, Relaxed);
        views.writers.fetch_add(writes as usize, Relaxed);
        Export { data, writes }
    }

    /// It may write at any time.
    #[inline]
    pub fn writes(&self) -> bool {
        self.writes
    }

    #[inline]
    pub fn data(&self) -> &Data {
        &self.data
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let views = self.data.views();
        if self.writes {
            views.ended.store(next_time(), Relaxed);
            views.writers.fetch_sub(1, Relaxed);
        }
        views.all.fetch_sub(1, Relaxed);
    }
}
