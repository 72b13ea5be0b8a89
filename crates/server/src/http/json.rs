//! A request body as a tree of our own, parsed once, by RFC 8259 to the letter.
//!
//! Why not serde_json: its `Value` drops duplicate keys in silence and turns a number into a float; here the text
//! of every number is kept, so that a tax rate is exact, and duplicates and NUL characters become field faults.
//! It does not know what any field means (see `fields`).

use super::fault::{Fault, FaultCode, Faults, shown};

/// One JSON value. Numbers keep the text they were sent with; an object keeps the order of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Box<str>),
    String(Box<str>),
    Array(Vec<Json>),
    Object(Vec<(Box<str>, Json)>),
}

/// A body that is JSON, with the faults that the parser itself has found (`duplicate_key`, `nul_character`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    pub value: Json,
    pub faults: Faults,
}

/// Why a body is no JSON that we read; answered as 400 `invalid_json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidJson {
    pub problem: String,
    /// Counted in bytes from the start of the body.
    pub position: usize,
    pub line: usize,
    pub column: usize,
}

impl std::fmt::Display for InvalidJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "The body is not valid JSON: {} (line {}, column {}).", self.problem, self.line, self.column)
    }
}

impl std::error::Error for InvalidJson {}

pub const DEEPEST: usize = 32;
pub const MOST_KEYS: usize = 200;
/// A megabyte of `0,0,0,…` would otherwise cost many times its size in memory.
pub const MOST_VALUES: usize = 65_536;

impl Body {
    /// Reads a body that has to be an object. No body at all is an empty object: clients send bodiless POSTs.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidJson> {
        if bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            return Ok(Self { value: Json::Object(Vec::new()), faults: Faults::default() });
        }
        let body = parse(bytes)?;
        if !matches!(body.value, Json::Object(_)) {
            return Err(InvalidJson {
                problem: "a JSON object is expected, such as {\"amount\": \"100.00\"}".into(),
                position: 0,
                line: 1,
                column: 1,
            });
        }
        Ok(body)
    }
}

/// Reads any JSON value and nothing behind it.
pub fn parse(bytes: &[u8]) -> Result<Body, InvalidJson> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| located(bytes, error.valid_up_to(), "it is not UTF-8 text"))?;
    let mut parser = Parser { text, at: 0, path: Vec::new(), values: 0, faults: Faults::default() };
    parser.space();
    let value = parser.value(0)?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.error("something follows the end of the value"));
    }
    Ok(Body { value, faults: parser.faults })
}

fn located(bytes: &[u8], position: usize, problem: impl Into<String>) -> InvalidJson {
    let before = &bytes[..position.min(bytes.len())];
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
    InvalidJson {
        problem: problem.into(),
        position,
        line: before.iter().filter(|&&b| b == b'\n').count() + 1,
        column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
    }
}

/// Where the parser stands, for the field path of a fault.
enum Step {
    Key(Box<str>),
    Index(usize),
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    path: Vec<Step>,
    values: usize,
    faults: Faults,
}

