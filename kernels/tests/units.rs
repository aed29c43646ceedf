//! Runs the unit tests of `nnrs-kernels`.

fn main() -> std::process::ExitCode {
    nnrs_kernels::unit_test::main("nnrs_kernels")
}
