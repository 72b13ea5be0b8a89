//! One statement for the same insert of many rows: its values come as arrays, one for each placeholder.

use tokio_postgres::types::Type;

const GUARD: &str = "with touched as (";
const ONE: &str = " returning 1) select 1 / (case when count(*) = 1 then 1 else 0 end) from touched";
const EACH: &str = " returning 1) select 1 / (case when count(*) = cardinality($1) then 1 else 0 end) from touched";

/// The write that fails unless it touches exactly one row.
pub(crate) fn exactly_one(sql: &str) -> String {
    format!("{GUARD}{sql}{ONE}")
}

/// `sql` for the rows of arrays; a guarded one has to touch a row for each. `None` where the statement is no
/// `insert … values (…)`, or has a value of a type that doesn't come in arrays here.
pub(crate) fn for_many_rows(sql: &str, types: &[Type]) -> Option<String> {
    match sql.strip_prefix(GUARD).and_then(|sql| sql.strip_suffix(ONE)) {
        Some(guarded) => Some(format!("{GUARD}{}{EACH}", insert_many(guarded, types)?)),
        None => insert_many(sql, types),
    }
}

fn insert_many(sql: &str, types: &[Type]) -> Option<String> {
    let (head, rest) = sql.split_once("values (")?;
    if !head.starts_with("insert into ") || types.is_empty() {
        return None;
    }
    let end = closing_parenthesis(rest)?;
    let (values, tail) = (&rest[..end], &rest[end + 1..]);
    if tail.contains('$') {
        return None;
    }
    let arrays: Vec<String> =
        types.iter().enumerate().map(|(index, one)| array_of(one, index + 1)).collect::<Option<_>>()?;
    let columns: Vec<String> = (1..=types.len()).map(|number| format!("given_{number}")).collect();
    let values = values.replace('$', "given_");
    Some(format!("{head}select {values} from unnest({}) as given ({}){tail}", arrays.join(", "), columns.join(", ")))
}

fn array_of(one: &Type, number: usize) -> Option<String> {
    let name = match *one {
        Type::INT8 => "bigint",
        Type::TEXT => "text",
        Type::BYTEA => "bytea",
        _ => return None,
    };
    Some(format!("${number}::{name}[]"))
}

fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.bytes().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_takes_its_rows_from_arrays() {
        let one =
            "insert into t (a, b, c)\nvalues ($1, coalesce($2, 'x'), 0)\non conflict (a) do update set b = excluded.b";
        assert_eq!(
            for_many_rows(one, &[Type::INT8, Type::TEXT]).as_deref(),
            Some(
                "insert into t (a, b, c)\nselect given_1, coalesce(given_2, 'x'), 0 \
                 from unnest($1::bigint[], $2::text[]) as given (given_1, given_2)\n\
                 on conflict (a) do update set b = excluded.b"
            )
        );
    }

    #[test]
    fn a_guard_wants_a_row_for_each() {
        let one = exactly_one("insert into t (a) values ($1) on conflict do nothing");
        assert_eq!(
            for_many_rows(&one, &[Type::TEXT]).as_deref(),
            Some(
                "with touched as (insert into t (a) select given_1 from unnest($1::text[]) as given (given_1) \
                 on conflict do nothing returning 1) \
                 select 1 / (case when count(*) = cardinality($1) then 1 else 0 end) from touched"
            )
        );
    }

    #[test]
    fn what_is_no_plain_insert_stays_as_it_is() {
        for (sql, types) in [
            ("update t set a = $1 where b = $2", &[Type::INT8, Type::TEXT][..]),
            ("insert into t (a) select b from u where c = $1", &[Type::TEXT]),
            ("insert into t (a) values ($1) on conflict (a) do update set a = $2", &[Type::INT8, Type::INT8]),
            ("insert into t (a) values ($1)", &[Type::JSONB]),
            ("insert into t (a) values (1)", &[]),
        ] {
            assert_eq!(for_many_rows(sql, types), None, "{sql}");
        }
    }
}
