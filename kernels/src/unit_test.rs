//! Unit tests that stand in the library itself where the feature `emulate` is on, so that it is compiled once for all
//! tests: a second time, with `cfg(test)`, took a third of `make build-rust`. Each names itself by `unit_test!`; a program
//! of `tests/` runs them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[doc(hidden)]
pub struct UnitTest {
    pub module: &'static str,
    pub name: &'static str,
    pub run: fn(),
    pub kind: TestKind,
}

#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum TestKind {
    Usual,
    /// Runs when asked for by `--ignored`.
    Ignored(&'static str),
    /// Has to panic with a message that contains this.
    Panics(&'static str),
}

inventory::collect!(UnitTest);

/// `unit_test!(name);` before `fn name()`: what `#[test]` is in programs of tests. Also `unit_test!(name, ignore = "why");`
/// and `unit_test!(name, panics = "part of the message");`.
#[doc(hidden)]
#[macro_export]
macro_rules! unit_test {
    ($name:ident) => { $crate::unit_test!(@ $name, Usual); };
    ($name:ident, ignore = $why:literal) => { $crate::unit_test!(@ $name, Ignored($why)); };
    ($name:ident, panics = $says:literal) => { $crate::unit_test!(@ $name, Panics($says)); };
    (@ $name:ident, $kind:ident $(($text:literal))?) => {
        $crate::inventory::submit! {
            $crate::unit_test::UnitTest {
                module: module_path!(),
                name: stringify!($name),
                run: $name,
                kind: $crate::unit_test::TestKind::$kind $(($text))?,
            }
        }
    };
}

impl UnitTest {
    fn path(&self) -> String {
        format!("{}::{}", self.module, self.name)
    }

    /// Nothing where it passes, else why not. The panic itself has been printed.
    fn failure(&self) -> Option<String> {
        let result = catch_unwind(AssertUnwindSafe(self.run));
        let TestKind::Panics(says) = self.kind else { return result.err().map(|_| "it panicked".into()) };
        let Err(panic) = result else { return Some("it did not panic".into()) };
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        (!text.is_some_and(|text| text.contains(says))).then(|| format!("it did not panic with {says:?}"))
    }
}

/// What is asked of a program of tests, as `cargo test` passes it on.
#[derive(Default)]
struct TestOptions {
    filters: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    ignored: bool,
    usual: bool,
    list: bool,
    threads: Option<usize>,
}

impl TestOptions {
    fn parse(args: impl Iterator<Item = String>) -> Result<TestOptions, String> {
        let mut asked = TestOptions { usual: true, ..TestOptions::default() };
        let mut args = args.flat_map(|a| match a.split_once('=') {
            Some((option, value)) if a.starts_with("--") => vec![option.to_owned(), value.to_owned()],
            _ => vec![a],
        });
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} wants a value"));
            match &arg[..] {
                "--exact" => asked.exact = true,
                "--ignored" => (asked.ignored, asked.usual) = (true, false),
                "--include-ignored" => asked.ignored = true,
                "--list" => asked.list = true,
                "--nocapture" | "--no-capture" | "--quiet" | "-q" => {} // nothing is captured
                "--skip" => asked.skipped.push(value()?),
                "--test-threads" => asked.threads = Some(value()?.parse().map_err(|e| format!("{arg}: {e}"))?),
                _ if arg.starts_with('-') => {
                    return Err(format!(
                        "{arg} is not known: --exact, --ignored, --include-ignored, --list, --skip, --test-threads are"
                    ));
                }
                _ => asked.filters.push(arg),
            }
        }
        Ok(asked)
    }

    fn wants(&self, test: &UnitTest) -> bool {
        let path = test.path();
        let fits = |text: &String| if self.exact { path == *text } else { path.contains(&text[..]) };
        (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skipped.iter().any(fits)
    }

    fn runs(&self, test: &UnitTest) -> bool {
        if matches!(test.kind, TestKind::Ignored(_)) { self.ignored } else { self.usual }
    }

    fn num_threads(&self) -> usize {
        let usual = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let said = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
        self.threads.or_else(said).unwrap_or_else(usual).max(1)
    }
}

/// Runs the unit tests of the crate of this name that the program's arguments ask for.
pub fn main(name: &str) -> ExitCode {
    let asked = match TestOptions::parse(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::FAILURE;
        }
    };
    let of_crate = |t: &&UnitTest| t.module.split("::").next() == Some(name);
    let mut tests: Vec<_> =
        inventory::iter::<UnitTest>.into_iter().filter(of_crate).filter(|t| asked.wants(t)).collect();
    tests.sort_by_key(|t| (t.module, t.name));
    if asked.list {
        tests.iter().for_each(|t| println!("{}: test", t.path()));
        return ExitCode::SUCCESS;
    }
    let (run, left): (Vec<_>, Vec<_>) = tests.into_iter().partition(|t| asked.runs(t));
    println!("\nrunning {} tests", run.len());
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..asked.num_threads().min(run.len()) {
            scope.spawn(|| {
                while let Some(test) = run.get(next.fetch_add(1, Relaxed)) {
                    let failure = test.failure();
                    println!("test {} ... {}", test.path(), if failure.is_some() { "FAILED" } else { "ok" });
                    failed.lock().unwrap().extend(failure.map(|why| format!("{}: {why}", test.path())));
                }
            });
        }
    });
    for test in &left {
        if let TestKind::Ignored(why) = test.kind {
            println!("test {} ... ignored, {why}", test.path());
        }
    }
    let failed = failed.into_inner().unwrap();
    failed.iter().for_each(|text| eprintln!("{text}"));
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {result}. {} passed; {} failed; {} not run",
        run.len() - failed.len(),
        failed.len(),
        left.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

mod tests {
    use super::*;

    unit_test!(a_test_fails_that_panics_or_does_not_when_it_should);
    fn a_test_fails_that_panics_or_does_not_when_it_should() {
        let fails = |run, kind| UnitTest { module: "a", name: "b", run, kind }.failure().is_some();
        let (panics, passes): (fn(), fn()) = (|| panic!("as {}", "wanted"), || ());
        assert!(!fails(passes, TestKind::Usual) && fails(panics, TestKind::Usual));
        assert!(!fails(panics, TestKind::Panics("as wanted")) && fails(panics, TestKind::Panics("another text")));
        assert!(fails(passes, TestKind::Panics("as wanted")));
    }

    unit_test!(tests_are_chosen_as_by_cargo);
    fn tests_are_chosen_as_by_cargo() {
        let wants = |args: &str, kind| {
            let asked = TestOptions::parse(args.split_whitespace().map(str::to_owned)).unwrap();
            let test = UnitTest { module: "a::b", name: "c", run: || (), kind };
            asked.wants(&test) && asked.runs(&test)
        };
        for (args, usual, ignored) in [
            ("", true, false),
            ("b::c -q", true, false),
            ("d", false, false),
            ("d a", true, false),
            ("--exact b::c", false, false),
            ("--exact a::b::c", true, false),
            ("--skip b", false, false),
            ("--ignored", false, true),
            ("--include-ignored --test-threads=3", true, true),
        ] {
            assert_eq!((wants(args, TestKind::Usual), wants(args, TestKind::Ignored(""))), (usual, ignored), "{args}");
        }
        assert!(TestOptions::parse(["--other".to_owned()].into_iter()).is_err());
    }
}
