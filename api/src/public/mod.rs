//! What people without a key reach: the links in messages. They are answered with
//! pages, also where something is wrong; pixels with a pixel.

pub(crate) mod page;
pub(crate) mod tracking;
pub(crate) mod unsubscribe;
