//! Copies of a block on a GPU. NNabla's head-array rule: what was written last is the truth, and the other side fetches it
//! when it is asked for.

use super::alloc::Block;
use super::storage::now;
use crate::device::{Device, DeviceMemory, Place, capture};
use crate::error::Result;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};

/// What a caller wants to do with a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// All of it: what is there need not be fetched.
    Overwrite,
    Modify,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Host,
    Gpu,
    Both,
}

/// The copy on a GPU, and where the truth is.
pub(super) struct Mirror {
    copy: Option<Arc<DeviceMemory>>,
    head: Head,
    /// When the host's memory was copied to the GPU last.
    uploaded: u64,
}

impl Head {
    fn after(self, access: Access, here: Head) -> Head {
        match access {
            Access::Read if self == here => here,
            Access::Read => Head::Both,
            _ => here,
        }
    }
}

/// Whether memory could be reached.
enum Reached {
    At(usize, Option<Arc<DeviceMemory>>),
    /// Another thread captures on this GPU, and data would have to move.
    Busy(&'static dyn Device),
}

impl Block {
    /// A block that only `gpu` has, content undefined.
    pub(super) fn on_gpu(gpu: &'static dyn Device, bytes: usize) -> Result<Block> {
        let block = Block::nowhere(bytes);
        let copy = Some(Arc::new(gpu.alloc(bytes)?));
        let _ = block.mirror.set(Box::new(Mutex::new(Mirror { copy, head: Head::Gpu, uploaded: 0 })));
        Ok(block)
    }

    /// Address of the block at `place`, where the content then is; and the memory there, if it is a GPU's: the block itself
    /// may let go of it for another GPU.
    pub(super) fn at(&self, place: Place, access: Access) -> Result<(usize, Option<Arc<DeviceMemory>>)> {
        if place == Place::Host && self.mirror.get().is_none() {
            return Ok((self.ptr() as usize, None));
        }
        loop {
            match self.reach(place, access)? {
                Reached::At(address, memory) => return Ok((address, memory)),
                // Not with the lock held: the thread that captures may want it.
                Reached::Busy(gpu) => gpu.await_capture(),
            }
        }
    }

    fn reach(&self, place: Place, access: Access) -> Result<Reached> {
        match place {
            Place::Host => self.at_host(lock(self.mirror()), access),
            Place::Gpu(gpu) => {
                capture::touch(std::ptr::from_ref(self) as usize);
                self.at_gpu(gpu, lock(self.mirror()), access)
            }
        }
    }

    fn mirror(&self) -> &Mutex<Mirror> {
        self.mirror.get_or_init(|| Box::new(Mutex::new(Mirror { copy: None, head: Head::Host, uploaded: 0 })))
    }

    fn at_host(&self, mut mirror: MutexGuard<'_, Mirror>, access: Access) -> Result<Reached> {
        if self.ptr().is_null() {
            self.take_host()?;
        }
        if let (Head::Gpu, Some(copy)) = (mirror.head, &mirror.copy)
            && access != Access::Overwrite
        {
            let Some(turn) = copy.device().try_turn()? else { return Ok(Reached::Busy(copy.device())) };
            // SAFETY: the host's memory is as large as the copy, and only this thread works on the two now.
            unsafe { copy.download(&turn, self.ptr(), self.asked())? };
        }
        mirror.head = mirror.head.after(access, Head::Host);
        Ok(Reached::At(self.ptr() as usize, None))
    }

    fn at_gpu(&self, gpu: &'static dyn Device, mut mirror: MutexGuard<'_, Mirror>, access: Access) -> Result<Reached> {
        let other = mirror.copy.as_ref().map(|c| c.device()).filter(|g| *g != gpu);
        if let Some(busy) = other.map(|_| self.leave(gpu, &mut mirror)).transpose()?.flatten() {
            return Ok(Reached::Busy(busy));
        }
        // It may have been written since by a view of the host's memory, even one that is gone; what is captured has just been
        // brought.
        let seen = self.views.could_write_after(mirror.uploaded) && !capture::is_capturing();
        let is_stale = mirror.head == Head::Host || (mirror.head == Head::Both && seen);
        let copy = match mirror.copy.take() {
            Some(copy) => copy,
            None => Arc::new(gpu.alloc(self.asked())?),
        };
        let copy = mirror.copy.insert(copy).clone();
        if is_stale && access != Access::Overwrite {
            let Some(turn) = gpu.try_turn()? else { return Ok(Reached::Busy(gpu)) };
            mirror.uploaded = now();
            // SAFETY: the host's memory is as large as the copy.
            unsafe { copy.upload_in(&turn, self.ptr(), self.asked())? };
        }
        mirror.head = mirror.head.after(access, Head::Gpu);
        Ok(Reached::At(copy.address() as usize, Some(copy)))
    }

    /// The memory at `address` on a GPU was written: what another thread fetched meanwhile was not whole.
    pub(super) fn note_written_at(&self, address: usize) {
        let Some(mut mirror) = self.mirror.get().map(|m| lock(m)) else { return };
        if mirror.copy.as_ref().is_some_and(|copy| copy.address() as usize == address) {
            mirror.head = Head::Gpu;
        }
    }

    /// Moves the copy to another GPU, or says which one is busy.
    fn leave(&self, gpu: &'static dyn Device, mirror: &mut Mirror) -> Result<Option<&'static dyn Device>> {
        let Some(old) = mirror.copy.as_ref().filter(|_| mirror.head != Head::Host) else {
            mirror.copy = None;
            return Ok(None);
        };
        let Some(there) = old.device().try_turn()? else { return Ok(Some(old.device())) };
        let Some(here) = gpu.try_turn()? else { return Ok(Some(gpu)) };
        let copy = gpu.alloc(self.asked())?;
        copy.copy_from([&there, &here], old)?;
        drop((there, here));
        mirror.copy = Some(Arc::new(copy));
        Ok(None)
    }

    /// The copy on a GPU, if there is one.
    pub(super) fn gpu_memory(&self) -> Option<Arc<DeviceMemory>> {
        self.mirror.get().and_then(|m| lock(m).copy.clone())
    }

    /// Addresses on the host and on a GPU, as far as that is known without waiting.
    pub(super) fn try_addresses(&self) -> impl Iterator<Item = usize> + use<> {
        let copy = self.mirror.get().and_then(|m| Some(m.try_lock().ok()?.copy.as_ref()?.address() as usize));
        NonNull::new(self.ptr()).map(|p| p.as_ptr() as usize).into_iter().chain(copy)
    }

    /// Where the truth is; a GPU if it is there too.
    pub(super) fn place(&self) -> Place {
        let Some(mirror) = self.mirror.get() else { return Place::Host };
        let mirror = lock(mirror);
        match &mirror.copy {
            Some(copy) if mirror.head != Head::Host => Place::Gpu(copy.device()),
            _ => Place::Host,
        }
    }

    /// True if the truth is on a GPU alone.
    pub(super) fn is_away(&self) -> bool {
        self.mirror.get().is_some_and(|m| lock(m).head == Head::Gpu)
    }
}

fn lock(mirror: &Mutex<Mirror>) -> MutexGuard<'_, Mirror> {
    mirror.lock().unwrap_or_else(|e| e.into_inner())
}
