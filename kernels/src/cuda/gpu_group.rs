//! Collectives of arrays on GPUs, over a `DeviceGroup`. All is asked for in order with the device's other work: nobody waits for
//! the device, and nothing goes by the host.
//! Sums are in `group_sums.rs`.

use super::Gpu;
use super::group::{DeviceCollective, DeviceGroup, DeviceMove, DevicePieces, GROUP_ID, GroupPlace};
use super::group_sums::GroupSums;
use super::group_watch::GroupWatch;
use crate::array::{Data, NdArray, Place};
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Arrays of fewer elements go together, by copies into one piece of memory.
const SMALL: usize = 1 << 15;

/// A GPU in a group, whose members, of one process or of several, exchange arrays by NCCL.
///
/// All members ask for the same collectives in the same order, each from one thread at a time. A collective is asked for in order
/// with the GPU's other work, and nobody waits for it; where it does not come to its end within the timeout, a thread that watches
/// ends the group, and the next call, or the next reading of a result, is an error that names rank, group and collective.
/// A group ends with the value, or by [`GpuGroup::leave`]: a program that keeps it in a static variable calls that before it ends.
///
/// ```
/// use nnrs_kernels::cuda::{gpu, GpuGroup, GroupPlace, GroupSums};
/// use nnrs_kernels::NdArray;
/// use std::time::Duration;
///
/// let (Ok(first), Ok(second)) = (gpu(0), gpu(1)) else { return Ok(()) }; // fewer than two
/// let Ok(id) = first.group_id() else { return Ok(()) }; // no NCCL
/// let work = |gpu, rank: usize| -> nnrs_kernels::Result<Vec<f32>> {
///     let place = GroupPlace { id: id.clone(), rank, size: 2, timeout: Duration::from_secs(60) };
///     let group = GpuGroup::join(gpu, place, "world")?;
///     let x = NdArray::from_slice(&[rank as f32 + 1.0, 5.0], [2].into())?;
///     group.all_reduce(&[x.clone()], &GroupSums::default())?;
///     x.to_vec()
/// };
/// let (one, two) = std::thread::scope(|s| {
///     let other = s.spawn(|| work(second, 1));
///     (work(first, 0), other.join().unwrap())
/// });
/// assert_eq!(one?, [3.0, 10.0]);
/// assert_eq!(two?, [3.0, 10.0]);
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub struct GpuGroup {
    pub(super) gpu: &'static Gpu,
    pub(super) rank: usize,
    pub(super) size: usize,
    group: Arc<dyn DeviceGroup>,
    watch: Arc<GroupWatch>,
    has_left: AtomicBool,
}

/// Arrays of one type as one piece of memory.
struct ArrayPack {
    arrays: Vec<(NdArray, Data)>,
    flat: Data,
}

impl Gpu {
    /// A name for a new group, to be told to all that shall join it.
    ///
    /// # Errors
    /// The library is missing: what was looked for, and where.
    pub fn group_id(&self) -> Result<Vec<u8>> {
        self.check_fork()?;
        self.driver.group_id()
    }
}

impl GpuGroup {
    /// Joins a group together with all others, for whom it waits; `name` is for errors.
    ///
    /// # Errors
    /// The library is missing; others do not come, or do not fit.
    pub fn join(gpu: &'static Gpu, place: GroupPlace, name: &str) -> Result<GpuGroup> {
        gpu.check_fork()?;
        let (rank, size) = (place.rank, place.size);
        if rank >= size {
            return Err(Error::arg("rank", format!("a number below {size}, the group's size")).actual(rank));
        }
        if place.id.len() != GROUP_ID {
            return Err(Error::arg("id", format!("{GROUP_ID} bytes")).actual(place.id.len()));
        }
        // Loaded now: in a captured run nothing is.
        gpu.kernel("gpu_sums", "sum_rows")?;
        gpu.kernel("gpu_sums", "scale")?;
        let group = gpu.driver.join_group(&place)?;
        let whose = format!("rank {rank} of {size} in group '{name}'");
        let watch = Arc::new(GroupWatch::new(whose, place.timeout, Some(gpu)));
        Ok(GpuGroup { gpu, rank, size, group, watch, has_left: AtomicBool::new(false) })
    }

    /// Waits until what was asked for is over, and leaves the group; later collectives are errors. Graphs that have collectives of
    /// it in captured runs are not to be run any more. Once is enough.
    pub fn leave(&self) {
        if self.has_left.swap(true, SeqCst) || self.gpu.check_fork().is_err() || !self.watch.close(&*self.group) {
            return;
        }
        // What fails here has failed before.
        let _ = self.gpu.driver.inside(&mut || {
            self.group.leave();
            Ok(())
        });
    }

