//! One SQL text for both databases: what has to be spelled differently is respelled here, and only here.
//!
//! It knows where quotes and comments begin and end. It does not parse SQL.

use std::borrow::Cow;

use crate::settings::Dialect;

/// SQLite takes a bare `$2` for a *named* parameter and binds it wrongly in silence; `?2` is the numbered one.
pub(crate) fn numbered_placeholders(sql: &str) -> Cow<'_, str> {
    if !sql.contains('$') {
        return Cow::Borrowed(sql);
    }
    let mut spelled = String::with_capacity(sql.len());
    for piece in pieces(sql) {
        match piece {
            Piece::Code(code) => {
                let mut rest = code.chars().peekable();
                while let Some(letter) = rest.next() {
                    let placeholder = letter == '$' && rest.peek().is_some_and(char::is_ascii_digit);
                    spelled.push(if placeholder { '?' } else { letter });
                }
            }
            Piece::Quoted(quoted) => spelled.push_str(quoted),
            Piece::Comment => spelled.push(' '),
        }
    }
    Cow::Owned(spelled)
}

/// A migration's statements for one database.
///
/// Types are written `bigint`, `text`, `blob`. On SQLite tables become `strict`, so that a type is a promise there too; on
/// PostgreSQL text is compared byte by byte, as SQLite does. A line that begins with `-- sqlite:` or `-- postgres:` is a
/// statement (or the end of one) for that database alone.
pub(crate) fn migration(text: &str, dialect: Dialect) -> Vec<String> {
    let chosen = lines_for(text, dialect);
    let mut statements = Vec::new();
    let mut statement = Statement::new(dialect);
    for piece in pieces(&chosen) {
        match piece {
            Piece::Code(code) => {
                for (index, part) in code.split(';').enumerate() {
                    if index > 0 {
                        statements.extend(std::mem::replace(&mut statement, Statement::new(dialect)).finish());
                    }
                    statement.code(part);
                }
            }
            Piece::Quoted(quoted) => statement.text.push_str(quoted),
            Piece::Comment => statement.text.push(' '),
        }
    }
    statements.extend(statement.finish());
    statements
}

fn lines_for(text: &str, dialect: Dialect) -> String {
    let (ours, theirs) = match dialect {
        Dialect::Sqlite => ("-- sqlite:", "-- postgres:"),
        Dialect::Postgres => ("-- postgres:", "-- sqlite:"),
    };
    let mut chosen = String::with_capacity(text.len());
    for line in text.lines() {
        if line.starts_with(theirs) {
            continue;
        }
        chosen.push_str(line.strip_prefix(ours).unwrap_or(line));
        chosen.push('\n');
    }
    chosen
}

struct Statement {
    dialect: Dialect,
    text: String,
}

impl Statement {
    fn new(dialect: Dialect) -> Self {
        Self { dialect, text: String::new() }
    }

    fn code(&mut self, code: &str) {
        let defines = {
            let so_far = format!("{}{code}", self.text);
            let start = so_far.trim_start();
            start.starts_with("create table") || start.starts_with("alter table")
        };
        if !defines {
            self.text.push_str(code);
            return;
        }
        let mut rest = code;
        while let Some(start) = rest.find(is_word) {
            let end = rest[start..].find(|letter| !is_word(letter)).map_or(rest.len(), |length| start + length);
            self.text.push_str(&rest[..start]);
            self.text.push_str(match (self.dialect, &rest[start..end]) {
                (Dialect::Sqlite, "bigint") => "integer",
                (Dialect::Postgres, "blob") => "bytea",
                (Dialect::Postgres, "text") => "text collate \"C\"",
                (_, word) => word,
            });
            rest = &rest[end..];
        }
        self.text.push_str(rest);
    }

    fn finish(self) -> Option<String> {
        let text = self.text.trim();
        if text.is_empty() {
            return None;
        }
        let table = self.dialect == Dialect::Sqlite && text.starts_with("create table");
        let strict = match (table, text.ends_with(')')) {
            (false, _) => "",
            (true, true) => " strict",
            (true, false) => ", strict",
        };
        Some(format!("{text}{strict}"))
    }
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

enum Piece<'a> {
    Code(&'a str),
    Quoted(&'a str),
    Comment,
}

fn pieces(sql: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = sql;
    while !rest.is_empty() {
        let code = ["'", "\"", "--", "/*"].iter().filter_map(|mark| rest.find(mark)).min().unwrap_or(rest.len());
        if code > 0 {
            pieces.push(Piece::Code(&rest[..code]));
        }
        rest = &rest[code..];
        let Some(mark) = rest.chars().next() else { break };
        let (opening, closing) = match mark {
            '\'' => (1, "'"),
            '"' => (1, "\""),
            '-' => (2, "\n"),
            _ => (2, "*/"),
        };
        let end = rest[opening..].find(closing).map_or(rest.len(), |length| opening + length + closing.len());
        pieces.push(if opening == 1 { Piece::Quoted(&rest[..end]) } else { Piece::Comment });
        rest = &rest[end..];
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_outside_quotes_only() {
        for (written, expected) in [
            ("select 1", "select 1"),
            ("select $1, $22 from t where a = $1", "select ?1, ?22 from t where a = ?1"),
            ("select '$1', \"$2\", $3", "select '$1', \"$2\", ?3"),
            ("select 'it''s $1', $1", "select 'it''s $1', ?1"),
            ("select $1 -- not $2\n, $3", "select ?1  , ?3"),
            ("select '-- $1', $1", "select '-- $1', ?1"),
        ] {
            assert_eq!(numbered_placeholders(written), expected);
        }
    }

    #[test]
    fn a_migration_is_spelled_for_each_database() {
        let text = "-- what it is for; really\n\
                    create table notes (id bigint not null, body text not null check (body <> 'text;'), seal blob);\n\
                    create index notes_text on notes (body);\n\
                    -- sqlite: pragma defer_foreign_keys = on;\n\
                    create table days (day text primary key)\n\
                    -- sqlite: without rowid\n\
                    ;\n";
        assert_eq!(
            migration(text, Dialect::Sqlite),
            [
                "create table notes (id integer not null, body text not null check (body <> 'text;'), seal blob) strict",
                "create index notes_text on notes (body)",
                "pragma defer_foreign_keys = on",
                "create table days (day text primary key)\n without rowid, strict",
            ]
        );
        assert_eq!(
            migration(text, Dialect::Postgres),
            [
                "create table notes (id bigint not null, body text collate \"C\" not null check (body <> 'text;'), seal bytea)",
                "create index notes_text on notes (body)",
                "create table days (day text collate \"C\" primary key)",
            ]
        );
    }
}
