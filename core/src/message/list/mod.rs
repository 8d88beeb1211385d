//! Lists messages: pages of an organization's messages, all or with some statuses, of a
//! time, searches in subjects, and other filters (`filtered`).
//!
//! A page takes milliseconds in a list of millions:
//!
//! - Totals are counters (`store::count`). A page that is nearer to the end is read from
//!   there. A page that is far from both ends is located by the counters per hour.
//! - A search ends at the newest [`MATCHES_MAX`] matches. The fastest way depends on how
//!   common the text is, so the search first samples the newest messages. If the text is
//!   common, a scan from the newest message soon has enough matches; if it is rare, the
//!   trigram index finds all of them. A text without three characters that the index can
//!   use is searched in the newest [`SCAN_MAX`] messages.
//!
//! The choice is not left to the planner: each statement has one sensible plan.

mod filter;
mod filtered;
pub mod store;

use self::filter::IdBounds;
pub use self::filter::{MessageFilter, Sender};
use self::filtered::FilteredList;
use self::store::{Browsed, ListOffset};
use super::{MessageItem, MessageStatus};
use crate::address::AddressHash;
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};
use crate::page::{Page, PageRequest, Place};

/// The newest matches that the pages of a search or of a filter list.
pub const MATCHES_MAX: usize = 2_000;
/// Messages scanned for a text that the index cannot find. More would take too long for
/// one page.
pub const SCAN_MAX: u32 = 30_000;
/// Matches that are sorted to find the newest of them.
const SORTED_MAX: i64 = 20_000;
/// Messages scanned for a text that has more than [`SORTED_MAX`] matches, but few among
/// the newest.
const SCAN_FAR_MAX: u32 = 1_000_000;
/// Messages scanned for a common text.
const SCAN_COMMON_MAX: u32 = 100_000;
/// Messages scanned for a text with a status, if the text is common or the index cannot
/// find it: this many messages of any status …
const SCAN_STATUS_NEAR: i64 = 30_000;
/// … and at least this many with that status. If the status is rare, they are far apart,
/// so that each costs a page.
const SCAN_STATUS_MIN: i64 = 4_000;
/// The newest messages that are sampled to estimate how common a text is.
const SAMPLE: u32 = 4_000;
/// Matches in the sample from which on a scan of [`SCAN_COMMON_MAX`] messages finds
/// [`MATCHES_MAX`], if the text is as common among older messages.
const SAMPLE_COMMON: usize = MATCHES_MAX * (SAMPLE as usize) / (SCAN_COMMON_MAX as usize);

/// A page with at least this many messages before and after it is located by the counters
/// per hour: walking to it takes longer than reading the counters of some months.
const FAR_OFFSET: i64 = 10_000;

/// The live messages of an organization, or its tests. The two are kept apart: in counters,
/// indexes and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageList {
    pub organization_id: OrganizationId,
    pub is_test: bool,
}

/// A page of an organization's messages, newest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    filter: &MessageFilter,
    page: PageRequest,
) -> Result<Page<MessageItem>, Fault> {
    let list = MessageList {
        organization_id,
        is_test: filter.is_test,
    };
    let listed = if filter.is_counted() {
        browse(&mut *connection, list, filter, page).await?
    } else if filter.is_search() {
        let text = filter.search.as_deref().unwrap_or_default();
        let search = SubjectSearch::of(list, text);
        let status = filter.statuses.first().copied();
        let found = search.find_ids(&mut *connection, status).await?;
        let start = start_in(&found, page);
        MessagePage::of(&found, start, page)
    } else {
        matching(&mut *connection, list, filter, page).await?
    };
    let rows = store::find_many(connection, organization_id, &listed.ids).await?;
    let last = listed.ids.last().filter(|_| listed.has_more);
    Ok(Page {
        rows,
        total: listed.total,
        next: last.map(|id| Place::of_id(id.0)),
    })
}

