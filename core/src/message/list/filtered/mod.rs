//! Lists by who a message is from and to, its tags, template, account and provider's id,
//! with statuses, times and a text: all combined, and exact.
//!
//! The fastest way depends on how common the matching messages are, so a list begins with
//! the newest messages, in the order of the list. If enough of them match, it goes on
//! there. Otherwise the index of labels (the migration `message_labels`) finds the messages that
//! have the two rarest labels, the newest days first. Every candidate is compared with its
//! row, so an index may know too many messages, but never too few.

pub(super) mod store;

use self::store::{LabelSearch, Walk};
use super::filter::{IdBounds, MessageFilter, first_id};
use super::{MessageList, SCAN_MAX, SORTED_MAX, SubjectSearch};
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::ids::MessageId;

/// The newest messages that tell how common the matching ones are.
const SAMPLE: i64 = 1_000;
/// Messages that are read in the order of the list.
const WALK_MAX: i64 = 8_000;
/// Messages that are compared because a provider's message id is theirs.
const SAME_ID_MAX: i64 = 20_000;
/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Each search in the index of labels covers at most this many times the days of the one before.
const DAYS_GROWTH: i64 = 4;

/// The messages that match a filter which is not only statuses and times.
pub(super) struct FilteredList<'a> {
    list: MessageList,
    filter: &'a MessageFilter,
    search: Option<SubjectSearch>,
}

impl<'a> FilteredList<'a> {
    pub(super) fn of(list: MessageList, filter: &'a MessageFilter) -> Self {
        let text = filter.search.as_deref();
        Self {
            list,
            filter,
            search: text.map(|text| SubjectSearch::of(list, text)),
        }
    }

    /// The newest `limit` matching ids of a range, newest first.
    pub(super) async fn find(
        &self,
        connection: &mut PgConnection,
        bounds: IdBounds,
        limit: i64,
    ) -> Result<Vec<MessageId>, Fault> {
        if let Some(provider_message_id) = &self.filter.provider_message_id {
            let ids = store::with_provider_message_id(
                &mut *connection,
                self.list.organization_id,
                provider_message_id,
                bounds,
                SAME_ID_MAX,
            )
            .await?;
            return self.check(connection, &ids, limit).await;
        }
        if let Some(ids) = self.walk(&mut *connection, bounds, limit).await? {
            return Ok(ids);
        }
        if let Some(ids) = self.search_text(&mut *connection, bounds, limit).await? {
            return Ok(ids);
        }
        if self.filter.labels().is_empty() {
            let walk = Walk {
                bounds,
                rows: i64::from(SCAN_MAX),
                limit,
            };
            let near = self.read(connection, walk).await?;
            return Ok(near.ids);
        }
        self.by_labels(connection, bounds, limit).await
    }

    /// Reads from the newest message on; `None` if too few of these match.
    async fn walk(
        &self,
        connection: &mut PgConnection,
        bounds: IdBounds,
        limit: i64,
    ) -> Result<Option<Vec<MessageId>>, Fault> {
        let mut walk = Walk {
            bounds,
            rows: SAMPLE,
            limit,
        };
        let sample = self.read(&mut *connection, walk).await?;
        if sample.is_complete(walk) {
            return Ok(Some(sample.ids));
        }
        let matches = i64::try_from(sample.ids.len()).unwrap_or(i64::MAX);
        let expected = (limit * SAMPLE).checked_div(matches).unwrap_or(i64::MAX);
        if expected <= WALK_MAX {
            // A quarter more, since matches are not spread evenly.
            walk.rows = (SAMPLE + expected + expected / 4).min(WALK_MAX);
            let near = self.read(&mut *connection, walk).await?;
            if near.is_complete(walk) {
                return Ok(Some(near.ids));
            }
        } else if !self.is_short(&mut *connection).await? {
            return Ok(None);
        }
        walk.rows = WALK_MAX;
        let near = self.read(connection, walk).await?;
        Ok(near.is_complete(walk).then_some(near.ids))
    }

    /// Whether so few messages have these statuses that all of them can be read.
    async fn is_short(&self, connection: &mut PgConnection) -> Result<bool, Fault> {
        let statuses = &self.filter.statuses;
        let count = super::store::count(connection, self.list, statuses).await?;
        Ok(count <= WALK_MAX)
    }

