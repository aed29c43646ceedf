//! The collectives with an array for each rank.

use super::Communicator;
use super::arrays::{described, read, sum_type, write};
use super::reductions::{self, summing};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::{Error, Result};
use std::borrow::Borrow;

impl Communicator {
    /// `ys[i]` becomes `x` of the group's `i`-th rank.
    ///
    /// # Errors
    /// Not an array of the shape of `x` for each rank; an unknown group; calls that differ between ranks; the end of the
    /// communicator.
    ///
    /// ```
    /// use nnrs::communicator::{Threads, WORLD};
    /// use nnrs::NdArray;
    /// let seen = Threads::run(2, |comm| {
    ///     let x = NdArray::from_slice(&[comm.rank() as f32], [1].into())?;
    ///     let ys = [NdArray::new([1].into()), NdArray::new([1].into())];
    ///     comm.all_gather(&x, &ys, WORLD)?;
    ///     Ok((ys[0].to_vec::<f32>()?, ys[1].to_vec::<f32>()?))
    /// })?;
    /// assert_eq!(seen[0], (vec![0.0], vec![1.0]));
    /// assert_eq!(seen[0], seen[1]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn all_gather<A: Borrow<NdArray>>(&self, x: &NdArray, ys: &[A], group: &str) -> Result<()> {
        let here = "all_gather";
        x.fetch()?;
        let (group, ys, n) = (self.members.member(here, group)?, handles(ys), x.size());
        check_each(here, "ys", x, &ys, group.ranks.len())?;
        let moved = |t: &dyn super::Transport, memory: &mut super::arrays::KeptMemory| {
            let rows = memory.get("rows", sum_type(x.dtype()), n * t.size())?;
            read(x, &rows.within(t.rank() * n, n))?;
            if n > 0 {
                reductions::all_gather(t, &rows)?;
            }
            ys.iter().enumerate().try_for_each(|(i, y)| write(y, &rows.within(i * n, n)))
        };
        self.members.collective(here, &group, &described([x]), moved).map(drop)
    }

    /// `y` becomes the sum over all ranks of their `xs[i]`, for the group's `i`-th rank.
    ///
    /// # Errors
    /// Not an array of the shape of `y` for each rank; as [`Communicator::all_gather`].
    ///
    /// ```
    /// use nnrs::communicator::{Threads, WORLD};
    /// use nnrs::NdArray;
    /// let seen = Threads::run(2, |comm| {
    ///     let array = |v: f32| NdArray::from_slice(&[v], [1].into());
    ///     let (xs, y) = ([array(1.0)?, array(10.0)?], NdArray::new([1].into()));
    ///     comm.reduce_scatter(&xs, &y, Default::default())?;
    ///     y.to_vec::<f32>()
    /// })?;
    /// assert_eq!(seen, [[2.0], [20.0]]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn reduce_scatter<A: Borrow<NdArray>>(
        &self,
        xs: &[A],
        y: &NdArray,
        options: super::AllReduceOptions,
    ) -> Result<()> {
        let here = "reduce_scatter";
        let (group, xs, n) = (self.members.member(here, options.group)?, handles(xs), y.size());
        check_each(here, "xs", y, &xs, group.ranks.len())?;
        xs.iter().try_for_each(NdArray::fetch)?;
        let kind = sum_type(xs[0].dtype());
        let moved = |t: &dyn super::Transport, memory: &mut super::arrays::KeptMemory| {
            let rows = memory.get("rows", kind, n * t.size())?;
            xs.iter().enumerate().try_for_each(|(i, x)| read(x, &rows.within(i * n, n)))?;
            if n > 0 {
                reductions::reduce_scatter(t, &rows, memory, summing(t, options.division))?;
            }
            write(y, &rows.within(t.rank() * n, n))
        };
        let said = format!("{}; division={}", described(&xs), options.division);
        self.members.collective(here, &group, &said, moved).map(drop)
    }
}

fn handles<A: Borrow<NdArray>>(arrays: &[A]) -> Vec<NdArray> {
    arrays.iter().map(|a| <A as Borrow<NdArray>>::borrow(a).handle()).collect()
}

/// An array for each rank of the group, of the shape of `one`.
fn check_each(here: &str, argument: &str, one: &NdArray, arrays: &[NdArray], count: usize) -> Result<()> {
    let shape = one.shape();
    if arrays.len() == count && arrays.iter().all(|a| a.shape() == shape) {
        return Ok(());
    }
    let shapes: Vec<String> = arrays.iter().map(|a| a.shape().to_string()).collect();
    let expected = format!("{count} arrays of shape {shape}, one for each rank of the group");
    let e = Error::arg(argument, expected).actual(format!("shapes [{}]", shapes.join(", ")));
    Err(e.function(format!("Communicator::{here}")))
}
