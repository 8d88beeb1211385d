//! Webhooks: posting events to the servers of customers.
//!
//! An *endpoint* is a URL of an organization that subscribed to event types. One event
//! for one endpoint is a *delivery*; one HTTP call for it is an *attempt*. Every call is
//! signed with the endpoint's *secret* (`signature`) and goes only to addresses that the
//! address guard allows (`client`), since customers choose the URLs. The body is built
//! when the call is made (`payload`) from the event, the message and the recipient; it is
//! not stored. Events about the organization (`event_type`) have no message: triggers and
//! the functions of the migration `…22_further_events.sql` insert their deliveries with
//! what they say.

pub mod client;
pub mod deliveries;
pub mod endpoint;
pub mod engine;
pub mod event_type;
pub mod example;
pub mod payload;
pub mod replay;
pub mod schedule;
pub mod secret;
pub mod signature;
pub mod status;
pub mod store;
pub mod url;
