//! A message in memory: values by field, in the order of their numbers.

use super::schema::{self, FieldKind, FieldSpec, MessageSpec};
use nnrs_kernels::error::{Error, ErrorKind, Result};

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// A whole number, or true and false.
    Int(i64),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A message.
    Message(Message),
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Numbers of 32 bits.
    Floats(Vec<f32>),
    /// Texts.
    Texts(Vec<String>),
    /// Messages.
    Messages(Vec<Message>),
}

/// A message of NNabla's files. Fields that were not set have protobuf's defaults: 0, "", an empty list.
///
/// ```
/// use nnrs::nnp::Message;
/// let mut network = Message::new("Network")?;
/// network.set("name", "main");
/// network.add("variable")?.set("name", "x");
/// assert_eq!((network.text("name"), network.list("variable").len(), network.int("batch_size")), ("main", 1, 0));
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Message {
    spec: &'static MessageSpec,
    fields: Vec<(usize, FieldValue)>,
}

impl PartialEq for Message {
    fn eq(&self, other: &Message) -> bool {
        self.spec.name == other.spec.name && self.fields == other.fields
    }
}

impl Message {
    /// An empty message of this name.
    ///
    /// # Errors
    /// There is no such message.
    pub fn new(name: &str) -> Result<Message> {
        let unknown = || Error::arg("name", "the name of a message of NNabla's files").actual(name);
        schema::find(name).map(Message::of).ok_or_else(unknown)
    }

    pub(crate) fn of(spec: &'static MessageSpec) -> Message {
        Message { spec, fields: Vec::new() }
    }

