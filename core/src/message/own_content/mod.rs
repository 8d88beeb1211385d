//! What recipients have instead of their message's content.

pub mod store;
