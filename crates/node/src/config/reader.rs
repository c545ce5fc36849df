//! Walks a parsed TOML tree and notes, with its place, everything that does not belong there.

use std::cell::{OnceCell, RefCell};
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Diagnostic;
use super::problem::{Problem, nearest};

/// A value with its place in the text.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// What was found wrong so far.
pub(super) struct Findings<'t> {
    text: &'t str,
    /// Where lines end: each peer's line is asked for, and there may be thousands.
    line_ends: OnceCell<Vec<usize>>,
    found: RefCell<Vec<Diagnostic>>,
}

impl<'t> Findings<'t> {
    pub(super) const fn new(text: &'t str) -> Findings<'t> {
        Findings { text, line_ends: OnceCell::new(), found: RefCell::new(Vec::new()) }
    }

    pub(super) fn note(&self, span: Range<usize>, problem: impl Into<Problem>) {
        self.found.borrow_mut().push(Diagnostic::new(self.text, span, problem.into()));
    }

    /// The line, counted from 1, of byte `at`.
    pub(super) fn line_of(&self, at: usize) -> usize {
        let ends = || self.text.match_indices('\n').map(|(end, _)| end).collect();
        self.line_ends.get_or_init(ends).partition_point(|end| *end < at) + 1
    }

    /// Everything, in the order of the file.
    pub(super) fn finish(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        found
    }
}

/// One table of the file, whose unknown keys have been noted.
#[derive(Clone)]
pub(super) struct Section<'a> {
    name: &'static str,
    table: &'a DeTable<'a>,
    span: Range<usize>,
    findings: &'a Findings<'a>,
}

impl<'a> Section<'a> {
    pub(super) fn new(
        findings: &'a Findings<'a>,
        name: &'static str,
        table: &'a DeTable<'a>,
        span: Range<usize>,
        known: &'static [&'static str],
    ) -> Section<'a> {
        for (key, _) in table {
            let given = key.get_ref().as_ref();
            if known.contains(&given) {
                continue;
            }
            let problem = match given.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
                "privatekey" | "presharedkey" | "secret" => Problem::InlineKey,
                _ => Problem::UnknownKey {
                    key: given.to_owned(),
                    section: name,
                    nearest: nearest(given, known),
                    known,
                },
            };
            findings.note(key.span(), problem);
        }
        Section { name, table, span, findings }
    }

    /// The one table `[name]` that `key` stands for.
    pub(super) fn one(
        &self,
        key: &'static str,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Option<Section<'a>> {
        let value = self.value(key)?;
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, "a single section in brackets", value);
            return None;
        };
        Some(Section::new(self.findings, name, table, value.span(), known))
    }

    /// Every table `[[name]]`.
    pub(super) fn many(
        &self,
        key: &'static str,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Vec<Section<'a>> {
        const WANTED: &str = "a section in double brackets, one for each";
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(key, WANTED, value);
            return Vec::new();
        };
        let section = |item: &'a Spanned<DeValue<'a>>| match item.get_ref().as_table() {
            Some(table) => Some(Section::new(self.findings, name, table, item.span(), known)),
            None => {
                self.wrong_type(key, WANTED, item);
                None
            }
        };
        items.iter().filter_map(section).collect()
    }

    /// Where the section begins.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(super) fn line(&self) -> usize {
        self.findings.line_of(self.span.start)
    }

    pub(super) fn note(&self, span: Range<usize>, problem: impl Into<Problem>) {
        self.findings.note(span, problem);
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    /// Notes a key that must be there and is not.
    pub(super) fn require(&self, key: &'static str, example: &'static str) {
        if self.value(key).is_none() {
            self.note(self.span(), Problem::Missing { key, section: self.name, example });
        }
    }

    /// Notes that the value of `key` has the wrong type.
    pub(super) fn wrong_type(&self, key: &str, wanted: &'static str, value: &Spanned<DeValue<'_>>) {
        let problem =
            Problem::Type { key: key.to_owned(), wanted, found: article(value.get_ref().type_str()) };
        self.note(value.span(), problem);
    }

    /// The text of `key`, read by `parse`.
    pub(super) fn parsed<T, E: Into<Problem>>(
        &self,
        key: &str,
        wanted: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Placed<T>> {
        let value = self.value(key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.wrong_type(key, wanted, value);
            return None;
        };
        self.place(value.span(), parse(text))
    }

    /// The texts of `key`, which is one text or a list of them; those that are wrong are left out.
    pub(super) fn list<T, E: Into<Problem>>(
        &self,
        key: &str,
        wanted: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<Placed<T>> {
        let read = |value: &Spanned<DeValue<'_>>| match value.get_ref().as_str() {
            Some(text) => self.place(value.span(), parse(text)),
            None => {
                self.wrong_type(key, wanted, value);
                None
            }
        };
        self.items(key).into_iter().filter_map(read).collect()
    }

    /// The items of a list, or the one value that stands for a list of one.
    pub(super) fn items(&self, key: &str) -> Vec<&'a Spanned<DeValue<'a>>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        value.get_ref().as_array().map_or_else(|| vec![value], |items| items.iter().collect())
    }

    /// The whole number of `key`.
    pub(super) fn integer(&self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?;
        let DeValue::Integer(integer) = value.get_ref() else {
            self.wrong_type(key, "a whole number", value);
            return None;
        };
        let number =
            u64::from_str_radix(integer.as_str(), integer.radix()).ok().filter(|n| range.contains(n));
        if number.is_none() {
            let (least, most) = (*range.start(), *range.end());
            self.note(value.span(), Problem::Range { key, given: integer.to_string(), least, most });
        }
        number
    }

    /// As [`Section::integer`] for numbers that fit 16 bits.
    pub(super) fn short(&self, key: &'static str, range: RangeInclusive<u16>) -> Option<u16> {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        self.integer(key, wide).and_then(|number| u16::try_from(number).ok())
    }

    pub(super) fn boolean(&self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            self.wrong_type(key, "true or false", value);
        }
        boolean
    }

    /// One of a few words, each with what it stands for.
    pub(super) fn choice<T: Copy>(
        &self,
        key: &'static str,
        known: &'static [&'static str],
        meanings: &[T],
    ) -> Option<T> {
        let parse = |given: &str| {
            let at = known.iter().position(|word| *word == given);
            at.and_then(|at| meanings.get(at).copied()).ok_or_else(|| Problem::Choice {
                key,
                given: given.to_owned(),
                nearest: nearest(given, known),
                known,
            })
        };
        self.parsed(key, "a string in quotes", parse).map(|placed| placed.value)
    }

    /// The same, or the first of them when there is no such key.
    pub(super) fn choice_or<T: Copy>(
        &self,
        key: &'static str,
        known: &'static [&'static str],
        meanings: &[T],
    ) -> Option<T> {
        if self.value(key).is_none() { meanings.first().copied() } else { self.choice(key, known, meanings) }
    }

    fn place<T, E: Into<Problem>>(&self, span: Range<usize>, result: Result<T, E>) -> Option<Placed<T>> {
        match result {
            Ok(value) => Some(Placed { value, span }),
            Err(problem) => {
                self.note(span, problem);
                None
            }
        }
    }
}

/// The name of a TOML type as it stands in a sentence.
fn article(name: &'static str) -> &'static str {
    match name {
        "string" => "a string",
        "integer" => "a whole number",
        "float" => "a float",
        "boolean" => "true or false",
        "datetime" => "a date",
        "array" => "a list",
        "table" => "a table",
        other => other,
    }
}
