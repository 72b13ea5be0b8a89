//! Every SQL statement of the store keeps to what PostgreSQL, Citus, YugabyteDB and CockroachDB all know and mean the same
//! by, as it is written and as the PostgreSQL driver sends it, and every tenant's key begins with the organization. It reads the
//! sources and the migrations; no database is asked, so it shows that nothing stands in the way, and not that another database
//! was run. What the driver asks for its own sake, the limits of a transaction and the like, is PostgreSQL's own and not looked at.

#![expect(clippy::unwrap_used, reason = "a test that meets what can't be has to stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sqlparser::ast::{CreateTable, Expr, Statement, Visit as _, Visitor};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use store::Schema;
use tokio_postgres::types::Type;

#[path = "../src/postgres/merge.rs"]
mod merge;

/// Drivers, and what is asked of one database alone.
const OF_ONE_DATABASE: &[&str] =
    &["src/postgres/", "src/sqlite/", "src/postgres.rs", "src/sqlite.rs", "src/sql/text.rs"];
/// Catalogues, which the standard leaves to each.
const CATALOGUES: &[&str] = &["information_schema.tables", "pg_indexes", "sqlite_master"];

const STATEMENTS: &[&str] =
    &["Query", "Insert", "Update", "Delete", "CreateTable", "CreateIndex", "AlterTable", "Drop", "AlterIndex"];
const TYPES: &[&str] = &["BIGINT", "TEXT", "BLOB"];
const FUNCTIONS: &[&str] =
    &["coalesce", "count", "length", "lower", "max", "min", "sum", "substr", "abs", "current_schema"];
/// Without division: 1 / 2 is 0 here and 0.5 elsewhere. Shifted to the right, a negative number keeps its sign in all of them.
const OPERATORS: &[&str] = &["=", "<>", "<", ">", "<=", ">=", "AND", "OR", "+", "-", "*", "||", ">>", "&"];
/// In any text, whole statement or part of one.
const WORDS: &[&str] = &[
    "serial",
    "bigserial",
    "nextval",
    "currval",
    "sequence_name",
    "generated",
    "trigger",
    "plpgsql",
    "procedure",
    "enum",
    "advisory",
    "pg_advisory_lock",
    "listen",
    "notify",
    "pg_notify",
    "current_timestamp",
    "current_date",
    "localtimestamp",
    "statement_timestamp",
    "clock_timestamp",
    "random",
    "gen_random_uuid",
    "jsonb",
    "json",
    "ilike",
    "similar",
    "lateral",
    "materialized",
    "unlogged",
    "inherits",
    "tablesample",
    "ctid",
    "xmin",
    "oid",
    "regclass",
    "nulls",
];

/// Names of the public that lead to an organization, and what the worker owes for all of them: unique without it.
/// Before Citus can distribute their tables, these become unique within the organization.
const UNIQUE_EVERYWHERE: &[(&str, &str)] = &[
    ("api_keys", "digest"),
    ("checkouts", "id"),
    ("invoices", "id"),
    ("jobs", "kind, object_id"),
    ("mails", "id"),
    ("payment_links", "id"),
    ("payment_sessions", "id"),
    ("receipts", "id"),
    ("receipts", "validation_code"),
    ("refunds", "id"),
    ("simulated_payments", "token_digest"),
    ("transactions", "id"),
    ("webhook_endpoints", "id"),
];
/// What locks, meets a conflict or recurses, and names no organization: what the worker owes is looked for among all of them.
/// Before Citus can run these, they have to be asked of each organization.
const OF_ALL_ORGANIZATIONS: &[&str] = &[
    "src/queries/deliveries.rs BEHIND",
    "src/queries/deliveries.rs DUE",
    "src/queries/deliveries.rs OWED",
    "src/queries/deliveries/ahead.rs OWED_LATER",
    "src/queries/deliveries/owed.rs OWED_IN",
    "src/queries/idempotency.rs OLD",
    "src/queries/jobs.rs DUE",
    "src/queries/jobs.rs HELD",
    "src/queries/jobs.rs HOLD",
    "src/queries/jobs.rs SCHEDULE",
    "src/queries/jobs.rs SCHEDULE_ANEW",
    "src/queries/mails.rs OWED",
];
/// What the driver makes of several inserts of one kind, and of a write that has to touch a row.
const OF_THE_DRIVER: &[&str] = &[
    "the function unnest",
    "the function cardinality",
    "the operator /",
    "a cast to BIGINT[]",
    "a cast to TEXT[]",
    "a cast to BYTEA[]",
];
/// How [`store::Tx`] locks rows, and passes over those that others hold.
const LOCKS: [&str; 2] = [" for update", " for update skip locked"];
/// No tenant's: the same on every shard.
const OF_THE_INSTALLATION: &[&str] = &["leases", "schema_migrations", "signing_keys"];