    /// What kind of message it is.
    pub fn spec(&self) -> &'static MessageSpec {
        self.spec
    }

    /// All fields that are set.
    pub fn fields(&self) -> impl Iterator<Item = (&'static FieldSpec, &FieldValue)> {
        self.fields.iter().map(|(i, v)| (&self.spec.fields[*i], v))
    }

    /// The value of a field, if it is set.
    pub fn get(&self, name: &str) -> Option<&FieldValue> {
        self.fields().find(|(f, _)| f.name == name).map(|(_, v)| v)
    }

    /// A whole number; 0 where it is not set.
    pub fn int(&self, name: &str) -> i64 {
        if let Some(FieldValue::Int(n)) = self.get(name) { *n } else { 0 }
    }

    /// A number; 0 where it is not set.
    pub fn number(&self, name: &str) -> f64 {
        if let Some(FieldValue::Number(n)) = self.get(name) { *n } else { 0.0 }
    }

    /// A text; empty where it is not set.
    pub fn text(&self, name: &str) -> &str {
        if let Some(FieldValue::Text(text)) = self.get(name) { text } else { "" }
    }

    /// A message, if it is set.
    pub fn message(&self, name: &str) -> Option<&Message> {
        if let Some(FieldValue::Message(m)) = self.get(name) { Some(m) } else { None }
    }

    /// Messages.
    pub fn list(&self, name: &str) -> &[Message] {
        if let Some(FieldValue::Messages(list)) = self.get(name) { list } else { &[] }
    }

    /// Texts.
    pub fn texts(&self, name: &str) -> &[String] {
        if let Some(FieldValue::Texts(list)) = self.get(name) { list } else { &[] }
    }

    /// Whole numbers.
    pub fn ints(&self, name: &str) -> &[i64] {
        if let Some(FieldValue::Ints(list)) = self.get(name) { list } else { &[] }
    }

    /// Numbers.
    pub fn floats(&self, name: &str) -> &[f32] {
        if let Some(FieldValue::Floats(list)) = self.get(name) { list } else { &[] }
    }

    /// The sizes in a field that is a `Shape`.
    pub fn sizes(&self, name: &str) -> &[i64] {
        self.message(name).map_or(&[], |s| s.ints("dim"))
    }

    /// Sets a field; what the message does not have is left alone, as in a reader that is older than the writer.
    pub fn set(&mut self, name: &str, value: impl Into<FieldValue>) -> &mut Message {
        if let Some(field) = self.spec.find(name) {
            *self.slot(field, || FieldValue::Int(0)) = value.into();
        }
        self
    }

    /// Sets a field that is a `Shape`.
    pub fn set_sizes(&mut self, name: &str, sizes: Vec<i64>) -> Result<&mut Message> {
        let mut shape = Message::new("Shape")?;
        if !sizes.is_empty() {
            shape.set("dim", FieldValue::Ints(sizes));
        }
        Ok(self.set(name, FieldValue::Message(shape)))
    }

    /// Adds an empty message to a list.
    ///
    /// # Errors
    /// The field is no list of messages.
    pub fn add(&mut self, name: &str) -> Result<&mut Message> {
        let wrong = || Error::arg("name", "a list of messages").actual(name);
        let field = self.spec.find(name).filter(|f| self.spec.fields[*f].repeated).ok_or_else(wrong)?;
        let FieldKind::Message(kind) = self.spec.fields[field].kind else { return Err(wrong()) };
        let empty = Message::of(&schema::messages()[kind]);
        match self.slot(field, || FieldValue::Messages(Vec::new())) {
            FieldValue::Messages(list) => {
                list.push(empty);
                list.last_mut().ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }

    /// Adds messages to a list.
    pub fn extend(&mut self, name: &str, messages: Vec<Message>) {
        let Some(field) = self.spec.find(name) else { return };
        if let FieldValue::Messages(list) = self.slot(field, || FieldValue::Messages(Vec::new())) {
            list.extend(messages);
        }
    }

    /// Takes all messages out of a list.
    pub(super) fn take_list(&mut self, name: &str) -> Vec<Message> {
        let at = self.fields.iter().position(|(i, _)| self.spec.fields[*i].name == name);
        match at.map(|at| self.fields.remove(at).1) {
            Some(FieldValue::Messages(list)) => list,
            _ => Vec::new(),
        }
    }

    /// The place of a field's value, made if there is none. Of fields that share a group, the last that is set stays.
    pub(super) fn slot(&mut self, field: usize, new: impl FnOnce() -> FieldValue) -> &mut FieldValue {
        let spec = self.spec;
        if spec.fields[field].one_of {
            self.fields.retain(|(i, _)| *i == field || !spec.fields[*i].one_of);
        }
        let at = match self.fields.binary_search_by_key(&field, |(i, _)| *i) {
            Ok(at) => at,
            Err(at) => {
                self.fields.insert(at, (field, new()));
                at
            }
        };
        &mut self.fields[at].1
    }

    /// Puts a value that was read into a field: added to a list, merged into a message, else in place of what was there.
    pub(super) fn put(&mut self, field: usize, value: FieldValue) {
        let spec = &self.spec.fields[field];
        if !spec.repeated {
            let slot = self.slot(field, || FieldValue::Int(0));
            match (slot, value) {
                (FieldValue::Message(old), FieldValue::Message(new)) => old.merge(new),
                (slot, value) => *slot = value,
            }
            return;
        }
        match (self.slot(field, || empty_list(spec.kind)), value) {
            (FieldValue::Ints(list), FieldValue::Int(n)) => list.push(n),
            (FieldValue::Ints(list), FieldValue::Ints(more)) => list.extend(more),
            (FieldValue::Floats(list), FieldValue::Number(n)) => list.push(n as f32),
            (FieldValue::Floats(list), FieldValue::Floats(more)) => list.extend(more),
            (FieldValue::Texts(list), FieldValue::Text(text)) => list.push(text),
            (FieldValue::Texts(list), FieldValue::Texts(more)) => list.extend(more),
            (FieldValue::Messages(list), FieldValue::Message(m)) => list.push(m),
            (FieldValue::Messages(list), FieldValue::Messages(more)) => list.extend(more),
            _ => {}
        }
    }

    /// Adds another message of this kind, as if its bytes came behind.
    pub fn merge(&mut self, other: Message) {
        if self.spec.name == other.spec.name {
            other.fields.into_iter().for_each(|(field, value)| self.put(field, value));
        }
    }
}

fn empty_list(kind: FieldKind) -> FieldValue {
    match kind {
        FieldKind::Message(_) => FieldValue::Messages(Vec::new()),
        FieldKind::Text => FieldValue::Texts(Vec::new()),
        FieldKind::Float | FieldKind::Double => FieldValue::Floats(Vec::new()),
        FieldKind::Int | FieldKind::Count | FieldKind::Flag => FieldValue::Ints(Vec::new()),
    }
}

impl From<i64> for FieldValue {
    fn from(n: i64) -> FieldValue {
        FieldValue::Int(n)
    }
}

impl From<bool> for FieldValue {
    fn from(flag: bool) -> FieldValue {
        FieldValue::Int(flag.into())
    }
}

impl From<f64> for FieldValue {
    fn from(n: f64) -> FieldValue {
        FieldValue::Number(n)
    }
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> FieldValue {
        FieldValue::Text(text.to_string())
    }
}

impl From<Vec<String>> for FieldValue {
    fn from(texts: Vec<String>) -> FieldValue {
        FieldValue::Texts(texts)
    }
}

impl From<Vec<Message>> for FieldValue {
    fn from(list: Vec<Message>) -> FieldValue {
        FieldValue::Messages(list)
    }
}

pub(super) fn broken(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, what)
}
