//! NCCL as the emulated GPU has it: collectives of plain loops over files in a folder that the group's name names, so that
//! devices of several processes, or of several threads, can be members. What the real one would wait for without end, or
//! answer with wrong numbers, is an error: calls that differ, memory of no block, ranges that overlap.

use super::blocks::DeviceBlocks;
use super::{CapturedWork, Op, wrong};
use crate::cuda::group::{DeviceCollective, DeviceGroup, DeviceMove, DeviceSum, GROUP_ID, GroupPlace};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::with_dtype;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PREFIX: &str = "nnrs-nccl-";
/// How much longer it waits than those who watch it: they are to end it.
const LONGER: Duration = Duration::from_secs(5);

/// A name that no other group has.
pub(super) fn fresh_id() -> Vec<u8> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let mut id = format!("{PREFIX}{}-{now}-{}", std::process::id(), COUNT.fetch_add(1, SeqCst)).into_bytes();
    id.resize(GROUP_ID, 0);
    id
}

/// A device that is in a group.
pub(super) struct EmulatedMember {
    folder: PathBuf,
    rank: usize,
    size: usize,
    timeout: Duration,
    device: Arc<EmulatedMemory>,
    /// How many collectives are over.
    done: Mutex<u64>,
    has_ended: AtomicBool,
}

/// What a member needs of its device.
pub(super) struct EmulatedMemory {
    pub(super) number: usize,
    pub(super) blocks: DeviceBlocks,
    pub(super) work: Arc<Mutex<CapturedWork>>,
}

/// What a rank leaves for the others: what it asks for, its pieces, and its numbers.
struct Posted {
    said: String,
    sends: Vec<Range<usize>>,
    data: Vec<u8>,
}

