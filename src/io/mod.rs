//! Files of parameters and of solvers' states. Files are written beside their place and renamed, so there is never half of one.

pub mod hdf5;
pub mod nnabla;
pub mod safetensors;
pub(crate) mod states;
pub(crate) mod temporary;
pub(crate) mod unpack_budget;
mod wire;

use nnrs_kernels::error::{Error, ErrorKind, Result};
pub use states::{read_states, write_states};
use std::fs::{self, File, OpenOptions};
use std::path::Path;

/// Writes a file with `write`: a temporary one in the same folder, flushed to the disk, that then takes the name. If
/// anything fails, the old file (or none) is still there.
///
/// # Errors
/// What `write` says; the folder or the file cannot be written; there is something else than a file at `path`.
///
/// ```
/// use std::io::Write;
/// let path = std::env::temp_dir().join(format!("nnrs-doc-{}", std::process::id()));
/// nnrs::io::write_atomically(&path, |file| Ok(file.write_all(b"weights")?))?;
/// assert!(nnrs::io::write_atomically(&path, |_| Err(nnrs::Error::graph("no"))).is_err());
/// assert_eq!(std::fs::read(&path)?, b"weights");
/// std::fs::remove_file(&path)?;
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let target = temporary::target(path);
    if target.exists() && !target.is_file() {
        return Err(Error::arg("path", "a plain file to replace").actual(format!("'{}'", path.display())));
    }
    let temporary = temporary::beside(&target);
    let done = write_new(&temporary, &target, write).and_then(|_| Ok(fs::rename(&temporary, &target)?));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done.map_err(|e| e.argument("path").hint(format!("writing '{}'", path.display())))?;
    if let Some(folder) = target.parent() {
        flush_folder(folder);
    }
    Ok(())
}

/// Pushes the names in a folder to the disk. Not every system can; the files themselves are safe.
pub(crate) fn flush_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Opens a file to read: a plain one, since opening a pipe would wait for another process to write.
pub(crate) fn open(path: &Path) -> Result<File> {
    if path.exists() && !path.is_file() {
        return Err(Error::new(ErrorKind::Io, "expected a plain file, got a folder, pipe or device"));
    }
    Ok(File::open(path)?)
}

fn write_new(temporary: &Path, target: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    write(&mut file)?;
    if let Ok(old) = fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    Ok(file.sync_all()?)
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use std::io::Write;

    nnrs_kernels::unit_test!(a_failed_write_leaves_the_old_file);
    fn a_failed_write_leaves_the_old_file() {
        let folder = std::env::temp_dir().join(format!("nnrs-io-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        write_atomically(&path, |f| Ok(f.write_all(b"old")?)).unwrap();
        let failed = write_atomically(&path, |f| {
            f.write_all(b"half")?;
            Err(Error::graph("stop"))
        });
        assert!(failed.is_err() && fs::read(&path).unwrap() == b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert!(write_atomically(&folder, |_| Ok(())).is_err());
        assert!(write_atomically(&folder.join("none/file"), |_| Ok(())).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
