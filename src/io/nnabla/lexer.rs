//! Words, signs and quoted texts of protobuf's text format.

use super::message::broken;
use super::text::unexpected;
use nnrs_kernels::error::Result;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name or a number without its sign.
    Word(&'a str),
    /// What is between quotes, escapes and all.
    Quoted(&'a str),
    /// A sign.
    Sign(char),
}

/// Where the reader is in the text.
pub(super) struct Lexer<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub(super) fn of(text: &'a str) -> Lexer<'a> {
        Lexer { whole: text, rest: text.strip_prefix('\u{feff}').unwrap_or(text) }
    }

    /// The line, counted from 1.
    pub(super) fn line(&self) -> usize {
        let read = &self.whole[..self.whole.len() - self.rest.len()];
        1 + read.bytes().filter(|b| *b == b'\n').count()
    }

    fn skip_space(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
        }
    }

    /// The next piece; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>> {
        self.skip_space();
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        if first == '"' || first == '\'' {
            return self.quoted(first).map(Some);
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let mut end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        if end == 0 {
            self.rest = &self.rest[first.len_utf8()..];
            return Ok(Some(Token::Sign(first)));
        }
        // The sign of an exponent belongs to its number, as in 1e-5.
        let is_number = first.is_ascii_digit() || first == '.';
        let is_hex = self.rest.starts_with("0x") || self.rest.starts_with("0X");
        if is_number && !is_hex && self.rest[..end].ends_with(['e', 'E']) && self.rest[end..].starts_with(['+', '-']) {
            let digits = self.rest[end + 1..].find(|c| !is_word(c)).unwrap_or(self.rest.len() - end - 1);
            end += 1 + digits;
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(Some(Token::Word(word)))
    }

    /// The next piece, which stays the next one.
    pub(super) fn peek(&mut self) -> Result<Option<Token<'a>>> {
        let here = self.rest;
        let token = self.next();
        self.rest = here;
        token
    }

    /// Whether `sign` was next; then it is read.
    pub(super) fn skip(&mut self, sign: char) -> Result<bool> {
        self.skip_space();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        Ok(rest.is_some())
    }

    fn quoted(&mut self, quote: char) -> Result<Token<'a>> {
        let inside = &self.rest[1..];
        let mut escaped = false;
        for (at, c) in inside.char_indices() {
            match c {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == quote => {
                    self.rest = &inside[at + 1..];
                    return Ok(Token::Quoted(&inside[..at]));
                }
                _ => {}
            }
        }
        Err(broken("a text without its closing quote"))
    }

    /// Quoted texts that follow one another, as one.
    pub(super) fn string(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        match self.next()? {
            Some(Token::Quoted(text)) => unescape(text, &mut bytes)?,
            other => return Err(unexpected("a text in quotes", other)),
        }
        while let Some(Token::Quoted(text)) = self.peek_quoted()? {
            self.next()?;
            unescape(text, &mut bytes)?;
        }
        String::from_utf8(bytes).map_err(|_| broken("a text that is no UTF-8"))
    }

    fn peek_quoted(&mut self) -> Result<Option<Token<'a>>> {
        self.skip_space();
        if self.rest.starts_with(['"', '\'']) { self.peek() } else { Ok(None) }
    }
}

fn unescape(text: &str, to: &mut Vec<u8>) -> Result<()> {
    let mut rest = text.as_bytes();
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        if b != b'\\' {
            to.push(b);
            continue;
        }
        let (&kind, after) = rest.split_first().ok_or_else(|| broken("a text that ends with '\\'"))?;
        rest = after;
        match kind {
            b'n' => to.push(b'\n'),
            b'r' => to.push(b'\r'),
            b't' => to.push(b'\t'),
            b'a' => to.push(7),
            b'b' => to.push(8),
            b'v' => to.push(11),
            b'f' => to.push(12),
            b'\\' | b'\'' | b'"' | b'?' => to.push(kind),
            b'x' | b'X' => to.push(code(&mut rest, 2, 16)?),
            b'u' => character(&mut rest, 4, to)?,
            b'U' => character(&mut rest, 8, to)?,
            b'0'..=b'7' => {
                rest = &text.as_bytes()[text.len() - rest.len() - 1..];
                to.push(code(&mut rest, 3, 8)?);
            }
            _ => return Err(broken(format!("the escape '\\{}'", kind as char))),
        }
    }
    Ok(())
}

/// Up to `most` digits as a number.
fn digits(rest: &mut &[u8], most: usize, radix: u32) -> Option<u32> {
    let n = rest.iter().take(most).take_while(|b| (**b as char).is_digit(radix)).count();
    let (text, after) = rest.split_at(n);
    *rest = after;
    u32::from_str_radix(std::str::from_utf8(text).ok()?, radix).ok()
}

fn code(rest: &mut &[u8], most: usize, radix: u32) -> Result<u8> {
    let n = digits(rest, most, radix).and_then(|n| u8::try_from(n).ok());
    n.ok_or_else(|| broken("an escape that is no byte"))
}

fn character(rest: &mut &[u8], most: usize, to: &mut Vec<u8>) -> Result<()> {
    let c = digits(rest, most, 16).and_then(char::from_u32);
    let c = c.ok_or_else(|| broken("an escape that is no character"))?;
    to.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}
