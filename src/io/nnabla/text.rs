//! Messages as text, as in `.nntxt`: protobuf's text format, read by a lexer and one loop over a message's fields.

use super::lexer::{Lexer, Token};
use super::message::{FieldValue, Message, broken};
use super::schema::{self, FieldKind, FieldSpec, MessageSpec};
use nnrs_kernels::error::Result;
use std::fmt::Write;

/// Reads a message of this kind.
///
/// # Errors
/// `Format` with the line where the text is no such message.
pub fn parse(spec: &'static MessageSpec, text: &str) -> Result<Message> {
    let mut lexer = Lexer::of(text);
    fields(&mut lexer, spec, None).map_err(|e| broken(format!("in line {}: {e}", lexer.line())))
}

/// The fields up to `end`, or to the end of the text. Messages lie in one another as deep as the schema goes, no deeper.
fn fields(lexer: &mut Lexer, spec: &'static MessageSpec, end: Option<char>) -> Result<Message> {
    let mut message = Message::of(spec);
    loop {
        match lexer.next()? {
            None if end.is_none() => return Ok(message),
            Some(Token::Sign(c)) if Some(c) == end => return Ok(message),
            Some(Token::Sign(',' | ';')) => {}
            Some(Token::Word(name)) => {
                let unknown = || broken(format!("'{}' has no field '{}'", spec.name, shown(name)));
                let at = spec.find(name).ok_or_else(unknown)?;
                field(lexer, &mut message, at)?;
            }
            other => return Err(unexpected("the name of a field", other)),
        }
    }
}

fn field(lexer: &mut Lexer, message: &mut Message, at: usize) -> Result<()> {
    let spec = &message.spec().fields[at];
    let has_colon = lexer.skip(':')?;
    if !has_colon && !matches!(spec.kind, FieldKind::Message(_)) {
        return Err(broken(format!("expected ':' behind '{}'", spec.name)));
    }
    if !spec.repeated || !lexer.skip('[')? {
        let v = value(lexer, spec)?;
        message.put(at, v);
        return Ok(());
    }
    while !lexer.skip(']')? {
        let v = value(lexer, spec)?;
        message.put(at, v);
        if !lexer.skip(',')? && !lexer.peek()?.is_some_and(|t| t == Token::Sign(']')) {
            return Err(broken(format!("expected ',' or ']' in the list '{}'", spec.name)));
        }
    }
    Ok(())
}

fn value(lexer: &mut Lexer, spec: &FieldSpec) -> Result<FieldValue> {
    match spec.kind {
        FieldKind::Message(kind) => {
            let end = match lexer.next()? {
                Some(Token::Sign('{')) => '}',
                Some(Token::Sign('<')) => '>',
                other => return Err(unexpected("'{'", other)),
            };
            Ok(FieldValue::Message(fields(lexer, &schema::messages()[kind], Some(end))?))
        }
        FieldKind::Text => Ok(FieldValue::Text(lexer.string()?)),
        FieldKind::Flag => match lexer.next()? {
            Some(Token::Word("true" | "True" | "t" | "1")) => Ok(true.into()),
            Some(Token::Word("false" | "False" | "f" | "0")) => Ok(false.into()),
            other => Err(unexpected("true or false", other)),
        },
        FieldKind::Int | FieldKind::Count => {
            let n = whole(lexer)?;
            let fits = spec.kind == FieldKind::Int || u32::try_from(n).is_ok();
            fits.then_some(n.into()).ok_or_else(|| broken(format!("'{}' is a number of 32 bits", spec.name)))
        }
        FieldKind::Float => Ok(FieldValue::Number(number(lexer)? as f32 as f64)),
        FieldKind::Double => Ok(FieldValue::Number(number(lexer)?)),
    }
}

fn whole(lexer: &mut Lexer) -> Result<i64> {
    let minus = lexer.skip('-')?;
    let token = lexer.next()?;
    let Some(Token::Word(word)) = token else { return Err(unexpected("a whole number", token)) };
    let magnitude = match word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        Some(hex) => i128::from_str_radix(hex, 16),
        None if word.len() > 1 && word.starts_with('0') => i128::from_str_radix(word, 8),
        None => word.parse(),
    };
    let signed = magnitude.ok().filter(|_| word.starts_with(|c: char| c.is_ascii_digit()));
    let n = signed.map(|n| if minus { -n } else { n }).and_then(|n| i64::try_from(n).ok());
    n.ok_or_else(|| unexpected("a whole number of 64 bits", token))
}

fn number(lexer: &mut Lexer) -> Result<f64> {
    let sign = if lexer.skip('-')? { -1.0 } else { 1.0 };
    let token = lexer.next()?;
    let Some(Token::Word(word)) = token else { return Err(unexpected("a number", token)) };
    let lower = word.to_ascii_lowercase();
    let magnitude = match lower.as_str() {
        "inf" | "infinity" => Some(f64::INFINITY),
        "nan" => Some(f64::NAN),
        text if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            text.strip_suffix('f').unwrap_or(text).parse().ok()
        }
        _ => None,
    };
    magnitude.map(|n: f64| sign * n).ok_or_else(|| unexpected("a number", token))
}

