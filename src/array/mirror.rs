//! Copies of a block on a GPU. NNabla's head-array rule: what was written last is the truth, and the other side fetches it
//! when it is asked for.

use super::alloc::Block;
use crate::cuda::{self, Gpu, Memory};
use crate::error::Result;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

/// Where elements are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the memory that the CPU reads.
    Host,
    /// In the memory of a GPU.
    Gpu(&'static Gpu),
}

impl Place {
    /// The GPU, if it is one.
    pub(crate) fn gpu(self) -> Option<&'static Gpu> {
        match self {
            Place::Host => None,
            Place::Gpu(gpu) => Some(gpu),
        }
    }
}

/// What somebody wants to do with a block.
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
    copy: Option<Memory>,
    head: Head,
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

impl Block {
    /// A block that only `gpu` has, content undefined.
    pub(super) fn on_gpu(gpu: &'static Gpu, bytes: usize) -> Result<Block> {
        let block = Block::nowhere(bytes);
        let copy = Some(gpu.alloc(bytes)?);
        let _ = block.mirror.set(Box::new(Mutex::new(Mirror { copy, head: Head::Gpu })));
        Ok(block)
    }

    /// Address of the block at `place`, where the content then is.
    pub(super) fn at(&self, place: Place, access: Access) -> Result<usize> {
        match place {
            Place::Host => match self.mirror.get() {
                None => Ok(self.ptr() as usize),
                Some(mirror) => self.at_host(lock(mirror), access),
            },
            Place::Gpu(gpu) => {
                cuda::capture::touch(std::ptr::from_ref(self) as usize);
                let fresh = || Box::new(Mutex::new(Mirror { copy: None, head: Head::Host }));
                self.at_gpu(gpu, lock(self.mirror.get_or_init(fresh)), access)
            }
        }
    }

    fn at_host(&self, mut mirror: MutexGuard<'_, Mirror>, access: Access) -> Result<usize> {
        if self.ptr().is_null() {
            self.take_host()?;
        }
        if let (Head::Gpu, Some(copy)) = (mirror.head, &mirror.copy)
            && access != Access::Overwrite
        {
            // SAFETY: the host's memory is as large as the copy, and only this thread works on the two now.
            unsafe { copy.download(self.ptr(), self.asked())? };
        }
        mirror.head = mirror.head.after(access, Head::Host);
        Ok(self.ptr() as usize)
    }

    fn at_gpu(&self, gpu: &'static Gpu, mut mirror: MutexGuard<'_, Mirror>, access: Access) -> Result<usize> {
        if mirror.copy.as_ref().is_some_and(|c| !std::ptr::eq(c.gpu(), gpu)) {
            self.leave(gpu, &mut mirror)?;
        }
        // Whoever has a view of the host's memory may have written it since.
        let is_stale = mirror.head == Head::Host || (mirror.head == Head::Both && self.exports().load(Relaxed) > 0);
        let copy = match mirror.copy.take() {
            Some(copy) => copy,
            None => gpu.alloc(self.asked())?,
        };
        let done = match is_stale && access != Access::Overwrite {
            // SAFETY: the host's memory is as large as the copy.
            true => unsafe { copy.upload(self.ptr(), self.asked()) },
            false => Ok(()),
        };
        let at = copy.address();
        mirror.copy = Some(copy);
        done?;
        mirror.head = mirror.head.after(access, Head::Gpu);
        Ok(at as usize)
    }

    /// Moves the copy to another GPU.
    fn leave(&self, gpu: &'static Gpu, mirror: &mut Mirror) -> Result<()> {
        let Some(old) = mirror.copy.take() else { return Ok(()) };
        if mirror.head == Head::Host {
            return Ok(());
        }
        let copy = gpu.alloc(self.asked()).and_then(|copy| copy.copy_from(&old).map(|()| copy));
        match copy {
            Ok(copy) => mirror.copy = Some(copy),
            Err(e) => {
                mirror.copy = Some(old);
                return Err(e);
            }
        }
        Ok(())
    }

    /// Address of the copy on a GPU, if there is one.
    pub(super) fn gpu_address(&self) -> Option<usize> {
        self.mirror.get().and_then(|m| lock(m).copy.as_ref().map(|c| c.address() as usize))
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
            Some(copy) if mirror.head != Head::Host => Place::Gpu(copy.gpu()),
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
