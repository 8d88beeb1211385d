//! Which months a statement is about.

use uuid::Uuid;

/// The oldest and the newest of the messages that a statement is about: all that belongs to
/// them lies in the months from the one to the other.
///
/// Statements that are planned once, for any values (`routine_pool`), are ready for every
/// month that is kept, and make that ready each time they run, which shows where they are
/// about a few rows. Where a look-up says between which ids its rows lie, Postgres leaves the
/// other months out before it begins.
///
/// For look-ups alone, of one row or of rows by their ids, that Postgres cannot turn into a
/// join: with a limit, with a lock or grouped, or as a value. In a join, as to the rows of an
/// `UPDATE`, it does harm: where a table was small when the plan was made, the planner reads
/// the whole span for each row that is joined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRange {
    pub(crate) first: Uuid,
    pub(crate) last: Uuid,
}

impl IdRange {
    /// The span of these messages, in any order. That of none holds none.
    pub(crate) fn of(messages: &[Uuid]) -> Self {
        Self {
            first: messages.iter().min().copied().unwrap_or(Uuid::max()),
            last: messages.iter().max().copied().unwrap_or(Uuid::nil()),
        }
    }
}
