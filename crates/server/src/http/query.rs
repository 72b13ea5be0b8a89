//! Query strings, by the same typed readers and faults as bodies. Everything in a query is text, and a parameter is
//! given once. Lists refuse parameters that they don't know; other operations ignore them.

use std::ops::RangeInclusive;

use url::form_urlencoded;

use super::fault::{Fault, FaultCode, Faults, shown};
use super::fields::field::Outcome;
use super::fields::{Field, integer};

/// The parameters of one request, and what is wrong with them so far.
pub struct Query {
    parameters: Vec<(String, String)>,
    read: Vec<&'static str>,
    faults: Faults,
}

/// The part of a list that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub offset: i64,
    /// 1..=100; a larger one was clamped.
    pub limit: i64,
}

const MOST_PARAMETERS: usize = 200;
const DEFAULT_LIMIT: i64 = 20;
const MOST_PER_PAGE: i64 = 100;

impl Query {
    /// Reads the part of an address behind `?`, if it has one.
    pub fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or("").as_bytes());
        let mut parameters: Vec<(String, String)> = Vec::new();
        let mut faults = Faults::default();
        for (name, value) in pairs.take(MOST_PARAMETERS) {
            let field = shown(&name);
            if name.contains('\0') || value.contains('\0') {
                let message = format!("`{field}` must not contain the NUL character; remove it.");
                faults.push(Fault::new(field, FaultCode::NulCharacter, message));
            } else if parameters.iter().any(|(other, _)| *other == name) {
                let message = format!("`{field}` is given more than once; send it once.");
                faults.push(Fault::new(field, FaultCode::DuplicateKey, message));
            } else {
                parameters.push((name.into_owned(), value.into_owned()));
            }
        }
        Self { parameters, read: Vec::new(), faults }
    }

    pub fn text(&mut self, name: &'static str) -> Field<'_, String> {
        self.read.push(name);
        let value = self.parameters.iter().find(|(other, _)| other == name);
        let outcome = match value {
            Some((_, value)) => Outcome::Value(value.clone()),
            None => Outcome::Absent,
        };
        Field::new(name.to_owned(), outcome, &mut self.faults)
    }

    pub fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Field<'_, i64> {
        self.text(name).check(|text| {
            integer(name, &text, &range, FaultCode::InvalidFormat).map_err(|fault| (fault.code, fault.message))
        })
    }

    /// `True` and `False` in any case (as Python writes them), also `1` and `0`.
    pub fn boolean(&mut self, name: &'static str) -> Field<'_, bool> {
        self.text(name).check(|text| match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => {
                let message = format!("`{name}` must be true or false.");
                Err((FaultCode::InvalidFormat, message))
            }
        })
    }

    /// `offset` and `limit`.
    pub fn page(&mut self) -> Page {
        let offset = self.integer("offset", 0..=i64::MAX).or(0);
        // Digits beyond any integer are only a very large limit, and that is clamped.
        let limit = self.text("limit").check(|text| {
            let digits = text.trim_start_matches('0');
            let is_large = digits.len() > 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
            let text = if is_large { "100" } else { &text };
            integer("limit", text, &(1..=i64::MAX), FaultCode::InvalidFormat)
                .map_err(|fault| (fault.code, fault.message))
        });
        let limit = limit.or(DEFAULT_LIMIT).min(MOST_PER_PAGE);
        Page { offset, limit }
    }

    pub fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|(other, _)| other == name)
    }

    /// A fault that takes more than one parameter to see.
    pub fn fault(&mut self, name: &str, code: FaultCode, message: impl Into<String>) {
        self.faults.push(Fault::new(name, code, message));
    }

    /// For lists: parameters that nobody asked for are faults.
    pub fn finish(mut self) -> Result<(), Vec<Fault>> {
        for (name, _) in &self.parameters {
            if !self.read.contains(&name.as_str()) {
                let name = shown(name);
                let message = format!("`{name}` is not a parameter of this list; check its spelling or leave it out.");
                self.faults.push(Fault::new(name, FaultCode::UnknownField, message));
            }
        }
        self.finish_ignoring_unknown()
    }

    pub fn finish_ignoring_unknown(self) -> Result<(), Vec<Fault>> {
        let faults = self.faults.into_vec();
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Result<Page, Vec<(String, FaultCode)>> {
        let mut query = Query::parse(Some(query));
        let page = query.page();
        match query.finish() {
            Ok(()) => Ok(page),
            Err(faults) => Err(faults.into_iter().map(|f| (f.field, f.code)).collect()),
        }
    }

    #[test]
    fn pages_are_clamped_and_checked() {
        let sound = |offset, limit| Ok(Page { offset, limit });
        let fault = |field: &str, code| Err(vec![(field.to_owned(), code)]);
        for (query, expected) in [
            ("", sound(0, 20)),
            ("offset=40&limit=100", sound(40, 100)),
            ("limit=101", sound(0, 100)),
            ("limit=99999999999999999999999", sound(0, 100)),
            ("limit=1", sound(0, 1)),
            ("limit=0000000000000000000000005", sound(0, 5)),
            ("limit=000000000000000000099999999999999999999999", sound(0, 100)),
            ("offset=0000000000000000000000040", sound(40, 20)),
            ("limit=0", fault("limit", FaultCode::OutOfRange)),
            ("limit=0000000000000000000", fault("limit", FaultCode::OutOfRange)),
            ("limit=-1", fault("limit", FaultCode::OutOfRange)),
            ("offset=-1", fault("offset", FaultCode::OutOfRange)),
            ("offset=99999999999999999999", fault("offset", FaultCode::OutOfRange)),
            ("limit=ten", fault("limit", FaultCode::InvalidFormat)),
            ("limit=", fault("limit", FaultCode::InvalidFormat)),
            ("limit=1.0", fault("limit", FaultCode::InvalidFormat)),
            ("limit=%2B1", fault("limit", FaultCode::InvalidFormat)),
            ("limit=1&limit=2", fault("limit", FaultCode::DuplicateKey)),
            ("page=2", fault("page", FaultCode::UnknownField)),
            ("offset=%00", fault("offset", FaultCode::NulCharacter)),
        ] {
            assert_eq!(page(query), expected, "{query}");
        }
    }

    #[test]
    fn booleans_are_read_as_python_writes_them() {
        for (text, expected) in [
            ("True", Some(true)),
            ("FALSE", Some(false)),
            ("1", Some(true)),
            ("0", Some(false)),
            ("yes", None),
            ("", None),
        ] {
            let text = format!("active={text}");
            let mut query = Query::parse(Some(&text));
            assert_eq!(query.boolean("active").optional(), expected, "{text}");
            assert_eq!(query.finish().is_ok(), expected.is_some());
        }
    }

    #[test]
    fn all_faults_come_at_once() {
        let mut query = Query::parse(Some("status=odd&start_date=x&limit=0&b=1"));
        query.page();
        query.text("status").choice(&[("open", 1)]).optional();
        let date = query.text("start_date").parse(|_| Err::<(), _>((FaultCode::InvalidFormat, "a date, please")));
        assert_eq!(date.optional(), None);
        let fields: Vec<_> = query.finish().expect_err("refused").into_iter().map(|f| f.field).collect();
        assert_eq!(fields, ["limit", "status", "start_date", "b"]);
    }

    #[test]
    fn other_operations_ignore_what_they_do_not_know() {
        let query = Query::parse(Some("utm=1"));
        assert!(query.finish_ignoring_unknown().is_ok());
    }
}
