//! The layout of the tables: keys and indexes begin with the user, and Citus can distribute the tables with the statements of
//! docs/scale.md.
//!
//! The rules of Citus are those of its manual and of its source (version 13); this test runs on PostgreSQL alone.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use strata_postgres::test_server::{Database, database, old_database};

/// The tables that stay on one server: jobs are claimed over all users, a key is found by its hash, and the format is one row.
const LOCAL: [&str; 3] = ["jobs", "keys", "strata_format"];

/// The indexes that do not begin with the user, and why.
const ELSEWHERE: [(&str, &str); 7] = [
    ("strata_format_pkey", "one row"),
    ("turns_terms", "each term carries a tag of its user"),
    ("memories_terms", "each term carries a tag of its user"),
    ("memories_by_id", "whose a memory is, for clients that name it by its id alone"),
    ("jobs_open", "the next job of all users"),
    ("keys_hash_key", "a key is found by its hash"),
    ("keys_recent", "all keys, the newest first"),
];

async fn names(database: &Database, sql: &str) -> Vec<String> {
    let rows = database.client().await.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// The tables that the statements of docs/scale.md distribute.
fn distributed() -> Vec<String> {
    let page = include_str!("../../../docs/scale.md");
    let name = |line: &str| {
        let (name, rest) = line.strip_prefix("SELECT create_distributed_table('")?.split_once('\'')?;
        let colocated = ", 'user_id', colocate_with => 'users');";
        let expected = if name == "users" { ", 'user_id');" } else { colocated };
        assert_eq!(rest, expected, "{line}");
        Some(name.to_owned())
    };
    page.lines().filter_map(name).collect()
}

/// What keeps Citus from distributing tables by the user: a trigger, a key or unique index without the user, a foreign key or an
/// exclusion constraint, a column that counts for itself, a partition of a partition, a user in another type or collation.
async fn obstacles(database: &Database) -> Vec<String> {
    let local = LOCAL.join("', '");
    let sql = format!(
        "WITH tables AS (
             SELECT oid, relname::text AS name FROM pg_class
             WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
                 AND relname NOT IN ('{local}'))
         SELECT 'trigger ' || tgname FROM pg_trigger JOIN tables t ON t.oid = tgrelid WHERE NOT tgisinternal
         UNION ALL
         SELECT 'unique ' || i.indexrelid::regclass FROM pg_index i JOIN tables t ON t.oid = i.indrelid
         WHERE i.indisunique AND NOT EXISTS (SELECT 1 FROM pg_attribute a
             WHERE a.attrelid = t.oid AND a.attname = 'user_id' AND a.attnum = ANY (i.indkey))
         UNION ALL
         SELECT 'constraint ' || conname FROM pg_constraint WHERE contype IN ('f', 'x')
         UNION ALL
         SELECT 'number ' || attname FROM pg_attribute JOIN tables t ON t.oid = attrelid WHERE attidentity <> ''
         UNION ALL
         SELECT 'default ' || adrelid::regclass FROM pg_attrdef JOIN tables t ON t.oid = adrelid
         WHERE pg_get_expr(adbin, adrelid) LIKE '%nextval%'
         UNION ALL
         SELECT 'levels ' || c.relname FROM pg_class c WHERE c.relispartition AND c.relkind = 'p'
         UNION ALL
         SELECT 'column ' || t.name FROM tables t WHERE NOT EXISTS (SELECT 1 FROM pg_attribute a
             WHERE a.attrelid = t.oid AND a.attname = 'user_id' AND a.attnotnull AND a.atttypid = 'text'::regtype
                 AND a.attcollation = '\"C\"'::regcollation)
         ORDER BY 1"
    );
    names(database, &sql).await
}

#[tokio::test]
async fn citus_can_distribute_every_table_of_a_users_data() {
    let database = database().await;
    assert_eq!(obstacles(&database).await, Vec::<String>::new());
    let tables = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
                      AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1";
    let mut named = [distributed(), LOCAL.map(str::to_owned).to_vec()].concat();
    named.sort();
    assert_eq!(names(&database, tables).await, named, "docs/scale.md and the tables differ");
    // Version 2 had a trigger, which this test has to see.
    assert_eq!(obstacles(&old_database(3).await).await, ["trigger summaries_parts"]);
}

#[tokio::test]
async fn every_key_and_index_begins_with_the_user() {
    let first = "SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
                 LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
                 WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
                     AND a.attname IS DISTINCT FROM 'user_id' ORDER BY 1";
    let mut elsewhere = ELSEWHERE.map(|(name, _)| name);
    elsewhere.sort_unstable();
    assert_eq!(names(&database().await, first).await, elsewhere);
}
