//! Looks for signs of secrets. Almost no text has one, and then there is nothing more to do. Where there is a sign, the
//! Python code decides (redaction/redactor.py).
//!
//! The signs cover everything that its three searches could find. Where an exact test is costly, there are more signs.

use aho_corasick::{packed, AhoCorasick, MatchKind};
use memchr::memmem::Finder;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::values::Gathered;

/// The signs, as bits of the answer.
const STOP: u8 = 1;
const WORD: u8 = 2;
const TEXT: u8 = 4;

const BLOB: usize = 2048;
const ENDINGS: [&str; 7] = ["ken", "key", "pass", "pwd", "cret", "curl ", "cookie"];

/// The literals of one redactor's patterns, by where they have to be.
#[pyclass(frozen)]
pub struct Scanner {
    endings: AhoCorasick,
    /// The same with wide instructions, where the processor has them.
    quick_endings: Option<packed::Searcher>,
    word: AhoCorasick,
    before: AhoCorasick,
    text: Vec<Finder<'static>>,
    distance: usize,
}

#[pymethods]
impl Scanner {
    #[new]
    fn new(word: Vec<String>, before: Vec<String>, text: Vec<String>, distance: usize) -> PyResult<Self> {
        Ok(Scanner {
            endings: searcher(ENDINGS)?,
            quick_endings: packed::Searcher::new(ENDINGS),
            word: searcher(word)?,
            before: searcher(before)?,
            text: text.iter().map(|literal| Finder::new(literal).into_owned()).collect(),
            distance,
        })
    }

    /// Which signs a text has; 0 is none at all.
    fn look(&self, py: Python<'_>, text: &str) -> u8 {
        crate::apart(py, text.len(), || self.signs(text))
    }

    /// True if no text of these events has a sign and no key is the name of a secret. `fields` maps a type to the
    /// fields to search. False means that values.py has to decide.
    fn are_clean(&self, py: Python<'_>, events: &Bound<'_, PyList>, fields: &Bound<'_, PyDict>) -> PyResult<bool> {
        let mut gathered = Gathered::new(fields);
        for event in events.iter() {
            if !gathered.add_event(&event)? {
                return Ok(false);
            }
        }
        Ok(self.is_clean(py, &gathered.text))
    }
}

impl Scanner {
    pub fn is_clean(&self, py: Python<'_>, text: &str) -> bool {
        crate::apart(py, text.len(), || self.signs(text) == 0)
    }

    fn signs(&self, text: &str) -> u8 {
        let found = |sign, has| if has { sign } else { 0 };
        found(STOP, self.has_stop(text.to_ascii_lowercase().as_bytes()))
            | found(WORD, self.has_word(text))
            | found(TEXT, self.text.iter().any(|literal| literal.find(text.as_bytes()).is_some()))
    }

    /// Whether something is assigned to the name of a secret (assignments.py).
    fn has_stop(&self, low: &[u8]) -> bool {
        let is_stop = |hit: aho_corasick::Match| {
            let (before, after) = (&low[..hit.start()], &low[hit.end()..]);
            match ENDINGS[hit.pattern().as_usize()] {
                "ken" => is_separator(after) || (before.ends_with(b"-to") && after.starts_with(b" ")),
                "key" => ends_in_key(before, after),
                "pass" => ends_in_pass(before, after),
                "pwd" => is_separator(after),
                "cret" => is_separator(after) || (before.ends_with(b"-se") && after.starts_with(b" ")),
                _ => true,
            }
        };
        match &self.quick_endings {
            Some(endings) => endings.find_iter(low).any(is_stop),
            None => self.endings.find_iter(low).any(is_stop),
        }
    }

    /// Whether a long word has a literal in it or before it (words.py).
    fn has_word(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let starts = run_starts(bytes);
        let mut at = 0;
        while let Some(next) = memchr::memchr(1, &starts[at..]) {
            let start = at + next;
            let end = bytes[start..].iter().position(|b| !is_word(*b)).map_or(bytes.len(), |size| start + size);
            at = end;
            let word = &bytes[start..end];
            if word.iter().all(|b| matches!(b, b'a'..=b'z' | b'_' | b'-')) {
                continue;
            }
            if matches!(bytes.get(end), Some(b'+' | b'/')) {
                let is_blob = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
                let size = bytes[start..].iter().take_while(is_blob).count();
                if size >= BLOB {
                    at = start + size;
                    continue;
                }
            }
            let first = text[..start].char_indices().rev().take(self.distance).last().map_or(start, |(i, _)| i);
            if holds(&self.word, word) || holds(&self.before, &bytes[first..start]) {
                return true;
            }
        }
        false
    }
}

fn searcher<P: AsRef<[u8]>>(literals: impl IntoIterator<Item = P>) -> PyResult<AhoCorasick> {
    let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(literals);
    built.map_err(|problem| PyValueError::new_err(problem.to_string()))
}

/// A literal that starts with a line break matches only at the start.
fn holds(literals: &AhoCorasick, place: &[u8]) -> bool {
    literals.is_match(&[b"\n", place].concat())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// For each byte whether twenty word characters start there: 1 + 1 + 2 + 4 + 8 + 4. Compilers turn these passes without
/// branches into wide instructions; to search for the ends of words one by one takes three times as long.
fn run_starts(bytes: &[u8]) -> Vec<u8> {
    let mut starts: Vec<u8> = bytes.iter().map(|b| u8::from(is_word(*b))).collect();
    both::<1>(&mut starts);
    both::<2>(&mut starts);
    both::<4>(&mut starts);
    both::<8>(&mut starts);
    both::<4>(&mut starts);
    starts
}

/// Keeps a mark only if there is another one `STEP` bytes later.
fn both<const STEP: usize>(places: &mut [u8]) {
    let last = places.len().saturating_sub(STEP);
    for i in 0..last {
        places[i] &= places[i + STEP];
    }
    places[last..].fill(0);
}

/// `=`, `:`, `=>`, `:=`, ` is `, `>` after a name, with quotes, brackets and blanks between.
fn is_separator(after: &[u8]) -> bool {
    if after.starts_with(b">") || after.starts_with(b" is ") || after.starts_with(b" is: ") {
        return true;
    }
    let skipped = after.iter().take(12).take_while(|b| b"\"']\\ \t".contains(b)).count();
    match &after[skipped..] {
        [b'=', ..] => true,
        [b':', b':', ..] => false,
        [b':', ..] => true,
        _ => false,
    }
}

fn ends_in_key(before: &[u8], after: &[u8]) -> bool {
    let is_name = matches!(before.last(), Some(b'a'..=b'z' | b'_' | b'-' | b'.'));
    let is_phrase = matches!(before, [.., b'a'..=b'z' | b'0'..=b'9', b' ']);
    ((is_name || is_phrase) && is_separator(after))
        || (is_name && after.strip_prefix(b"_base").is_some_and(is_separator))
        || (before.ends_with(b"-") && after.starts_with(b" "))
        || after.starts_with(b"-----")
        || after.starts_with(b" block-----")
}

fn ends_in_pass(before: &[u8], after: &[u8]) -> bool {
    let ends: [&[u8]; 4] = [b"", b"word", b"phrase", b"wd"];
    if ends.iter().any(|end| after.strip_prefix(*end).is_some_and(is_separator)) {
        return true;
    }
    // Anywhere on its line; Python checks that it is at the end.
    let is_apart = before.last().is_some_and(|b| !(b.is_ascii_alphanumeric() || *b == b'_'));
    is_apart && after.starts_with(b"word ")
}
