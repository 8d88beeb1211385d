//! Drops the indexes of a table before it is filled, and creates them again afterwards as
//! the catalogue defines them.

use sqlx::{AssertSqlSafe, PgConnection, Row as _};

/// The statement that creates an index again.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    statement: String,
}

/// Drops all indexes of a table, including those of unique constraints. On a partitioned
/// table this drops the indexes of the partitions too.
pub(crate) async fn drop_all(
    connection: &mut PgConnection,
    table: &str,
) -> sqlx::Result<Vec<Index>> {
    let rows = sqlx::query(
        "SELECT i.relname AS name, pg_get_indexdef(i.oid) AS definition, pg_get_constraintdef(c.oid) AS rule
         FROM pg_index x
         JOIN pg_class i ON i.oid = x.indexrelid
         LEFT JOIN pg_constraint c ON c.conindid = i.oid AND c.conrelid = x.indrelid AND c.contype IN ('p', 'u')
         WHERE x.indrelid = $1::regclass
         ORDER BY c.contype = 'p' DESC NULLS LAST, i.relname",
    )
    .bind(table)
    .fetch_all(&mut *connection)
    .await?;
    let mut indexes = Vec::new();
    for row in rows {
        let name: String = row.get("name");
        let definition: String = row.get("definition");
        let rule: Option<String> = row.get("rule");
        let (drop, statement) = match rule {
            Some(rule) => (
                format!("ALTER TABLE {table} DROP CONSTRAINT {name}"),
                format!("ALTER TABLE {table} ADD CONSTRAINT {name} {rule}"),
            ),
            // The definition of a partitioned index contains ONLY.
            None => (
                format!("DROP INDEX {name}"),
                definition.replacen(" ON ONLY ", " ON ", 1),
            ),
        };
        sqlx::raw_sql(AssertSqlSafe(drop))
            .execute(&mut *connection)
            .await?;
        indexes.push(Index { name, statement });
    }
    Ok(indexes)
}

/// Creates a dropped index again.
pub(crate) async fn create(connection: &mut PgConnection, index: &Index) -> sqlx::Result<()> {
    let statement = AssertSqlSafe(index.statement.clone());
    sqlx::raw_sql(statement).execute(connection).await?;
    Ok(())
}
