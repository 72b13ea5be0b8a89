//! Values on the wire.

use std::error::Error as StdError;
use std::sync::Arc;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::error::{Error, SqlKind};
use crate::sql::{Row, Value};

/// Checked before anything of a pipeline is sent: a value that fails to encode is skipped by the client library, while the
/// COMMIT behind it would go out all the same.
pub(crate) fn check(values: &[Value], types: &[Type], sql: &str) -> Result<(), Error> {
    if values.len() != types.len() {
        let message = format!("{} values for {} placeholders: {sql}", values.len(), types.len());
        return Err(Error::sql(SqlKind::Type, message));
    }
    for (index, (value, wanted)) in values.iter().zip(types).enumerate() {
        if !fits(value, wanted) {
            return Err(Error::sql(SqlKind::Type, format!("${} is {wanted} in: {sql}", index + 1)));
        }
    }
    Ok(())
}

fn fits(value: &Value, wanted: &Type) -> bool {
    match value {
        Value::Null => true,
        Value::Integer(_) => *wanted == Type::INT8,
        Value::Text(_) => matches!(*wanted, Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN),
        Value::Blob(_) => *wanted == Type::BYTEA,
    }
}

pub(crate) fn natural_type(value: &Value) -> Type {
    match value {
        Value::Null => Type::UNKNOWN,
        Value::Integer(_) => Type::INT8,
        Value::Text(_) => Type::TEXT,
        Value::Blob(_) => Type::BYTEA,
    }
}

impl ToSql for Value {
    fn to_sql(&self, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(integer) => integer.to_sql(wanted, out),
            Self::Text(text) => text.to_sql(wanted, out),
            Self::Blob(bytes) => bytes.to_sql(wanted, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

struct Raw(Result<Value, String>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(found: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(Ok(match *found {
            Type::INT8 => Value::Integer(i64::from_sql(found, raw)?),
            Type::INT4 => Value::Integer(i32::from_sql(found, raw)?.into()),
            Type::INT2 => Value::Integer(i16::from_sql(found, raw)?.into()),
            Type::BOOL => Value::Integer(bool::from_sql(found, raw)?.into()),
            Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN => Value::Text(String::from_sql(found, raw)?),
            Type::BYTEA => Value::Blob(raw.to_vec()),
            _ => return Ok(Self(Err(format!("a column of type {found}: cast it to bigint, text or bytea")))),
        })))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(Ok(Value::Null)))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub(crate) fn columns_of(columns: &[tokio_postgres::Column]) -> Arc<[String]> {
    columns.iter().map(|column| column.name().to_owned()).collect()
}

pub(crate) fn rows(found: &[tokio_postgres::Row], columns: &Arc<[String]>) -> Result<Vec<Row>, Error> {
    let row = |found: &tokio_postgres::Row| {
        let values = (0..found.len()).map(|index| match found.try_get::<_, Raw>(index) {
            Ok(Raw(Ok(value))) => Ok(value),
            Ok(Raw(Err(message))) => Err(Error::sql(SqlKind::Type, message)),
            Err(error) => Err(Error::Corrupt(error.to_string())),
        });
        Ok(Row::new(Arc::clone(columns), values.collect::<Result<_, Error>>()?))
    };
    found.iter().map(row).collect()
}
