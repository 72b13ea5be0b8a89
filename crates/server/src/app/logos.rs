//! Merchants' pictures: fetched once from the address that the merchant gave, drawn anew, and from then on ours. Nobody
//! who opens a page asks another host for anything.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use domain::job::{ClaimedJob, Job};
use domain::organization::{Organization, Profile};
use domain::{Id, Refusal, Scope};
use store::Tx;
use store::queries::{jobs, logos};

use super::{App, insist, load, organization_of};
use crate::egress::FailureKind;
use crate::error::Failure;
use crate::logo;

/// After a try that failed: then the next.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(600),
    Duration::from_secs(3_600),
    Duration::from_secs(6 * 3_600),
];

/// Whoever fetches one, or waits for a place to draw it, says so as often: silent for longer it would be taken for dead.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// For one of whose merchant another is still being fetched.
const UNTIL_ANOTHER_LOOK: Duration = Duration::from_secs(1);

/// Whose pictures this process is fetching. One at a time, so that addresses that hang, or one that is given again and again,
/// take only one of the few places for such work.
#[derive(Default)]
pub(super) struct Fetches {
    under_way: Mutex<BTreeSet<Id<Organization>>>,
}

impl Fetches {
    fn begin(&self, organization: Id<Organization>) -> Option<Fetch<'_>> {
        self.under_way().insert(organization).then(|| Fetch { of: self, organization })
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeSet<Id<Organization>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Under way until it is dropped.
struct Fetch<'f> {
    of: &'f Fetches,
    organization: Id<Organization>,
}

impl Drop for Fetch<'_> {
    fn drop(&mut self) {
        self.of.under_way().remove(&self.organization);
    }
}

/// Why there is no picture.
struct Missing {
    why: String,
    /// Another time it may be there.
    may_come: bool,
}

/// The address below ours where pages find a merchant's picture.
pub fn path(scope: Scope, profile: &Profile) -> Option<String> {
    let digest = profile.logo_digest.as_ref()?;
    Some(format!("/logos/{}/{}/{digest}.png", scope.organization, scope.mode.as_str()))
}

/// The picture of this digest. Which merchant has it is in its address, which a page of theirs shows.
pub fn file(tx: &mut Tx<'_>, scope: Scope, digest: &str) -> Result<Vec<u8>, Failure> {
    Ok(logos::file(tx, scope, digest)?.ok_or_else(Refusal::not_found::<Organization>)?)
}

/// Owes a look at the address, which may be the same and show something new. What came of looks before holds up none.
pub(super) fn owe(tx: &mut Tx<'_>, organization: &Organization) -> Result<(), Failure> {
    let job = Job::FetchLogo(organization.id, organization.mode);
    Ok(jobs::schedule_anew(tx, organization.scope(), job, tx.now())?)
}

impl App {
    pub async fn fetch_logo(&self, claimed: &ClaimedJob) -> Result<(), Failure> {
        let scope = claimed.scope;
        let Some(_fetch) = self.inner.logo_fetches.begin(scope.organization) else {
            let claimed = claimed.clone();
            let later =
                move |tx: &mut Tx<'_>, _: &_| Ok(jobs::put_off(tx, &claimed, tx.now().plus(UNTIL_ANOTHER_LOOK))?);
            return self.commit(later).await;
        };
        let url = self.read(move |tx, _| Ok(organization_of(tx, scope)?.profile.logo_url.clone())).await?;
        let Some(url) = url else { return self.keep_logo(claimed, None, None).await };
        let picture = tokio::select! {
            picture = self.picture(scope, &url) => picture,
            // Whoever took over, or was told to look anew, says what there is to see.
            () = self.overtaken(claimed) => return Ok(()),
        };
        match picture {
            Ok(file) => self.keep_logo(claimed, Some(url), Some(file)).await,
            Err(Missing { why, may_come }) => {
                tracing::warn!(organization = %scope.organization, why, "the merchant's logo can't be shown");
                let tries = usize::try_from(claimed.attempts).unwrap_or(usize::MAX);
                let pause = PAUSES.get(tries.saturating_sub(1)).copied().filter(|_| may_come);
                let claimed = claimed.clone();
                self.commit(move |tx, _| match pause {
                    Some(pause) => Ok(jobs::again(tx, &claimed, tx.now().plus(pause))?),
                    None => Ok(jobs::done(tx, &claimed)?),
                })
                .await
            }
        }
    }

    /// Holds on to a job, until it is somebody else's.
    async fn overtaken(&self, claimed: &ClaimedJob) {
        loop {
            tokio::time::sleep(SIGN_OF_LIFE).await;
            let claimed = claimed.clone();
            match self.commit(move |tx, _| Ok(jobs::renew(tx, &claimed, tx.now().plus(insist::LEASE))?)).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(failure) => tracing::warn!(%failure, "that a merchant's logo is fetched can't be stored yet"),
            }
        }
    }

    async fn picture(&self, scope: Scope, url: &str) -> Result<Vec<u8>, Missing> {
        let live = scope.mode.is_live();
        let never = |why: String| Missing { why, may_come: false };
        let url = self.egress().check_url(url, live).map_err(|fault| never(fault.message))?;
        let fetched = self
            .egress()
            .get(&url, live)
            .await
            .map_err(|failure| Missing { may_come: failure.kind != FailureKind::Forbidden, why: failure.message })?;
        // One at a time with the documents: decoding takes a core and some memory.
        let ending = |failure: Failure| Missing { why: failure.to_string(), may_come: true };
        let place = self.renderings().place(scope.mode).await.map_err(ending)?;
        let draw = move || {
            let drawn = logo::redraw(&fetched);
            drop(place);
            drawn
        };
        let drawn = tokio::task::spawn_blocking(draw).await;
        drawn.map_err(|_| never("its reader panicked".into()))?.map_err(|unreadable| never(unreadable.to_string()))
    }

    /// What was fetched belongs to the merchant as long as they name the same address.
    async fn keep_logo(&self, claimed: &ClaimedJob, url: Option<String>, file: Option<Vec<u8>>) -> Result<(), Failure> {
        let name = |file: &Vec<u8>| digest(&SHA256, file).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let digest: Option<String> = file.as_ref().map(name);
        let claimed = claimed.clone();
        self.commit(move |tx, _| {
            let scope = claimed.scope;
            let mut organization = load::<Organization>(tx, scope, scope.organization)?;
            // Whoever took over meanwhile may have stored what the address shows since.
            if !jobs::is_held(tx, &claimed)? {
                return Ok(());
            }
            let profile = &mut organization.profile;
            if profile.logo_url == url && profile.logo_digest != digest {
                profile.logo_digest.clone_from(&digest);
                tx.save(&mut organization)?;
                if let (Some(digest), Some(file)) = (&digest, &file) {
                    logos::add(tx, scope, digest, file)?;
                }
            }
            Ok(jobs::done(tx, &claimed)?)
        })
        .await
    }
}
