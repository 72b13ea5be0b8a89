//! One SQL text for both databases: what has to be spelled differently is respelled here, and only here.
//!
//! It knows where quotes and comments begin and end. It does not parse SQL.

use std::borrow::Cow;
use std::collections::BTreeSet;

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

/// Of a migration's statements: the tables that were there before and that none but it may use meanwhile, because it copies
/// their rows, changes them, their columns or their indexes, or drops them; in order. What it drops an index of isn't said
/// where it does ([`indexes_dropped`]).
pub(crate) fn tables_touched(statements: &[String]) -> BTreeSet<&str> {
    let (mut found, mut made) = (BTreeSet::new(), BTreeSet::new());
    for statement in statements {
        let words = words(statement);
        match words.as_slice() {
            ["create", "table", "if", "not", "exists", table, ..] | ["create", "table", table, ..] => {
                made.insert(*table);
            }
            ["alter", "table", table, rest @ ..] => {
                found.extend((!made.contains(table)).then_some(*table));
                if let ["rename", "to", name] = rest {
                    made.insert(*name);
                }
            }
            ["drop", "table", table]
            | ["create", "index", _, "on", table, ..]
            | ["create", "unique", "index", _, "on", table, ..] => {
                found.extend((!made.contains(table)).then_some(*table));
            }
            ["insert" | "update" | "delete", ..] => {
                let named = words.windows(2).filter(|pair| matches!(pair[0], "from" | "join" | "update"));
                found.extend(named.map(|pair| pair[1]).filter(|table| *table != "select" && !made.contains(table)));
            }
            _ => {}
        }
    }
    found
}

/// Of a migration's statements: the indexes that it drops.
pub(crate) fn indexes_dropped(statements: &[String]) -> Vec<&str> {
    let dropped = |statement| match words(statement).as_slice() {
        ["drop", "index", index] => Some(*index),
        _ => None,
    };
    statements.iter().filter_map(|statement| dropped(statement)).collect()
}

fn words(statement: &str) -> Vec<&str> {
    statement.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()).collect()
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
    fn a_migration_says_what_it_touches() {
        let tables = |text| {
            let statements = migration(text, Dialect::Postgres);
            tables_touched(&statements).into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(tables(include_str!("../../migrations/0004_invoices.sql")), "transactions");
        assert_eq!(tables(include_str!("../../migrations/0009_ledger_batches.sql")), "ledger_postings");
        assert_eq!(
            tables(include_str!("../../migrations/0013_lean_keys.sql")),
            "checkouts customers event_log events events_unlogged invoice_payments jobs ledger_log products"
        );
        assert_eq!(tables(include_str!("../../migrations/0012_due_deliveries.sql")), "webhook_deliveries");
        assert_eq!(tables(include_str!("../../migrations/0016_changed_deliveries.sql")), "webhook_deliveries");
        assert_eq!(tables(include_str!("../../migrations/0019_mails_by_mode.sql")), "mails");
        assert_eq!(tables(include_str!("../../migrations/0031_recent_credits.sql")), "ledger_postings");
        assert_eq!(tables("create table a (id bigint); create unique index b on a (id); drop index c;"), "");
        let dropped = migration("drop index c; drop table d; drop index e;", Dialect::Postgres);
        assert_eq!(indexes_dropped(&dropped), ["c", "e"]);
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