#[test]
fn every_statement_is_portable() {
    let mut seen = 0;
    let mut faults = Vec::new();
    for (place, text) in statements() {
        seen += 1;
        faults.extend(check(&text).into_iter().map(|fault| format!("{place}: {fault}\n{text}")));
        for sent in sent(&text) {
            let found = check(&sent).into_iter().filter(|fault| !OF_THE_DRIVER.contains(&fault.as_str()));
            faults.extend(found.map(|fault| format!("{place}, as it is sent: {fault}\n{sent}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(seen > 200, "only {seen} statements were found");
}

#[test]
fn what_locks_meets_a_conflict_or_recurses_is_of_one_organization() {
    let (mut found, mut locked) = (BTreeSet::new(), 0);
    for Constant { place, name, text, is_locked } in constants() {
        locked += usize::from(is_locked);
        if is_locked {
            for lock in LOCKS {
                assert_eq!(check(&with_lock(&text, lock)), Vec::<String>::new(), "{place} {name}{lock}");
            }
        }
        if is_of_all(&text, is_locked) {
            found.insert(format!("{place} {name}"));
        }
    }
    assert!(locked > 15, "only {locked} statements that lock were found");
    let named: BTreeSet<_> = OF_ALL_ORGANIZATIONS.iter().map(ToString::to_string).collect();
    assert_eq!(found, named);
}

#[test]
fn every_key_of_a_tenant_begins_with_the_organization() {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, text) in migrations() {
        if let Some(table) = table_built_by(&text) {
            // Built anew, it has none of its old keys any more.
            found.insert(table, BTreeSet::new());
        }
        for (table, key) in misleading_keys(&text) {
            found.entry(table).or_default().insert(key);
        }
    }
    assert!(found.len() > 30, "only {} tables were found", found.len());
    let named: BTreeSet<_> = UNIQUE_EVERYWHERE.iter().map(|(table, key)| format!("{table} ({key})")).collect();
    let found: BTreeSet<_> =
        found.iter().flat_map(|(table, keys)| keys.iter().map(move |key| format!("{table} ({key})"))).collect();
    let faults: Vec<_> = found.difference(&named).collect();
    assert!(faults.is_empty(), "keys that do not begin with organization_id: {faults:#?}");
    let unused: Vec<_> = named.difference(&found).collect();
    assert!(unused.is_empty(), "these are no longer there: {unused:?}");
}

#[test]
fn what_is_not_portable_is_refused() {
    for wrong in [
        "create table t (id bigserial primary key)",
        "create table t (id bigint generated always as identity)",
        "create table t (at timestamp not null)",
        "create table t (doc jsonb not null)",
        "create table t (paid boolean not null)",
        "create table t (amount numeric(12, 2) not null)",
        "create sequence s",
        "create type mood as enum ('good', 'bad')",
        "create trigger t before insert on checkouts execute function f()",
        "create function f() returns bigint as 'select 1' language sql",
        "select * from checkouts",
        "select checkouts.* from checkouts",
        "select id from checkouts where created_at < now()",
        "select id from checkouts where created_at < current_timestamp",
        "select pg_advisory_lock(1)",
        "listen events",
        "notify events",
        "select id from checkouts where doc ->> 'status' = 'paid'",
        "select id from checkouts where id ilike $1",
        "select id from checkouts where created_at > $1 + 5",
        "select amount / 2 from checkouts",
        "select id::uuid from checkouts",
        "select nextval('s')",
        "insert into t (id) select gen_random_uuid()",
        "select distinct on (id) id from checkouts",
        "lock table checkouts",
        "select id from",
    ] {
        assert!(!check(wrong).is_empty(), "{wrong} was accepted");
    }
    for wrong in [
        "create table t (organization_id text not null, id text primary key)",
        "create table t (organization_id text not null, id text, primary key (id, organization_id))",
        "create table t (organization_id text, mode text, id text, primary key (organization_id, mode, id), unique (id))",
        "create table t (organization_id text, id text references checkouts (id), primary key (organization_id, id))",
        "create table t (organization_id text not null, id text)",
        "create table t (id text primary key)",
        "create unique index i on checkouts (id)",
    ] {
        assert!(!misleading_keys(wrong).is_empty(), "{wrong} was accepted");
    }
    let of_one = "select id from jobs where organization_id = $1";
    assert!(is_of_all("select id from jobs where kind = $1", true) && !is_of_all(of_one, true));
    assert!(is_of_all("insert into t (id) values ($1) on conflict (id) do nothing", false));
    assert!(!is_of_all("insert into t (id) values ($1) on conflict (organization_id, id) do nothing", false));
    assert!(is_of_all("with recursive r (id) as (select 1) select id from r", false));
    let right = "select count(*) as total from checkouts where organization_id = $1 and created_at <= $2 limit 5";
    assert_eq!(check(right), Vec::<String>::new());
}

/// A text of SQL, or a part of one, by its name.
struct Constant {
    place: String,
    name: String,
    text: String,
    /// It is asked for with a lock somewhere.
    is_locked: bool,
}

fn constants() -> Vec<Constant> {
    let (mut found, mut locked) = (Vec::new(), Vec::new());
    for (place, source) in products() {
        let asking = source.lines().filter(|line| line.contains("lock_suffix()") || line.contains("locked_suffix()"));
        let names = asking.flat_map(|line| line.split(|c: char| !(c.is_ascii_uppercase() || c == '_')));
        locked.extend(names.filter(|name| name.len() > 2).map(|name| (place.clone(), name.to_owned())));
        for piece in source.split("const ").skip(1) {
            let Some((head, rest)) = piece.split_once('"') else { continue };
            let Some((name, kind)) = head.split_once(": &") else { continue };
            if kind.trim_end().ends_with("str =") {
                let (name, text) = (name.to_owned(), literal(&mut rest.chars().peekable()));
                found.push(Constant { place: place.clone(), name, text, is_locked: false });
            }
        }
    }
    for constant in &mut found {
        // An object of any kind is found by the statement of its kind.
        let asks = if constant.place.starts_with("src/entity/") { "src/entity.rs" } else { &constant.place };
        constant.is_locked = locked.iter().any(|(place, name)| place == asks && *name == constant.name);
    }
    found
}

fn with_lock(text: &str, lock: &str) -> String {
    let text = if is_sql(text) { text.to_owned() } else { format!("select {text}") };
    if text.contains("{lock}") { text.replace("{lock}", lock) } else { format!("{text}{lock}") }
}

/// Whether it has to be asked of every organization.
fn is_of_all(text: &str, is_locked: bool) -> bool {
    let names_one = text.contains("organization_id = $");
    let target = text.split_once("on conflict (").and_then(|(_, rest)| rest.split_once(')'));
    let meets_any = target.is_some_and(|(columns, _)| !columns.contains("organization_id"));
    meets_any || (!names_one && (is_locked || text.contains("with recursive ")))
}

/// What the PostgreSQL driver makes of it.
fn sent(text: &str) -> Vec<String> {
    let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
    // What gives rows back is asked for as it is.
    if !begins(&["insert into ", "update ", "delete from "]) || text.contains("returning") {
        return Vec::new();
    }
    let guarded = merge::exactly_one(text);
    let values = (1..).take_while(|number| text.contains(&format!("${number}"))).count();
    let types = vec![Type::TEXT; values];
    let many = [text, &guarded].into_iter().filter_map(|sql| merge::for_many_rows(sql, &types));
    many.chain([guarded.clone()]).collect()
}

/// What is wrong with a statement. Where it has places to be filled, one way to fill them has to parse.
fn check(text: &str) -> Vec<String> {
    let words: BTreeSet<String> =
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map(str::to_ascii_lowercase).collect();
    let mut faults: Vec<String> =
        WORDS.iter().filter(|word| words.contains(**word)).map(|word| format!("the word {word}")).collect();
    let parsed = fillings(text).into_iter().find_map(|sql| Parser::parse_sql(&PostgreSqlDialect {}, &sql).ok());
    let Some(parsed) = parsed else {
        faults.push("it does not parse".to_owned());
        return faults;
    };
    for statement in &parsed {
        let shown = format!("{statement:?}");
        let kind = shown.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        if !STATEMENTS.contains(&kind) {
            faults.push(format!("a statement of the kind {kind}"));
        }
        if shown.contains("Wildcard(WildcardAdditionalOptions") || shown.contains("QualifiedWildcard(") {
            faults.push("select *".to_owned());
        }
        if statement.to_string().contains("DISTINCT ON") {
            faults.push("distinct on".to_owned());
        }
        if let Statement::CreateTable(table) = statement {
            let types = table.columns.iter().map(|column| column.data_type.to_string());
            faults.extend(types.filter(|of| !TYPES.contains(&of.as_str())).map(|of| format!("the type {of}")));
        }
        let mut expressions = Expressions(Vec::new());
        let _ = statement.visit(&mut expressions);
        faults.append(&mut expressions.0);
    }
    faults
}

struct Expressions(Vec<String>);

impl Visitor for Expressions {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(function) => {
                let name = function.name.to_string().to_ascii_lowercase();
                if !FUNCTIONS.contains(&name.as_str()) {
                    self.0.push(format!("the function {name}"));
                }
            }
            Expr::BinaryOp { left, op, right } => {
                let op = op.to_string();
                if !OPERATORS.contains(&op.as_str()) {
                    self.0.push(format!("the operator {op}"));
                }
                let is_placeholder = |side: &Expr| side.to_string().starts_with('$');
                if matches!(op.as_str(), "+" | "-" | "*") && (is_placeholder(left) || is_placeholder(right)) {
                    self.0.push("arithmetic on a placeholder".to_owned());
                }
            }
            Expr::Cast { data_type, .. } if !TYPES.contains(&data_type.to_string().as_str()) => {
                self.0.push(format!("a cast to {data_type}"));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The table that a statement makes, under the name that it will have.
fn table_built_by(text: &str) -> Option<String> {
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
    statements.iter().find_map(|statement| match statement {
        Statement::CreateTable(table) => {
            let name = table.name.to_string();
            Some(name.strip_suffix("_rebuilt").unwrap_or(&name).to_owned())
        }
        _ => None,
    })
}

/// The unique keys and references of a statement that do not begin with the organization, by table.
fn misleading_keys(text: &str) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    for statement in Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap() {
        match statement {
            Statement::CreateTable(table) => {
                let name = table.name.to_string();
                let name = name.strip_suffix("_rebuilt").unwrap_or(&name).to_owned();
                if !OF_THE_INSTALLATION.contains(&name.as_str()) {
                    keys.extend(keys_of(&table).into_iter().map(|key| (name.clone(), key)));
                }
            }
            Statement::CreateIndex(index) if index.unique => {
                let columns: Vec<_> = index.columns.iter().map(ToString::to_string).collect();
                keys.push((index.table_name.to_string(), columns.join(", ")));
            }
            _ => {}
        }
    }
    keys.retain(|(_, key)| !key.starts_with("organization_id"));
    keys
}

fn keys_of(table: &CreateTable) -> Vec<String> {
    let mut keys = Vec::new();
    let mut has_primary = false;
    for column in &table.columns {
        for option in &column.options {
            let option = option.to_string();
            has_primary |= option.contains("PRIMARY KEY");
            if ["PRIMARY KEY", "UNIQUE", "REFERENCES"].iter().any(|word| option.contains(word)) {
                keys.push(column.name.to_string());
            }
        }
    }
    for constraint in &table.constraints {
        let text = constraint.to_string();
        has_primary |= text.contains("PRIMARY KEY");
        if ["PRIMARY KEY", "UNIQUE", "FOREIGN KEY"].iter().any(|word| text.contains(word)) {
            let columns = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            keys.push(columns.unwrap().0.to_owned());
        }
    }
    if !has_primary {
        keys.push("no primary key".to_owned());
    }
    keys
}

/// A statement of a format string with each place filled, in every way that could make sense of it.
fn fillings(text: &str) -> Vec<String> {
    const WAYS: [&str; 5] = ["organization_id", "1 = 1", "", "and 1 = 1", "5"];
    let mut texts = vec![String::new()];
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (_, after) = behind.split_once('}').unwrap_or(("", behind));
        let filled = texts.iter().flat_map(|text| WAYS.iter().map(move |way| format!("{text}{before}{way}")));
        texts = filled.collect();
        rest = after;
    }
    // A list that is written behind it.
    let end = if rest.trim_end().ends_with(" in") { "(1)" } else { "" };
    texts.iter().map(|text| format!("{text}{rest}{end}")).collect()
}

/// The sources of what is asked of any database, without their tests.
fn products() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in sources(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let place = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
        if OF_ONE_DATABASE.iter().any(|own| place.starts_with(own)) {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        found.push((place, source.split("#[cfg(test)]").next().unwrap().to_owned()));
    }
    found
}

fn statements() -> Vec<(String, String)> {
    let mut found = migrations();
    for (place, source) in products() {
        for text in literals(&source) {
            if is_sql(&text) && !CATALOGUES.iter().any(|catalogue| text.contains(catalogue)) {
                found.push((place.clone(), text));
            }
        }
    }
    found
}

/// As PostgreSQL gets them: the lines for the other database left out.
fn migrations() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for migration in Schema::product().migrations {
        let lines = migration.text.lines().filter(|line| !line.starts_with("-- sqlite:"));
        let lines = lines.map(|line| line.strip_prefix("-- postgres:").unwrap_or(line));
        let lines = lines.map(|line| line.split("--").next().unwrap_or_default());
        let text = lines.collect::<Vec<_>>().join("\n");
        let statements = text.split(';').filter(|statement| !statement.trim().is_empty());
        found.extend(statements.map(|statement| (migration.name.to_owned(), statement.to_owned())));
    }
    found
}

fn is_sql(text: &str) -> bool {
    let text = text.trim_start();
    let begins =
        ["select ", "select\n", "insert into ", "update ", "delete from ", "with ", "create ", "alter ", "drop "];
    let is_long = text.contains('\n') || text.contains(" from ") || text.contains(" values ");
    is_long && begins.iter().any(|begin| text.starts_with(begin))
}

fn sources(folder: PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The string literals of a Rust source.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '/' if rest.peek() == Some(&'/') => {
                rest.by_ref().find(|letter| *letter == '\n');
            }
            // A character, or a lifetime, which has no end.
            '\'' => {
                let ahead: Vec<char> = rest.clone().take(3).collect();
                match ahead[..] {
                    ['\\', _, '\''] => drop(rest.by_ref().take(3).collect::<String>()),
                    [_, '\'', ..] => drop(rest.by_ref().take(2).collect::<String>()),
                    _ => {}
                }
            }
            '"' => found.push(literal(&mut rest)),
            _ => {}
        }
    }
    found
}

fn literal(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(letter) = rest.next() {
        match letter {
            '"' => break,
            '\\' => match rest.next() {
                Some('n') => text.push('\n'),
                Some('\n') => while rest.next_if(|letter| letter.is_whitespace()).is_some() {},
                Some(other) => text.push(other),
                None => {}
            },
            letter => text.push(letter),
        }
    }
    text
}
