//! Which of the roll-ups answers a query. Pure.
//!
//! There are roll-ups of pairs of dimensions (the table `metric_pairs`): of all messages, or of
//! those of one account, tag or template, the numbers by another dimension. So a query can name
//! two of these: two filters, or one filter and what to group by.

use super::GroupBy;
use crate::ids::{ProviderAccountId, TemplateId};
use crate::text::Tag;

/// The messages that count: those that match all that is given.
#[derive(Debug, Clone, Default)]
pub struct MetricFilter {
    pub tag: Option<Tag>,
    pub account_id: Option<ProviderAccountId>,
    pub template_id: Option<TemplateId>,
}

/// More was asked for than one roll-up can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyFilters;

/// One of the roll-ups, and the group of it that counts. The dimensions are named as by the type
/// `metric_dimension` in Postgres.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    pub(super) filter: &'static str,
    pub(super) filter_key: String,
    pub(super) grouped_by: &'static str,
    /// Only this group.
    pub(super) only: Option<String>,
    /// What the only group is named by, if it is not its key.
    pub(super) named: Option<String>,
}

const ACCOUNT: &str = "ACCOUNT";
const TAG: &str = "TAG";
const TEMPLATE: &str = "TEMPLATE";
const RECIPIENT_DOMAIN: &str = "RECIPIENT_DOMAIN";
const TOTAL: &str = "TOTAL";

impl Selection {
    /// The roll-up of the messages of a filter, in one group or in those of a breakdown.
    ///
    /// # Errors
    /// [`TooManyFilters`] if no roll-up tells so much apart.
    pub fn of(filter: &MetricFilter, group_by: Option<GroupBy>) -> Result<Self, TooManyFilters> {
        let template = filter.template_id.map(|id| id.0.to_string());
        let tag = filter.tag.as_ref().map(|tag| tag.as_str().to_owned());
        let account = filter.account_id.map(|id| id.0.to_string());
        let given = [(TEMPLATE, template), (TAG, tag), (ACCOUNT, account)];
        let given = given.into_iter().filter_map(|(of, key)| Some((of, key?)));
        let mut given: Vec<(&str, String)> = given.collect();
        let mut grouped_by = group_by.map_or(TOTAL, group_of);
        let is_given = given.iter().find(|(of, _)| *of == grouped_by);
        let named = is_given.map(|(_, key)| key.clone());
        if named.is_some() {
            grouped_by = TOTAL;
        }
        let mut only = None;
        if given.len() == 2
            && grouped_by == TOTAL
            && let Some((of, key)) = given.pop()
        {
            (grouped_by, only) = (of, Some(key));
        }
        if given.len() > 1 {
            return Err(TooManyFilters);
        }
        let (filter, filter_key) = given.pop().unwrap_or((TOTAL, String::new()));
        if grouped_by == RECIPIENT_DOMAIN && ![TOTAL, ACCOUNT].contains(&filter) {
            return Err(TooManyFilters);
        }
        Ok(Self {
            filter,
            filter_key,
            grouped_by,
            only,
            named,
        })
    }
}

fn group_of(group_by: GroupBy) -> &'static str {
    match group_by {
        GroupBy::Provider | GroupBy::Account => ACCOUNT,
        GroupBy::Domain => "DOMAIN",
        GroupBy::Template => TEMPLATE,
        GroupBy::Tag => TAG,
        GroupBy::RecipientDomain => RECIPIENT_DOMAIN,
    }
}
