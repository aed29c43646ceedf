//! Compiled kernels on disk, so that the next process need not compile them. Whatever lies there is survived: a file says
//! what it is of and has a sum over its bytes; what is wrong, or cannot be loaded, is made anew and written over.

use crate::error::Result;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

/// Begins each file.
const MARK: &[u8] = b"nnrs kernel 1\n";
const ENDING: &str = "kernel";
/// Bytes of all files at most; the oldest go first.
const MOST: u64 = 256 << 20;

/// Where kernels are kept: `NNRS_CACHE_DIR` (empty: nowhere), or `nnrs/kernels` where the user's caches are.
pub(super) fn folder() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if std::env::var_os("NNRS_CACHE_DIR").is_some() {
        return given("NNRS_CACHE_DIR");
    }
    let caches = given("XDG_CACHE_HOME").or_else(|| Some(given("HOME")?.join(".cache")))?;
    Some(caches.join("nnrs").join("kernels")).filter(|f| f.is_absolute())
}

/// What `load` makes of the image that belongs to `key`: from the disk, or else from `make`, and then it is kept there.
pub(super) fn cached<T>(
    folder: Option<&Path>,
    key: &str,
    make: impl FnOnce() -> Result<Vec<u8>>,
    load: impl Fn(&[u8]) -> Result<T>,
) -> Result<T> {
    let file = folder.map(|f| f.join(format!("{:016x}.{ENDING}", hash(key.as_bytes()))));
    let kept = file.as_ref().and_then(|f| image(&std::fs::read(f).ok()?, key));
    if let Some(ready) = kept.and_then(|bytes| load(&bytes).ok()) {
        return Ok(ready);
    }
    let bytes = make()?;
    let ready = load(&bytes)?;
    if let (Some(folder), Some(file)) = (folder, file) {
        // Without a place to keep it, it is compiled again next time.
        let _ = write(folder, &file, &contents(key, &bytes)).and_then(|()| trim(folder, MOST));
    }
    Ok(ready)
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    bytes.hash(&mut hash);
    hash.finish()
}

/// The mark, the sum over the rest, the length of the key, the key, and the image.
fn contents(key: &str, image: &[u8]) -> Vec<u8> {
    let rest = [&(key.len() as u64).to_le_bytes()[..], key.as_bytes(), image].concat();
    [MARK, &hash(&rest).to_le_bytes(), &rest].concat()
}

fn image(contents: &[u8], key: &str) -> Option<Vec<u8>> {
    let (sum, rest) = contents.strip_prefix(MARK)?.split_first_chunk::<8>()?;
    let (length, after) = rest.split_first_chunk::<8>()?;
    let whole = u64::from_le_bytes(*sum) == hash(rest) && u64::from_le_bytes(*length) == key.len() as u64;
    whole.then(|| after.strip_prefix(key.as_bytes()).map(<[u8]>::to_vec)).flatten()
}

/// Others see the file whole or not at all.
fn write(folder: &Path, file: &Path, contents: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let own = format!("{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Relaxed));
    let own = folder.join(own);
    let mut to = std::fs::File::create(&own)?;
    let done = to.write_all(contents).and_then(|()| std::fs::rename(&own, file));
    if done.is_err() {
        let _ = std::fs::remove_file(&own);
    }
    done
}

/// Removes the oldest files until the rest has `most` bytes. (What a process left behind that ended while it wrote, too.)
fn trim(folder: &Path, most: u64) -> io::Result<()> {
    let ours = |p: &Path| p.extension().is_some_and(|e| e == ENDING || e == "tmp");
    let of = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry.ok().filter(|e| ours(&e.path()))?;
        let about = entry.metadata().ok()?;
        Some((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len(), entry.path()))
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = std::fs::read_dir(folder)?.filter_map(of).collect();
    let mut sum: u64 = files.iter().map(|f| f.1).sum();
    if sum > most {
        files.sort();
        for (_, bytes, path) in files {
            if sum <= most / 4 * 3 {
                break;
            }
            // Another process may have been faster.
            let _ = std::fs::remove_file(path);
            sum -= bytes;
        }
    }
    Ok(())
}

#[cfg(feature = "emulate")]
mod tests;
