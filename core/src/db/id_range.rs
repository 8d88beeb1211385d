//! Limits a statement to the partitions of its messages.

use uuid::Uuid;

/// The ids of the oldest and the newest message of a statement. All rows of the messages are
/// in the partitions from the one to the other.
///
/// A generic plan (`routine_pool`) covers every partition and initializes all of them on each
/// execution, which is noticeable in statements on a few rows. If a query has a condition on
/// the range of ids, Postgres prunes the other partitions before it starts.
///
/// Use it only in look-ups, of one row or of rows by their ids, that Postgres cannot turn into
/// a join: with a limit, a lock or grouping, or as a scalar. In a join, such as to the rows of
/// an `UPDATE`, it does harm: if a table was small when the plan was made, the plan reads the
/// whole range for each joined row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRange {
    pub(crate) first: Uuid,
    pub(crate) last: Uuid,
}

impl IdRange {
    /// The range of these messages, in any order. The range of no messages is empty.
    pub(crate) fn of(messages: &[Uuid]) -> Self {
        Self {
            first: messages.iter().min().copied().unwrap_or(Uuid::max()),
            last: messages.iter().max().copied().unwrap_or(Uuid::nil()),
        }
    }
}