impl Posted {
    fn bytes(&self) -> Vec<u8> {
        let sends: Vec<String> = self.sends.iter().map(|s| format!("{}-{}", s.start, s.end)).collect();
        let mut bytes = format!("{}\n{}\n", self.said, sends.join(",")).into_bytes();
        bytes.extend(&self.data);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Posted> {
        let mut parts = bytes.splitn(3, |b| *b == b'\n');
        let mut text = || String::from_utf8(parts.next()?.to_vec()).ok();
        let (said, sends) = (text()?, text()?);
        let range = |s: &str| {
            let (start, end) = s.split_once('-')?;
            Some(start.parse().ok()?..end.parse().ok()?)
        };
        let sends = sends.split(',').filter(|s| !s.is_empty()).map(range).collect::<Option<_>>()?;
        Some(Posted { said, sends, data: parts.next()?.to_vec() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Joins a group with a device, and waits for the others.
pub(super) fn join(device: Arc<EmulatedMemory>, place: &GroupPlace) -> Result<Arc<EmulatedMember>> {
    let name = String::from_utf8_lossy(&place.id).trim_end_matches('\0').to_string();
    if !name.starts_with(PREFIX) || name.contains('/') {
        return Err(wrong("NCCL: this is no group's name"));
    }
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    let (rank, size, timeout) = (place.rank, place.size, place.timeout);
    let (done, has_ended) = Default::default();
    let number = device.number;
    let member = EmulatedMember { folder, rank, size, timeout, device, done, has_ended };
    if member.folder.join(format!("joined.{rank}")).exists() {
        return Err(wrong(&format!("NCCL: there are two of rank {rank}")));
    }
    member.publish(&format!("joined.{rank}"), format!("{size} {number}").as_bytes())?;
    for other in 0..size {
        let said = member.await_file(&format!("joined.{other}"), other, "ncclCommInitRank", timeout)?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let (its_size, its_device) = said.split_once(' ').unwrap_or_default();
        if its_size != size.to_string() {
            return Err(wrong(&format!("NCCL: rank {rank} joins a group of {size}, rank {other} one of {its_size}")));
        }
        if other != rank && its_device == number.to_string() {
            let e = wrong(&format!("NCCL: ranks {rank} and {other} have one GPU, number {number}"));
            return Err(e.hint("each rank needs a GPU of its own: a context with device_id=str(comm.local_rank)"));
        }
    }
    Ok(Arc::new(member))
}

impl EmulatedMember {
    /// Others see all of a file or nothing.
    fn publish(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let beside = self.folder.join(format!("{name}.part"));
        std::fs::write(&beside, bytes)?;
        Ok(std::fs::rename(beside, self.folder.join(name))?)
    }

    fn await_file(&self, name: &str, rank: usize, what: &str, timeout: Duration) -> Result<Vec<u8>> {
        let (begin, file) = (Instant::now(), self.folder.join(name));
        loop {
            if let Ok(bytes) = std::fs::read(&file) {
                return Ok(bytes);
            }
            let waited = begin.elapsed();
            if self.has_ended.load(SeqCst) {
                return Err(self.error(what, "the group was ended"));
            }
            if self.folder.join(format!("aborted.{rank}")).exists() {
                return Err(self.error(what, &format!("rank {rank} has ended the group")));
            }
            if waited > timeout {
                return Err(self.error(what, &format!("rank {rank} did not come to it in {} s", timeout.as_secs_f64())));
            }
            std::thread::sleep(Duration::from_micros(if waited.as_millis() < 20 { 50 } else { 1000 }));
        }
    }

    fn error(&self, what: &str, why: &str) -> Error {
        wrong(&format!("NCCL: rank {} of {} in {what}: {why}", self.rank, self.size))
    }

    /// Memory that is no block's of this device, or that is read while it is written, would be wrong numbers at best.
    fn check_memory(&self, call: &DeviceCollective, from: u64, to: u64) -> Result<()> {
        let size = call.dtype.size();
        let lengths = [call.reads(self.rank, self.size), call.writes(self.rank, self.size)];
        for (at, n) in [from, to].into_iter().zip(lengths).filter(|(_, n)| *n > 0) {
            if !self.device.blocks.has(at, n * size) {
                let why = format!("{} bytes at {at:#x} are no memory of device {}", n * size, self.device.number);
                return Err(self.error(&call.to_string(), &why));
            }
        }
        let reads = ranges(call, from, true, self.rank, self.size);
        let writes = ranges(call, to, false, self.rank, self.size);
        let meet =
            |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end && !a.is_empty() && !b.is_empty();
        let is_wrong = |(i, a): (usize, &Range<u64>)| {
            writes.iter().enumerate().any(|(k, b)| meet(a, b) && (a != b || i != k || i != self.rank))
        };
        match reads.iter().enumerate().any(is_wrong) {
            true => Err(self.error(&call.to_string(), "what it reads and what it writes overlap")),
            false => Ok(()),
        }
    }

    /// # Safety
    /// The memory has what the call reads and writes.
    unsafe fn run(&self, call: &DeviceCollective, from: u64, to: u64) -> Result<()> {
        let (mut done, what) = (lock(&self.done), call.to_string());
        let number = *done + 1;
        let bytes = call.reads(self.rank, self.size) * call.dtype.size();
        // SAFETY: the caller's promise.
        let data = unsafe { std::slice::from_raw_parts(from as *const u8, bytes) }.to_vec();
        let sends = if let DeviceMove::Pieces(p) = &call.what { p.send.clone() } else { Vec::new() };
        self.publish(&format!("{number}.{}", self.rank), &Posted { said: what.clone(), sends, data }.bytes())?;
        let post = |rank| {
            let found = self.await_file(&format!("{number}.{rank}"), rank, &what, self.timeout + LONGER)?;
            Posted::read(&found).ok_or_else(|| self.error(&what, "a file that is none"))
        };
        let all: Vec<Posted> = (0..self.size).map(post).collect::<Result<_>>()?;
        *done = number;
        // All have come to this one, so all are done with the one before.
        let _ = std::fs::remove_file(self.folder.join(format!("{}.{}", number - 1, self.rank)));
        self.compare(call, &all)?;
        for (first, data) in results(call, &all, self.rank) {
            let at = to as usize + first * call.dtype.size();
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), at as *mut u8, data.len()) };
        }
        Ok(())
    }

    /// All ask for the same.
    fn compare(&self, call: &DeviceCollective, all: &[Posted]) -> Result<()> {
        let own = call.to_string();
        for (rank, posted) in all.iter().enumerate() {
            if posted.said != own {
                return Err(self.error(&own, &format!("rank {rank} is in {}", posted.said)));
            }
            let DeviceMove::Pieces(p) = &call.what else { continue };
            let (sent, wanted) = (posted.sends[self.rank].len(), p.receive[rank].len());
            if sent != wanted {
                return Err(self.error(&own, &format!("rank {rank} sends {sent} elements of {wanted}")));
            }
        }
        Ok(())
    }

    /// The last one to go takes the folder with it.
    fn go(&self) {
        let _ = self.publish(&format!("left.{}", self.rank), b"");
        if (0..self.size).all(|r| self.folder.join(format!("left.{r}")).exists()) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// The bytes that a call reads at `base`, or writes: what goes in place, as NCCL allows it, under one number, the rank's.
fn ranges(call: &DeviceCollective, base: u64, reads: bool, rank: usize, size: usize) -> Vec<Range<u64>> {
    let bytes = call.dtype.size();
    let part = |r: Range<usize>| base + (r.start * bytes) as u64..base + (r.end * bytes) as u64;
    let n = call.count;
    let in_parts = match &call.what {
        DeviceMove::Pieces(p) => {
            let pieces = if reads { &p.send } else { &p.receive };
            return pieces.iter().cloned().map(part).collect();
        }
        DeviceMove::AllGather => !reads,
        DeviceMove::ReduceScatter(_) => reads,
        _ => false,
    };
    let whole = |i: usize| if i == rank { 0..n } else { 0..0 };
    (0..size).map(|i| part(if in_parts { i * n..(i + 1) * n } else { whole(i) })).collect()
}

/// What a rank writes: from which element on, and the numbers.
fn results(call: &DeviceCollective, all: &[Posted], rank: usize) -> Vec<(usize, Vec<u8>)> {
    let (n, size) = (call.count, call.dtype.size());
    match &call.what {
        DeviceMove::AllReduce(how) => vec![(0, sum(*how, call.dtype, all, 0..n))],
        DeviceMove::Reduce(how, root) if *root == rank => vec![(0, sum(*how, call.dtype, all, 0..n))],
        DeviceMove::Reduce(..) => Vec::new(),
        DeviceMove::ReduceScatter(how) => vec![(0, sum(*how, call.dtype, all, rank * n..(rank + 1) * n))],
        DeviceMove::Broadcast(root) => vec![(0, all[*root].data.clone())],
        DeviceMove::AllGather => all.iter().enumerate().map(|(i, p)| (i * n, p.data.clone())).collect(),
        DeviceMove::Pieces(pieces) => {
            let piece = |(posted, to): (&Posted, &Range<usize>)| {
                let from = &posted.sends[rank];
                (to.start, posted.data[from.start * size..from.end * size].to_vec())
            };
            all.iter().zip(&pieces.receive).filter(|(_, to)| !to.is_empty()).map(piece).collect()
        }
    }
}

/// In the order of ranks, each sum rounded to the type.
fn sum(how: DeviceSum, dtype: DType, all: &[Posted], part: Range<usize>) -> Vec<u8> {
    let size = dtype.size();
    let element = |i: usize| {
        let terms = all.iter().map(|p| &p.data[i * size..(i + 1) * size]);
        match how {
            DeviceSum::Any => vec![terms.map(|t| t[0]).max().unwrap_or(0)],
            _ if dtype.is_float() => with_dtype!(dtype, T => {
                let factor = if how == DeviceSum::Mean { T::from_f64(1.0 / all.len() as f64).to_f64() } else { 1.0 };
                // SAFETY: each term has the bytes of one number of the type.
                let terms = terms.map(|t| unsafe { (t.as_ptr() as *const T).read_unaligned() });
                let terms = terms.map(|t| T::from_f64(t.to_f64() * factor));
                let total = terms.reduce(|a, b| T::from_f64(a.to_f64() + b.to_f64())).unwrap_or_default();
                // SAFETY: as many bytes as the number has.
                unsafe { std::slice::from_raw_parts((&raw const total).cast::<u8>(), size) }.to_vec()
            }),
            _ => {
                let whole = |t: &[u8]| t.iter().rev().fold(0u64, |v, b| v << 8 | *b as u64);
                terms.map(whole).fold(0, u64::wrapping_add).to_le_bytes()[..size].to_vec()
            }
        }
    };
    part.flat_map(element).collect()
}

impl DeviceGroup for EmulatedMember {
    unsafe fn perform(self: Arc<Self>, call: &DeviceCollective, from: u64, to: u64) -> Result<()> {
        if self.has_ended.load(SeqCst) {
            return Err(self.error(&call.to_string(), "the group has ended"));
        }
        self.check_memory(call, from, to)?;
        if let Some(ops) = &mut lock(&self.device.work).now {
            ops.push(Op::Group(self.clone(), call.clone(), from, to));
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.run(call, from, to) }
    }

    fn pending(&self) -> Result<usize> {
        Ok(0)
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn leave(&self) {
        if !self.has_ended.swap(true, SeqCst) {
            self.go();
        }
    }

    fn abort(&self) {
        if !self.has_ended.swap(true, SeqCst) {
            let _ = self.publish(&format!("aborted.{}", self.rank), b"");
            self.go();
        }
    }
}

#[cfg(feature = "emulate")]
mod tests;
