//! Rows whose text is not what was written: which they are, and two ways to put one right: with the text that a backup holds of the
//! very same row, or as it stands, once a person has looked. Nothing is guessed, and nothing but the text is changed.

use domain::{Mode, Scope};
use serde::Serialize;
use store::queries::organizations;
use store::queries::repair::{self, Columns, KINDS, Kind, NO_CHECKSUM};
use store::queries::verify::{self, strays};
use store::{Error, Store, Summary, Tx, Value};

use super::keys;
use crate::error::Failure;

/// More than these are counted and not kept.
const MOST_DAMAGED: usize = 1000;
/// In the audit log.
const REPAIRED: &str = "document.repaired";

/// A row that can't be read as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedRow {
    pub table: &'static str,
    pub id: String,
    pub organization_id: Option<String>,
    pub mode: Option<&'static str>,
    pub what: String,
}

/// What a look at everything found.
#[derive(Debug, Default, Serialize)]
pub struct Found {
    /// Rows.
    pub checked: u64,
    pub damaged: Vec<DamagedRow>,
    /// All of them, those that were not kept included.
    pub damaged_count: u64,
    /// Everything was looked at, as far as it can be read.
    pub is_complete: bool,
}

impl Found {
    fn add(&mut self, table: &'static str, scope: Option<Scope>, id: String, what: String) {
        self.damaged_count += 1;
        if self.damaged.len() < MOST_DAMAGED {
            let organization_id = scope.map(|scope| scope.organization.to_string());
            let mode = scope.map(|scope| scope.mode.as_str());
            self.damaged.push(DamagedRow { table, id, organization_id, mode, what });
        }
    }
}

/// Looks at every text that has a checksum, a page in each of many snapshots; `tell` hears how many rows it has come past. What ends the
/// look takes nothing of what it has `found`.
pub async fn look(store: &Store, found: &mut Found, mut tell: impl FnMut(u64)) -> Result<(), Failure> {
    let mut scopes = Vec::new();
    for scope in store.read(organizations::scopes_as_found).await? {
        match scope {
            Ok(scope) => scopes.push(scope),
            Err((row, why)) => found.add("organizations", None, row, why.to_string()),
        }
    }
    for scope in scopes {
        for kind in &KINDS {
            look_through(store, kind, scope, found, &mut tell).await?;
        }
    }
    for look in 0..strays::SCOPE_LOOKS {
        look_for_strays(store, look, found).await?;
    }
    found.is_complete = true;
    Ok(())
}