type Parsed<T> = Result<T, InvalidJson>;

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Parsed<Json> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(self.error(format!("it has more than {MOST_VALUES} values")));
        }
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Json::Number),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) => Err(self.error("a value is expected here")),
            None => Err(self.error("it ends where a value is expected")),
        }
    }

    fn object(&mut self, depth: usize) -> Parsed<Json> {
        self.open(depth)?;
        let mut members: Vec<(Box<str>, Json)> = Vec::new();
        self.space();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.error("a key in double quotes is expected here"));
            }
            let key = self.string()?;
            self.space();
            if !self.take(b':') {
                return Err(self.error("a colon is expected behind a key"));
            }
            self.space();
            if members.len() == MOST_KEYS {
                return Err(self.error(format!("an object has more than {MOST_KEYS} keys")));
            }
            self.path.push(Step::Key(key.clone()));
            let value = self.value(depth)?;
            self.path.pop();
            members.push((key, value));
            self.space();
            if self.take(b'}') {
                break;
            }
            if !self.take(b',') {
                return Err(self.error("a comma or the end of the object is expected here"));
            }
        }
        self.report_duplicates(&members);
        Ok(Json::Object(members))
    }

    fn array(&mut self, depth: usize) -> Parsed<Json> {
        self.open(depth)?;
        let mut elements = Vec::new();
        self.space();
        if self.take(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            self.space();
            self.path.push(Step::Index(elements.len()));
            elements.push(self.value(depth)?);
            self.path.pop();
            self.space();
            if self.take(b']') {
                return Ok(Json::Array(elements));
            }
            if !self.take(b',') {
                return Err(self.error("a comma or the end of the array is expected here"));
            }
        }
    }

    /// Steps over the opening bracket, unless that is one too deep.
    fn open(&mut self, depth: usize) -> Parsed<()> {
        if depth > DEEPEST {
            return Err(self.error(format!("it is nested deeper than {DEEPEST} levels")));
        }
        self.at += 1;
        Ok(())
    }

    fn report_duplicates(&mut self, members: &[(Box<str>, Json)]) {
        let mut keys: Vec<&str> = members.iter().map(|(key, _)| &**key).collect();
        keys.sort_unstable();
        let mut reported = None;
        for pair in keys.windows(2) {
            if pair[0] == pair[1] && reported != Some(pair[0]) && !self.faults.is_full() {
                reported = Some(pair[0]);
                let message = format!("`{}` is given more than once; send it once.", shown(pair[0]));
                let field = self.field(Some(pair[0]));
                self.faults.push(Fault::new(field, FaultCode::DuplicateKey, message));
            }
        }
    }

    fn string(&mut self) -> Parsed<Box<str>> {
        self.at += 1;
        let mut text = String::new();
        let mut has_nul = false;
        loop {
            let start = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            text.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let decoded = self.escape()?;
                    has_nul |= decoded == '\0';
                    text.push(decoded);
                }
                Some(_) => return Err(self.error("a control character in a text must be escaped")),
                None => return Err(self.error("a text has no closing quote")),
            }
        }
        self.at += 1;
        if has_nul && !self.faults.is_full() {
            let field = self.field(None);
            let message = "A text must not contain the NUL character (\\u0000); remove it.";
            self.faults.push(Fault::new(field, FaultCode::NulCharacter, message));
        }
        Ok(text.into_boxed_str())
    }

    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        self.at += 1;
        let Some(kind) = self.peek() else {
            return Err(self.error("a text has no closing quote"));
        };
        self.at += 1;
        let decoded = match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(start),
            _ => {
                self.at = start;
                return Err(self.error("an unknown escape"));
            }
        };
        Ok(decoded)
    }

    /// `\uXXXX`, or two of them that are a surrogate pair.
    fn unicode_escape(&mut self, start: usize) -> Parsed<char> {
        let lone = "half of a surrogate pair stands alone";
        let first = self.four_digits()?;
        let code = match first {
            0xd800..=0xdbff => {
                if !(self.take(b'\\') && self.take(b'u')) {
                    self.at = start;
                    return Err(self.error(lone));
                }
                match self.four_digits()? {
                    second @ 0xdc00..=0xdfff => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => {
                        self.at = start;
                        return Err(self.error(lone));
                    }
                }
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| {
            self.at = start;
            self.error(lone)
        })
    }

    fn four_digits(&mut self) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.error("four hexadecimal digits are expected behind \\u"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Parsed<Box<str>> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        } else if matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.error("a number must not begin with a zero"));
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(self.text[start..self.at].into())
    }

    fn digits(&mut self) -> Parsed<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.error("a digit is expected here"));
        }
        Ok(())
    }

    fn word(&mut self, word: &str, value: Json) -> Parsed<Json> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("a value is expected here"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn error(&self, problem: impl Into<String>) -> InvalidJson {
        located(self.text.as_bytes(), self.at, problem)
    }

    /// The path of the value in hand, or of one of its keys.
    fn field(&self, key: Option<&str>) -> String {
        let mut field = String::new();
        let push_key = |field: &mut String, key: &str| {
            if !field.is_empty() {
                field.push('.');
            }
            field.push_str(&shown(key));
        };
        for step in &self.path {
            match step {
                Step::Key(key) => push_key(&mut field, key),
                Step::Index(index) => field.push_str(&format!("[{index}]")),
            }
        }
        if let Some(key) = key {
            push_key(&mut field, key);
        }
        field
    }
}

impl Json {
    /// What a sentence calls a value of this kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Object(members) => members.iter().find(|(key, _)| &**key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Compact JSON text, keys in the order given.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, false);
        text
    }

    /// Compact JSON text with sorted keys: equal for two bodies that differ in order and spacing only.
    /// The named top-level key is left out (an idempotency key is no part of what it identifies).
    pub fn to_canonical_text(&self, without: &str) -> String {
        let mut text = String::new();
        match self {
            Self::Object(members) => {
                write_object(members.iter().filter(|(key, _)| &**key != without), &mut text, true);
            }
            other => other.write(&mut text, true),
        }
        text
    }

    fn write(&self, text: &mut String, sorted: bool) {
        match self {
            Self::Null => text.push_str("null"),
            Self::Bool(true) => text.push_str("true"),
            Self::Bool(false) => text.push_str("false"),
            Self::Number(number) => text.push_str(number),
            Self::String(string) => write_string(string, text),
            Self::Array(elements) => {
                text.push('[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    element.write(text, sorted);
                }
                text.push(']');
            }
            Self::Object(members) => write_object(members.iter(), text, sorted),
        }
    }
}

fn write_object<'a>(members: impl Iterator<Item = &'a (Box<str>, Json)>, text: &mut String, sorted: bool) {
    let mut members: Vec<_> = members.collect();
    if sorted {
        members.sort_by(|left, right| left.0.cmp(&right.0));
    }
    text.push('{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_string(key, text);
        text.push(':');
        value.write(text, sorted);
    }
    text.push('}');
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    // What needs no escape is copied as a whole.
    let mut plain = 0;
    for (at, byte) in string.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => &format!("\\u{byte:04x}"),
            _ => continue,
        };
        text.push_str(&string[plain..at]);
        text.push_str(escape);
        plain = at + 1;
    }
    text.push_str(&string[plain..]);
    text.push('"');
}

#[cfg(test)]
mod tests;
