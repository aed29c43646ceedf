//! The communicator: NNabla's members over a transport.

use super::Alone;
use super::arrays::{self, KeptMemory, described, distinct};
use super::membership::{Membership, WORLD};
use super::reductions::{self, summing};
use super::transport::Transport;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::{Error, Result};
use std::borrow::Borrow;
use std::sync::Arc;

/// What is said of a sum; `..Default::default()` stands for what is as usual.
///
/// ```
/// use nnrs::communicator::{AllReduceOptions, WORLD};
/// let mean = AllReduceOptions { division: true, ..Default::default() };
/// assert_eq!((mean.inplace, mean.group), (false, WORLD));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AllReduceOptions<'a> {
    /// Whether sums are divided by the number of ranks.
    pub division: bool,
    /// Whether no memory is used for packing small arrays, which takes a message for each.
    pub inplace: bool,
    /// Which ranks: [`WORLD`], or a group that [`Communicator::new_group`] has made.
    pub group: &'a str,
}

impl Default for AllReduceOptions<'_> {
    fn default() -> Self {
        AllReduceOptions { division: false, inplace: false, group: WORLD }
    }
}

/// What is said of gradients that are added up during backward; `..Default::default()` stands for what is as usual.
///
/// ```
/// let options = nnrs::communicator::CallbackOptions { division: true, ..Default::default() };
/// assert_eq!((options.pack_size, options.scale_grad), (1 << 20, 1.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CallbackOptions<'a> {
    /// How many numbers a message has at least, if it is not the last one.
    pub pack_size: usize,
    /// Whether sums are divided by the number of ranks.
    pub division: bool,
    /// Factor of the gradients before they are summed, to take back a scale of the loss.
    pub scale_grad: f64,
    /// Which ranks.
    pub group: &'a str,
}

impl Default for CallbackOptions<'_> {
    fn default() -> Self {
        CallbackOptions { pack_size: 1 << 20, division: false, scale_grad: 1.0, group: WORLD }
    }
}

/// Exchanges arrays between ranks that train one network. All ranks make the same calls in the same order, each from one
/// thread at a time.
///
/// In a group of one rank all members do nothing, but that [`all_gather`](Communicator::all_gather) and
/// [`reduce_scatter`](Communicator::reduce_scatter) copy. A rank that is not in a group returns from that group's
/// collectives at once.
///
/// Sums are made in the order of ranks, in the array's type (half types in float32, rounded once), bools by "or"; whole numbers
/// wrap around and are divided towards zero. The bits depend on the numbers and on how many ranks there are, and on nothing
/// else. Arrays keep their types; those of a GPU go by the host's memory. Calls that differ between ranks, in shapes or types
/// too, are an error of kind [`Argument`](crate::ErrorKind::Argument) on all of them, after which they may go on. What a
/// transport cannot do is the end of the communicator, an error of kind [`Communicator`](crate::ErrorKind::Communicator).
///
/// ```
/// use nnrs::communicator::{Communicator, Threads, WORLD};
/// use nnrs::NdArray;
/// assert_eq!(Communicator::alone().list_groups(), [(WORLD.to_string(), vec![0])]);
/// let seen = Threads::run(2, |comm: Communicator| {
///     let x = NdArray::from_slice(&[comm.rank() as i32 + 5], [1].into())?;
///     comm.bcast(&[&x], 1, WORLD)?;
///     x.to_vec::<i32>()
/// })?;
/// assert_eq!(seen, [[6], [6]]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub struct Communicator {
    pub(super) members: Arc<Membership>,
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return self.members.leave("panicked");
        }
        self.members.prepare_to_leave();
        self.members.leave("ended");
    }
}

impl Communicator {
    /// A communicator over what carries its bytes.
    ///
    /// ```
    /// use nnrs::communicator::{Communicator, Threads};
    /// let ends = Threads::world(2);
    /// let ranks: Vec<_> = ends.into_iter().map(|end| Communicator::new(std::sync::Arc::new(end))).collect();
    /// assert_eq!((ranks[1].rank(), ranks[1].size(), ranks[1].local_rank()), (1, 2, 1));
    /// ```
    pub fn new(transport: Arc<dyn Transport>) -> Communicator {
        Communicator { members: Arc::new(Membership::new(transport)) }
    }

    /// A communicator of a rank that has no others, so that a program needs no branch.
    ///
    /// ```
    /// assert_eq!(nnrs::communicator::Communicator::alone().size(), 1);
    /// ```
    pub fn alone() -> Communicator {
        Communicator::new(Arc::new(Alone))
    }

