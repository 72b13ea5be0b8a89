//! Merchants' pictures, from our own host: a page loads nothing from anywhere else.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::organization::Organization;
use domain::{Id, Mode, Scope};

use super::answer::Wrong;
use super::headers;
use super::routes::Site;
use super::visit::{InPath, Visit};
use crate::app::logos;

/// `/logos/{organization}/{mode}/{digest}.png`
pub(super) async fn show(
    State(site): State<Arc<Site>>,
    visit: Visit,
    place: InPath<(Id<Organization>, String, String)>,
) -> Response {
    match find(&site, place).await {
        Ok((digest, file)) => (headers::for_picture(&digest), file).into_response(),
        Err(wrong) => wrong.answer(&visit, visit.language(None), site.is_https),
    }
}

async fn find(site: &Site, place: InPath<(Id<Organization>, String, String)>) -> Result<(String, Vec<u8>), Wrong> {
    let (organization, mode, file) = place.map_err(|_| Wrong::NotFound)?.0;
    let mode = Mode::parse(&mode).ok_or(Wrong::NotFound)?;
    let digest = file.strip_suffix(".png").filter(|it| is_digest(it)).ok_or(Wrong::NotFound)?.to_owned();
    let (scope, wanted) = (Scope { organization, mode }, digest.clone());
    let file = site.app.read(move |tx, _| logos::file(tx, scope, &wanted)).await?;
    Ok((digest, file))
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
