//! Rows that scrolled off: kept, in messages, and in a terminal's scrollback.

use std::collections::VecDeque;
use std::io::Write;

use vt100::capture::{BasicFormattedCaptureState, RowContents};

use super::Snapshot;
use crate::LoginError;
use crate::message::{leb128, put_number};

/// What a row takes in memory beside its text.
const ROW: u64 = 48;

/// Bytes of a row with its looks at most. Without them, 1,000 cells of 22 bytes take less.
const MAX_ROW: usize = 32 << 10;

/// A row that scrolled off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScrolledRow {
    /// Characters, and how they look (SGR).
    pub(crate) text: String,
    /// Whether the next row goes on where it ends.
    pub(crate) wrapped: bool,
}

/// Rows that are kept.
#[derive(Debug, Default)]
pub(super) struct ScrolledRows {
    keeps: bool,
    rows: VecDeque<ScrolledRow>,
    bytes: u64,
    lost: u64,
    /// Tells with each row whether the one before was wrapped.
    wraps: BasicFormattedCaptureState,
}

impl ScrolledRows {
    /// Whether rows are kept from now on; says whether they were.
    pub(super) fn keep(&mut self, keep: bool) -> bool {
        core::mem::replace(&mut self.keeps, keep)
    }

    pub(super) fn add(&mut self, contents: &RowContents<'_>) {
        if !self.keeps {
            return;
        }
        let (mut text, mut after) = (String::new(), String::new());
        // Strings take everything.
        let _ = contents.write_formatted_basic(&mut after, &mut self.wraps);
        if let Some(before) = self.rows.back_mut() {
            before.wrapped = !after.starts_with('\n');
        }
        let _ = contents.write_formatted_basic(&mut text, &mut BasicFormattedCaptureState::new());
        if text.len() > MAX_ROW {
            text = unstyled(&text);
        }
        self.bytes += text.len() as u64 + ROW;
        self.rows.push_back(ScrolledRow { text, wrapped: false });
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn bound(&mut self, most: u64) {
        while self.bytes > most
            && let Some(row) = self.rows.pop_front()
        {
            self.bytes -= row.text.len() as u64 + ROW;
            self.lost += 1;
        }
    }

    pub(super) fn take(&mut self, bytes: usize) -> Vec<ScrolledRow> {
        let mut taken = Vec::new();
        if self.lost > 0 {
            taken.push(ScrolledRow { text: format!("[{} lines lost]", self.lost), wrapped: false });
            self.lost = 0;
        }
        let (mut size, mut continues) = (0, false);
        while size < bytes
            && let Some(mut row) = self.rows.pop_front()
        {
            self.bytes -= row.text.len() as u64 + ROW;
            if !row.wrapped {
                trim(&mut row.text, continues);
            }
            continues = row.wrapped;
            size += row.text.len() + 2;
            taken.push(row);
        }
        taken
    }

    pub(super) fn give_back(&mut self, rows: Vec<ScrolledRow>) {
        for row in rows.into_iter().rev() {
            self.bytes += row.text.len() as u64 + ROW;
            self.rows.push_front(row);
        }
    }
}

/// A row without its looks.
pub(super) fn unstyled(text: &str) -> String {
    let mut pieces = text.split('\x1b');
    let first = pieces.next().unwrap_or_default();
    let rest = pieces.map(|piece| piece.split_once('m').map_or("", |(_, text)| text));
    [first].into_iter().chain(rest).collect()
}

/// Takes away spaces at the end of a row that look like nothing. Of a row that goes on with another one is left: without any, the other
/// would not end.
fn trim(text: &mut String, continues: bool) {
    let styled = text.rfind('\x1b').is_some_and(|at| !text[at..].starts_with("\x1b[m"));
    if !styled {
        text.truncate(text.trim_end_matches(' ').len());
    }
    if continues && text.is_empty() {
        text.push(' ');
    }
}

/// Rows in a message: for each twice its length, one more if it is wrapped, and its text.
pub(crate) fn encode_rows(rows: &[ScrolledRow]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in rows {
        put_number(&mut bytes, (row.text.len() as u64) << 1 | u64::from(row.wrapped));
        bytes.extend_from_slice(row.text.as_bytes());
    }
    bytes
}

/// Rows from a message.
pub(crate) fn decode_rows(mut bytes: &[u8]) -> Result<Vec<ScrolledRow>, LoginError> {
    let mut rows = Vec::new();
    while !bytes.is_empty() {
        let (number, skipped) = leb128(bytes)?.ok_or(LoginError::Short)?;
        let length = usize::try_from(number >> 1).map_err(|_| LoginError::Bound)?;
        let (text, rest) = bytes[skipped..].split_at_checked(length).ok_or(LoginError::Short)?;
        let text = core::str::from_utf8(text).map_err(|_| LoginError::Text)?;
        // A row is one row: nothing in it moves the cursor.
        if text.chars().any(|character| character.is_control() && character != '\x1b') {
            return Err(LoginError::Text);
        }
        rows.push(ScrolledRow { text: text.to_owned(), wrapped: number & 1 == 1 });
        bytes = rest;
    }
    Ok(rows)
}

/// Makes a terminal that shows this ready to print rows from its top: all is shown at once at the end (synchronized output), it shows its
/// main screen, and that is empty.
pub(super) fn begin(shown: &Snapshot) -> Vec<u8> {
    let mut bytes = b"\x1b[?2026h".to_vec();
    if shown.is_alternate() {
        bytes.extend_from_slice(b"\x1b[?47l");
    }
    bytes.extend_from_slice(b"\x1b[?6l\x1b[r\x1b[?7h\x1b(B\x1b)B\x0f\x1b[0m");
    for row in 1..=shown.shown.size().0.get() {
        write(&mut bytes, format_args!("\x1b[{row};1H\x1b[2K"));
    }
    bytes.extend_from_slice(b"\x1b[H");
    bytes
}

/// Prints rows; the cursor is below the last then.
pub(super) fn print(rows: &[ScrolledRow], bytes: &mut Vec<u8>) {
    for row in rows {
        bytes.extend_from_slice(row.text.as_bytes());
        bytes.extend_from_slice(b"\x1b[0m");
        if !row.wrapped {
            bytes.extend_from_slice(b"\r\n");
        }
    }
    if rows.last().is_some_and(|row| row.wrapped) {
        bytes.extend_from_slice(b"\r\n");
    }
}

/// Pushes the uppermost `left` of `rows` off the screen.
pub(super) fn push(left: u16, rows: u16, bytes: &mut Vec<u8>) {
    write(bytes, format_args!("\x1b[{rows};1H"));
    bytes.resize(bytes.len() + usize::from(left), b'\n');
}

pub(super) fn end(bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(b"\x1b[?2026l");
}

fn write(bytes: &mut Vec<u8>, text: core::fmt::Arguments<'_>) {
    // A vector takes everything.
    let written = bytes.write_fmt(text);
    debug_assert!(written.is_ok(), "memory takes bytes");
}