    /// How many ranks there are.
    ///
    /// ```
    /// assert_eq!(nnrs::communicator::Communicator::alone().size(), 1);
    /// ```
    pub fn size(&self) -> usize {
        self.members.world.size()
    }

    /// This rank's number, from 0.
    ///
    /// ```
    /// assert_eq!(nnrs::communicator::Communicator::alone().rank(), 0);
    /// ```
    pub fn rank(&self) -> usize {
        self.members.world.rank()
    }

    /// This rank's number among those on its machine; the number of the device to take.
    ///
    /// ```
    /// assert_eq!(nnrs::communicator::Communicator::alone().local_rank(), 0);
    /// ```
    pub fn local_rank(&self) -> usize {
        self.members.world.local_rank()
    }

    /// Waits until all ranks have come to it.
    ///
    /// # Errors
    /// Another rank calls another collective; the end of the communicator.
    ///
    /// ```
    /// nnrs::communicator::Threads::run(2, |comm| comm.barrier())?;
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn barrier(&self) -> Result<()> {
        self.run("barrier", WORLD, "all", |_, _| Ok(()))
    }

    /// Names some of the ranks, for `group`. All ranks call it, those that are not in the group too. Their order is the group's.
    ///
    /// # Errors
    /// A name that is taken; ranks that are not there or come twice; as [`Communicator::barrier`].
    ///
    /// ```
    /// use nnrs::communicator::{AllReduceOptions, Threads};
    /// use nnrs::NdArray;
    /// let sums = Threads::run(3, |comm| {
    ///     comm.new_group("ends", &[2, 0])?;
    ///     assert_eq!(comm.find_group("ends"), Some(vec![2, 0]));
    ///     let x = NdArray::from_slice(&[comm.rank() as i64 + 1], [1].into())?;
    ///     comm.all_reduce(&[&x], AllReduceOptions { group: "ends", ..Default::default() })?;
    ///     x.to_vec::<i64>()
    /// })?;
    /// assert_eq!(sums, [[4], [2], [4]]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn new_group(&self, name: &str, ranks: &[usize]) -> Result<()> {
        let wrong = |argument: &str, expected: String, actual: String| {
            Err(Error::arg(argument, expected).actual(actual).function("Communicator::new_group"))
        };
        if self.members.find(name).is_some() {
            return wrong("name", "a name that is not taken".into(), format!("'{name}'"));
        }
        let distinct: std::collections::BTreeSet<_> = ranks.iter().collect();
        if ranks.is_empty() || distinct.len() < ranks.len() || ranks.iter().any(|&r| r >= self.size()) {
            return wrong("ranks", format!("different ranks below {}", self.size()), format!("{ranks:?}"));
        }
        let world = self.members.member("new_group", WORLD)?;
        let said = format!("'{name}' {ranks:?}");
        let made = self.members.collective("new_group", &world, &said, |t, _| t.subset(ranks, name))?;
        self.members.add(name.into(), ranks.to_vec(), made.flatten());
        Ok(())
    }

    /// The ranks of each group, by its name, in the order in which they were made.
    ///
    /// ```
    /// let comm = nnrs::communicator::Communicator::alone();
    /// comm.new_group("me", &[0])?;
    /// assert_eq!(comm.list_groups()[1], ("me".to_string(), vec![0]));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn list_groups(&self) -> Vec<(String, Vec<usize>)> {
        self.members.groups().into_iter().map(|g| (g.name.to_string(), g.ranks)).collect()
    }

    /// The ranks of a group, if there is one of that name.
    ///
    /// ```
    /// assert_eq!(nnrs::communicator::Communicator::alone().find_group("others"), None);
    /// ```
    pub fn find_group(&self, group: &str) -> Option<Vec<usize>> {
        self.members.find(group).map(|g| g.ranks)
    }

    /// Each array becomes the sum of it over all ranks.
    ///
    /// # Errors
    /// An unknown group; calls that differ between ranks; the end of the communicator.
    ///
    /// ```
    /// use nnrs::communicator::{AllReduceOptions, Threads};
    /// use nnrs::{DType, NdArray};
    /// let means = Threads::run(2, |comm| {
    ///     let x = NdArray::from_slice(&[comm.rank() as f64, 2.0], [2].into())?;
    ///     x.cast(DType::F16)?;
    ///     comm.all_reduce(&[&x], AllReduceOptions { division: true, ..Default::default() })?;
    ///     assert_eq!(x.dtype(), DType::F16);
    ///     x.to_vec::<f64>()
    /// })?;
    /// assert_eq!(means, [[0.5, 2.0], [0.5, 2.0]]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn all_reduce<A: Borrow<NdArray>>(&self, arrays: &[A], options: AllReduceOptions) -> Result<()> {
        let arrays = distinct("all_reduce", arrays)?;
        let said = format!("{}; division={}, inplace={}", described(&arrays), options.division, options.inplace);
        self.run("all_reduce", options.group, &said, |t, memory| {
            let how = summing(t, options.division);
            reductions::all_reduce_arrays(t, &arrays, options.inplace, 1.0, memory, how)
        })
    }

    /// Each array becomes the sum of it over all ranks on rank `dst` (of the world), and stays what it is elsewhere.
    ///
    /// # Errors
    /// `dst` is not in the group; as [`Communicator::all_reduce`].
    ///
    /// ```
    /// use nnrs::{communicator::Threads, NdArray};
    /// let seen = Threads::run(2, |comm| {
    ///     let x = NdArray::from_slice(&[1u8], [1].into())?;
    ///     comm.reduce(&[&x], 1, Default::default())?;
    ///     x.to_vec::<u8>()
    /// })?;
    /// assert_eq!(seen, [[1], [2]]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn reduce<A: Borrow<NdArray>>(&self, arrays: &[A], dst: usize, options: AllReduceOptions) -> Result<()> {
        let (arrays, to) = (distinct("reduce", arrays)?, self.place("reduce", "dst", dst, options.group)?);
        let (division, inplace) = (options.division, options.inplace);
        let said = format!("{}; dst={dst}, division={division}, inplace={inplace}", described(&arrays));
        self.run("reduce", options.group, &said, |t, memory| {
            if t.size() == 1 {
                return Ok(());
            }
            for group in arrays::groups(&arrays, inplace)? {
                let flat = group.load(memory, 1.0)?;
                reductions::reduce(t, &flat.data, to, memory, summing(t, division))?;
                if t.rank() == to {
                    group.store(&flat)?;
                }
            }
            Ok(())
        })
    }

    /// Each array becomes that of rank `src` (of the world).
    ///
    /// # Errors
    /// `src` is not in the group; as [`Communicator::all_reduce`].
    ///
    /// ```
    /// use nnrs::communicator::{Threads, WORLD};
    /// use nnrs::parameter::{get_parameters, parameter_scope};
    /// use nnrs::parametric::{affine, Affine};
    /// use nnrs::{NdArray, Variable};
    /// // All ranks begin with the parameters of the first one.
    /// let same = Threads::run(2, |comm| parameter_scope(&format!("bcast{}", comm.rank()), || {
    ///     affine("layer", &Variable::new([4, 3]), 2, Affine::default())?;
    ///     let parameters: Vec<NdArray> = get_parameters().iter().map(|(_, p)| p.raw_data()).collect();
    ///     comm.bcast(&parameters, 0, WORLD)?;
    ///     parameters[0].to_vec::<f32>()
    /// }))?;
    /// assert_eq!(same[0], same[1]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn bcast<A: Borrow<NdArray>>(&self, arrays: &[A], src: usize, group: &str) -> Result<()> {
        let (arrays, from) = (distinct("bcast", arrays)?, self.place("bcast", "src", src, group)?);
        self.run("bcast", group, &format!("{}; src={src}", described(&arrays)), |t, memory| {
            if t.size() == 1 {
                return Ok(());
            }
            for group in arrays::groups(&arrays, false)? {
                let flat = group.load(memory, 1.0)?;
                reductions::bcast(t, &flat.data, from)?;
                if t.rank() != from {
                    group.store(&flat)?;
                }
            }
            Ok(())
        })
    }

    /// Does a collective, if this rank is in the group.
    fn run(
        &self,
        name: &'static str,
        group: &str,
        said: &str,
        moves: impl FnOnce(&dyn Transport, &mut KeptMemory) -> Result<()>,
    ) -> Result<()> {
        let group = self.members.member(name, group)?;
        self.members.collective(name, &group, said, moves).map(drop)
    }

    /// The place in a group of a rank of the world.
    fn place(&self, here: &str, argument: &str, rank: usize, group: &str) -> Result<usize> {
        let ranks = self.members.member(here, group)?.ranks;
        let wrong = || {
            let expected = format!("a rank of group '{group}', {ranks:?}");
            Error::arg(argument, expected).actual(rank).function(format!("Communicator::{here}"))
        };
        ranks.iter().position(|&r| r == rank).ok_or_else(wrong)
    }
}