    /// Each array becomes the sum of it over all devices.
    pub fn all_reduce(&self, arrays: &[NdArray], sums: &GroupSums) -> Result<()> {
        for pack in self.packs(arrays, sums.packed)? {
            self.scale(&pack.flat, sums.scale)?;
            self.sum(&pack.flat, sums)?;
            self.put(&pack)?;
        }
        Ok(())
    }

    /// `y` becomes the sum of `x` over all devices, in the order of ranks. Both are this device's.
    ///
    /// # Errors
    /// Memory that is elsewhere.
    #[doc(hidden)]
    pub fn sum_of(&self, x: &Data, y: &Data) -> Result<()> {
        if y.place() != self.place() || x.place() != self.place() {
            return Err(Error::arg("x", "an array of the GPU that is in the group").actual("one that is elsewhere"));
        }
        y.take(x)?;
        if y.is_empty() { Ok(()) } else { self.sum(y, &GroupSums::default()) }
    }

    /// Each array becomes the sum of it over all devices on that of rank `to`, and stays elsewhere.
    pub fn reduce(&self, arrays: &[NdArray], to: usize, sums: &GroupSums) -> Result<()> {
        self.check_rank("dst", to)?;
        for pack in self.packs(arrays, sums.packed)? {
            self.sum_to(&pack.flat, to, sums)?;
            if to == self.rank {
                self.put(&pack)?;
            }
        }
        Ok(())
    }

    /// Each array becomes that of rank `from`.
    pub fn bcast(&self, arrays: &[NdArray], from: usize, packed: bool) -> Result<()> {
        self.check_rank("src", from)?;
        for pack in self.packs(arrays, packed)? {
            self.ask(DeviceMove::Broadcast(from), pack.flat.len(), &pack.flat, &pack.flat)?;
            if from != self.rank {
                self.put(&pack)?;
            }
        }
        Ok(())
    }

    /// `all[i]` becomes `x` of rank i.
    pub fn all_gather(&self, x: &NdArray, all: &[NdArray]) -> Result<()> {
        self.check_count(all)?;
        x.fetch()?;
        let n = x.size();
        if n == 0 {
            return Ok(());
        }
        let x = x.read_at(self.place(), x.dtype())?.of(n)?;
        let rows = self.memory(x.dtype(), n * self.size)?;
        self.ask(DeviceMove::AllGather, n, &x, &rows)?;
        all.iter().enumerate().try_for_each(|(i, y)| self.write(y, &rows.within(i * n, n)))
    }

    /// `y` becomes the sum over all devices of their `all[i]`, i being this device's rank.
    pub fn reduce_scatter(&self, all: &[NdArray], y: &NdArray, sums: &GroupSums) -> Result<()> {
        self.check_count(all)?;
        let n = y.size();
        if n == 0 {
            return Ok(());
        }
        all[0].fetch()?;
        let rows = self.memory(all[0].dtype(), n * self.size)?;
        for (i, a) in all.iter().enumerate() {
            rows.within(i * n, n).take(&a.read_at(self.place(), rows.dtype())?.of(n)?)?;
        }
        let sum = self.memory(rows.dtype(), n)?;
        match self.by_library(rows.dtype(), sums) {
            Some(how) => {
                self.ask(DeviceMove::ReduceScatter(how), n, &rows, &sum)?;
                self.divide(&sum, sums)?;
            }
            None => {
                let cuts: Vec<Range<usize>> = (0..self.size).map(|i| i * n..(i + 1) * n).collect();
                self.sum_own_part(&rows, &cuts, &sum, self.divisor(sums))?;
            }
        }
        self.write(y, &sum)
    }

    // --- memory -------------------------------------------------------------------------------------------------------

    fn place(&self) -> Place {
        Place::Gpu(self.gpu)
    }

    /// Memory beside the arrays; given back, it goes to later work at the earliest.
    pub(super) fn memory(&self, dtype: DType, n: usize) -> Result<Data> {
        Data::new_at(self.place(), dtype, n)
    }