/// The newest `limit` messages to an address, live ones and tests, newest first, that are
/// older than `before`.
pub async fn to_address(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    recipient: AddressHash,
    before: Option<MessageId>,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    let bounds = IdBounds {
        below: before.map_or(IdBounds::ALL.below, |id| id.0),
        ..IdBounds::ALL
    };
    let mut ids = Vec::new();
    for is_test in [false, true] {
        let filter = MessageFilter {
            recipient: Some(recipient),
            is_test,
            ..MessageFilter::default()
        };
        let list = MessageList {
            organization_id,
            is_test,
        };
        let list = FilteredList::of(list, &filter);
        ids.extend(list.find(&mut *connection, bounds, limit).await?);
    }
    ids.sort_unstable_by(|one, other| other.cmp(one));
    ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(ids)
}

/// The ids of a page.
struct MessagePage {
    ids: Vec<MessageId>,
    /// The length of the list, as far as it is listed by pages.
    total: u64,
    /// Whether messages follow.
    has_more: bool,
}

impl MessagePage {
    /// A page of the found messages, of which the pages show [`MATCHES_MAX`].
    fn of(found: &[MessageId], start: usize, page: PageRequest) -> Self {
        let shown = &found[..found.len().min(MATCHES_MAX)];
        let rows = shown.iter().skip(start).take(page.limit() as usize);
        let ids: Vec<MessageId> = rows.copied().collect();
        Self {
            total: shown.len() as u64,
            has_more: found.len() > start.saturating_add(ids.len()),
            ids,
        }
    }
}

/// Where a page begins among the found messages.
fn start_in(found: &[MessageId], page: PageRequest) -> usize {
    match page.place() {
        Some(place) => found.partition_point(|id| id.0 >= place.id),
        None => usize::try_from(page.offset()).unwrap_or(usize::MAX),
    }
}

/// A page of the messages that match a filter. A page that follows a row also shows what lies
/// behind the newest [`MATCHES_MAX`], unless a text is searched.
async fn matching(
    connection: &mut PgConnection,
    list: MessageList,
    filter: &MessageFilter,
    page: PageRequest,
) -> Result<MessagePage, Fault> {
    let list = FilteredList::of(list, filter);
    let bounds = filter.ids();
    let limit = MATCHES_MAX as i64 + i64::from(filter.search.is_none());
    let found = list.find(&mut *connection, bounds, limit).await?;
    let start = start_in(&found, page);
    let is_all = found.len() <= MATCHES_MAX;
    let mut listed = MessagePage::of(&found, start, page);
    if let Some(place) = page.place()
        && !is_all
        && start + listed.ids.len() >= MATCHES_MAX
    {
        let older = IdBounds {
            below: place.id,
            ..IdBounds::ALL
        };
        let mut ids = list
            .find(connection, bounds.within(older), page.rows())
            .await?;
        listed.has_more = ids.len() > page.limit() as usize;
        ids.truncate(page.limit() as usize);
        listed.ids = ids;
    }
    Ok(listed)
}

/// A page of all messages, or of those with some statuses, of a time.
async fn browse(
    connection: &mut PgConnection,
    list: MessageList,
    filter: &MessageFilter,
    page: PageRequest,
) -> Result<MessagePage, Fault> {
    let of = Browsed {
        list,
        statuses: &filter.statuses,
        bounds: filter.ids(),
    };
    let newer = of.count_from(&mut *connection, of.bounds.below).await?;
    let total = of.count_from(&mut *connection, of.bounds.from).await? - newer;
    let total = total.max(0);
    let listed = |ids, has_more| MessagePage {
        ids,
        total: total.unsigned_abs(),
        has_more,
    };
    if let Some(place) = page.place() {
        let offset = ListOffset {
            below: place.id.min(of.bounds.below),
            skip: 0,
        };
        let mut ids = store::newest(connection, of, offset, page.rows()).await?;
        let has_more = ids.len() > page.limit() as usize;
        ids.truncate(page.limit() as usize);
        return Ok(listed(ids, has_more));
    }
    let before = page.offset();
    let remaining = total - before;
    if remaining <= 0 {
        return Ok(listed(Vec::new(), false));
    }
    let rows = remaining.min(i64::from(page.limit()));
    let after = remaining - rows;
    let nearest = ListOffset {
        below: of.bounds.below,
        skip: before,
    };
    let mut offset = (before <= after).then_some(nearest);
    if before.min(after) >= FAR_OFFSET {
        let newer = before + newer;
        let found = store::find_offset(&mut *connection, list, of.statuses, newer);
        offset = found.await?.or(offset);
    }
    let ids = if let Some(offset) = offset {
        store::newest(connection, of, offset, rows).await?
    } else {
        // No messages are added at this end, so the total matches the rows.
        let mut ids = store::oldest(connection, of, after, rows).await?;
        ids.reverse();
        ids
    };
    Ok(listed(ids, after > 0))
}

