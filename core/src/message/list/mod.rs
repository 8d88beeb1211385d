//! The list of messages: pages of an organization's messages, all of them or those
//! of one status, and those whose subject contains a text.
//!
//! What it promises is that a page takes milliseconds in a list of millions:
//!
//! - Totals are counters (`store::count`), and a page that lies nearer to the end is
//!   read from there. One that is far from both is looked for in the counters by hour.
//! - A search ends at the newest [`MATCHES_MAX`] matches. Which way is quick depends
//!   on how common the text is, so the newest messages are asked first: where the
//!   text is common among them, a walk from the newest on soon has enough; where it
//!   is rare, the trigram index knows all of them. What it cannot know, because the
//!   text has no three characters for it to go by, is looked for in the newest
//!   [`WALK_MAX`] messages.
//!
//! The planner is not left to guess which of these a text is: each statement has one
//! sensible plan.

pub mod store;

use self::store::ListOffset;
use super::{MessageItem, MessageStatus};
use crate::db::PgConnection;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};
use crate::page::{Page, PageRequest};

/// The matches that a search lists, the newest ones.
pub const MATCHES_MAX: usize = 2_000;
/// How many of the newest messages a text is looked for in that the index does not
/// serve. More would take longer than a page may.
pub const WALK_MAX: u32 = 30_000;
/// Matches of a text that are put in order to find the newest of them.
const SORTED_MAX: i64 = 20_000;
/// How many of the newest messages a text is looked for in that has more matches than these
/// and few among the newest.
const WALK_FAR_MAX: u32 = 1_000_000;
/// How many of them a text is looked for in that is common.
const WALK_COMMON_MAX: u32 = 100_000;
/// Where a text that the index does not serve, or a common one, is looked for with a
/// status: among the newest messages, so many of any status …
const WALK_STATUS_NEAR: i64 = 30_000;
/// … and at least in so many of that status. They lie far apart where it is rare, so
/// that each costs a page.
const WALK_STATUS_MIN: i64 = 4_000;
/// The newest messages that tell how common a text is.
const SAMPLE: u32 = 4_000;
/// From this many matches in the sample on a walk has [`MATCHES_MAX`] of them within
/// [`WALK_COMMON_MAX`], if the text is as common further back.
const SAMPLE_COMMON: usize = MATCHES_MAX * (SAMPLE as usize) / (WALK_COMMON_MAX as usize);

/// From so many messages before and behind it on a page is looked for in the counters by
/// hour: walking to it takes longer than reading those of some months.
const FAR: i64 = 10_000;

/// Which messages a list shows.
#[derive(Debug, Clone, Default)]
pub struct MessageFilter {
    /// Only those with this status.
    pub status: Option<MessageStatus>,
    /// Only those whose subject contains this, in any letter case.
    pub search: Option<String>,
}

/// A page of an organization's messages, newest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    filter: &MessageFilter,
    page: PageRequest,
) -> Result<Page<MessageItem>, Fault> {
    let (ids, total) = match &filter.search {
        None => browse(&mut *connection, organization_id, filter.status, page).await?,
        Some(text) => {
            let search = SubjectSearch::of(organization_id, text);
            let found = search.run(&mut *connection, filter.status).await?;
            let start = usize::try_from(page.offset()).unwrap_or(usize::MAX);
            let rows = found.iter().skip(start).take(page.limit() as usize);
            (rows.copied().collect(), found.len() as u64)
        }
    };
    let rows = store::find_many(connection, organization_id, &ids).await?;
    Ok(Page { rows, total })
}

/// The ids of a page, and how long the list is.
async fn browse(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    status: Option<MessageStatus>,
    page: PageRequest,
) -> Result<(Vec<MessageId>, u64), Fault> {
    let total = store::count(&mut *connection, organization_id, status).await?;
    let before = page.offset();
    let rest = total - before;
    if rest <= 0 {
        return Ok((Vec::new(), total.unsigned_abs()));
    }
    let rows = rest.min(i64::from(page.limit()));
    let after = rest - rows;
    let mut place = (before <= after).then(|| ListOffset::from_newest(before));
    if before.min(after) >= FAR {
        let found = store::find_place(&mut *connection, organization_id, status, before).await?;
        place = found.or(place);
    }
    let ids = if let Some(place) = place {
        store::newest(connection, organization_id, status, place, rows).await?
    } else {
        // Nothing is added at this end, so the rows are those of the total.
        let mut ids = store::oldest(connection, organization_id, status, after, rows).await?;
        ids.reverse();
        ids
    };
    Ok((ids, total.unsigned_abs()))
}

/// What is searched for.
struct SubjectSearch {
    organization_id: OrganizationId,
    /// A pattern for `LIKE`, whose letters Postgres makes small.
    pattern: String,
    /// The one that the trigram index is asked for.
    index_pattern: String,
    /// Whether the trigram index can find it.
    is_indexed: bool,
}