    /// The messages with the text, if the index of subjects finds it and it is rare.
    async fn search_text(
        &self,
        connection: &mut PgConnection,
        bounds: IdBounds,
        limit: i64,
    ) -> Result<Option<Vec<MessageId>>, Fault> {
        let Some(search) = self.search.as_ref().filter(|search| search.is_indexed) else {
            return Ok(None);
        };
        let found = search
            .search_index(&mut *connection, SORTED_MAX, SORTED_MAX)
            .await?;
        let Some(mut ids) = found else {
            return Ok(None);
        };
        ids.retain(|id| (bounds.from..bounds.below).contains(&id.0));
        self.check(connection, &ids, limit).await.map(Some)
    }

    /// The messages with the labels, from the newest day to the oldest.
    async fn by_labels(
        &self,
        connection: &mut PgConnection,
        bounds: IdBounds,
        limit: i64,
    ) -> Result<Vec<MessageId>, Fault> {
        let labels = self.filter.labels();
        let (Some(first), Some(second)) = (labels.first(), labels.get(1).or(labels.first())) else {
            return Ok(Vec::new());
        };
        let Some((oldest, newest)) = store::days(&mut *connection, self.list).await? else {
            return Ok(Vec::new());
        };
        let day_of = |id: uuid::Uuid| {
            let ms = i64::try_from(id.as_u128() >> 80).unwrap_or(i64::MAX);
            ms / DAY_MS
        };
        let oldest = day_of(oldest).max(day_of(bounds.from));
        let mut newest = day_of(newest).min(day_of(bounds.below));
        let mut days = 1;
        let mut missing = limit;
        let mut ids = Vec::new();
        while newest >= oldest {
            let from = (newest - days + 1).max(oldest);
            let of_days = IdBounds {
                from: first_id(from * DAY_MS),
                below: first_id((newest + 1) * DAY_MS),
            };
            let search = LabelSearch {
                days: (from, newest),
                labels: [first, second],
                bounds: of_days.within(bounds),
                limit: missing,
            };
            let organization_id = self.list.organization_id;
            let text = self.pattern();
            let matching =
                store::with_labels(&mut *connection, organization_id, self.filter, text, search)
                    .await?;
            let found = i64::try_from(matching.len()).unwrap_or(i64::MAX);
            missing -= found;
            ids.extend(matching);
            if missing <= 0 {
                break;
            }
            newest = from - 1;
            days = next_days(days, found, missing);
        }
        Ok(ids)
    }

    fn pattern(&self) -> Option<&str> {
        self.search.as_ref().map(|search| search.pattern.as_str())
    }

    async fn read(
        &self,
        connection: &mut PgConnection,
        walk: Walk,
    ) -> Result<store::Walked, Fault> {
        let organization_id = self.list.organization_id;
        store::walk(
            connection,
            organization_id,
            self.filter,
            self.pattern(),
            walk,
        )
        .await
    }

    /// Those of some messages that match, in their order.
    async fn check(
        &self,
        connection: &mut PgConnection,
        ids: &[MessageId],
        limit: i64,
    ) -> Result<Vec<MessageId>, Fault> {
        let organization_id = self.list.organization_id;
        store::check(
            connection,
            organization_id,
            self.filter,
            self.pattern(),
            (ids, limit),
        )
        .await
    }
}

/// The days of the next search in the index of labels: as many as should hold what is missing, and
/// a quarter more, since every match of these days is read.
fn next_days(days: i64, found: i64, missing: i64) -> i64 {
    let expected = (missing.saturating_mul(days).saturating_mul(5) / 4).checked_div(found);
    expected
        .unwrap_or(i64::MAX)
        .clamp(1, days.saturating_mul(DAYS_GROWTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_follow_how_many_matches_a_day_has() {
        for (days, found, missing, next) in [
            // Nothing, or too little to tell.
            (1, 0, 2_001, 4),
            (4, 1, 2_000, 16),
            // 100 a day, 250 are missing: three days, rounded down from 3.1.
            (1, 100, 250, 3),
            (4, 1_600, 400, 1),
            (1, 2_000, 1, 1),
        ] {
            assert_eq!(next_days(days, found, missing), next, "{found} in {days}");
        }
    }
}