pub(super) fn unexpected(wanted: &str, token: Option<Token>) -> nnrs_kernels::error::Error {
    broken(match token {
        None => format!("expected {wanted}, but the text ends"),
        Some(Token::Word(word)) => format!("expected {wanted}, got '{}'", shown(word)),
        Some(Token::Quoted(_)) => format!("expected {wanted}, got a text"),
        Some(Token::Sign(c)) => format!("expected {wanted}, got '{c}'"),
    })
}

fn shown(word: &str) -> String {
    word.chars().take(40).collect()
}

/// Writes a message as text.
pub fn print(message: &Message) -> String {
    let mut to = String::new();
    print_fields(&mut to, message, 0);
    to
}

fn print_fields(to: &mut String, message: &Message, depth: usize) {
    for (spec, value) in message.fields() {
        let name = &spec.name;
        let mut line = |text: &str| _ = writeln!(to, "{:indent$}{name}: {text}", "", indent = 2 * depth);
        match value {
            FieldValue::Int(0) if !spec.one_of => {}
            FieldValue::Int(n) => line(&whole_text(spec, *n)),
            FieldValue::Number(n) if n.to_bits() == 0 => {}
            FieldValue::Number(n) => line(&number_text(spec, *n)),
            FieldValue::Text(text) if text.is_empty() => {}
            FieldValue::Text(text) => line(&quoted(text)),
            FieldValue::Ints(list) => list.iter().for_each(|n| line(&whole_text(spec, *n))),
            FieldValue::Floats(list) => list.iter().for_each(|n| line(&number_text(spec, f64::from(*n)))),
            FieldValue::Texts(list) => list.iter().for_each(|t| line(&quoted(t))),
            FieldValue::Message(m) => print_message(to, name, m, depth),
            FieldValue::Messages(list) => list.iter().for_each(|m| print_message(to, name, m, depth)),
        }
    }
}

fn print_message(to: &mut String, name: &str, message: &Message, depth: usize) {
    let _ = writeln!(to, "{:indent$}{name} {{", "", indent = 2 * depth);
    print_fields(to, message, depth + 1);
    let _ = writeln!(to, "{:indent$}}}", "", indent = 2 * depth);
}

fn whole_text(spec: &FieldSpec, n: i64) -> String {
    match spec.kind {
        FieldKind::Flag => (n != 0).to_string(),
        _ => n.to_string(),
    }
}

/// The shortest text that reads back as the same number.
fn number_text(spec: &FieldSpec, n: f64) -> String {
    match (n.is_nan(), n.is_infinite()) {
        (true, _) => "nan".into(),
        (_, true) => if n > 0.0 { "inf" } else { "-inf" }.into(),
        _ if spec.kind == FieldKind::Double => format!("{n:?}"),
        _ => format!("{:?}", n as f32),
    }
}

/// Bytes beyond ASCII are escaped: a reader need not guess the encoding of the file.
fn quoted(text: &str) -> String {
    let mut to = String::from("\"");
    for b in text.bytes() {
        match b {
            b'\n' => to.push_str("\\n"),
            b'\r' => to.push_str("\\r"),
            b'\t' => to.push_str("\\t"),
            b'"' => to.push_str("\\\""),
            b'\\' => to.push_str("\\\\"),
            b' '..=b'~' => to.push(b as char),
            _ => _ = write!(to, "\\{b:03o}"),
        }
    }
    to.push('"');
    to
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> String {
        print(&parse(schema::root(), text).unwrap())
    }

    nnrs_kernels::unit_test!(ways_to_write_the_same);
    fn ways_to_write_the_same() {
        let plain = "network {\n  name: \"a\\n\\303\\244\"\n  batch_size: 16\n}\n";
        assert_eq!(round_trip(plain), plain);
        assert_eq!(round_trip("network: < name: 'a\\n' \"\u{e4}\"; batch_size: 0x10, > # rest"), plain);
        assert_eq!(round_trip("network [{name: \"a\\n\\xc3\\xa4\" batch_size: 020}]"), plain);
    }

    nnrs_kernels::unit_test!(numbers);
    fn numbers() {
        let text = |n: &str| round_trip(&format!("parameter {{ data: {n} }}"));
        for (n, printed) in [("1", "1.0"), ("-1.5f", "-1.5"), ("[inf]", "inf"), ("-Infinity", "-inf"), ("nan", "nan")] {
            assert_eq!(text(n), format!("parameter {{\n  data: {printed}\n}}\n"));
        }
        assert_eq!(text("[1, 2]").lines().count(), 4);
    }

    nnrs_kernels::unit_test!(what_is_no_message_is_an_error);
    fn what_is_no_message_is_an_error() {
        let wrong = ["network", "network {", "network }", "nothing: 1", "version 1", "version: 1", "version: \"a", "}"];
        for text in
            wrong.into_iter().chain(["network { batch_size: 99999999999999999999 }", "version: \"\\377\"", "\u{0}"])
        {
            assert!(parse(schema::root(), text).is_err(), "{text}");
        }
        let error = parse(schema::root(), "version: \"1\"\nnetwork {\n  nane: 1\n}").unwrap_err().to_string();
        assert_eq!(error, "in line 3: 'Network' has no field 'nane'");
    }
}
