//! How an aggregate is kept: one row with its document and the promoted columns that are filtered,
//! sorted, unique, summed or checked.
//!
//! Every statement takes the scope. A save is guarded by the version that was read.

mod api_key;
mod checkout;
mod customer;
mod invoice;
mod organization;
mod payment;
mod payment_link;
mod product;
mod receipt;
mod refund;
mod simulator;
mod stale;
mod webhook;

pub use payment::{CAME_TWICE, NEEDS_A_PERSON};

use std::fmt::Display;
use std::sync::Arc;

use domain::{Scope, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checksum;
use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Tx;

pub trait Entity: Serialize + DeserializeOwned {
    type Id: Display + Copy;

    const TABLE: &'static str;
    /// Parameters: organization, mode, id, version, document, then [`Entity::columns`].
    const INSERT: &'static str;
    /// The same parameters, and last the version that must still be there.
    const UPDATE: &'static str;
    /// `version, doc` by organization, mode, id.
    const SELECT: &'static str;

    fn id(&self) -> Self::Id;
    fn scope(&self) -> Scope;
    fn version(&self) -> i64;
    fn set_version(&mut self, version: i64);
    fn columns(&self) -> Vec<Value>;

    /// The public id of what is paid, if a payer's page of that shows this.
    fn page(&self) -> Option<String> {
        None
    }

    /// Whether its sums can be: those that all who read it take for granted.
    fn adds_up(&self) -> bool {
        true
    }

    /// Whether a process of an earlier version, which an upgrade leaves running beside this one, can have left `found` in a
    /// column when it saved `document`.
    fn is_of_before(&self, _document: &str, _column: &str, _found: &Value) -> bool {
        false
    }
}

impl Tx<'_> {
    /// The business time of this run.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now_us())
    }

    /// The object as it stands; inside a write it is locked until the end.
    pub fn find<E: Entity>(&mut self, scope: Scope, id: E::Id) -> Result<Option<E>, Error> {
        if domain::planted!(Defect::VersionUnguarded) {
            let row = stale::of_a_moment_ago::<E>(self, scope, id)?;
            return row.as_ref().map(parse).transpose();
        }
        let mut sql = format!("{}{}", E::SELECT, self.lock_suffix());
        if domain::planted!(Defect::ChangeOfAllOrganizations) {
            sql = sql.replace("organization_id = $1", "$1 = $1");
        }
        let row = self.query_opt(&sql, &key(scope, &id.to_string()))?;
        row.as_ref().map(parse).transpose()
    }

    /// The object as it stands, without a lock: for what this transaction reads and does not change.
    pub fn peek<E: Entity>(&mut self, scope: Scope, id: E::Id) -> Result<Option<E>, Error> {
        if domain::planted!(Defect::OrganizationIgnored) {
            let anybodys = E::SELECT.replace("organization_id = $1", "$1 = $1");
            let row = self.query_opt(&anybodys, &key(scope, &id.to_string()))?;
            return row.as_ref().map(parse).transpose();
        }
        if domain::planted!(Defect::ModeIgnored) {
            let of_both = E::SELECT.replace("mode = $2", "$2 = $2");
            let row = self.query_opt(&of_both, &key(scope, &id.to_string()))?;
            return row.as_ref().map(parse).transpose();
        }
        let row = match domain::planted!(Defect::StaleRead) {
            true => stale::of_a_moment_ago::<E>(self, scope, id)?,
            false => self.query_opt(E::SELECT, &key(scope, &id.to_string()))?,
        };
        row.as_ref().map(parse).transpose()
    }

    /// The same, for what seldom changes and nearly every command reads: where nobody else writes unseen, it is kept as it was read.
    pub fn settled<E>(&mut self, scope: Scope, id: E::Id) -> Result<Option<Arc<E>>, Error>
    where
        E: Entity + Send + Sync + 'static,
    {
        let key = (E::TABLE, scope, id.to_string());
        if let Some(kept) = self.settled_objects().and_then(|settled| settled.get(&key)) {
            return Ok(Some(kept));
        }
        let found = self.peek::<E>(scope, id)?.map(Arc::new);
        if let (Some(found), Some(settled)) = (&found, self.settled_objects()) {
            settled.keep(key, found);
        }
        Ok(found)
    }

    /// A new object, version 1.
    pub fn insert<E: Entity>(&mut self, entity: &mut E) -> Result<(), Error> {
        assert_eq!(entity.version(), 0, "a new object has not been stored before");
        entity.set_version(1);
        self.changes_page_of(entity);
        self.append(E::TABLE, E::INSERT, &values(entity)?)
    }

    /// The next version of an object that was found in this transaction.
    pub fn save<E: Entity>(&mut self, entity: &mut E) -> Result<(), Error> {
        let read = entity.version();
        assert!(read > 0, "only a stored object is saved");
        entity.set_version(read + 1);
        self.changes_page_of(entity);
        let mut values = values(entity)?;
        values.push(read.into());
        if domain::planted!(Defect::VersionUnguarded) {
            let unguarded = E::UPDATE.replace("and version = $", "and 0 < version + $");
            return self.guarded(E::TABLE, &unguarded, &values);
        }
        self.guarded(E::TABLE, E::UPDATE, &values)
    }

    fn changes_page_of<E: Entity>(&mut self, entity: &E) {
        if let Some(id) = entity.page() {
            self.change_page(id);
        }
    }
}

/// A row that begins with `version, doc`.
pub(crate) fn parse<E: Entity>(row: &Row) -> Result<E, Error> {
    let document: String = row.get("doc")?;
    checksum::check(&document, format_args!("a document in {}", E::TABLE))?;
    let mut entity: E = serde_json::from_str(&document)
        .map_err(|error| Error::Corrupt(format!("a document in {} does not parse: {error}", E::TABLE)))?;
    if !entity.adds_up() {
        return Err(Error::Corrupt(format!("the amounts of {} in {} don't add up", entity.id(), E::TABLE)));
    }
    entity.set_version(row.get("version")?);
    Ok(entity)
}

pub(crate) fn key(scope: Scope, id: &str) -> [Value; 3] {
    [scope.organization.to_string().into(), scope.mode.as_str().into(), id.into()]
}

pub(crate) fn values<E: Entity>(entity: &E) -> Result<Vec<Value>, Error> {
    let document = serde_json::to_string(entity)
        .map_err(|error| Error::Corrupt(format!("a document for {} can't be written: {error}", E::TABLE)))?;
    let mut values = Vec::from(key(entity.scope(), &entity.id().to_string()));
    values.push(entity.version().into());
    values.push(checksum::added(document).into());
    values.extend(entity.columns());
    Ok(values)
}
