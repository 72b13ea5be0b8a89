//! Places for documents and pictures that are being made: each takes a core, and some must be left to those who pay.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use domain::Mode;
use tokio::sync::{Mutex as Turn, OwnedSemaphorePermit, Semaphore};

use crate::error::Failure;

/// At the same time.
const MOST: usize = 2;
/// Of them for test mode, where anybody may try what they like.
const MOST_OF_TEST: usize = 1;
/// Requests of one mode that wait for a place. A file takes up to some seconds, and nobody waits for long.
const MOST_WAITING: usize = 32;

/// What came of one.
pub(super) type Rendered = Result<Bytes, String>;

/// For all who wait for it, held by whoever makes it.
type Awaited = Turn<Option<Rendered>>;

pub(super) struct Renderings {
    all: Arc<Semaphore>,
    of_test: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_of_test: AtomicUsize,
    /// By object and edition.
    under_way: Mutex<HashMap<String, Weak<Awaited>>>,
}

/// To be given back when the work has ended, and no sooner: whoever asked may be gone long before.
pub(super) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_test: Option<OwnedSemaphorePermit>,
}

impl Default for Renderings {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MOST)),
            of_test: Arc::new(Semaphore::new(MOST_OF_TEST)),
            waiting: AtomicUsize::new(0),
            waiting_of_test: AtomicUsize::new(0),
            under_way: Mutex::default(),
        }
    }
}

impl Renderings {
    /// However many ask for the same file at once, it is made once. From its place on `make` runs to its end on its own: whoever
    /// goes away leaves nothing half made that the next would begin again.
    pub(super) async fn once<M>(
        &self,
        name: String,
        place: impl Future<Output = Result<Place, Failure>>,
        make: impl FnOnce(Place) -> M,
    ) -> Result<Rendered, Failure>
    where
        M: Future<Output = Rendered> + Send + 'static,
    {
        let mut awaited = self.awaited(name).lock_owned().await;
        if let Some(rendered) = &*awaited {
            return Ok(rendered.clone());
        }
        let making = make(place.await?);
        let made = tokio::spawn(async move {
            let rendered = making.await;
            *awaited = Some(rendered.clone());
            rendered
        });
        Ok(made.await.unwrap_or_else(|_| Err("the document was not made to its end".into())))
    }

    fn awaited(&self, name: String) -> Arc<Awaited> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|_, awaited| awaited.strong_count() > 0);
        if let Some(awaited) = under_way.get(&name).and_then(Weak::upgrade) {
            return awaited;
        }
        let awaited = Arc::<Awaited>::default();
        under_way.insert(name, Arc::downgrade(&awaited));
        awaited
    }

    /// For work of the service's own, which waits as long as it takes.
    pub(super) async fn place(&self, mode: Mode) -> Result<Place, Failure> {
        let ending = |_| Failure::Store(store::Error::Unavailable("the service is ending".into()));
        let of_test = match mode {
            Mode::Test => Some(Arc::clone(&self.of_test).acquire_owned().await.map_err(ending)?),
            Mode::Live => None,
        };
        let of_all = Arc::clone(&self.all).acquire_owned().await.map_err(ending)?;
        Ok(Place { _of_all: of_all, _of_test: of_test })
    }

    /// For somebody who waits, unless too many of the same mode do: test mode keeps nobody from a place that it can't have.
    pub(super) async fn place_for_somebody(&self, mode: Mode) -> Result<Place, Failure> {
        if let Some(place) = self.place_at_once(mode) {
            return Ok(place);
        }
        let waiting = match mode {
            Mode::Test => &self.waiting_of_test,
            Mode::Live => &self.waiting,
        };
        let _waiting = Waiting::one_more(waiting).ok_or(Failure::Store(store::Error::Busy))?;
        self.place(mode).await
    }

    fn place_at_once(&self, mode: Mode) -> Option<Place> {
        let of_test = match mode {
            Mode::Test => Some(Arc::clone(&self.of_test).try_acquire_owned().ok()?),
            Mode::Live => None,
        };
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Place { _of_all: of_all, _of_test: of_test })
    }
}

