//! Groups of devices that exchange arrays: what is asked of a library for that (NCCL), and what it must be able to do. The
//! devices may be of several processes. `gpu_group.rs` makes collectives of arrays of it.

use crate::dtype::DType;
use crate::error::Result;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a group's name, which one member makes and all others are told.
pub const GROUP_ID: usize = 128;

/// A device's place in a group.
#[derive(Clone, Debug)]
pub struct GroupPlace {
    /// The group's name.
    pub id: Vec<u8>,
    /// Its number, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// How long to wait for the others.
    pub timeout: Duration,
}

/// How the numbers of several devices become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceSum {
    Sum,
    /// Of floats alone.
    Mean,
    /// Of bools alone: whether one of them is true.
    Any,
}

/// What a group does together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceMove {
    AllReduce(DeviceSum),
    /// To the device of this rank.
    Reduce(DeviceSum, usize),
    ReduceScatter(DeviceSum),
    /// From the device of this rank.
    Broadcast(usize),
    AllGather,
    Pieces(Arc<DevicePieces>),
}

/// A piece for each rank, and one of each rank, by their elements; they may be empty, and differ in size. A device's own piece
/// is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePieces {
    pub send: Vec<Range<usize>>,
    pub receive: Vec<Range<usize>>,
}

/// A collective over flat memory. `count` is what NCCL calls so: the elements of one device; of pieces it is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCollective {
    pub what: DeviceMove,
    pub dtype: DType,
    pub count: usize,
}

impl DeviceCollective {
    /// How many elements `rank` of `size` reads.
    pub fn reads(&self, rank: usize, size: usize) -> usize {
        match &self.what {
            DeviceMove::ReduceScatter(_) => self.count * size,
            DeviceMove::Broadcast(root) if *root != rank => 0,
            DeviceMove::Pieces(pieces) => end(&pieces.send),
            _ => self.count,
        }
    }

    /// How many elements it writes, or leaves between what it writes.
    pub fn writes(&self, rank: usize, size: usize) -> usize {
        match &self.what {
            DeviceMove::AllGather => self.count * size,
            DeviceMove::Reduce(_, root) if *root != rank => 0,
            DeviceMove::Pieces(pieces) => end(&pieces.receive),
            _ => self.count,
        }
    }
}

fn end(pieces: &[Range<usize>]) -> usize {
    pieces.iter().map(|p| p.end).max().unwrap_or(0)
}

/// What all members must ask for alike.
impl std::fmt::Display for DeviceCollective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (n, dtype) = (self.count, self.dtype);
        match &self.what {
            DeviceMove::AllReduce(how) => write!(f, "AllReduce ({how:?}) of {n} {dtype}"),
            DeviceMove::Reduce(how, root) => write!(f, "Reduce ({how:?}) of {n} {dtype} to rank {root}"),
            DeviceMove::ReduceScatter(how) => write!(f, "ReduceScatter ({how:?}) of {n} {dtype}"),
            DeviceMove::Broadcast(root) => write!(f, "Broadcast of {n} {dtype} from rank {root}"),
            DeviceMove::AllGather => write!(f, "AllGather of {n} {dtype}"),
            DeviceMove::Pieces(_) => write!(f, "Send and Recv of {dtype}"),
        }
    }
}

/// A device that has joined a group.
pub trait DeviceGroup: Send + Sync {
    /// Asks for a collective, in order with the device's other work; in a captured run it is noted, and done by each replay.
    /// One thread at a time asks.
    ///
    /// # Safety
    /// There are as many elements as the call [reads](DeviceCollective::reads) and [writes](DeviceCollective::writes), of its
    /// type, in the device's memory.
    unsafe fn perform(self: Arc<Self>, call: &DeviceCollective, from: u64, to: u64) -> Result<()>;

    /// How many of the collectives that were asked for are not over. It does not wait.
    fn pending(&self) -> Result<usize>;

    /// Whether something has failed meanwhile.
    fn check(&self) -> Result<()>;

    /// Leaves the group, in which nothing is on its way.
    fn leave(&self);

    /// Leaves the group at once: what is on its way ends, with memory in any state. Any thread may call it, also while
    /// another one asks.
    fn abort(&self);
}