/// What a search has found, newest first, at most one more than [`MATCHES_MAX`].
enum SearchMatches {
    All(Vec<MessageId>),
    /// The newest ones; there may be more.
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
    fn of(organization_id: OrganizationId, text: &str) -> Self {
        Self {
            organization_id,
            pattern: contains_pattern(text),
            index_pattern: index_pattern(text),
            is_indexed: has_trigram(text),
        }
    }

    /// The ids of the messages that the list shows, newest first.
    async fn run(
        &self,
        connection: &mut PgConnection,
        status: Option<MessageStatus>,
    ) -> Result<Vec<MessageId>, Fault> {
        let mut ids = match status {
            None => match self.find(connection).await? {
                SearchMatches::All(ids) | SearchMatches::Newest(ids) => ids,
            },
            Some(status) => self.find_with_status(connection, status).await?,
        };
        ids.truncate(MATCHES_MAX);
        Ok(ids)
    }

    async fn find(&self, connection: &mut PgConnection) -> Result<SearchMatches, Fault> {
        let total = store::count(&mut *connection, self.organization_id, None).await?;
        if !self.is_indexed {
            let ids = self.walk(connection, WALK_MAX).await?;
            return Ok(SearchMatches::of(ids, total <= i64::from(WALK_MAX)));
        }
        let sample = self.walk(&mut *connection, SAMPLE).await?;
        if total <= i64::from(SAMPLE) {
            return Ok(SearchMatches::of(sample, true));
        }
        if sample.len() >= SAMPLE_COMMON {
            let ids = self.walk(&mut *connection, WALK_COMMON_MAX).await?;
            if ids.len() > MATCHES_MAX {
                return Ok(SearchMatches::Newest(ids));
            }
        }
        if let Some(ids) = self.look_up(&mut *connection, SORTED_MAX).await? {
            return Ok(SearchMatches::of(ids, true));
        }
        // Common, and rare among the newest: what is wanted lies behind these as a rule.
        let ids = self.walk(&mut *connection, WALK_FAR_MAX).await?;
        if ids.len() > MATCHES_MAX {
            return Ok(SearchMatches::Newest(ids));
        }
        let ids = self.look_up(connection, i64::MAX).await?;
        Ok(SearchMatches::of(ids.unwrap_or_default(), true))
    }

    async fn look_up(
        &self,
        connection: &mut PgConnection,
        matches_max: i64,
    ) -> Result<Option<Vec<MessageId>>, Fault> {
        let look_up = store::LookUp {
            pattern: &self.pattern,
            index_pattern: &self.index_pattern,
            limit: MATCHES_MAX as i64 + 1,
            matches_max,
        };
        store::look_up(connection, self.organization_id, look_up).await
    }

    async fn find_with_status(
        &self,
        connection: &mut PgConnection,
        status: MessageStatus,
    ) -> Result<Vec<MessageId>, Fault> {
        let organization_id = self.organization_id;
        let with_status = store::count(&mut *connection, organization_id, Some(status)).await?;
        let mut rows = WALK_STATUS_MIN;
        if with_status > WALK_STATUS_MIN {
            if self.is_indexed
                && let SearchMatches::All(ids) = self.find(&mut *connection).await?
            {
                return store::keep_status(connection, organization_id, &ids, status).await;
            }
            let total = store::count(&mut *connection, organization_id, None).await?;
            rows = rows.max(WALK_STATUS_NEAR * with_status / total.max(with_status));
        }
        let walk = store::Walk {
            pattern: &self.pattern,
            rows,
            limit: MATCHES_MAX as i64,
        };
        store::walk_status(connection, organization_id, status, walk).await
    }

    async fn walk(
        &self,
        connection: &mut PgConnection,
        rows: u32,
    ) -> Result<Vec<MessageId>, Fault> {
        let walk = store::Walk {
            pattern: &self.pattern,
            rows: i64::from(rows),
            limit: MATCHES_MAX as i64 + 1,
        };
        store::walk(connection, self.organization_id, walk).await
    }
}

/// A pattern for `LIKE` that matches texts which contain `text` literally.
fn contains_pattern(text: &str) -> String {
    let escaped = text
        .replace('\\', r"\\")
        .replace('%', r"\%")
        .replace('_', r"\_");
    format!("%{escaped}%")
}

/// A pattern that matches whatever contains `text`, and is quicker to look up: it says
/// nothing of where words begin and end. `pg_trgm` has entries of that too, which are much
/// longer than those of three letters and all have to be walked. A text without a word of
/// four letters, which has two such entries, may need them.
fn index_pattern(text: &str) -> String {
    let words = text.split(|character: char| !character.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| word.chars().nth(2).is_some()).collect();
    if words.iter().any(|word| word.chars().nth(3).is_some()) {
        format!("%{}%", words.join("%"))
    } else {
        contains_pattern(text)
    }
}

/// Whether a text that may stand anywhere has three characters in a row that
/// `pg_trgm` knows of: it puts two spaces before each word and one after it, and
/// whether a word begins or ends is seen only where the text goes on.
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
    fn the_index_is_asked_for_words_without_their_ends() {
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
