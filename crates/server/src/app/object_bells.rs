//! Who follows an object in this process is woken when a commit has changed what its page shows, and nobody else is. What another
//! process commits rings nothing here: whoever follows looks by itself as well, now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// By the object's public id, as long as somebody follows it.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectBells(Arc<Mutex<BTreeMap<String, Bell>>>);

#[derive(Debug)]
struct Bell {
    followers: usize,
    rings: watch::Sender<()>,
}

/// One who follows an object, until it is dropped.
#[derive(Debug)]
pub struct Following {
    bells: ObjectBells,
    object_id: String,
    rings: watch::Receiver<()>,
}

/// What a transaction changed. It rings when it is dropped, which is when somebody has the answer of the commit or nobody waits for
/// it any more; that of a transaction that came to nothing rings in vain.
#[derive(Debug)]
pub(super) struct Changed {
    bells: ObjectBells,
    object_ids: BTreeSet<String>,
}

impl ObjectBells {
    pub(super) fn follow(&self, object_id: String) -> Following {
        let mut all = self.all();
        let bell = all.entry(object_id.clone()).or_insert_with(|| Bell { followers: 0, rings: watch::Sender::new(()) });
        bell.followers += 1;
        Following { bells: self.clone(), object_id, rings: bell.rings.subscribe() }
    }

    pub(super) fn changed(&self, object_ids: BTreeSet<String>) -> Changed {
        Changed { bells: self.clone(), object_ids }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Bell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Following {
    /// At once, if it has rung since the last time or since the beginning: whoever follows before they look miss nothing.
    pub async fn rung(&mut self) {
        self.rings.changed().await.expect("a bell stays as long as it is followed");
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut all = self.bells.all();
        let bell = all.get_mut(&self.object_id).expect("a bell stays as long as it is followed");
        bell.followers -= 1;
        if bell.followers == 0 {
            all.remove(&self.object_id);
        }
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if self.object_ids.is_empty() {
            return;
        }
        let all = self.bells.all();
        for bell in self.object_ids.iter().filter_map(|id| all.get(id)) {
            bell.rings.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use futures_util::FutureExt as _;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn follow(bells: &ObjectBells, id: &str, followers: usize) -> Vec<Following> {
        (0..followers).map(|_| bells.follow(id.to_owned())).collect()
    }

    fn change(bells: &ObjectBells, ids: &[&str]) {
        drop(bells.changed(ids.iter().map(|id| (*id).to_owned()).collect()));
    }

    #[test]
    fn a_change_wakes_those_who_follow_it_and_nobody_else() {
        const FOLLOWERS: usize = 2_000;
        let bells = ObjectBells::default();
        let (mut of_one, of_another) = (follow(&bells, "cs_one", FOLLOWERS), follow(&bells, "cs_another", 3));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut waiting: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
        for following in &mut of_one {
            waiting.push(Box::pin(following.rung()));
        }
        assert!(waiting.iter_mut().all(|one| one.as_mut().poll(&mut context).is_pending()));
        for number in 0..1_000 {
            change(&bells, &["cs_another", &format!("cs_{number}")]);
        }
        assert_eq!(woken.0.load(Ordering::SeqCst), 0, "changes of others");
        change(&bells, &["cs_another", "cs_one"]);
        assert_eq!(woken.0.load(Ordering::SeqCst), FOLLOWERS);
        assert!(waiting.iter_mut().all(|one| one.as_mut().poll(&mut context).is_ready()));
        drop(waiting);
        assert_eq!(bells.all().len(), 2, "one for each object that is followed");
        drop((of_one, of_another));
        assert!(bells.all().is_empty());
    }

    #[test]
    fn what_happens_before_somebody_waits_is_told() {
        let bells = ObjectBells::default();
        change(&bells, &["cs_one"]);
        let [mut first, mut second] = ["cs_one", "cs_one"].map(|id| bells.follow(id.to_owned()));
        assert!(first.rung().now_or_never().is_none(), "what was before they followed");
        change(&bells, &["cs_one"]);
        change(&bells, &["cs_one"]);
        assert!(first.rung().now_or_never().is_some());
        assert!(first.rung().now_or_never().is_none(), "once for all that happened since");
        drop(first);
        assert!(second.rung().now_or_never().is_some(), "who stays misses nothing by it");
    }
}
