//! `.nnp` files: a zip with a network as text and parameters beside it.

use super::message::broken;
use crate::io::unpack_budget::UnpackBudget;
use nnrs_kernels::array::alloc::refused;
use nnrs_kernels::error::Result;
use std::io::{Cursor, Read, Seek, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// All files of an archive, by name.
///
/// # Errors
/// `Format` where it is no archive, or unpacks to absurdly more than it is.
pub(super) fn unpack(bytes: &[u8], budget: &UnpackBudget) -> Result<Vec<(String, Vec<u8>)>> {
    let unreadable = |e: &dyn std::fmt::Display| broken(format!("it is no readable zip archive: {e}"));
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| unreadable(&e))?;
    let mut files = Vec::new();
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).map_err(|e| unreadable(&e))?;
        if file.is_dir() {
            continue;
        }
        let name = file.name().map_err(|e| unreadable(&e))?.to_string();
        if file.size() > budget.left() as u64 {
            return Err(broken(format!("'{name}' unpacks to {} bytes, in an archive of {}", file.size(), bytes.len())));
        }
        let data =
            read_up_to(&mut file, budget.left()).map_err(|e| broken(format!("'{name}' cannot be unpacked: {e}")))?;
        budget.spend(data.len())?;
        files.push((name, data));
    }
    Ok(files)
}

/// All bytes; an error if there are more than `most`. Memory grows with what is really there.
fn read_up_to(file: &mut impl Read, most: usize) -> Result<Vec<u8>> {
    let (mut data, mut block) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let n = file.read(&mut block)?;
        if n == 0 {
            return Ok(data);
        }
        if data.len() + n > most {
            return Err(broken(format!("it has more than {most} bytes")));
        }
        data.try_reserve(n).map_err(|_| refused(n))?;
        data.extend_from_slice(&block[..n]);
    }
}

/// Writes files into an archive, as they are: NNabla does not pack them either.
pub(super) fn pack(to: impl Write + Seek, files: &[(String, Vec<u8>)]) -> Result<()> {
    let failed = |e: zip::result::ZipError| nnrs_kernels::error::Error::from(std::io::Error::from(e));
    let mut archive = ZipWriter::new(to);
    for (name, data) in files {
        let large = data.len() >= u32::MAX as usize;
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
        archive.start_file(name.as_str(), options).map_err(failed)?;
        archive.write_all(data)?;
    }
    archive.finish().map_err(failed)?;
    Ok(())
}