/// A search in subjects.
struct SubjectSearch {
    list: MessageList,
    /// A pattern for `LIKE`; Postgres converts it to lower case.
    pattern: String,
    /// The pattern for the trigram index.
    index_pattern: String,
    /// Whether the trigram index can find the text.
    is_indexed: bool,
}

/// The matches of a search, newest first, at most one more than [`MATCHES_MAX`].
enum SearchMatches {
    All(Vec<MessageId>),
    /// The newest matches; there may be more.
    Newest(Vec<MessageId>),
}

impl SearchMatches {
    fn of(ids: Vec<MessageId>, is_all: bool) -> Self {
        if is_all && ids.len() <= MATCHES_MAX {
            Self::All(ids)
        } else {
            Self::Newest(ids)
        }
    }
}

impl SubjectSearch {
    fn of(list: MessageList, text: &str) -> Self {
        Self {
            list,
            pattern: contains_pattern(text),
            index_pattern: index_pattern(text),
            is_indexed: has_trigram(text),
        }
    }

    /// The ids of the messages to list, newest first.
    async fn find_ids(
        &self,
        connection: &mut PgConnection,
        status: Option<MessageStatus>,
    ) -> Result<Vec<MessageId>, Fault> {
        let mut ids = match status {
            None => match self.find_matches(connection).await? {
                SearchMatches::All(ids) | SearchMatches::Newest(ids) => ids,
            },
            Some(status) => self.find_with_status(connection, status).await?,
        };
        ids.truncate(MATCHES_MAX);
        Ok(ids)
    }

    async fn find_matches(&self, connection: &mut PgConnection) -> Result<SearchMatches, Fault> {
        let total = store::count(&mut *connection, self.list, &[]).await?;
        if !self.is_indexed {
            let ids = self.scan(connection, SCAN_MAX).await?;
            return Ok(SearchMatches::of(ids, total <= i64::from(SCAN_MAX)));
        }
        let sample = self.scan(&mut *connection, SAMPLE).await?;
        if total <= i64::from(SAMPLE) {
            return Ok(SearchMatches::of(sample, true));
        }
        if sample.len() >= SAMPLE_COMMON {
            let ids = self.scan(&mut *connection, SCAN_COMMON_MAX).await?;
            if ids.len() > MATCHES_MAX {
                return Ok(SearchMatches::Newest(ids));
            }
        }
        if let Some(ids) = self
            .search_index(&mut *connection, SORTED_MAX, MATCHES_MAX as i64 + 1)
            .await?
        {
            return Ok(SearchMatches::of(ids, true));
        }
        // The text is common, but rare among the newest messages: usually the matches
        // follow right after these.
        let ids = self.scan(&mut *connection, SCAN_FAR_MAX).await?;
        if ids.len() > MATCHES_MAX {
            return Ok(SearchMatches::Newest(ids));
        }
        let ids = self
            .search_index(connection, i64::MAX, MATCHES_MAX as i64 + 1)
            .await?;
        Ok(SearchMatches::of(ids.unwrap_or_default(), true))
    }

