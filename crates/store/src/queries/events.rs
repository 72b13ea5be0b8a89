//! Events: appended with the change that they tell, given a place in the log afterwards.

use domain::event::{Event, EventName, EventType};
use domain::{Id, Scope, Timestamp};

use super::{
    Filter, MOST_PAGE_BYTES, Page, PageRequest, explained, joined_in_order, limit_of, listed, oldest_of_scopes,
    read_id, scope_of, unless_damaged,
};
use crate::checksum;
use crate::entity::key;
use crate::error::Error;
use crate::sql::{Part, Row, Value};
use crate::tx::Tx;
use crate::wakes::Worker;

const INSERT: &str = "\
insert into events (organization_id, mode, id, type, object_id, sequence, body, body_crc32, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

const INSERT_UNLOGGED: &str = "\
insert into events_unlogged (organization_id, mode, id)
values ($1, $2, $3)";

const COLUMNS: &str = "organization_id, mode, id, type, object_id, sequence, body, body_crc32, created_at";

const SELECT: &str = "\
select organization_id, mode, id, type, object_id, sequence, body, body_crc32, created_at
from events
where organization_id = $1 and mode = $2 and id = $3";

const SELECT_SOME: &str = "\
select organization_id, mode, id, type, object_id, sequence, body, body_crc32, created_at
from events
where organization_id = $1 and mode = $2 and id in ({events})";

const SELECT_UNLOGGED: &str = "\
select organization_id, mode, id
from events_unlogged
order by organization_id, mode, id
limit $1";

/// The oldest of the next scope in which any waits.
const NEXT_UNLOGGED: &str = "\
select organization_id, mode, id
from events_unlogged
where (organization_id, mode) > ($1, $2)
order by organization_id, mode, id
limit 1";

/// With the objects whose order is to be kept.
const WAITING: &str = "\
select events.organization_id, events.mode, events.id, events.object_id, events.sequence
from (
    select organization_id, mode, id
    from events_unlogged
    where (organization_id, mode, id) > ($2, $3, $4)
    order by organization_id, mode, id
    limit $1) as waiting
join events
    on events.organization_id = waiting.organization_id
    and events.mode = waiting.mode
    and events.id = waiting.id
order by events.organization_id, events.mode, events.id";

/// Behind those, and before one of them by the count of their object. They are named by the last of them: counted once more,
/// they would be others if one with a smaller id was committed meanwhile.
const EARLIER: &str = "\
select earlier.organization_id, earlier.mode, earlier.id, earlier.object_id, earlier.sequence
from events_unlogged as waiting
join events
    on events.organization_id = waiting.organization_id
    and events.mode = waiting.mode
    and events.id = waiting.id
join events as earlier
    on earlier.organization_id = events.organization_id
    and earlier.mode = events.mode
    and earlier.object_id = events.object_id
    and earlier.sequence < events.sequence
join events_unlogged as behind
    on behind.organization_id = earlier.organization_id
    and behind.mode = earlier.mode
    and behind.id = earlier.id
where (waiting.organization_id, waiting.mode, waiting.id) <= ($1, $2, $3)
    and (behind.organization_id, behind.mode, behind.id) > ($1, $2, $3)
order by earlier.organization_id, earlier.mode, earlier.id, events.sequence
limit $4";

/// Of [`EARLIER`]: they are as far behind as two clocks are apart.
const MOST_EARLIER: i64 = 10_000;

const SELECT_LAST_LOG_NO: &str = "\
select coalesce(max(log_no), 0) as log_no
from event_log
where organization_id = $1 and mode = $2";

const SELECT_NEWEST_TIME: &str = "\
select created_at
from events
where organization_id = $1 and mode = $2
order by id desc
limit 1";

/// Places are given behind one another, whatever the clocks said.
const SELECT_LAST_TIME: &str = "\
select events.created_at
from event_log
join events
    on events.organization_id = event_log.organization_id
    and events.mode = event_log.mode
    and events.id = event_log.event_id
where event_log.organization_id = $1 and event_log.mode = $2
order by event_log.log_no desc
limit 1";

const INSERT_LOGGED: &str = "\
insert into event_log (organization_id, mode, log_no, event_id)
values ($1, $2, $3, $4)";

const DELETE_UNLOGGED: &str = "\
delete from events_unlogged
where organization_id = $1 and mode = $2 and id = $3";

const SELECT_LOG_NO: &str = "\
select log_no
from event_log
where organization_id = $1 and mode = $2 and event_id = $3";