/// One who waits, until it goes.
struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn one_more(waiting: &'w AtomicUsize) -> Option<Self> {
        let more = waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING;
        let one = Self(waiting);
        more.then_some(one)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn test_mode_leaves_a_place_to_live() {
        let renderings = Renderings::default();
        let first = renderings.place(Mode::Test).await.ok();
        assert!(renderings.place(Mode::Test).now_or_never().is_none(), "one at a time");
        let live = renderings.place(Mode::Live).now_or_never();
        assert!(live.is_some_and(|place| place.is_ok()));
        drop(first);
        assert!(renderings.place(Mode::Test).now_or_never().is_some());
    }

    #[tokio::test]
    async fn only_so_many_wait() {
        let renderings = Renderings::default();
        let taken = [renderings.place(Mode::Live).await.ok(), renderings.place(Mode::Live).await.ok()];
        let mut waiting: Vec<_> =
            (0..MOST_WAITING).map(|_| Box::pin(renderings.place_for_somebody(Mode::Live))).collect();
        assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
        let refused = renderings.place_for_somebody(Mode::Live).now_or_never();
        assert!(matches!(refused, Some(Err(Failure::Store(store::Error::Busy)))));
        waiting.pop();
        assert!(renderings.place_for_somebody(Mode::Live).now_or_never().is_none(), "who left is not counted");
        drop((taken, waiting));
        assert!(renderings.place_for_somebody(Mode::Live).now_or_never().is_some());
    }

    #[tokio::test]
    async fn however_many_wait_in_test_mode_live_gets_its_place() {
        let renderings = Renderings::default();
        let _first = renderings.place_for_somebody(Mode::Test).await.ok();
        let mut waiting: Vec<_> =
            (0..MOST_WAITING).map(|_| Box::pin(renderings.place_for_somebody(Mode::Test))).collect();
        assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
        assert!(matches!(renderings.place_for_somebody(Mode::Test).now_or_never(), Some(Err(_))));
        let live = renderings.place_for_somebody(Mode::Live).now_or_never();
        assert!(live.as_ref().is_some_and(Result::is_ok), "one is idle, and nobody waits for it");
        assert!(renderings.place_for_somebody(Mode::Live).now_or_never().is_none(), "now both are taken");
        drop(live);
    }

    /// Makes a file named by how often that was done, once it is let.
    async fn make(begun: Arc<AtomicUsize>, let_through: Arc<Semaphore>) -> Rendered {
        let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
        let_through.acquire().await.map_err(|_| "closed")?.forget();
        Ok(number.to_string().into())
    }

    #[tokio::test]
    async fn the_same_file_is_made_once_at_a_time_whoever_goes_away() {
        let renderings = Renderings::default();
        let (begun, let_through) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let ask = |name: &str| {
            let (begun, let_through) = (Arc::clone(&begun), Arc::clone(&let_through));
            let place = renderings.place(Mode::Live);
            Box::pin(renderings.once(name.into(), place, |_| make(begun, let_through)))
        };
        let mut first = ask("inv_1 a");
        assert!((&mut first).now_or_never().is_none());
        tokio::task::yield_now().await;
        drop(first);
        let (mut second, mut third, mut other) = (ask("inv_1 a"), ask("inv_1 a"), ask("inv_1 b"));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        assert!((&mut other).now_or_never().is_none());
        let_through.add_permits(2);
        let bytes = |rendered: Result<Rendered, Failure>| rendered.ok().and_then(Result::ok);
        let made = [bytes(second.await), bytes(third.await), bytes(other.await)];
        assert_eq!(made, ["1", "1", "2"].map(|number| Some(number.into())));
        let_through.add_permits(1);
        assert_eq!(bytes(ask("inv_1 a").await), Some("3".into()), "what nobody waits for is forgotten");
        assert_eq!(renderings.under_way.lock().expect("not poisoned").len(), 1);
    }

    #[tokio::test]
    async fn whoever_gets_no_place_keeps_nobody_from_one() {
        let renderings = Renderings::default();
        let none = async { Err(Failure::Store(store::Error::Busy)) };
        let done = |_| async { Ok("a file".into()) };
        assert!(renderings.once("inv_1 a".into(), none, done).await.is_err());
        assert!(renderings.once("inv_1 a".into(), renderings.place(Mode::Live), done).await.is_ok());
    }
}