    async fn search_index(
        &self,
        connection: &mut PgConnection,
        matches_max: i64,
        limit: i64,
    ) -> Result<Option<Vec<MessageId>>, Fault> {
        let search_index = store::IndexSearch {
            pattern: &self.pattern,
            index_pattern: &self.index_pattern,
            limit,
            matches_max,
        };
        store::search_index(connection, self.list, search_index).await
    }

    async fn find_with_status(
        &self,
        connection: &mut PgConnection,
        status: MessageStatus,
    ) -> Result<Vec<MessageId>, Fault> {
        let list = self.list;
        let with_status = store::count(&mut *connection, list, &[status]).await?;
        let mut rows = SCAN_STATUS_MIN;
        if with_status > SCAN_STATUS_MIN {
            if self.is_indexed
                && let SearchMatches::All(ids) = self.find_matches(&mut *connection).await?
            {
                let of = list.organization_id;
                return store::filter_by_status(connection, of, &ids, status).await;
            }
            let total = store::count(&mut *connection, list, &[]).await?;
            rows = rows.max(SCAN_STATUS_NEAR * with_status / total.max(with_status));
        }
        let scan = store::Scan {
            pattern: &self.pattern,
            rows,
            limit: MATCHES_MAX as i64,
        };
        store::scan_status(connection, list, status, scan).await
    }

    async fn scan(
        &self,
        connection: &mut PgConnection,
        rows: u32,
    ) -> Result<Vec<MessageId>, Fault> {
        let scan = store::Scan {
            pattern: &self.pattern,
            rows: i64::from(rows),
            limit: MATCHES_MAX as i64 + 1,
        };
        store::scan(connection, self.list, scan).await
    }
}

/// A `LIKE` pattern for texts that contain `text` literally.
fn contains_pattern(text: &str) -> String {
    let escaped = text
        .replace('\\', r"\\")
        .replace('%', r"\%")
        .replace('_', r"\_");
    format!("%{escaped}%")
}

/// A `LIKE` pattern for the index that matches at least what contains `text`, and is
/// faster: it omits the beginnings and ends of words. `pg_trgm` has entries for these
/// too, which are much longer than those of three letters and are scanned completely. A
/// text without a word of four letters, which has two such entries, may need them.
fn index_pattern(text: &str) -> String {
    let words = text.split(|character: char| !character.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| word.chars().nth(2).is_some()).collect();
    if words.iter().any(|word| word.chars().nth(3).is_some()) {
        format!("%{}%", words.join("%"))
    } else {
        contains_pattern(text)
    }
}

/// Whether `pg_trgm` can use a trigram of a text that may occur anywhere in a subject: it
/// pads each word with two spaces before and one after, but the padding is known only
/// where the text goes on.
fn has_trigram(text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    let mut start = 0;
    for word in characters.split(|character| !character.is_alphanumeric()) {
        let end = start + word.len();
        let before = if start > 0 { 2 } else { 0 };
        let after = usize::from(end < characters.len());
        if !word.is_empty() && before + word.len() + after >= 3 {
            return true;
        }
        start = end + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_for_wildcards_is_literal() {
        assert_eq!(contains_pattern(r"100%_a\"), r"%100\%\_a\\%");
    }

    #[test]
    fn the_index_pattern_omits_the_ends_of_words() {
        for (text, pattern) in [
            ("#0bcd", "%0bcd%"),
            ("Your order #12 of a_day", "%Your%order%day%"),
            ("Größe 100%", "%Größe%100%"),
            ("#012", "%#012%"),
            (r"a_b\", r"%a\_b\\%"),
        ] {
            assert_eq!(index_pattern(text), pattern);
        }
    }

    #[test]
    fn only_words_that_are_long_enough_have_trigrams() {
        for text in ["abc", "Ünï", "a b", "#12", "100%", "x-y", "ab ", " a"] {
            assert!(has_trigram(text), "{text:?}");
        }
        for text in ["", "a", "ab", "%", "---", "!?", "a ", "äö"] {
            assert!(!has_trigram(text), "{text:?}");
        }
    }
}
