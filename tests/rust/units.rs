//! Runs the unit tests of `nnrs`.

use nnrs as _;

fn main() -> std::process::ExitCode {
    nnrs_kernels::unit_test::main("nnrs")
}
