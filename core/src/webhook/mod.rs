//! Webhooks: telling customers' servers of events.
//!
//! An *endpoint* is a URL of an organization that wants events of some types. One
//! event for one endpoint is a *delivery*, one call for it an *attempt*. Every call
//! is signed with the endpoint's *secret* (`signature`), and goes only where the
//! guard lets it (`client`): a URL is a stranger's word. What a call says is put
//! together when it is made (`payload`), from the event, the message and the
//! recipient; nothing is copied beforehand.

pub mod client;
pub mod deliveries;
pub mod endpoint;
pub mod engine;
pub mod payload;
pub mod replay;
pub mod schedule;
pub mod secret;
pub mod signature;
pub mod status;
pub mod store;
pub mod url;
