//! Pages of a list, by their number or by the row that they follow.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::clock::Timestamp;

/// The place of a row in a list that is ordered by a time and an id, or by one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub at: Timestamp,
    pub id: Uuid,
}

impl Place {
    /// The place in a list that is ordered by ids alone.
    #[must_use]
    pub fn of_id(id: Uuid) -> Self {
        let at = Timestamp::UNIX_EPOCH;
        Self { at, id }
    }
}

/// A cursor: where the page after a page begins, as a text for a client. Its check tells
/// whether it belongs to the same list with the same filters; it is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the page.
    page: u32,
    place: Place,
}

impl Cursor {
    /// Version, page, time, id.
    const CONTENT_BYTES: usize = 1 + 4 + 8 + 16;
    const CHECK_BYTES: usize = 8;
    const VERSION: u8 = 1;

    /// The cursor of the page that follows `request`.
    #[must_use]
    pub fn following(request: PageRequest, place: Place) -> Self {
        let page = request.page.saturating_add(1).min(PageRequest::PAGE_MAX);
        Self { page, place }
    }

    /// The page that begins there.
    #[must_use]
    pub fn request(self, limit: u32) -> Option<PageRequest> {
        let request = PageRequest::new(self.page, limit)?;
        let after = Some(self.place);
        Some(PageRequest { after, ..request })
    }

    /// The text. `scope` is the list with its filters.
    #[must_use]
    pub fn write(self, scope: &str) -> String {
        let mut bytes = vec![Self::VERSION];
        bytes.extend(self.page.to_be_bytes());
        bytes.extend(self.place.at.timestamp_micros().to_be_bytes());
        bytes.extend(self.place.id.as_bytes());
        let check = Self::check(&bytes, scope);
        bytes.extend(check);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads the text of a cursor of this scope; `None` if it is none.
    #[must_use]
    pub fn read(text: &str, scope: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (content, check) = bytes.split_at_checked(Self::CONTENT_BYTES)?;
        if check != Self::check(content, scope) || content.first() != Some(&Self::VERSION) {
            return None;
        }
        let page = u32::from_be_bytes(content.get(1..5)?.try_into().ok()?);
        let micros = i64::from_be_bytes(content.get(5..13)?.try_into().ok()?);
        let id = Uuid::from_slice(content.get(13..)?).ok()?;
        let at = Timestamp::from_timestamp_micros(micros)?;
        let place = Place { at, id };
        Some(Self { page, place })
    }

    fn check(content: &[u8], scope: &str) -> [u8; Self::CHECK_BYTES] {
        let digest = Sha256::new()
            .chain_update("waypost cursor ")
            .chain_update(content)
            .chain_update(scope)
            .finalize();
        let mut check = [0; Self::CHECK_BYTES];
        check.copy_from_slice(&digest[..Self::CHECK_BYTES]);
        check
    }
}

/// The requested page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    page: u32,
    limit: u32,
    after: Option<Place>,
}

impl PageRequest {
    /// The default number of rows per page.
    pub const LIMIT_DEFAULT: u32 = 20;
    /// The maximum number of rows per page.
    pub const LIMIT_MAX: u32 = 100;
    /// The largest page number. No list has that many pages.
    pub const PAGE_MAX: u32 = 10_000_000;

    /// The page `page` (from 1) of `limit` rows; `None` if either is out of bounds.
    #[must_use]
    pub fn new(page: u32, limit: u32) -> Option<Self> {
        let within = (1..=Self::PAGE_MAX).contains(&page) && (1..=Self::LIMIT_MAX).contains(&limit);
        let after = None;
        within.then_some(Self { page, limit, after })
    }

    /// The row that the page follows, if it is not found by its number.
    #[must_use]
    pub fn place(self) -> Option<Place> {
        self.after
    }

    /// The page number, from 1.
    #[must_use]
    pub fn page(self) -> u32 {
        self.page
    }

    /// Rows on a page.
    #[must_use]
    pub fn limit(self) -> u32 {
        self.limit
    }

    /// Rows to read: one more than the page has, to know whether it is the last.
    #[must_use]
    pub fn rows(self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// Rows to skip: those before this page, or none if it follows a row.
    #[must_use]
    pub fn offset(self) -> i64 {
        match self.after {
            None => i64::from(self.page - 1) * i64::from(self.limit),
            Some(_) => 0,
        }
    }

    /// Whether a list of `total` rows ends before this page.
    #[must_use]
    pub fn is_past_end(self, total: u64) -> bool {
        u64::try_from(self.offset()).is_ok_and(|offset| offset >= total)
    }

    /// The number of pages of a list of `total` rows.
    #[must_use]
    pub fn total_pages(self, total: u64) -> u64 {
        total.div_ceil(u64::from(self.limit))
    }
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Rows in the whole list.
    pub total: u64,
    /// The last row's place, if rows follow it.
    pub next: Option<Place>,
}

impl<T> Page<T> {
    /// A page of up to [`PageRequest::rows`] rows.
    #[must_use]
    pub fn of(
        mut rows: Vec<T>,
        request: PageRequest,
        total: u64,
        place: impl FnOnce(&T) -> Place,
    ) -> Self {
        let limit = request.limit() as usize;
        let is_last = rows.len() <= limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| !is_last).map(place);
        Self { rows, total, next }
    }

    /// No rows of a list of `total` rows.
    #[must_use]
    pub fn empty(total: u64) -> Self {
        let (rows, next) = (Vec::new(), None);
        Self { rows, total, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_valid_for_its_list_alone_and_as_it_was_written() {
        let place = Place {
            at: Timestamp::from_timestamp_micros(1_795_000_000_042_001).unwrap(),
            id: Uuid::from_u128(0x01a1_fbfa_b12e_763c_a29e_ce02_006b_a540),
        };
        let request = PageRequest::new(6, 50).unwrap();
        let cursor = Cursor::following(request, place);
        let text = cursor.write("/v1/messages?tag=a");
        let read = Cursor::read(&text, "/v1/messages?tag=a").unwrap();
        assert_eq!(read, cursor);
        let next = read.request(20).unwrap();
        assert_eq!((next.page(), next.limit(), next.offset()), (7, 20, 0));
        assert_eq!(next.place(), Some(place));
        for scope in ["/v1/messages?tag=b", "/v1/messages", "/v1/templates?tag=a"] {
            assert_eq!(Cursor::read(&text, scope), None);
        }
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(Cursor::read(&other, "/v1/messages?tag=a"), None, "{at}");
        }
        for text in ["", "A", "none", &text[1..], &format!("{text}AAAA")] {
            assert_eq!(Cursor::read(text, "/v1/messages?tag=a"), None);
        }
    }

    #[test]
    fn a_page_knows_whether_rows_follow() {
        let request = PageRequest::new(1, 2).unwrap();
        let page = |rows: Vec<u128>| {
            let page = Page::of(rows, request, 9, |id| Place::of_id(Uuid::from_u128(*id)));
            (page.rows, page.next.map(|place| place.id.as_u128()))
        };
        assert_eq!(page(vec![]), (vec![], None));
        assert_eq!(page(vec![3, 2]), (vec![3, 2], None));
        assert_eq!(page(vec![3, 2, 1]), (vec![3, 2], Some(2)));
    }
}
