//! What carries bytes between the ranks of a group: five moves of flat memory. It adds nothing up.

use nnrs_kernels::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A collective that runs: which, in which group, and the how many-th one of that group.
///
/// ```
/// let call = nnrs::communicator::CollectiveCall { name: "all_reduce", group: "world".into(), number: 3 };
/// assert_eq!(call.to_string(), "all_reduce (call 3, group 'world')");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveCall {
    /// The member of [`Communicator`](super::Communicator).
    pub name: &'static str,
    /// The name of the group.
    pub group: Arc<str>,
    /// From 1.
    pub number: u64,
}

impl fmt::Display for CollectiveCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (call {}, group '{}')", self.name, self.number, self.group)
    }
}

/// Carries flat memory between the ranks of one group. Implement it to bring a network of your own; [`Alone`](super::Alone)
/// and [`Threads`](super::Threads) are two that are here.
///
/// All ranks of the group make the same moves in the same order, each with memory of the same sizes; `cuts` are
/// positions in bytes: part `i` of a buffer is `cuts[i]..cuts[i + 1]`. A move returns when it is over. It may be called from
/// any thread, but never from two at once. An error of a move ends the communicator, and so does a panic. Who waits for
/// another rank should give up some time, with an error that says for whom it has waited: the communicator adds the
/// collective and the own rank.
///
/// Over the crate `mpi` the moves are `all_to_all_varcount_into`, `all_gather_varcount_into`, `gather_varcount_into_root`
/// and `broadcast_into` of `u8`, with partitions of those counts and displacements, and `subset` is
/// `split_by_subgroup_collective`; MPI has to be initialized with `Threading::Multiple` where gradients are added up during
/// backward. Counts of MPI have 31 bits; the communicator asks for no more than 2^27 bytes in a move, but what
/// [`all_gather`](super::Communicator::all_gather) and [`reduce_scatter`](super::Communicator::reduce_scatter) are given.
///
/// A transport over channels, one from each rank to each. Sockets or pipes would take their places:
///
/// ```
/// use nnrs::communicator::{AllReduceOptions, Communicator, Transport};
/// use nnrs::{Error, ErrorKind, NdArray, Result};
/// use std::sync::mpsc::{Receiver, Sender, channel};
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// struct Channels {
///     rank: usize,
///     to: Vec<Sender<Vec<u8>>>,
///     from: Vec<Mutex<Receiver<Vec<u8>>>>,
/// }
///
/// impl Channels {
///     /// The ends of `size` ranks.
///     fn world(size: usize) -> Vec<Channels> {
///         let make = |rank| Channels { rank, to: vec![], from: vec![] };
///         let mut ranks: Vec<Channels> = (0..size).map(make).collect();
///         for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
///             let (to, from) = channel();
///             ranks[i].to.push(to); // to rank j
///             ranks[j].from.push(Mutex::new(from)); // from rank i
///         }
///         ranks
///     }
///
///     fn send(&self, to: usize, bytes: &[u8]) -> Result<()> {
///         let gone = |_| Error::new(ErrorKind::Communicator, format!("rank {to} has ended"));
///         self.to[to].send(bytes.to_vec()).map_err(gone)
///     }
///
///     fn receive(&self, from: usize, bytes: &mut [u8]) -> Result<()> {
///         let late = |_| Error::new(ErrorKind::Communicator, format!("rank {from} did not come to it in a minute"));
///         let receiver = self.from[from].lock().map_err(|_| Error::graph("a move has panicked"))?;
///         bytes.copy_from_slice(&receiver.recv_timeout(Duration::from_secs(60)).map_err(late)?);
///         Ok(())
///     }
/// }
///
/// impl Transport for Channels {
///     fn rank(&self) -> usize {
///         self.rank
///     }
///     fn size(&self) -> usize {
///         self.to.len()
///     }
///     fn all_to_all(&self, send: &[u8], cuts: &[usize], received: &mut [u8]) -> Result<()> {
///         (0..self.size()).try_for_each(|i| self.send(i, &send[cuts[i]..cuts[i + 1]]))?;
///         let each = received.len() / self.size();
///         (0..self.size()).try_for_each(|i| self.receive(i, &mut received[i * each..][..each]))
///     }
///     fn all_gather(&self, buffer: &mut [u8], cuts: &[usize]) -> Result<()> {
///         (0..self.size()).try_for_each(|dst| self.gather(buffer, cuts, dst))
///     }
///     fn gather(&self, buffer: &mut [u8], cuts: &[usize], dst: usize) -> Result<()> {
///         if self.rank != dst {
///             return self.send(dst, &buffer[cuts[self.rank]..cuts[self.rank + 1]]);
///         }
///         let mut others = (0..self.size()).filter(|&i| i != dst);
///         others.try_for_each(|i| self.receive(i, &mut buffer[cuts[i]..cuts[i + 1]]))
///     }
///     fn bcast(&self, buffer: &mut [u8], src: usize) -> Result<()> {
///         if self.rank != src {
///             return self.receive(src, buffer);
///         }
///         (0..self.size()).filter(|&i| i != src).try_for_each(|i| self.send(i, buffer))
///     }
///     fn subset(&self, _ranks: &[usize], _name: &str) -> Result<Option<Arc<dyn Transport>>> {
///         Err(Error::unsupported("channels have no groups"))
///     }
/// }
///
/// let ranks: Vec<_> = Channels::world(3).into_iter().map(|channels| {
///     std::thread::spawn(move || -> Result<Vec<f32>> {
///         let comm = Communicator::new(Arc::new(channels));
///         let x = NdArray::from_slice(&[comm.rank() as f32, 1.0], [2].into())?;
///         comm.all_reduce(&[&x], AllReduceOptions::default())?;
///         x.to_vec()
///     })
/// }).collect();
/// for rank in ranks {
///     assert_eq!(rank.join().unwrap()?, [3.0, 3.0]);
/// }
/// # Ok::<(), Error>(())
/// ```
pub trait Transport: Send + Sync {
    /// This rank's place in the group.
    fn rank(&self) -> usize;

