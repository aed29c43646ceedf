//! The transport of a rank that has no others.

use super::transport::{Transport, check_cuts};
use nnrs_kernels::error::{Error, Result};
use std::sync::Arc;

/// The transport of a rank that has no others: nothing has to be carried.
///
/// ```
/// use nnrs::communicator::{Alone, Communicator};
/// let comm = Communicator::new(std::sync::Arc::new(Alone));
/// assert_eq!((comm.size(), comm.rank()), (1, 0));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Transport for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_to_all(&self, send: &[u8], cuts: &[usize], received: &mut [u8]) -> Result<()> {
        check_cuts(cuts, 1, send.len())?;
        let own = &send[cuts[0]..cuts[1]];
        if received.len() != own.len() {
            return Err(Error::arg("received", format!("{} bytes", own.len())).actual(received.len()));
        }
        received.copy_from_slice(own);
        Ok(())
    }

    fn all_gather(&self, _buffer: &mut [u8], _cuts: &[usize]) -> Result<()> {
        Ok(())
    }

    fn gather(&self, _buffer: &mut [u8], _cuts: &[usize], _dst: usize) -> Result<()> {
        Ok(())
    }

    fn bcast(&self, _buffer: &mut [u8], _src: usize) -> Result<()> {
        Ok(())
    }

    fn subset(&self, ranks: &[usize], _name: &str) -> Result<Option<Arc<dyn Transport>>> {
        Ok(ranks.contains(&0).then(|| Arc::new(Alone) as Arc<dyn Transport>))
    }
}
