-- Version 1. Times are microseconds since the epoch, ids 16 bytes, structured values JSON. Rows are known inside by
-- integers; only `users` and `sessions` never use a number twice, because other processes may remember them.

CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0,
    -- What BM25 needs: the items in the text index, and their terms.
    indexed_items INTEGER NOT NULL DEFAULT 0,
    indexed_terms INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    state TEXT,
    UNIQUE (user_id, name)
) STRICT;

-- `content` comes last: what decides whether a turn is wanted is read without it.
CREATE TABLE turns (
    row INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    seq INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    hidden_at INTEGER,
    hidden_reason TEXT,
    revision INTEGER NOT NULL,
    id BLOB NOT NULL,
    role TEXT NOT NULL,
    token_count INTEGER NOT NULL,
    name TEXT,
    metadata TEXT,
    content TEXT NOT NULL,
    UNIQUE (session_id, seq),
    UNIQUE (user_id, id)
) STRICT;
CREATE INDEX turns_recent ON turns (user_id, created_at, session_id);

CREATE TABLE summaries (
    row INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    strategy TEXT NOT NULL,
    level INTEGER NOT NULL,
    start_seq INTEGER NOT NULL,
    end_seq INTEGER NOT NULL,
    base_id BLOB,
    status TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    generation_ms INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    structured TEXT,
    text TEXT NOT NULL,
    UNIQUE (user_id, id)
) STRICT;
CREATE INDEX summaries_by_reach ON summaries (session_id, end_seq);
CREATE UNIQUE INDEX summaries_processing ON summaries (session_id) WHERE status = 'processing';

-- A memory may be bound to a session in which nothing was said yet, so it keeps the session's name.
CREATE TABLE memories (
    row INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    session TEXT,
    agent TEXT,
    kind TEXT NOT NULL,
    confidence REAL NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_to INTEGER,
    recorded_at INTEGER NOT NULL,
    replaced_by BLOB,
    hidden_at INTEGER,
    hidden_reason TEXT,
    source_turns TEXT,
    source_summary BLOB,
    metadata TEXT,
    content TEXT NOT NULL,
    UNIQUE (user_id, id)
) STRICT;
CREATE INDEX memories_recent ON memories (user_id, recorded_at);
CREATE INDEX memories_replaced ON memories (user_id, replaced_by) WHERE replaced_by IS NOT NULL;

CREATE TABLE models (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- `kind` and `item` name a row: 0 a turn, 1 a memory, 2 a summary.
CREATE TABLE vectors (
    row INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    model_id INTEGER NOT NULL REFERENCES models (id),
    kind INTEGER NOT NULL,
    item INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    scale REAL NOT NULL,
    components BLOB NOT NULL,
    UNIQUE (user_id, kind, item, model_id)
) STRICT;

CREATE TABLE jobs (
    row INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    id BLOB NOT NULL,
    session TEXT,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    lease_id BLOB,
    lease_worker TEXT,
    lease_until INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (user_id, id)
) STRICT;
CREATE INDEX jobs_open ON jobs (run_at, created_at, id) WHERE status IN ('queued', 'leased');
CREATE INDEX jobs_leased ON jobs (user_id, session) WHERE status = 'leased';

CREATE TABLE requests (
    row INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    id BLOB NOT NULL,
    session TEXT,
    created_at INTEGER NOT NULL,
    metric TEXT NOT NULL,
    UNIQUE (user_id, id)
) STRICT;
CREATE INDEX requests_recent ON requests (user_id, created_at);

CREATE TABLE idempotency (
    user_id INTEGER NOT NULL REFERENCES users (id),
    key TEXT NOT NULL,
    fingerprint INTEGER NOT NULL,
    answer TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;

-- The last row of each table that is in the text index.
CREATE TABLE indexed (
    kind INTEGER PRIMARY KEY,
    upto INTEGER NOT NULL
) STRICT;
INSERT INTO indexed (kind, upto) VALUES (0, 0), (1, 0);

-- Every term carries its user's number (see index.rs), and the row number says what the item is and how long: the
-- index keeps nothing but which items hold a term. `ascii` takes every byte above 127 as part of a word.
CREATE VIRTUAL TABLE text_index USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE text_terms USING fts5vocab (text_index, row);