    /// How many ranks the group has.
    fn size(&self) -> usize;

    /// This rank's place among those of the group on the same machine.
    fn local_rank(&self) -> usize {
        self.rank()
    }

    /// What all ranks of this world call it, and no other world of theirs. By default it is taken to be the same one for all
    /// that is the how many-th communicator over so many ranks, and a process to be one rank of all such worlds: it needs a
    /// name where ranks are threads and a process has several worlds at once, or a run that fails in one ends runs of another.
    /// Worlds with names belong together where one thread has made, or uses, its rank's communicators of both.
    fn world_id(&self) -> Option<u64> {
        None
    }

    /// Part `i` of `send` goes to rank `i`; row `i` of `received`, which has `size` rows of the length of this rank's own
    /// part, is what rank `i` sends here.
    ///
    /// # Errors
    /// What ends the communicator.
    fn all_to_all(&self, send: &[u8], cuts: &[usize], received: &mut [u8]) -> Result<()>;

    /// Each rank gives its own part of `buffer`, and all have all parts afterwards.
    ///
    /// # Errors
    /// What ends the communicator.
    fn all_gather(&self, buffer: &mut [u8], cuts: &[usize]) -> Result<()>;

    /// Each rank gives its own part of `buffer`, and rank `dst` has all parts afterwards.
    ///
    /// # Errors
    /// What ends the communicator.
    fn gather(&self, buffer: &mut [u8], cuts: &[usize], dst: usize) -> Result<()>;

    /// What rank `src` has in `buffer` all have afterwards.
    ///
    /// # Errors
    /// What ends the communicator.
    fn bcast(&self, buffer: &mut [u8], src: usize) -> Result<()>;

    /// A transport for these different ranks, which come in this order; `None` where this rank is none of them. All ranks
    /// of the group call it together.
    ///
    /// # Errors
    /// What ends the communicator.
    fn subset(&self, ranks: &[usize], name: &str) -> Result<Option<Arc<dyn Transport>>>;

    /// The moves that follow are those of `call`.
    fn begin(&self, _call: &CollectiveCall) {}

    /// `call` is over, and nothing has failed.
    fn end(&self, _call: &CollectiveCall) {}

    /// Whether the moves that follow, and one that has begun, are waited for by no program here: for those there should be no
    /// limit of time. They say of a backward run that it has failed, for others to hear when they come to the group.
    fn be_patient(&self, _is_patient: bool) {}

    /// This rank will [`leave`](Transport::leave) when what it says of failed runs is over, or waits only for ranks that are
    /// about to leave, too, which should be an error.
    fn prepare_to_leave(&self) {}

    /// This rank makes no more moves of this group; `why` it is: "ended", "panicked", "failed (..)". A move that waits for
    /// it elsewhere should fail.
    fn leave(&self, _why: &str) {}
}

/// Positions that cut `count` numbers of `bytes` bytes into parts whose lengths differ by one number at most.
pub(super) fn even_cuts(count: usize, bytes: usize, parts: usize) -> Vec<usize> {
    (0..=parts).map(|i| (count as u128 * i as u128 / parts as u128) as usize * bytes).collect()
}

/// Positions of `parts` blocks of `each` bytes.
pub(super) fn block_cuts(each: usize, parts: usize) -> Vec<usize> {
    (0..=parts).map(|i| each * i).collect()
}

/// Checks that `cuts` are those of a buffer of `len` bytes between `size` ranks.
pub(super) fn check_cuts(cuts: &[usize], size: usize, len: usize) -> Result<()> {
    let are_fine = cuts.len() == size + 1 && cuts.is_sorted() && cuts[size] <= len;
    let wrong = || Error::arg("cuts", format!("{} rising positions up to {len}", size + 1)).actual(format!("{cuts:?}"));
    if are_fine { Ok(()) } else { Err(wrong()) }
}

/// Checks a rank of the group.
pub(super) fn check_rank(name: &str, rank: usize, size: usize) -> Result<()> {
    if rank < size { Ok(()) } else { Err(Error::arg(name, format!("a rank below {size}")).actual(rank)) }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(cuts_are_even_and_checked);
    fn cuts_are_even_and_checked() {
        assert_eq!(even_cuts(7, 4, 3), [0, 8, 16, 28]);
        assert_eq!(even_cuts(1, 8, 4), [0, 0, 0, 0, 8]);
        assert_eq!(block_cuts(3, 2), [0, 3, 6]);
        assert!(check_cuts(&[0, 8, 16], 2, 16).is_ok());
        for cuts in [&[0, 8][..], &[0, 9, 8], &[0, 8, 17]] {
            assert!(check_cuts(cuts, 2, 16).unwrap_err().to_string().contains("rising positions up to 16"));
        }
        assert!(check_rank("dst", 1, 2).is_ok() && check_rank("dst", 2, 2).is_err());
    }
}
