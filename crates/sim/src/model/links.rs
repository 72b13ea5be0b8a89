//! Payment links (contract §2.3, §4.7).

use serde_json::json;

use super::{Answer, AttemptState, DAY, Fields, HOUR, Kind, Link, Side, text};

impl Side {
    pub fn create_link(
        &mut self,
        id: &str,
        title: &str,
        amount: i64,
        expires_at: Option<i64>,
        most: Option<i64>,
        now: i64,
    ) {
        let link = Link {
            amount,
            is_active: true,
            is_deleted: false,
            expires_at,
            most,
            used: 0,
            title: title.to_owned(),
            seen_at: now,
        };
        self.links.insert(id.to_owned(), link);
        self.tell(id, "payment_link.created");
    }

    pub fn update_link(&mut self, id: &str, title: Option<String>, status: Option<bool>, now: i64) -> Answer<()> {
        let known = self.links.get(id).filter(|link| !link.is_deleted).ok_or("payment_link_not_found")?.clone();
        let expires_now = known.is_active && known.is_past(now);
        let is_active = known.is_active && !expires_now;
        let will_be = match status {
            Some(true) if known.is_past(now) => return Err("payment_link_expired"),
            Some(true) if known.is_used_up() => return Err("payment_link_used_up"),
            Some(wanted) => wanted,
            None => is_active,
        };
        if expires_now {
            self.tell(id, "payment_link.deactivated");
        }
        let is_changed = title.as_ref().is_some_and(|title| *title != known.title);
        if is_changed || (will_be && !is_active) {
            self.tell(id, "payment_link.updated");
        }
        if is_active && !will_be {
            self.tell(id, "payment_link.deactivated");
        }
        let link = self.links.get_mut(id).expect("it was looked up");
        link.title = title.unwrap_or(known.title);
        link.is_active = will_be;
        if is_changed || will_be != known.is_active {
            link.seen_at = link.seen_at.max(now);
        }
        Ok(())
    }

    pub fn delete_link(&mut self, id: &str, now: i64) -> Answer<()> {
        let link = self.links.get_mut(id).filter(|link| !link.is_deleted).ok_or("payment_link_not_found")?;
        let expires_now = link.is_active && link.is_past(now);
        link.is_deleted = true;
        link.is_active = false;
        link.seen_at = link.seen_at.max(now);
        if expires_now {
            self.tell(id, "payment_link.deactivated");
        }
        self.tell(id, "payment_link.deleted");
        Ok(())
    }

    pub fn link_timer(&mut self, id: &str, now: i64) {
        let Some(link) = self.links.get_mut(id) else { return };
        if link.is_active && link.is_past(now) {
            link.is_active = false;
            link.seen_at = link.seen_at.max(now);
            self.tell(id, "payment_link.deactivated");
        }
    }

    pub fn link_fields(&self, id: &str, now: i64) -> Answer<Fields> {
        let link = self.links.get(id).filter(|link| !link.is_deleted).ok_or("payment_link_not_found")?;
        Ok(vec![
            ("id", json!(id)),
            ("title", json!(link.title)),
            ("amount", json!(text(link.amount))),
            ("status", json!(if link.is_active && !link.is_past(now) { "active" } else { "inactive" })),
            ("usage_count", json!(link.used)),
            ("max_usage_count", json!(link.most)),
            ("livemode", json!(self.is_live)),
        ])
    }

    /// Attempts whose outcome is open count against the limit. `closing` is a session that ends in the same request, and with
    /// it an attempt that the network doesn't have; what ran out holds no place, whether or not its timer ran.
    pub(super) fn refuse_unless_room(&self, id: &str, closing: Option<&str>, now: i64) -> Answer<()> {
        let link = &self.links[id];
        let Some(most) = link.most else { return Ok(()) };
        let has_expired = |id: &String| self.sessions[id].has_expired(now);
        let open = self.attempts.values().filter(|attempt| {
            attempt.kind == Kind::Link
                && attempt.object == id
                && match attempt.state {
                    AttemptState::Pending => {
                        attempt.session.as_deref() != closing && !attempt.session.as_ref().is_some_and(has_expired)
                    }
                    state => state == AttemptState::Processing,
                }
        });
        if link.used + open.count() as i64 >= most { Err("payment_in_progress") } else { Ok(()) }
    }
}

impl Link {
    pub fn is_past(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| now.max(self.seen_at) >= at)
    }

    pub fn is_used_up(&self) -> bool {
        self.most.is_some_and(|most| self.used >= most)
    }

    /// Places of a link with a limit are held for a shorter time.
    pub fn hold(&self) -> i64 {
        if self.most.is_some() { HOUR } else { DAY }
    }

    pub fn refuse_unless_active(&self, now: i64) -> Answer<()> {
        match (self.is_deleted, self.is_active && !self.is_past(now)) {
            (true, _) => Err("payment_link_not_found"),
            (false, false) => Err("payment_link_inactive"),
            (false, true) => Ok(()),
        }
    }
}
