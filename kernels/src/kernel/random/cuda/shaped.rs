//! Numbers of other distributions: the same ones as [`crate::random::philox::shaped`] makes.

use super::run;
use crate::array::Data;
use crate::error::Result;
use crate::random::DrawSource;
use crate::random::philox::Distribution;

/// Numbers of a distribution, by rejection.
pub(in crate::kernel::random) fn shaped(from: DrawSource, y: &Data, distribution: Distribution) -> Result<()> {
    let (name, a, b) = match distribution {
        Distribution::Gamma { k, theta } => ("gamma_numbers", k, theta),
        Distribution::Beta { alpha, beta } => ("beta_numbers", alpha, beta),
        Distribution::Binomial { n, p } => ("binomial_numbers", n, p),
    };
    let launch = y.gpu().launch("random_shaped", name)?.array(y);
    run(launch, from, y, 4, |l| l.double(a).double(b))
}
