//! Routes without an API key: the links in messages, which recipients follow, and the URL
//! that providers post events to. Recipients get an HTML page, also after an error.

pub(crate) mod language;
pub(crate) mod page;
pub(crate) mod provider_events;
mod style;
mod texts;
pub(crate) mod tracking;
pub(crate) mod unsubscribe;
