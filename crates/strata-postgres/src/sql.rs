//! Statements with typed parameters.
//!
//! Every statement is sent unnamed, with the types of its parameters, in one round trip. Nothing is kept on the server between
//! two statements, so the store works behind a pooler that gives each transaction another connection (PgBouncer in transaction
//! mode), and a migration never meets a plan that an older process has cached.

use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, SimpleQueryMessage};
use uuid::Uuid;

use crate::error::{Fault, Outcome};

/// A parameter with its type.
pub(crate) type Arg<'a> = (Box<dyn ToSql + Sync + Send + 'a>, Type);

/// A Rust type with its type in PostgreSQL.
pub(crate) trait Sql: ToSql + Sync + Send {
    /// The type of a value.
    const TYPE: Type;
    /// The type of a list of values.
    const LIST: Type;
}

macro_rules! sql_types {
    ($($rust:ty => $one:ident, $list:ident;)*) => {
        $(impl Sql for $rust {
            const TYPE: Type = Type::$one;
            const LIST: Type = Type::$list;
        })*
    };
}

sql_types! {
    i16 => INT2, INT2_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i64 => INT8, INT8_ARRAY;
    f32 => FLOAT4, FLOAT4_ARRAY;
    f64 => FLOAT8, FLOAT8_ARRAY;
    bool => BOOL, BOOL_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    String => TEXT, TEXT_ARRAY;
    Uuid => UUID, UUID_ARRAY;
    &[u8] => BYTEA, BYTEA_ARRAY;
    Vec<u8> => BYTEA, BYTEA_ARRAY;
}

impl<T: Sql> Sql for Option<T> {
    const TYPE: Type = T::TYPE;
    const LIST: Type = T::LIST;
}

impl<T: Sql> Sql for Vec<T> {
    const TYPE: Type = T::LIST;
    const LIST: Type = T::LIST;
}

/// A parameter of a statement.
pub(crate) fn arg<'a, T: Sql + 'a>(value: T) -> Arg<'a> {
    (Box::new(value), T::TYPE)
}

fn borrowed<'a>(args: &'a [Arg<'_>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    args.iter().map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone())).collect()
}

/// The parameters of a statement.
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        &[$($crate::sql::arg($value)),*]
    };
}

pub(crate) use args;

tokio::task_local! {
    /// How long the server may take to answer a statement of this task; without a limit it may take any time.
    static ANSWERED_WITHIN: Duration;
}

/// Runs statements, each of which the server has to answer within a time.
pub(crate) async fn answered_within<T>(time: Duration, work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    ANSWERED_WITHIN.scope(time, work).await
}

async fn answer<T>(statement: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Outcome<T> {
    match ANSWERED_WITHIN.try_with(|time| *time) {
        Ok(time) => Ok(tokio::time::timeout(time, statement).await.map_err(|_| Fault::Unanswered)??),
        Err(_) => Ok(statement.await?),
    }
}

/// Runs statements without parameters.
pub(crate) async fn batch(client: &Client, sql: &str) -> Outcome<()> {
    answer(client.batch_execute(sql)).await
}

/// Runs statements without parameters and returns what they answer.
pub(crate) async fn simple(client: &Client, sql: &str) -> Outcome<Vec<SimpleQueryMessage>> {
    answer(client.simple_query(sql)).await
}

/// All rows of a query.
pub(crate) async fn rows(client: &Client, sql: &str, args: &[Arg<'_>]) -> Outcome<Vec<Row>> {
    answer(client.query_typed(sql, &borrowed(args))).await
}

/// All rows of a query, each read by `read`.
pub(crate) async fn all<T>(
    client: &Client,
    sql: &str,
    args: &[Arg<'_>],
    read: impl Fn(&Row) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    rows(client, sql, args).await?.iter().map(read).collect()
}

/// The first row of a query.
pub(crate) async fn first(client: &Client, sql: &str, args: &[Arg<'_>]) -> Outcome<Option<Row>> {
    Ok(rows(client, sql, args).await?.into_iter().next())
}

/// The row of a query that always has one.
pub(crate) async fn one(client: &Client, sql: &str, args: &[Arg<'_>]) -> Outcome<Row> {
    answer(client.query_typed_one(sql, &borrowed(args))).await
}

/// Runs a statement and returns the number of its rows.
pub(crate) async fn execute(client: &Client, sql: &str, args: &[Arg<'_>]) -> Outcome<u64> {
    answer(client.execute_typed(sql, &borrowed(args))).await
}
