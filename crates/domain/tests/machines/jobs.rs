//! Work that is owed, and who holds it: a lease that ends while its holder lives leaves two at the same work.

/// A row of the queue; there is none where nothing is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Job {
    /// It was claimed before, so whoever claims it next can't know how far the other one came.
    pub(crate) was_claimed: bool,
    pub(crate) is_held: bool,
    /// Owed again while it was held.
    pub(crate) was_moved: bool,
}

/// Owes it; owed already, its time moves.
pub(crate) fn schedule(job: &mut Option<Job>) {
    job.get_or_insert_default().was_moved = true;
}

/// Owes it and holds it at once, for whoever runs it inline.
pub(crate) fn hold(job: &mut Option<Job>) {
    *job = Some(Job { was_claimed: true, is_held: true, was_moved: false });
}

/// Whether it was there to be taken, and if so, whether somebody had taken it before.
pub(crate) fn claim(job: &mut Option<Job>) -> Option<bool> {
    let job = job.as_mut().filter(|job| !job.is_held)?;
    let is_rerun = job.was_claimed;
    *job = Job { was_claimed: true, is_held: true, was_moved: false };
    Some(is_rerun)
}

/// Done, unless it was owed again meanwhile: then it is only let go.
pub(crate) fn done(slot: &mut Option<Job>) {
    match slot {
        Some(job) if job.was_moved => job.is_held = false,
        Some(_) | None => *slot = None,
    }
}

/// Let go, and owed again.
pub(crate) fn again(slot: &mut Option<Job>) {
    if let Some(job) = slot {
        (job.is_held, job.was_moved) = (false, true);
    }
}

/// The lease ran out, whether its holder lives or not; `false` where nobody has one.
pub(crate) fn lease_ends(slot: &mut Option<Job>) -> bool {
    let held = slot.as_mut().filter(|job| job.is_held);
    held.map(|job| job.is_held = false).is_some()
}
