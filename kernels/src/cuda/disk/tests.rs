use super::*;
use crate::error::Error;
use std::cell::Cell;
use std::process::Command;

/// A folder of a test's own, removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nnrs-disk-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.0).map_or(vec![], |all| all.map(|e| e.unwrap().path()).collect())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Loads what ends with a whole image; counts how often it is made.
fn ask(folder: Option<&Path>, key: &str, made: &Cell<u32>) -> String {
    let make = || {
        made.set(made.get() + 1);
        Ok(format!("image of {key}").into_bytes())
    };
    let load = |b: &[u8]| match String::from_utf8(b.to_vec()) {
        Ok(text) if text == format!("image of {key}") => Ok(text),
        _ => Err(Error::graph("no image")),
    };
    cached(folder, key, make, load).unwrap()
}

unit_test!(made_once);
fn made_once() {
    let (folder, made) = (Folder::new("once"), Cell::new(0));
    for _ in 0..3 {
        assert_eq!(ask(Some(&folder.0), "a", &made), "image of a");
        assert_eq!(ask(Some(&folder.0), "b", &made), "image of b");
    }
    assert_eq!((made.get(), folder.files().len()), (2, 2));
}

unit_test!(without_a_folder_made_each_time);
fn without_a_folder_made_each_time() {
    let made = Cell::new(0);
    ask(None, "a", &made);
    ask(None, "a", &made);
    assert_eq!(made.get(), 2);
}

unit_test!(any_bytes_are_survived_and_written_over);
fn any_bytes_are_survived_and_written_over() {
    let (folder, made) = (Folder::new("bytes"), Cell::new(0));
    ask(Some(&folder.0), "a", &made);
    let file = folder.files().remove(0);
    let whole = std::fs::read(&file).unwrap();
    let mut wrong: Vec<Vec<u8>> = (0..whole.len()).map(|n| whole[..n].to_vec()).collect();
    for i in 0..whole.len() {
        let mut one = whole.clone();
        one[i] ^= 0x10;
        wrong.push(one);
    }
    // Whole files: one of another key, and one whose image does not load.
    wrong.extend([contents("b", b"image of b"), contents("a", b"image of b"), [whole.clone(), vec![0]].concat()]);
    for bytes in wrong {
        std::fs::write(&file, &bytes).unwrap();
        made.set(0);
        assert_eq!(ask(Some(&folder.0), "a", &made), "image of a");
        assert_eq!(made.get(), 1);
        assert_eq!(std::fs::read(&file).unwrap(), whole);
    }
}

unit_test!(folders_that_cannot_be_written_are_no_error);
fn folders_that_cannot_be_written_are_no_error() {
    let (folder, made) = (Folder::new("closed"), Cell::new(0));
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("file");
    std::fs::write(&file, "not a folder").unwrap();
    // (Root may write everywhere, so these are places where no user can.)
    for place in [file.join("below"), PathBuf::from("/proc/nowhere/kernels"), file.clone()] {
        ask(Some(&place), "a", &made);
    }
    assert_eq!(made.get(), 3);
    assert_eq!(std::fs::read(&file).unwrap(), b"not a folder");
    // A folder where the file should be.
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir_all(folder.0.join(format!("{:016x}.{ENDING}", hash(b"a")))).unwrap();
    ask(Some(&folder.0), "a", &made);
    assert_eq!((made.get(), folder.files().len()), (4, 1));
}

unit_test!(the_oldest_go_first);
fn the_oldest_go_first() {
    let folder = Folder::new("trim");
    for k in 0..10u64 {
        let file = folder.0.join(format!("{k}.{ENDING}"));
        write(&folder.0, &file, &[0; 100]).unwrap();
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 * (10 - k));
        std::fs::File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
    }
    std::fs::write(folder.0.join("others"), [0; 5000]).unwrap();
    trim(&folder.0, 1000).unwrap();
    assert_eq!(folder.files().len(), 11);
    trim(&folder.0, 999).unwrap();
    let mut names: Vec<_> = folder.files().iter().map(|f| f.file_name().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["0.kernel", "1.kernel", "2.kernel", "3.kernel", "4.kernel", "5.kernel", "6.kernel", "others"]);
}

unit_test!(two_processes);
/// Threads and processes that make the same kernels at once see whole ones.
fn two_processes() {
    const AGAIN: &str = "NNRS_TEST_DISK";
    let work = |place: &Path| {
        for round in 0..200 {
            let made = Cell::new(0);
            let key = format!("key {}", round % 5);
            ask(Some(place), &key, &made);
            // As if it had not been made yet, now and then.
            if round % 7 == 0 {
                let _ = std::fs::remove_file(place.join(format!("{:016x}.{ENDING}", hash(key.as_bytes()))));
            }
        }
    };
    if let Some(place) = std::env::var_os(AGAIN) {
        return work(Path::new(&place));
    }
    let folder = Folder::new("processes");
    let mut other = Command::new(std::env::current_exe().unwrap());
    let mut other = other.args(["disk::tests::two_processes", "--quiet"]).env(AGAIN, &folder.0).spawn().unwrap();
    std::thread::scope(|s| (0..2).for_each(|_| drop(s.spawn(|| work(&folder.0)))));
    assert!(other.wait().unwrap().success());
    assert!(folder.files().iter().all(|f| f.extension().unwrap() == ENDING));
}