    /// The arrays in packs, in an order that depends on their types and sizes alone; empty ones are left out.
    fn packs(&self, arrays: &[NdArray], packed: bool) -> Result<Vec<ArrayPack>> {
        let (mut alone, mut together) = (Vec::new(), Vec::<Vec<&NdArray>>::new());
        for a in arrays.iter().filter(|a| a.size() > 0) {
            a.fetch()?;
            match together.iter_mut().find(|t| t[0].dtype() == a.dtype()) {
                _ if !packed || a.size() >= SMALL => alone.push(vec![a]),
                Some(same) => same.push(a),
                None => together.push(vec![a]),
            }
        }
        together.into_iter().chain(alone).map(|arrays| self.pack(arrays)).collect()
    }

    fn pack(&self, arrays: Vec<&NdArray>) -> Result<ArrayPack> {
        let there = |a: &&NdArray| -> Result<_> { Ok(((*a).clone(), a.modify_at(self.place(), a.dtype())?)) };
        let arrays: Vec<(NdArray, Data)> = arrays.iter().map(there).collect::<Result<_>>()?;
        if let [(_, alone)] = &arrays[..] {
            let flat = alone.clone();
            return Ok(ArrayPack { arrays, flat });
        }
        let flat = self.memory(arrays[0].1.dtype(), arrays.iter().map(|(_, x)| x.len()).sum())?;
        let pack = ArrayPack { arrays, flat };
        pack.parts().try_for_each(|(x, part)| self.copy(&part, x))?;
        Ok(pack)
    }

    /// The arrays become what the pack is.
    fn put(&self, pack: &ArrayPack) -> Result<()> {
        if pack.arrays.len() > 1 {
            pack.parts().try_for_each(|(x, part)| self.copy(x, &part))?;
        }
        for (array, x) in &pack.arrays {
            x.note_written();
            array.note_whole();
        }
        Ok(())
    }

    /// Copies elements of one type.
    fn copy(&self, to: &Data, from: &Data) -> Result<()> {
        let _turn = self.gpu.turn()?;
        // SAFETY: both are the device's, of one size.
        unsafe { self.gpu.driver.copy(to.address(), from.address(), to.bytes().min(from.bytes()), None) }
    }

    /// `y` becomes `x`, in its own type.
    fn write(&self, y: &NdArray, x: &Data) -> Result<()> {
        let to = y.modify_at(self.place(), y.dtype())?.of(x.len())?;
        to.take(x)?;
        y.note_whole();
        Ok(())
    }

    // --- calls --------------------------------------------------------------------------------------------------------

    pub(super) fn pieces(
        &self,
        send: Vec<Range<usize>>,
        receive: Vec<Range<usize>>,
        from: &Data,
        to: &Data,
    ) -> Result<()> {
        self.ask(DeviceMove::Pieces(Arc::new(DevicePieces { send, receive })), 0, from, to)
    }

    pub(super) fn ask(&self, what: DeviceMove, count: usize, from: &Data, to: &Data) -> Result<()> {
        let call = DeviceCollective { what, dtype: from.dtype(), count };
        let fits = call.reads(self.rank, self.size) <= from.len() && call.writes(self.rank, self.size) <= to.len();
        assert!(fits, "a collective within its arrays");
        if self.has_left.load(SeqCst) {
            return Err(self.watch.has_left(&call.to_string()));
        }
        let _asking = self.watch.begin(&self.group, &call.to_string())?;
        let _turn = self.gpu.turn()?;
        let asked = self.gpu.driver.inside(&mut || {
            // SAFETY: the memory is the device's, and has as many elements as was just found.
            unsafe { self.group.clone().perform(&call, from.address(), to.address()) }
        });
        asked.map_err(|e| self.watch.failure().unwrap_or(e))
    }

    fn check_rank(&self, argument: &str, rank: usize) -> Result<()> {
        match rank < self.size {
            true => Ok(()),
            false => Err(Error::arg(argument, format!("a rank below {}", self.size)).actual(rank)),
        }
    }

    fn check_count(&self, arrays: &[NdArray]) -> Result<()> {
        match arrays.len() == self.size {
            true => Ok(()),
            false => {
                Err(Error::arg("ndarray_list", format!("{} arrays, one for each rank", self.size)).actual(arrays.len()))
            }
        }
    }
}

impl ArrayPack {
    /// Each array's memory, and its part of the pack.
    fn parts(&self) -> impl Iterator<Item = (&Data, Data)> {
        self.arrays.iter().scan(0, |at, (_, x)| {
            let part = self.flat.within(*at, x.len());
            *at += x.len();
            Some((x, part))
        })
    }
}

impl Drop for GpuGroup {
    fn drop(&mut self) {
        self.leave();
    }
}