/// The rows of a table whose organization or mode nobody has: no walk comes past them.
async fn look_for_strays(store: &Store, look: usize, found: &mut Found) -> Result<(), Failure> {
    if repair::kind(strays::table(look)).is_none() {
        return Ok(());
    }
    let mut place = strays::Place::default();
    while !place.is_end {
        let from = place.clone();
        let page = read(store, move |tx| {
            verify::take_time(tx);
            let mut place = from.clone();
            let strays = strays::find(tx, look, &mut place)?;
            Ok((strays, place))
        });
        match page.await? {
            Ok((strays, behind)) => {
                for stray in strays {
                    found.add(stray.table, None, stray.row, stray.what.to_owned());
                }
                place = behind;
            }
            Err(why) => {
                let what = format!("whose its rows are can't be read to the end: {why}");
                found.add(strays::table(look), None, "?".to_owned(), what);
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn look_through(
    store: &Store,
    kind: &'static Kind,
    scope: Scope,
    found: &mut Found,
    tell: &mut impl FnMut(u64),
) -> Result<(), Failure> {
    let mut after = Some(String::new());
    while let Some(behind) = after.take() {
        let from = behind.clone();
        let page = read(store, move |tx| {
            verify::take_time(tx);
            kind.page(tx, scope, &from)
        });
        match page.await? {
            Ok(page) => {
                found.checked += u64::try_from(page.rows.len()).unwrap_or(u64::MAX);
                for (id, fault) in page.rows {
                    if let Some(what) = fault {
                        found.add(kind.table, Some(scope), id, what);
                    }
                }
                after = page.next;
            }
            Err(_) => after = look_one_by_one(store, kind, scope, &behind, found).await?,
        }
        tell(found.checked);
    }
    Ok(())
}

/// At the rows of a page that can't be read together, one of which is why; answers behind which id there may be more.
async fn look_one_by_one(
    store: &Store,
    kind: &'static Kind,
    scope: Scope,
    behind: &str,
    found: &mut Found,
) -> Result<Option<String>, Failure> {
    let from = behind.to_owned();
    let listed = read(store, move |tx| {
        verify::take_time(tx);
        kind.ids(tx, scope, &from)
    });
    let (ids, next) = match listed.await? {
        Ok(listed) => listed,
        Err(why) => {
            let id = if behind.is_empty() { "?".to_owned() } else { format!("behind {behind}") };
            let what = format!("it can't be read, and the rest of the table was not looked at: {why}");
            found.add(kind.table, Some(scope), id, what);
            return Ok(None);
        }
    };
    for id in ids {
        let asked = id.clone();
        let what = match read(store, move |tx| kind.find(tx, scope, &asked)).await? {
            Ok(row) => row.and_then(|row| kind.fault(&row)),
            Err(why) => Some(format!("it can't be read: {why}")),
        };
        found.checked += 1;
        if let Some(what) = what {
            found.add(kind.table, Some(scope), id, what);
        }
    }
    Ok(next)
}

/// What there is to read, or why it can't be read where the database can. A disk that can't read a sector is told in the words of a
/// database that is away: so it is asked for something else, and once more for this.
async fn read<T, F>(store: &Store, look: F) -> Result<Result<T, String>, Failure>
where
    F: Fn(&mut Tx<'_>) -> Result<T, Error> + Clone + Send + Sync + 'static,
    T: Send + 'static,
{
    let mut looked = store.read(look.clone()).await;
    if matches!(looked, Err(Error::Unavailable(_))) {
        store.read(repair::schema).await?;
        looked = store.read(look).await;
    }
    match looked {
        Ok(found) => Ok(Ok(found)),
        Err(Error::Corrupt(why) | Error::Sql { message: why, .. } | Error::Panic(why) | Error::Unavailable(why)) => {
            Ok(Err(why))
        }
        Err(error) => Err(error.into()),
    }
}

/// A row that is asked about.
#[derive(Clone)]
pub struct Case {
    pub kind: &'static Kind,
    pub scope: Scope,
    pub id: String,
    row: Columns,
    /// Why it can't be read as it was written, if it can't.
    pub fault: Option<String>,
}

impl Case {
    /// The text as it stands.
    pub fn text(&self) -> &Value {
        self.text_of(&self.row)
    }

    /// That of the same row, as it may become.
    pub fn text_of<'r>(&self, row: &'r Columns) -> &'r Value {
        static NOTHING: Value = Value::Null;
        row.get(self.kind.text).unwrap_or(&NOTHING)
    }

    /// What names it in a backup.
    pub fn key(&self) -> Columns {
        self.kind.key(self.scope, &self.id)
    }

    /// Whether its checksum can still be read, so that it says which text belongs here.
    pub fn has_checksum(&self) -> bool {
        self.kind.checksum(&self.row) != NO_CHECKSUM
    }

    /// As it stands, with a checksum that says so, or why that can't be what was written.
    pub fn as_it_stands(&self) -> Result<Columns, String> {
        self.kind.stamped(&self.row)
    }
}

/// The rows of that id: one, but for an organization, which has one in each mode.
pub fn find(tx: &mut Tx<'_>, kind: &'static Kind, id: &str, mode: Option<Mode>) -> Result<Vec<Case>, Error> {
    let scopes = organizations::scopes_as_found(tx)?.into_iter().flatten();
    let mut cases = Vec::new();
    for scope in scopes.filter(|scope| mode.is_none_or(|mode| scope.mode == mode)) {
        if let Some(row) = kind.find(tx, scope, id)? {
            let fault = kind.fault(&row);
            cases.push(Case { kind, scope, id: id.to_owned(), row, fault });
        }
    }
    Ok(cases)
}

/// Why nothing was put right.
#[derive(Debug)]
pub enum Unrepaired {
    /// It can't be done that way. The sentence says why.
    Refused(String),
    Failed(Failure),
}

impl From<Failure> for Unrepaired {
    fn from(failure: Failure) -> Self {
        Unrepaired::Failed(failure)
    }
}

impl From<Error> for Unrepaired {
    fn from(error: Error) -> Self {
        Unrepaired::Failed(error.into())
    }
}

/// The row with the text that a backup holds of the very same row.
pub fn restored(tx: &mut Tx<'_>, case: &Case, backup: &Summary, kept: Option<&Columns>) -> Result<Columns, Unrepaired> {
    let schema = repair::schema(tx)?;
    if backup.schema != schema {
        return Err(Unrepaired::Refused(format!(
            "the backup has schema {}, and the database {schema}: only one that was made behind the last upgrade can be used",
            backup.schema
        )));
    }
    let Some(kept) = kept else {
        let why = "it is not in that backup: take a later one, unless its id is what is damaged: then none has it";
        return Err(Unrepaired::Refused(why.to_owned()));
    };
    case.kind.restored(&case.row, kept).map_err(Unrepaired::Refused)
}

/// Puts the text of `wanted` in its place, if the row is as it was seen, and writes down who did, and `how`.
pub fn put_right(tx: &mut Tx<'_>, case: &Case, wanted: &Columns, actor: &str, how: &str) -> Result<(), Unrepaired> {
    if !case.kind.put(tx, case.scope, &case.id, &case.row, wanted)? {
        return Err(Unrepaired::Refused("it was changed meanwhile".to_owned()));
    }
    let (was, is) = (case.kind.checksum(&case.row), case.kind.checksum(wanted));
    let reason = format!("{}: {how}; checksum {was}, now {is}", case.kind.table);
    Ok(keys::record(tx, case.scope, REPAIRED, case.id.clone(), actor, Some(reason))?)
}
