//! Names of files that are being written, and what is left of those whose process has ended in the middle.

use std::fs;
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

/// Links that lead to one another; the system follows no more either.
const MOST_LINKS: usize = 40;

/// The file that a path means, there or not: a link keeps pointing to it, and it is replaced where it lies.
pub fn target(path: &Path) -> PathBuf {
    let mut at = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&at) {
            Ok(next) => at = at.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => break,
        }
    }
    fs::canonicalize(&at).unwrap_or_else(|_| match (at.parent(), at.file_name()) {
        (Some(folder), Some(name)) => resolved(folder).join(name),
        _ => at,
    })
}

fn resolved(folder: &Path) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::canonicalize(folder).or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_path_buf())
}

/// A new name in the folder of `target`, for a file that will take its place. What ended processes have left there is
/// removed first.
pub fn beside(target: &Path) -> PathBuf {
    let folder = target.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let here = format!(".nnrs-{:08x}-", place());
    remove_left_over(folder, &here);
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    target.with_file_name(format!("{}{random:016x}.tmp", prefix(&here, std::process::id())))
}

/// Where the process is one, its number, and when it began: a number may come again.
fn prefix(here: &str, process: u32) -> String {
    format!("{here}{process}-{}-", began(process).unwrap_or(0))
}

/// The machine, since when it runs, and the space of numbers of processes: containers have their own.
fn place() -> u32 {
    let mut h = DefaultHasher::new();
    for path in ["/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id"] {
        h.write(&fs::read(path).unwrap_or_default());
    }
    h.write(fs::read_link("/proc/self/ns/pid").unwrap_or_default().as_os_str().as_encoded_bytes());
    h.finish() as u32
}

/// When a process began, in ticks of the system; none if it is not there, or the system does not say.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses, which may have spaces, is the second word; the time is the 22nd.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Only where the system tells when processes began can one be taken for ended.
fn remove_left_over(folder: &Path, here: &str) {
    if began(std::process::id()).is_none() {
        return;
    }
    let Ok(files) = fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let name = file.file_name();
        let parts = name.to_str().and_then(|n| n.strip_prefix(here)?.strip_suffix(".tmp"));
        let mut numbers = parts.into_iter().flat_map(|p| p.split('-'));
        let process: Option<u32> = numbers.next().and_then(|p| p.parse().ok());
        let then: Option<u64> = numbers.next().and_then(|t| t.parse().ok()).filter(|t| *t != 0);
        if process.is_some_and(|p| then.is_some() && began(p) != then) {
            let _ = fs::remove_file(file.path());
        }
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(what_ended_processes_left_is_removed);
    fn what_ended_processes_left_is_removed() {
        if began(std::process::id()).is_none() {
            return;
        }
        let folder = std::env::temp_dir().join(format!("nnrs-left-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let here = format!(".nnrs-{:08x}-", place());
        let name = |process: u32, n: u32| format!("{}{n}.tmp", prefix(&here, process));
        let (lives, mine) = (name(child.id(), 1), name(std::process::id(), 2));
        let other = ".nnrs-00000000-1-1-3.tmp".to_string(); // of another machine
        let strange = [".nnrs-4.tmp".to_string(), format!("{here}x-y-z.tmp"), "weights.h5".to_string()];
        let again = format!("{here}{}-1-5.tmp", std::process::id()); // a number that came again
        let all = [&[lives.clone(), mine.clone(), other.clone(), again], &strange[..]].concat();
        all.iter().for_each(|name| fs::write(folder.join(name), "half").unwrap());
        let left = |target: &str| -> Vec<String> {
            assert!(beside(&folder.join(target)).starts_with(&folder));
            let mut names: Vec<String> =
                fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let sorted = |names: &[&[String]]| {
            let mut names = names.concat();
            names.sort();
            names
        };
        assert_eq!(left("a"), sorted(&[&[lives.clone(), mine.clone(), other.clone()], &strange]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(left("a"), sorted(&[&[mine, other], &strange]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
