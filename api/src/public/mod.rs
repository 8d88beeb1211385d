//! What people without a key reach: the links in messages. They are answered with
//! pages, also where something is wrong.

mod page;
pub(crate) mod unsubscribe;
