//! Rows that stand by themselves: settings, keys, endpoints, stored answers, work that is owed.

use domain::Scope;
use domain::job::Job;
use store::queries::idempotency::{ALONE, IdempotencyKey};
use store::queries::verify as stored;
use store::{Entity, Tx};

use super::{Place, Report, page};
use crate::error::Failure;
use crate::secrets::Subkey;

pub(super) fn walk<E: Entity>(
    tx: &mut Tx<'_>,
    scope: Scope,
    report: &mut Report,
    place: &mut Place,
) -> Result<(), Failure> {
    page::<E>(tx, scope, report, place, |_, _, _, _| Ok(()))
}

/// A stored answer is what a retry will be told.
pub(super) fn idempotency_keys(tx: &mut Tx<'_>, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    const TABLE: &str = "idempotency_keys";
    let rows = stored::idempotency_keys(tx, &mut place.keys)?;
    report.count(TABLE, rows.len());
    place.is_end = place.keys.is_end;
    for (key, row, is_found) in rows {
        let (name, is_ours) = (format!("{} {}", key.0, key.1), key.0 == IdempotencyKey::OWN_SPACE);
        report.expect(is_found, TABLE, &name, || "a request with it would not find it".into());
        let row = match row {
            Ok(row) => row,
            Err(error) => {
                report.fault(TABLE, name, error.to_string());
                continue;
            }
        };
        // A key that we gave a request ourselves can't meet another request.
        let is_sound = row.fingerprint.len() == 32 || is_ours && row.fingerprint.is_empty();
        report.expect(is_sound, TABLE, &name, || "its fingerprint is no SHA-256".into());
        let sound = match (row.state.as_str(), row.status, &row.body, &row.sealed_body) {
            ("running", None | Some(ALONE), None, None) => true,
            ("finished", Some(200..=599), None, None) => is_ours,
            // Whether it opens only the master key can tell, which need not be here.
            ("finished", Some(200..=599), None, Some(sealed)) => !is_ours && sealed.len() >= Subkey::SEAL_LENGTH,
            ("finished", Some(204), Some(body), None) => body.is_empty(),
            ("finished", Some(200..=599), Some(body), None) => {
                serde_json::from_str::<Box<serde_json::value::RawValue>>(body).is_ok()
            }
            _ => false,
        };
        report.expect(sound, TABLE, &name, || format!("its {} answer can't be given again", row.state));
    }
    Ok(())
}

/// Work that no worker would understand is never done.
pub(super) fn jobs(tx: &mut Tx<'_>, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    const TABLE: &str = "jobs";
    let rows = stored::jobs(tx, &place.after)?;
    report.count(TABLE, rows.len());
    place.is_end = rows.len() < stored::PAGE;
    for (kind, object_id) in rows {
        report.expect(Job::parse(&kind, &object_id).is_some(), TABLE, &object_id, || {
            format!("no worker knows {kind:?} of this")
        });
        place.after = (kind, object_id);
    }
    Ok(())
}
