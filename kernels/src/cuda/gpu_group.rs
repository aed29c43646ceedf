//! Collectives of arrays on GPUs, over a `DeviceGroup`. All is asked for in order with the device's other work: nobody waits for
//! the device, and nothing goes by the host.
//!
//! Sums in the order of ranks are made here: each device gets its part of the numbers from all, adds, and hands the sum out. That
//! is as many bytes as the library's own sum, which is made in an order that it chooses.

use super::Gpu;
use super::gpu_sums::sum_rows;
use super::group::{DeviceCollective, DeviceGroup, DeviceMove, DevicePieces, DeviceSum, GROUP_ID, GroupPlace};
use super::group_watch::GroupWatch;
use crate::array::{Data, NdArray, Place};
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Arrays of fewer elements go together, by copies into one piece of memory.
const SMALL: usize = 1 << 15;
/// Up to so many numbers, counted over all devices, all are sent to all: one exchange is quicker than two of parts.
const FEW: usize = 1 << 13;
/// Numbers that are summed at a time, at most: as many are needed beside them.
const SEGMENT: usize = 1 << 25;

/// How a sum over devices is made.
#[derive(Clone, Copy, Debug)]
pub struct GroupSums {
    /// In the order of ranks; if not, in one of the library's.
    pub ordered: bool,
    /// Sums are divided by the number of devices.
    pub mean: bool,
    /// What numbers are multiplied by before.
    pub scale: f64,
    /// Small arrays go together.
    pub packed: bool,
}

/// A GPU in a group.
pub struct GpuGroup {
    gpu: &'static Gpu,
    rank: usize,
    size: usize,
    group: Arc<dyn DeviceGroup>,
    watch: Arc<GroupWatch>,
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
        Ok(GpuGroup { gpu, rank, size, group, watch: Arc::new(GroupWatch::new(whose, place.timeout, Some(gpu))) })
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

    // --- sums ---------------------------------------------------------------------------------------------------------

    /// How the library makes such sums; `None` where they are made here.
    fn by_library(&self, dtype: DType, sums: &GroupSums) -> Option<DeviceSum> {
        match dtype {
            _ if sums.ordered => None,
            DType::I16 | DType::U16 => None,
            DType::Bool => Some(DeviceSum::Any),
            _ if sums.mean && dtype.is_float() => Some(DeviceSum::Mean),
            _ => Some(DeviceSum::Sum),
        }
    }

    fn divisor(&self, sums: &GroupSums) -> usize {
        if sums.mean { self.size } else { 1 }
    }

    fn sum(&self, x: &Data, sums: &GroupSums) -> Result<()> {
        if let Some(how) = self.by_library(x.dtype(), sums) {
            self.ask(DeviceMove::AllReduce(how), x.len(), x, x)?;
            return self.divide(x, sums);
        }
        let divide = self.divisor(sums);
        if x.len() * self.size <= FEW {
            let rows = self.memory(x.dtype(), x.len() * self.size)?;
            self.ask(DeviceMove::AllGather, x.len(), x, &rows)?;
            return sum_rows(x, &rows, divide);
        }
        for part in segments(x) {
            let cuts = even_cuts(part.len(), self.size);
            self.sum_own_part(&part, &cuts, &piece(&part, &cuts[self.rank]), divide)?;
            self.hand_out(&part, &cuts)?;
        }
        Ok(())
    }

    /// As [`sum`](GpuGroup::sum) for one device alone; `x` stays what it is on the others.
    fn sum_to(&self, x: &Data, to: usize, sums: &GroupSums) -> Result<()> {
        if let Some(how) = self.by_library(x.dtype(), sums) {
            self.ask(DeviceMove::Reduce(how, to), x.len(), x, x)?;
            return if to == self.rank { self.divide(x, sums) } else { Ok(()) };
        }
        for part in segments(x) {
            let cuts = even_cuts(part.len(), self.size);
            let own = self.memory(x.dtype(), cuts[self.rank].len())?;
            self.sum_own_part(&part, &cuts, &own, self.divisor(sums))?;
            let send = (0..self.size).map(|i| 0..if i == to { own.len() } else { 0 }).collect();
            let receive = cuts.iter().map(|c| if to == self.rank { c.clone() } else { 0..0 }).collect();
            self.pieces(send, receive, &own, &part)?;
        }
        Ok(())
    }

