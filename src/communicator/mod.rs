//! Data-parallel training: ranks with the same network and a part of the data each add up their gradients.
//!
//! A [`Communicator`] has NNabla's members. It works over a [`Transport`], one file each: ranks that are threads
//! ([`Threads`]), a rank without others ([`Alone`]), or a network of your own. Three lines make a training parallel: a communicator,
//! a part of the data, and the callback that adds up gradients while backward goes on.
//!
//! ```
//! use nnrs::communicator::{CallbackOptions, Communicator, Threads, WORLD};
//! use nnrs::graph::BackwardRun;
//! use nnrs::parameter::{get_parameters, parameter_scope};
//! use nnrs::parametric::{affine, Affine};
//! use nnrs::solver::{Keep, Sgd, Solver};
//! use nnrs::{functions as f, NdArray, Result, Variable};
//!
//! fn train(comm: &Communicator) -> Result<Vec<f32>> {
//!     let x = Variable::new([4, 2]);
//!     let y = affine("line", &x, 1, Affine::default())?;
//!     let loss = f::mean(&(&y * &y)?, f::Mean::default())?;
//!     let parameters = get_parameters();
//!     let solver = Solver::new(Sgd { lr: 0.1 });
//!     solver.set_parameters(&parameters, Keep::Nothing)?;
//!     let arrays = |of: fn(&Variable) -> NdArray| parameters.iter().map(|(_, p)| of(p)).collect::<Vec<_>>();
//!     comm.bcast(&arrays(Variable::raw_data), 0, WORLD)?; // all begin alike
//!     let options = CallbackOptions { division: true, ..Default::default() };
//!     let reduced = comm.all_reduce_callback(&arrays(Variable::grad), options)?;
//!     for step in 0..3 {
//!         let own = step * comm.size() + comm.rank(); // this rank's part of the data
//!         x.raw_data().write(&[own as f32 / 8.0; 8])?;
//!         loss.forward()?;
//!         solver.zero_grad()?;
//!         loss.backward_with(BackwardRun { callbacks: &[&reduced], ..Default::default() })?;
//!         solver.update()?;
//!     }
//!     parameters[0].1.to_vec()
//! }
//!
//! // Ranks are threads here, each with a scope of its own in the tree of parameters, which is the process's.
//! let trained = Threads::run(2, |comm| parameter_scope(&format!("rank{}", comm.rank()), || train(&comm)))?;
//! assert_eq!(trained[0], trained[1]);
//! # Ok::<(), nnrs::Error>(())
//! ```

mod agreement;
mod alone;
mod arrays;
mod callback;
mod collectives;
mod hall;
mod line;
mod membership;
mod open_runs;
mod packs;
mod reductions;
mod rows;
mod run_number;
mod shared_normalization;
mod standing;
mod sync_batch_normalization;
mod threads;
mod transport;
mod worker;

pub use alone::Alone;
pub use callback::GradientReduction;
pub use collectives::{AllReduceOptions, CallbackOptions, Communicator};
pub use membership::WORLD;
#[cfg(feature = "python")]
pub(crate) use shared_normalization::{SharedStatistics, SyncFunction};
pub use sync_batch_normalization::{SyncBatchNormalization, sync_batch_normalization};
pub use threads::Threads;
pub use transport::{CollectiveCall, Transport};
