//! Rows in PostgreSQL's binary COPY format, and the COPY itself.

use sqlx::PgConnection;
use uuid::Uuid;

/// 2000-01-01 as Unix milliseconds: PostgreSQL counts time from there.
const EPOCH_MS: i64 = 946_684_800_000;
/// The OID of `text`, the element type of a `text[]`.
const TEXT_OID: i32 = 25;
/// Bytes to collect before they are sent.
const SEND_BYTES: usize = 1 << 20;

/// Rows in the binary format.
#[derive(Debug)]
pub(crate) struct Rows {
    bytes: Vec<u8>,
}

impl Rows {
    fn new() -> Self {
        let mut bytes = Vec::with_capacity(2 * SEND_BYTES);
        bytes.extend_from_slice(b"PGCOPY\n\xff\r\n\0");
        // No flags, no extension.
        bytes.extend_from_slice(&[0; 8]);
        Self { bytes }
    }

    /// Starts a row of this many values, which follow.
    pub(crate) fn row(&mut self, values: i16) {
        self.bytes.extend_from_slice(&values.to_be_bytes());
    }

    pub(crate) fn null(&mut self) {
        self.int(-1);
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.int(i32::try_from(value.len()).expect("values are short"));
        self.bytes.extend_from_slice(value);
    }

    /// Also the name of an enum value.
    pub(crate) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn uuid(&mut self, value: Uuid) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn smallint(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn integer(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn bigint(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn time(&mut self, at_ms: i64) {
        self.bigint((at_ms - EPOCH_MS) * 1_000);
    }

    pub(crate) fn time_or_null(&mut self, at_ms: Option<i64>) {
        match at_ms {
            Some(at_ms) => self.time(at_ms),
            None => self.null(),
        }
    }

    /// A `text[]` of one element.
    pub(crate) fn text_array(&mut self, element: &str) {
        let length = i32::try_from(element.len()).expect("tags are short");
        self.int(24 + length);
        for part in [1, 0, TEXT_OID, 1, 1] {
            self.int(part);
        }
        self.text(element);
    }

    fn int(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }
}

/// A table and the columns to fill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) table: &'a str,
    pub(crate) columns: &'a str,
}

/// Copies the rows of these numbers into an empty table. The table is truncated in the
/// same transaction, so that COPY may freeze the rows and no vacuum is needed. No trigger
/// fires.
pub(crate) async fn copy(
    connection: &mut PgConnection,
    target: Target<'_>,
    numbers: std::ops::Range<u64>,
    mut write: impl FnMut(&mut Rows, u64),
) -> sqlx::Result<u64> {
    let Target { table, columns } = target;
    sqlx::raw_sql("BEGIN").execute(&mut *connection).await?;
    let truncate = format!("TRUNCATE {table}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(truncate))
        .execute(&mut *connection)
        .await?;
    let statement = format!("COPY {table} ({columns}) FROM STDIN (FORMAT binary, FREEZE)");
    let mut rows = Rows::new();
    let mut sink = connection.copy_in_raw(&statement).await?;
    for number in numbers {
        write(&mut rows, number);
        if rows.bytes.len() >= SEND_BYTES {
            sink.send(rows.bytes.as_slice()).await?;
            rows.bytes.clear();
        }
    }
    rows.row(-1);
    sink.send(rows.bytes.as_slice()).await?;
    let copied = sink.finish().await?;
    sqlx::raw_sql("COMMIT").execute(&mut *connection).await?;
    Ok(copied)
}