    /// `y` becomes the sum over all devices of this one's part of `x`.
    fn sum_own_part(&self, x: &Data, cuts: &[Range<usize>], y: &Data, divide: usize) -> Result<()> {
        let n = cuts[self.rank].len();
        let rows = self.memory(x.dtype(), n * self.size)?;
        self.pieces(cuts.to_vec(), (0..self.size).map(|i| i * n..(i + 1) * n).collect(), x, &rows)?;
        if n == 0 { Ok(()) } else { sum_rows(&y.within(0, n), &rows, divide) }
    }

    /// Each device gives its part of `x` to all others.
    fn hand_out(&self, x: &Data, cuts: &[Range<usize>]) -> Result<()> {
        let others = |own: bool, c: &Range<usize>| if own { 0..0 } else { c.clone() };
        let send = (0..self.size).map(|i| others(i == self.rank, &cuts[self.rank])).collect();
        let receive = cuts.iter().enumerate().map(|(i, c)| others(i == self.rank, c)).collect();
        self.pieces(send, receive, x, x)
    }

    /// What the library leaves to be done for a mean: it divides floats alone.
    fn divide(&self, x: &Data, sums: &GroupSums) -> Result<()> {
        let is_due = sums.mean && !x.dtype().is_float() && x.dtype() != DType::Bool;
        if is_due { sum_rows(x, x, self.size) } else { Ok(()) }
    }

    fn scale(&self, x: &Data, factor: f64) -> Result<()> {
        if factor == 1.0 {
            return Ok(());
        }
        let launch = self.gpu.launch("gpu_sums", "scale")?.array(x).double(factor).size(x.len());
        // SAFETY: the array has that many elements of its type.
        unsafe { launch.run(self.gpu.grid(x.len())) }
    }

    // --- memory -------------------------------------------------------------------------------------------------------

    fn place(&self) -> Place {
        Place::Gpu(self.gpu)
    }

    /// Memory beside the arrays; given back, it goes to later work at the earliest.
    fn memory(&self, dtype: DType, n: usize) -> Result<Data> {
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

    fn pieces(&self, send: Vec<Range<usize>>, receive: Vec<Range<usize>>, from: &Data, to: &Data) -> Result<()> {
        self.ask(DeviceMove::Pieces(Arc::new(DevicePieces { send, receive })), 0, from, to)
    }

    fn ask(&self, what: DeviceMove, count: usize, from: &Data, to: &Data) -> Result<()> {
        let call = DeviceCollective { what, dtype: from.dtype(), count };
        let fits = call.reads(self.rank, self.size) <= from.len() && call.writes(self.rank, self.size) <= to.len();
        assert!(fits, "a collective within its arrays");
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
        if self.gpu.check_fork().is_err() || !self.watch.close(&*self.group) {
            return;
        }
        // What fails here has failed before.
        let _ = self.gpu.driver.inside(&mut || {
            self.group.leave();
            Ok(())
        });
    }
}

fn piece(x: &Data, part: &Range<usize>) -> Data {
    x.within(part.start, part.len())
}

fn segments(x: &Data) -> impl Iterator<Item = Data> + '_ {
    (0..x.len()).step_by(SEGMENT).map(|from| x.within(from, SEGMENT.min(x.len() - from)))
}

/// Parts whose lengths differ by one at most.
fn even_cuts(n: usize, parts: usize) -> Vec<Range<usize>> {
    (0..parts).map(|i| n * i / parts..n * (i + 1) / parts).collect()
}
