//! The word with which each collective begins: ranks that ask for different things, or for different shapes, get an error
//! that says so, and no hang.

use super::transport::{Transport, block_cuts};
use nnrs_kernels::error::{Error, ErrorKind, Result};

/// How much of a text is shown to the others.
const MOST_TEXT: usize = 1 << 16;
/// How many letters of an error the other ranks are told.
const MOST_WHY: usize = 300;
const NOTICE: &str = "nothing more of ";

/// What a rank says, in the place of a collective, that has given a backward run up.
#[derive(Debug, PartialEq)]
pub(super) struct Notice {
    rank: usize,
    /// The run's number in each group that has callbacks in it; groups by their place among all.
    pub(super) runs: Vec<(usize, u64)>,
    why: String,
}

impl Notice {
    /// What [`agree`] says of a run that has been given up here.
    pub(super) fn text(runs: impl IntoIterator<Item = (usize, u64)>, why: &str) -> String {
        let runs: Vec<String> = runs.into_iter().map(|(group, number)| format!("{group}:{number}")).collect();
        format!("{NOTICE}{}; {}", runs.join(" "), why.chars().take(MOST_WHY).collect::<String>())
    }

    pub(super) fn read(rank: usize, text: &str) -> Option<Notice> {
        let (runs, why) = text.split_once(" of ")?.1.strip_prefix(NOTICE)?.split_once("; ")?;
        let one = |run: &str| {
            let (group, number) = run.split_once(':')?;
            Some((group.parse().ok()?, number.parse().ok()?))
        };
        Some(Notice { rank, runs: runs.split(' ').map(one).collect::<Option<_>>()?, why: why.to_string() })
    }

    /// What a collective of that group ends with that meets it.
    pub(super) fn error(&self, name: &str, group: &str) -> Error {
        let (rank, why) = (self.rank, &self.why);
        let text = format!("rank {rank} of group '{group}' has given its backward run up: {why}");
        Error::new(ErrorKind::Argument, text)
            .function(format!("Communicator::{name}"))
            .hint("gradients of this run are missing: leave the step out on all ranks")
    }
}

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
///
/// What another rank says of a run that it has given up takes the place of one of its collectives, which any of the others
/// may meet. `hear` notes it, and gives the error for a collective that belongs to that run; one that does not is said once
/// more.
pub(super) fn agree(
    t: &dyn Transport,
    name: &str,
    said: &str,
    hear: impl Fn(&[Notice]) -> Option<Error>,
) -> Result<(), Stop> {
    if t.size() == 1 {
        return Ok(());
    }
    loop {
        let Some(texts) = exchange_texts(t, &format!("{name} of {said}"))? else { return Ok(()) };
        let others = texts.iter().enumerate().filter(|(rank, _)| *rank != t.rank());
        let notices: Vec<Notice> = others.filter_map(|(rank, text)| Notice::read(rank, text)).collect();
        let error = hear(&notices);
        if said.starts_with(NOTICE) {
            return Ok(());
        }
        if notices.is_empty() {
            return Err(Stop::Disagreement(disagreement(t.rank(), name, texts)));
        }
        if let Some(error) = error {
            return Err(Stop::Disagreement(error));
        }
    }
}

/// What all say, where that is not the same.
fn exchange_texts(t: &dyn Transport, text: &str) -> Result<Option<Vec<String>>> {
    let digests = exchange(t, digest(text.as_bytes()))?;
    if digests.iter().all(|d| *d == digests[0]) {
        return Ok(None);
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
    Ok(Some((0..t.size()).map(shown).collect()))
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

fn disagreement(rank: usize, name: &str, texts: Vec<String>) -> Error {
    let other = texts.iter().position(|text| *text != texts[rank]).unwrap_or(rank);
    let [own, theirs] = around_the_difference([texts[rank].clone(), texts[other].clone()]);
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

    #[test]
    fn a_notice_is_read_as_it_was_said() {
        let notice = Notice { rank: 1, runs: vec![(0, 17), (2, 3)], why: "a; b of c: ".into() };
        let text = format!("all_reduce of {}", Notice::text([(0, 17), (2, 3)], "a; b of c: "));
        assert_eq!(Notice::read(1, &text), Some(notice));
        for other in ["barrier of all", "new_group of 'nothing more of 0:1; x'", "x of nothing more of a:b; c", ""] {
            assert_eq!(Notice::read(1, other), None);
        }
    }
}
