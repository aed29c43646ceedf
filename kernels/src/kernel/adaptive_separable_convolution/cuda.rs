//! On a GPU: a thread an element of what is made.

use super::{SeparablePart, SeparableSizes};
use crate::array::{Data, Output};
use crate::cuda::team::{is_double, named};
use crate::error::Result;

pub(super) fn product(s: &SeparableSizes, part: SeparablePart, x: [&Data; 3], y: &Data, output: Output) -> Result<()> {
    let name = match part {
        SeparablePart::Images => "separable_images",
        SeparablePart::Columns => "separable_columns",
        SeparablePart::Rows => "separable_rows",
        SeparablePart::Result => "separable_result",
    };
    let launch = y.gpu().launch("adaptive_separable_convolution", &named(name, is_double(y)))?;
    let launch = launch.array(x[0]).data(x[1]).data(x[2]).data(y).size(y.len()).flag(output == Output::Accumulate);
    let pairs = [s.input, s.output, s.taps, s.columns, s.rows];
    let launch = pairs.into_iter().flatten().fold(launch.size(s.channels), |launch, n| launch.size(n));
    // SAFETY: arrays of these sizes.
    unsafe { launch.run(y.gpu().grid(y.len())) }
}
