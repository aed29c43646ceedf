//! Which backward run ranks speak of: the how many-th it is.

use std::collections::BTreeMap;
use std::fmt;

/// The how many-th a run is of those around it, or how many there have been.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunNumber {
    pub(super) of_all: u64,
    /// Of those that have callbacks of a group, for each group that the run has; groups by their place among all.
    pub(super) of_groups: BTreeMap<usize, u64>,
}

impl RunNumber {
    /// Whether two ranks mean one run; runs of all count where they have no group in common.
    pub(super) fn is_that_of(&self, other: &RunNumber) -> bool {
        self.compare(other, |a, b| a == b)
    }

    /// Whether so many have not begun yet.
    pub(super) fn is_after(&self, counts: &RunNumber) -> bool {
        self.compare(counts, |number, count| number > count)
    }

    fn compare(&self, other: &RunNumber, how: impl Fn(u64, u64) -> bool) -> bool {
        let both = |(group, own): (&usize, &u64)| other.of_groups.get(group).map(|theirs| (*own, *theirs));
        let mut common = self.of_groups.iter().filter_map(both).peekable();
        match common.peek() {
            None => how(self.of_all, other.of_all),
            Some(_) => common.any(|(own, theirs)| how(own, theirs)),
        }
    }

    /// The larger ones count.
    pub(super) fn catch_up(&mut self, other: &RunNumber) {
        self.of_all = self.of_all.max(other.of_all);
        for (&group, &number) in &other.of_groups {
            let own = self.of_groups.entry(group).or_default();
            *own = number.max(*own);
        }
    }

    /// What `Display` has written.
    pub(super) fn read(text: &str) -> Option<RunNumber> {
        let mut parts = text.split(' ');
        let of_all = parts.next()?.parse().ok()?;
        let one = |part: &str| {
            let (group, number) = part.split_once(':')?;
            Some((group.parse().ok()?, number.parse().ok()?))
        };
        Some(RunNumber { of_all, of_groups: parts.map(one).collect::<Option<_>>()? })
    }
}

impl fmt::Display for RunNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of_all)?;
        self.of_groups.iter().try_for_each(|(group, number)| write!(f, " {group}:{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> RunNumber {
        RunNumber::read(text).unwrap()
    }

    #[test]
    fn groups_in_common_count_first() {
        for (a, b, is_that, is_after) in [
            ("7 0:3", "9 0:3", true, false),
            ("7 0:3", "7 0:2", false, true),
            ("7 0:3 2:1", "7 1:5 2:1", true, false),
            ("7 0:3", "7 1:4", true, false),
            ("8 0:3", "7 1:4", false, true),
            ("8", "7 1:4", false, true),
        ] {
            assert_eq!(number(a).is_that_of(&number(b)), is_that, "{a}, {b}");
            assert_eq!(number(a).is_after(&number(b)), is_after, "{a}, {b}");
        }
        let mut counts = number("7 0:3 1:1");
        counts.catch_up(&number("5 0:4 2:2"));
        assert_eq!(counts.to_string(), "7 0:4 1:1 2:2");
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "x", "1 0", "1 a:1", "1 0:-1", "1  0:1"] {
            assert_eq!(RunNumber::read(text), None, "{text}");
        }
    }
}