const FOLLOW: &str = "\
select events.organization_id, events.mode, events.id, events.type, events.object_id, events.sequence, events.body,
    events.body_crc32, events.created_at, event_log.log_no
from event_log
join events
    on events.organization_id = event_log.organization_id
    and events.mode = event_log.mode
    and events.id = event_log.event_id
where event_log.organization_id = $1 and event_log.mode = $2 and event_log.log_no > $3
order by event_log.log_no
limit $4";

const COUNT_AFTER: &str = "\
select count(*) as total
from (
    select 1 as one
    from event_log
    where organization_id = $1 and mode = $2 and log_no > $3
    limit 100001) as matching";

#[derive(Debug, Clone, Default)]
pub struct EventsFilter {
    pub kind: Option<EventType>,
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

pub fn append(tx: &mut Tx<'_>, event: &Event) -> Result<(), Error> {
    let mut values = Vec::from(key(event.scope, &event.id.to_string()));
    values.extend([
        event.kind.as_str().into(),
        event.object_id.as_str().into(),
        event.sequence.into(),
        event.body.as_str().into(),
        i64::from(checksum::of(&event.body)).into(),
        event.created_at.micros().into(),
    ]);
    tx.append("events", INSERT, &values)?;
    tx.wake(Worker::Sequencer);
    tx.append("events_unlogged", INSERT_UNLOGGED, &key(event.scope, &event.id.to_string()))
}

/// When the event happened that is the last in the log: of those that were there for a while the last to be told, while the newest
/// by its id may be of a clock that was ahead.
pub fn last_at(tx: &mut Tx<'_>, scope: Scope) -> Result<Option<Timestamp>, Error> {
    let [organization, mode, _] = key(scope, "");
    let row = tx.query_opt(&joined_in_order(tx, SELECT_LAST_TIME), &[organization, mode])?;
    row.map(|row| row.get("created_at")).transpose()
}

/// When the newest event happened.
pub fn newest_at(tx: &mut Tx<'_>, scope: Scope) -> Result<Option<Timestamp>, Error> {
    let values = [scope.organization.to_string().into(), scope.mode.as_str().into()];
    let newest = tx.query_opt(SELECT_NEWEST_TIME, &values)?;
    newest.map(|row| row.get("created_at")).transpose()
}

pub fn find(tx: &mut Tx<'_>, scope: Scope, id: Id<Event>) -> Result<Option<Event>, Error> {
    tx.query_opt(SELECT, &key(scope, &id.to_string()))?.as_ref().map(read).transpose()
}

/// An event, unless nobody can read it any more.
pub type Found = (Id<Event>, Option<Event>);

/// Those of `ids` that are there and known by their names, in any order: a later version sends its own.
pub fn some(tx: &mut Tx<'_>, scope: Scope, ids: &[Id<Event>]) -> Result<Vec<Found>, Error> {
    let [organization, mode, _] = key(scope, "");
    let (events, ids) = listed(3, ids.iter().map(Id::to_string));
    let mut values = vec![organization, mode];
    values.extend(ids);
    let mut found = Vec::with_capacity(values.len());
    for row in &tx.query(&SELECT_SOME.replace("{events}", &events), &values)? {
        let Some(id) = unless_damaged(read_id(&row.get::<String>("id")?), "an event's id")? else { continue };
        match unless_damaged(read(row), "an event")? {
            Some(Event { kind: EventName::Later(_), .. }) => {}
            event => found.push((id, event)),
        }
    }
    Ok(found)
}

/// Newest first, without those that can't be read. Whoever goes on behind the last that is shown gets past them, so that a page shows
/// something while there is any.
pub fn list(tx: &mut Tx<'_>, scope: Scope, filter: &EventsFilter, page: &PageRequest) -> Result<Page<Event>, Error> {
    let mut page = page.clone();
    loop {
        let mut conditions = Filter::within(scope);
        if let Some(kind) = filter.kind {
            conditions.and("type = {}", [kind.as_str().into()]);
        }
        conditions.made_between::<Event>(filter.from, filter.until);
        let rows = conditions.page(tx, "events", COLUMNS, &page)?;
        let last = rows.items.last().map(|row| row.get::<String>("id")).transpose()?;
        let found = rows.try_filter_map(|row| unless_damaged(read(&row), "an event of a list"))?;
        match last.filter(|_| found.items.is_empty() && found.has_more) {
            Some(last) => page = PageRequest { offset: 0, after: Some(last), ..page },
            None => return Ok(found),
        }
    }
}

/// In the order of the log, behind `after`: a row that commits late is not skipped, because a place is given only after
/// the commit. `None` where there is no such event: whoever waited for what comes behind it would wait for ever. Left out is
/// what can't be read, and what `show` makes nothing of.
pub fn follow<T, E: From<Error>>(
    tx: &mut Tx<'_>,
    scope: Scope,
    after: Option<&str>,
    limit: i64,
    mut show: impl FnMut(&mut Tx<'_>, Event) -> Result<Option<T>, E>,
) -> Result<Option<Page<T>>, E> {
    let mut after: i64 = match after {
        None => 0,
        Some(id) => match tx.query_opt(SELECT_LOG_NO, &key(scope, id))? {
            Some(row) => row.get("log_no")?,
            None if tx.query_opt(SELECT, &key(scope, id))?.is_none() => return Ok(None),
            // Without a place yet, it is behind all that have one.
            None => {
                return Ok(Some(Page { items: Vec::new(), total: 0, total_is_capped: false, limit, has_more: false }));
            }
        },
    };
    let [organization, mode, _] = key(scope, "");
    let total: i64 = tx.query_one(COUNT_AFTER, &[organization.clone(), mode.clone(), after.into()])?.get("total")?;
    let mut looked_at = 0_usize;
    loop {
        let values = [organization.clone(), mode.clone(), after.into(), limit.into()];
        let Part { rows, is_cut } = tx.query_part(FOLLOW, &values, MOST_PAGE_BYTES)?;
        let mut items = Vec::with_capacity(rows.len());
        for row in &rows {
            if let Some(event) = unless_damaged(read(row), "an event of the log")? {
                items.extend(show(tx, event)?);
            }
        }
        looked_at += rows.len();
        // Whoever follows goes on behind the last that is shown: a page that shows none would hold them there for ever.
        if let (true, Some(last)) = (items.is_empty(), rows.last()) {
            after = last.get("log_no")?;
            continue;
        }
        let has_more = total > i64::try_from(looked_at).unwrap_or(i64::MAX);
        let limit = limit_of(limit, &rows, is_cut);
        return Ok(Some(Page { items, total: total.min(100_000), total_is_capped: total > 100_000, limit, has_more }));
    }
}

pub fn any_unlogged(tx: &mut Tx<'_>) -> Result<bool, Error> {
    Ok(!tx.query(SELECT_UNLOGGED, &[1_i64.into()])?.is_empty())
}

/// Since when the oldest of those without a place in the log waits for it.
pub fn oldest_unlogged(tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Error> {
    oldest_of_scopes::<Event>(tx, NEXT_UNLOGGED)
}

/// A committed event that has no place in the log yet.
struct Waiting {
    scope: Scope,
    id: String,
    object_id: String,
    sequence: i64,
}

/// Gives about `limit` committed events their place in the log of their organization and mode. For one leased sequencer.
pub fn number(tx: &mut Tx<'_>, limit: i64) -> Result<i64, Error> {
    let mut behind: Place = ["", "", ""].map(Value::from);
    // `None` where there is no place behind the last, which can't be: that keeps no other's events from theirs.
    let mut last: Vec<(Scope, Option<i64>)> = Vec::new();
    let mut numbered = 0;
    loop {
        let (waiting, read_to) = waiting(tx, limit, &behind)?;
        for Waiting { scope, id, .. } in in_order(waiting) {
            let [organization, mode, event] = key(scope, &id);
            let log_no = match last.iter_mut().find(|(known, _)| *known == scope) {
                Some((_, log_no)) => {
                    let step = if domain::planted!(Defect::LogSkipsPlaces) { 2 } else { 1 };
                    *log_no = log_no.and_then(|log_no| log_no.checked_add(step));
                    *log_no
                }
                None => {
                    let known: i64 =
                        tx.query_one(SELECT_LAST_LOG_NO, &[organization.clone(), mode.clone()])?.get("log_no")?;
                    if known == i64::MAX {
                        tracing::error!(organization = %scope.organization, mode = scope.mode.as_str(), "the log has no place for what happens");
                    }
                    last.push((scope, known.checked_add(1)));
                    known.checked_add(1)
                }
            };
            let Some(log_no) = log_no else { continue };
            tx.append("event_log", INSERT_LOGGED, &[organization, mode, log_no.into(), event])?;
            tx.guarded("events_unlogged", DELETE_UNLOGGED, &key(scope, &id))?;
            numbered += 1;
        }
        // Fewer than were asked for are all there are. What got no place, or can't be read, is still there, before the others.
        let Some(read_to) = read_to.filter(|_| numbered < limit) else { return Ok(numbered) };
        behind = behind_full(read_to, &last);
    }
}

/// The key of a row, whatever is in it.
type Place = [Value; 3];

/// Behind what was read; and of a log that has no place, behind all of it.
fn behind_full([organization, mode, id]: Place, last: &[(Scope, Option<i64>)]) -> Place {
    let is_full = last.iter().any(|(scope, log_no)| {
        let [its_organization, its_mode, _] = key(*scope, "");
        log_no.is_none() && its_organization == organization && its_mode == mode
    });
    // No id has such a letter.
    if is_full { [organization, mode, "\u{10ffff}".into()] } else { [organization, mode, id] }
}

/// The first `limit` behind a place by their ids, and what of the same objects comes before one of them. With the place of the
/// last that was read, if there may be more.
fn waiting(tx: &mut Tx<'_>, limit: i64, behind: &Place) -> Result<(Vec<Waiting>, Option<Place>), Error> {
    let mut values = vec![limit.into()];
    values.extend(behind.iter().cloned());
    let rows = tx.query(&joined_in_order(tx, WAITING), &values)?;
    // One that can't be read keeps nobody's events from their places.
    let readable = |row| unless_damaged(read_waiting(row), "an event without a place").transpose();
    let mut all = rows.iter().filter_map(readable).collect::<Result<Vec<_>, Error>>()?;
    // Fewer are all there are.
    let Some(last_row) = rows.last().filter(|_| i64::try_from(rows.len()).is_ok_and(|rows| rows == limit)) else {
        return Ok((all, None));
    };
    let read_to = [last_row.get("organization_id")?, last_row.get("mode")?, last_row.get("id")?];
    if let Some(last) = all.last() {
        let [organization, mode, id] = key(last.scope, &last.id);
        for row in tx.query(&joined_in_order(tx, EARLIER), &[organization, mode, id, MOST_EARLIER.into()])? {
            let earlier = read_waiting(&row)?;
            // Once for each that it comes before.
            if all.last().is_none_or(|last| last.id != earlier.id) {
                all.push(earlier);
            }
        }
    }
    Ok((all, Some(read_to)))
}

/// How the database would go about finding what waits: its plan for each statement, for whoever checks that none reads what has
/// its place.
pub fn plans(tx: &mut Tx<'_>, scope: Scope, last: &str) -> Result<[String; 2], Error> {
    let [organization, mode, id] = key(scope, last);
    let earlier = joined_in_order(tx, EARLIER);
    Ok([
        explained(tx, &joined_in_order(tx, WAITING), &[100.into(), "".into(), "".into(), "".into()])?,
        explained(tx, &earlier, &[organization, mode, id, MOST_EARLIER.into()])?,
    ])
}

/// By their ids, which begin with their time. But each object's are told in the order in which they happened, though the
/// clocks of two processes differ: they share out the places that they have.
fn in_order(by_id: Vec<Waiting>) -> Vec<Waiting> {
    let mut places: Vec<usize> = (0..by_id.len()).collect();
    places.sort_by(|one, other| by_id[*one].object_id.cmp(&by_id[*other].object_id).then(one.cmp(other)));
    let mut by_object = by_id;
    by_object.sort_by(|one, other| (&one.object_id, one.sequence).cmp(&(&other.object_id, other.sequence)));
    let mut placed: Vec<(usize, Waiting)> = places.into_iter().zip(by_object).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, event)| event).collect()
}

fn read_waiting(row: &Row) -> Result<Waiting, Error> {
    Ok(Waiting {
        scope: scope_of(row)?,
        id: row.get("id")?,
        object_id: row.get("object_id")?,
        sequence: row.get("sequence")?,
    })
}

fn read(row: &Row) -> Result<Event, Error> {
    let id: String = row.get("id")?;
    let body: String = row.get("body")?;
    checksum::check_beside(&body, row.get("body_crc32")?, format_args!("the body of {id}"))?;
    Ok(Event {
        id: read_id(&id)?,
        scope: scope_of(row)?,
        kind: EventName::read(row.get("type")?),
        object_id: row.get("object_id")?,
        sequence: row.get("sequence")?,
        body,
        created_at: row.get("created_at")?,
    })
}
