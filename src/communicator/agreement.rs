//! The word with which each collective begins: ranks that ask for different things, or for different shapes, get an error
//! that says so, and no hang.

use super::transport::{Transport, block_cuts};
use nnrs_kernels::error::{Error, ErrorKind, Result};

/// How much of a text is shown to the others.
const MOST_TEXT: usize = 1 << 16;
/// What a rank says, with the reason, that has given up what the others are about to do.
pub(super) const NOTHING_MORE: &str = "nothing more: ";

/// Why a collective stops.
pub(super) enum Stop {
    /// Calls differ between ranks: all of them get it, and may go on.
    Disagreement(Error),
    /// The end of the communicator.
    Failure(Error),
}

impl From<Error> for Stop {
    fn from(e: Error) -> Stop {
        Stop::Failure(e)
    }
}

/// Returns when all ranks have come to this collective; an error where they do not all say the same of it.
pub(super) fn agree(t: &dyn Transport, name: &str, said: &str) -> Result<(), Stop> {
    if t.size() == 1 {
        return Ok(());
    }
    let text = format!("{name} of {said}");
    let digests = exchange(t, digest(text.as_bytes()))?;
    if digests.iter().all(|d| *d == digests[0]) {
        return Ok(());
    }
    let text = &text.as_bytes()[..text.len().min(MOST_TEXT)];
    let lengths = exchange(t, text.len() as u64)?;
    let longest = lengths.iter().copied().max().unwrap_or(0).min(MOST_TEXT as u64) as usize;
    let mut texts = vec![0; longest * t.size()];
    texts[t.rank() * longest..][..text.len()].copy_from_slice(text);
    t.all_gather(&mut texts, &block_cuts(longest, t.size()))?;
    let shown = |rank: usize| {
        let length = longest.min(lengths[rank] as usize);
        String::from_utf8_lossy(&texts[rank * longest..][..length]).into_owned()
    };
    let gave_up = |rank: usize| {
        let said = shown(rank);
        Some((rank, said.split_once(" of ")?.1.strip_prefix(NOTHING_MORE)?.to_string()))
    };
    if let Some((rank, why)) = (0..t.size()).filter(|&rank| rank != t.rank()).find_map(gave_up) {
        return Err(Stop::Disagreement(given_up(rank, name, &why)));
    }
    let other = digests.iter().position(|d| *d != digests[t.rank()]).unwrap_or(0);
    Err(Stop::Disagreement(disagreement(t.rank(), other, name, shown(t.rank()), shown(other))))
}

/// The numbers of all ranks.
fn exchange(t: &dyn Transport, own: u64) -> Result<Vec<u64>> {
    let mut bytes = vec![0; 8 * t.size()];
    bytes[8 * t.rank()..][..8].copy_from_slice(&own.to_le_bytes());
    t.all_gather(&mut bytes, &block_cuts(8, t.size()))?;
    Ok(bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect())
}

/// FNV-1a: texts that differ are told apart with certainty enough.
fn digest(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ b as u64).wrapping_mul(0x0000_0100_0000_01b3))
}

fn given_up(rank: usize, name: &str, why: &str) -> Error {
    Error::new(ErrorKind::Argument, format!("rank {rank} of the group has given its backward run up: {why}"))
        .function(format!("Communicator::{name}"))
        .hint("gradients of this run are missing: leave the step out on all ranks")
}

fn disagreement(rank: usize, other: usize, name: &str, own: String, theirs: String) -> Error {
    let [own, theirs] = around_the_difference([own, theirs]);
    Error::new(
        ErrorKind::Argument,
        format!("the same call on all ranks; rank {rank} of the group has {own}"),
    )
    .actual(format!("on rank {other} {theirs}"))
    .function(format!("Communicator::{name}"))
    .hint("each rank of a group calls the same collectives in the same order, with arrays of the same shapes and types")
}

/// Long texts cut to what is around their first difference.
fn around_the_difference(texts: [String; 2]) -> [String; 2] {
    const BEFORE: usize = 60;
    const LENGTH: usize = 240;
    let letters = texts.each_ref().map(|t| t.chars().collect::<Vec<_>>());
    let longest = letters.iter().map(Vec::len).max().unwrap_or(0);
    let same = letters[0].iter().zip(&letters[1]).take_while(|(a, b)| a == b).count();
    let start = if longest > LENGTH { same.saturating_sub(BEFORE) } else { 0 };
    letters.map(|letters| {
        let cut: String = letters.iter().skip(start).take(LENGTH).collect();
        let (before, after) = (start > 0, start + LENGTH < letters.len());
        format!("{}{cut}{}", if before { "..." } else { "" }, if after { "..." } else { "" })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_around_the_difference() {
        let long = |c: char| format!("{}{c}{}", "x".repeat(100), "y".repeat(400));
        let [a, b] = around_the_difference([long('1'), long('2')]);
        let expected = |c: char| format!("...{}{c}{}...", "x".repeat(60), "y".repeat(179));
        assert_eq!((a, b), (expected('1'), expected('2')));
        let short = ["all_reduce of a".to_string(), "barrier of all".to_string()];
        assert_eq!(around_the_difference(short.clone()), short);
    }
}
