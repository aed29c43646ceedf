//! Ranks that are threads of one process: each sends letters, and none waits for who reads them.

use super::Communicator;
use super::hall::{Hall, HallPlace, Letter};
use super::transport::{CollectiveCall, Transport, check_cuts, check_rank};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a rank waits for another one.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Letters whose memory is kept for the next ones.
const KEPT: usize = 4;

/// The transport of ranks that are threads of one process: data-parallel training without another program, or a test of a
/// program that will run over a network.
///
/// A rank whose `Threads` is dropped, or that panics while it holds it, makes moves that wait for it an error on all ranks;
/// so does a wait that takes too long.
///
/// ```
/// use nnrs::communicator::{AllReduceOptions, Threads};
/// use nnrs::NdArray;
/// let sums = Threads::run(3, |comm| {
///     let x = NdArray::from_slice(&[comm.rank() as f32 + 1.0], [1].into())?;
///     comm.all_reduce(&[&x], AllReduceOptions { division: true, ..Default::default() })?;
///     x.to_vec::<f32>()
/// })?;
/// assert_eq!(sums, [[2.0], [2.0], [2.0]]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub struct Threads {
    hall: Arc<Hall>,
    group: Arc<str>,
    /// Ranks of the world.
    members: Vec<usize>,
    own: usize,
    moves: AtomicU64,
    subsets: AtomicU64,
    is_patient: AtomicBool,
    sent: Mutex<Vec<Arc<Vec<u8>>>>,
}

impl Threads {
    /// The ends of `size` ranks, one for each thread. A rank waits ten minutes for another one.
    ///
    /// ```
    /// use nnrs::communicator::{Threads, Transport};
    /// assert_eq!(Threads::world(2)[1].rank(), 1);
    /// ```
    pub fn world(size: usize) -> Vec<Threads> {
        Threads::world_within(size, TIMEOUT)
    }

    /// As [`Threads::world`]; a rank waits for another one for `timeout`.
    ///
    /// ```
    /// use nnrs::communicator::{Communicator, Threads};
    /// use std::{sync::Arc, time::Duration};
    /// let mut ranks = Threads::world_within(2, Duration::from_millis(10)).into_iter();
    /// let comm = Communicator::new(Arc::new(ranks.next().unwrap()));
    /// let error = comm.barrier().unwrap_err().to_string();
    /// assert!(error.contains("rank 0 in barrier (call 1, group 'world'): not over after 0.01 s: rank 1 did not"), "{error}");
    /// ```
    pub fn world_within(size: usize, timeout: Duration) -> Vec<Threads> {
        let hall = Arc::new(Hall::new(size, timeout));
        (0..size).map(|own| Threads::placed(&hall, "world".into(), (0..size).collect(), own)).collect()
    }

    /// Calls `work` on `size` ranks, each a thread of its own, and gives what it gives on each.
    ///
    /// # Errors
    /// The error of a rank; of several that which is no consequence of another one's.
    ///
    /// # Panics
    /// Where `work` does, when all ranks have ended.
    ///
    /// ```
    /// use nnrs::communicator::Threads;
    /// assert_eq!(Threads::run(3, |comm| Ok(comm.rank()))?, [0, 1, 2]);
    /// let failed = Threads::run(2, |comm| match comm.rank() {
    ///     0 => comm.barrier(), // rank 1 never comes to it
    ///     _ => Err(nnrs::Error::graph("no data")),
    /// });
    /// assert_eq!(failed.unwrap_err().to_string(), "no data");
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn run<R: Send>(size: usize, work: impl Fn(Communicator) -> Result<R> + Sync) -> Result<Vec<R>> {
        Threads::run_over(Threads::world(size), work)
    }

    /// As [`Threads::run`], over ranks of a world that was made before.
    ///
    /// # Errors
    /// As [`Threads::run`].
    ///
    /// # Panics
    /// As [`Threads::run`].
    ///
    /// ```
    /// use nnrs::communicator::Threads;
    /// let world = Threads::world_within(2, std::time::Duration::from_secs(5));
    /// assert_eq!(Threads::run_over(world, |comm| Ok(comm.size()))?, [2, 2]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn run_over<R: Send>(world: Vec<Threads>, work: impl Fn(Communicator) -> Result<R> + Sync) -> Result<Vec<R>> {
        let work = &work;
        let ended: Vec<_> = std::thread::scope(|s| {
            let start = |t: Threads| s.spawn(move || work(Communicator::new(Arc::new(t))));
            let threads: Vec<_> = world.into_iter().map(start).collect();
            threads.into_iter().map(|t| t.join()).collect()
        });
        let results: Vec<Result<R>> =
            ended.into_iter().map(|r| r.unwrap_or_else(|panic| resume_unwind(panic))).collect();
        cause(results)
    }

    fn placed(hall: &Arc<Hall>, group: Arc<str>, members: Vec<usize>, own: usize) -> Threads {
        let (moves, subsets, is_patient, sent) = Default::default();
        Threads { hall: hall.clone(), group, members, own, moves, subsets, is_patient, sent }
    }

    fn place(&self) -> HallPlace<'_> {
        HallPlace { group: &self.group, members: &self.members, own: self.own, is_patient: &self.is_patient }
    }

    fn next_move(&self) -> u64 {
        self.moves.fetch_add(1, Relaxed)
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.own;
        (0..self.members.len()).filter(move |&i| i != own)
    }

    fn post(&self, number: u64, kind: &'static str, bytes: &[u8], readers: usize) -> Result<()> {
        if readers == 0 {
            return Ok(());
        }
        let bytes = self.letter(bytes);
        self.hall.post(&self.place(), number, Letter { kind, bytes, readers })
    }

    /// A copy, in memory of an old letter that all have read.
    fn letter(&self, bytes: &[u8]) -> Arc<Vec<u8>> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let read = sent.iter_mut().position(|old| Arc::get_mut(old).is_some());
        let mut letter = read.map(|i| sent.swap_remove(i)).unwrap_or_default();
        match Arc::get_mut(&mut letter) {
            Some(memory) => {
                memory.clear();
                memory.extend_from_slice(bytes);
            }
            None => letter = Arc::new(bytes.to_vec()),
        }
        if sent.len() < KEPT {
            sent.push(letter.clone());
        }
        letter
    }

    /// The letter of rank `from`, which has `len` bytes.
    fn take(&self, number: u64, kind: &'static str, from: usize, len: usize) -> Result<Arc<Vec<u8>>> {
        let letter = self.hall.take(&self.place(), number, kind, from)?;
        let wrong = || {
            let text = format!("rank {} sends {} bytes in {kind}, not {len}", self.members[from], letter.len());
            Error::new(ErrorKind::Communicator, text)
        };
        if letter.len() == len { Ok(letter) } else { Err(wrong()) }
    }

    fn own_part(&self, cuts: &[usize]) -> std::ops::Range<usize> {
        cuts[self.own]..cuts[self.own + 1]
    }

    /// Parts of the others come into a buffer.
    fn fill(&self, number: u64, kind: &'static str, buffer: &mut [u8], cuts: &[usize]) -> Result<()> {
        for i in self.others() {
            let part = &mut buffer[cuts[i]..cuts[i + 1]];
            part.copy_from_slice(&self.take(number, kind, i, part.len())?);
        }
        Ok(())
    }
}

