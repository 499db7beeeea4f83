//! Sees to it that tables which somebody wants mirrored are: asks the catalogues what they are
//! like, and again when definitions have changed or a mirror could not be made. And that commits
//! get into them where nobody reads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backend::moment::Moment;
use cache::mirror::definition::Definition;
use cache::mirror::held::State;
use cache::mirror::wish::{Wanted, Wish};
use cache::shared::{Shared, Snapshot};
use tokio::time::timeout;

use super::mirrors::{Looked, Pin, Unfit};
use super::Control;
use crate::config::MirrorDefinition;

/// Between two looks at what is wanted.
const EVERY: Duration = Duration::from_secs(1);

/// Between two questions about a table that can't be mirrored.
const AGAIN: Duration = Duration::from_secs(15);

impl Control {
    /// Looks until it is dropped.
    pub(super) async fn keep_mirrors(self: Arc<Control>) {
        loop {
            // What ends it says nothing: both are reasons to look.
            let _ = timeout(EVERY, self.mirrors.changed()).await;
            for pin in self.mirrors.all() {
                let Some(shared) = self.caches.known(&pin.database) else { continue };
                if !shared.is_following() {
                    continue;
                }
                if is_stale(&pin, &shared) {
                    self.look_at_mirror(&pin, &shared).await;
                }
                if shared.settled() < shared.applied().number {
                    self.settle(&pin.database, &shared).await;
                }
            }
        }
    }

    /// What a mirror of a table is made for, as the role sees it that follows the database.
    ///
    /// # Errors
    /// Why the catalogues could not be asked.
    pub(super) async fn mirrorable(
        &self,
        database: &str,
        wanted: &MirrorDefinition,
    ) -> Result<Result<Definition, Unfit>, String> {
        let pool = self.config.load().stream_pool(database);
        let pool = pool.ok_or("no user follows its changes: set `user` in [cache]")?;
        let proven = self.proven(&pool);
        self.judges.table(&pool, proven, wanted.clone()).await
    }

    async fn look_at_mirror(&self, pin: &Pin, shared: &Shared) {
        let looked = Looked { definitions: shared.definitions(), at: Instant::now() };
        let (found, looked) = match self.mirrorable(&pin.database, &pin.wanted).await {
            Ok(Ok(definition)) => (Ok(self.wish(pin, shared, definition)), Some(looked)),
            Ok(Err(unfit)) => (Err(unfit.message), Some(looked)),
            // They are asked again with the next look, and what they have said counts until then.
            Err(_) if pin.oid().is_some() => return,
            Err(why) => (Err(why), None),
        };
        if let (Err(why), true) = (&found, pin.why_not().is_none()) {
            let (db, table) = (&pin.database, &pin.wanted.table);
            tracing::warn!(event = "mirror_refused", db, %table, "{why}");
        }
        self.mirrors.found(pin, found, looked);
    }

    /// Where nobody reads, no worker asks which commits can be seen by now.
    async fn settle(&self, database: &str, shared: &Shared) {
        let Some(pool) = self.config.load().stream_pool(database) else { return };
        let started = shared.starts();
        // What keeps it from being asked is logged where it is.
        let asked = self.judges.snapshot(&pool, self.proven(&pool)).await;
        let Ok((text, server)) = asked else { return };
        if let Some(snapshot) = Snapshot::parse(text.as_bytes()).filter(|_| shared.is_of(server)) {
            shared.settle(snapshot, started);
        }
    }

    /// The wish that there is, if it is still for the table as it is.
    fn wish(&self, pin: &Pin, shared: &Shared, definition: Definition) -> Arc<Wish> {
        if let Some(Ok(known)) = &pin.found {
            if known.tables.first().is_some_and(|wanted| wanted.definition == definition) {
                return known.clone();
            }
        }
        let now = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let wanted = Wanted { definition, indexes: Vec::new() };
        let wish = Arc::new(Wish::new(vec![wanted], true, Moment(now)));
        shared.mirrors.wish(&wish);
        wish
    }
}

/// Whether the catalogues may say something else by now.
fn is_stale(pin: &Pin, shared: &Shared) -> bool {
    let Some(looked) = pin.looked else { return true };
    if looked.definitions != shared.definitions() {
        return true;
    }
    let Some(oid) = pin.oid() else { return looked.at.elapsed() >= AGAIN };
    let failed = || {
        let mut all = shared.mirrors.info().into_iter();
        all.any(|info| info.oid == oid && matches!(info.state, State::Failed { .. }))
    };
    looked.at.elapsed() >= AGAIN && failed()
}
