//! Pages of a list.

/// The requested page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    page: u32,
    limit: u32,
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
        within.then_some(Self { page, limit })
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

    /// Rows before this page.
    #[must_use]
    pub fn offset(self) -> i64 {
        i64::from(self.page - 1) * i64::from(self.limit)
    }

    /// Whether a list of `total` rows ends before this page.
    #[must_use]
    pub fn is_past_end(self, total: u64) -> bool {
        u64::from(self.page - 1) * u64::from(self.limit) >= total
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
}