impl Transport for Threads {
    fn rank(&self) -> usize {
        self.own
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn world_id(&self) -> Option<u64> {
        Some(self.hall.id)
    }

    fn all_to_all(&self, send: &[u8], cuts: &[usize], received: &mut [u8]) -> Result<()> {
        let (size, number) = (self.size(), self.next_move());
        check_cuts(cuts, size, send.len())?;
        let own = self.own_part(cuts);
        if received.len() != own.len() * size {
            return Err(Error::arg("received", format!("{} bytes", own.len() * size)).actual(received.len()));
        }
        self.post(number, "all_to_all", send, size - 1)?;
        let row = |i: usize| i * own.len()..(i + 1) * own.len();
        received[row(self.own)].copy_from_slice(&send[own.clone()]);
        for i in self.others() {
            let letter = self.take(number, "all_to_all", i, send.len())?;
            received[row(i)].copy_from_slice(&letter[own.clone()]);
        }
        Ok(())
    }

    fn all_gather(&self, buffer: &mut [u8], cuts: &[usize]) -> Result<()> {
        let number = self.next_move();
        check_cuts(cuts, self.size(), buffer.len())?;
        self.post(number, "all_gather", &buffer[self.own_part(cuts)], self.size() - 1)?;
        self.fill(number, "all_gather", buffer, cuts)
    }

    fn gather(&self, buffer: &mut [u8], cuts: &[usize], dst: usize) -> Result<()> {
        let number = self.next_move();
        check_cuts(cuts, self.size(), buffer.len())?;
        check_rank("dst", dst, self.size())?;
        match self.own == dst {
            true => self.fill(number, "gather", buffer, cuts),
            false => self.post(number, "gather", &buffer[self.own_part(cuts)], 1),
        }
    }

    fn bcast(&self, buffer: &mut [u8], src: usize) -> Result<()> {
        let number = self.next_move();
        check_rank("src", src, self.size())?;
        if self.own == src {
            return self.post(number, "bcast", buffer, self.size() - 1);
        }
        buffer.copy_from_slice(&self.take(number, "bcast", src, buffer.len())?);
        Ok(())
    }

    /// Its letters are found by a name that all ranks give it: that of this group and the number of its subsets so far.
    fn subset(&self, ranks: &[usize], _name: &str) -> Result<Option<Arc<dyn Transport>>> {
        ranks.iter().try_for_each(|&r| check_rank("ranks", r, self.size()))?;
        let group = format!("{}/{}", self.group, self.subsets.fetch_add(1, Relaxed)).into();
        let members = ranks.iter().map(|&r| self.members[r]).collect();
        let own = ranks.iter().position(|&r| r == self.own);
        Ok(own.map(|own| Arc::new(Threads::placed(&self.hall, group, members, own)) as Arc<dyn Transport>))
    }

    fn begin(&self, call: &CollectiveCall) {
        self.hall.begin(self.members[self.own], call);
    }

    fn end(&self, call: &CollectiveCall) {
        self.hall.end(self.members[self.own], call);
    }

    fn be_patient(&self, is_patient: bool) {
        if self.is_patient.swap(is_patient, Relaxed) != is_patient {
            self.hall.wake();
        }
    }

    fn prepare_to_leave(&self) {
        self.hall.prepare_to_leave(&self.group, self.own);
    }

    fn leave(&self, why: &str) {
        self.hall.leave(&self.group, self.own, why);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.leave(if std::thread::panicking() { "panicked" } else { "ended" });
    }
}

/// What all ranks give; or the error of one, if there is such a one no consequence of another's.
fn cause<R>(results: Vec<Result<R>>) -> Result<Vec<R>> {
    let is_first = |r: &Result<R>| matches!(r, Err(e) if e.kind() != ErrorKind::Communicator);
    let first = results.iter().position(is_first).or_else(|| results.iter().position(Result::is_err));
    let mut results = results;
    match first {
        Some(i) => results.swap_remove(i).map(|one| vec![one]),
        None => results.into_iter().collect(),
    }
}
