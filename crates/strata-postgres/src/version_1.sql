-- Version 1. Times are microseconds since the epoch, structured values are JSON as text. Every key and index of a user's data
-- begins with the user, so the tables can be partitioned by it and distributed over several servers.

CREATE TABLE strata_format (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version integer NOT NULL,
    -- Programs that know this version of the format, or a later one, may use the database.
    oldest_reader integer NOT NULL,
    partitions integer NOT NULL
);

-- A forgotten user keeps its row with the counters. A write begins by raising them, which also makes a user's writes wait for
-- each other, so revisions become visible in their order.
CREATE TABLE users (
    user_id text COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    vectors bigint NOT NULL DEFAULT 0,
    writes bigint NOT NULL DEFAULT 0,
    -- What BM25 needs: the items with text, and their terms.
    indexed_items bigint NOT NULL DEFAULT 0,
    indexed_terms bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE sessions (
    user_id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    next_seq bigint NOT NULL,
    version bigint NOT NULL,
    state text,
    PRIMARY KEY (user_id, session)
) PARTITION BY HASH (user_id);

-- `terms` holds the terms of our own analyser (see terms.rs), and `length` about how many they are.
CREATE TABLE turns (
    user_id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    created_at bigint NOT NULL,
    hidden_at bigint,
    revision bigint NOT NULL,
    id uuid NOT NULL,
    -- The `seq` of the turn that this one follows: NULL for the visible turn before it, -1 for none.
    follows bigint,
    token_count bigint NOT NULL,
    input_tokens bigint,
    output_tokens bigint,
    length integer NOT NULL,
    -- 1 if memories that are learned from the turn are bound to the session, 2 if the session stands apart.
    memories_in_session smallint NOT NULL,
    interrupted boolean NOT NULL,
    truncated boolean NOT NULL,
    failed boolean,
    high_value boolean NOT NULL,
    role text NOT NULL,
    hidden_reason text,
    name text,
    agent text,
    tool_call_id text,
    tool_calls text,
    metadata text,
    memory_metadata text,
    content text NOT NULL,
    terms tsvector NOT NULL,
    PRIMARY KEY (user_id, session, seq),
    UNIQUE (user_id, id)
) PARTITION BY HASH (user_id);
CREATE INDEX turns_recent ON turns (user_id, created_at);
CREATE INDEX turns_changed ON turns (user_id, revision);
CREATE INDEX turns_terms ON turns USING gin (terms);

-- A memory may be bound to a session in which nothing was said yet.
CREATE TABLE memories (
    user_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    confidence double precision NOT NULL,
    valid_from bigint NOT NULL,
    valid_to bigint,
    recorded_at bigint NOT NULL,
    hidden_at bigint,
    restored_at bigint,
    first_recorded_at bigint,
    replaced_by uuid,
    source_summary uuid,
    thread uuid,
    disputed uuid,
    length integer NOT NULL,
    certainty smallint,
    session text COLLATE "C",
    agent text,
    kind text NOT NULL,
    hidden_reason text,
    todo text,
    source_turns uuid[],
    metadata text,
    content text NOT NULL,
    terms tsvector NOT NULL,
    PRIMARY KEY (user_id, id)
) PARTITION BY HASH (user_id);
CREATE INDEX memories_recent ON memories (user_id, recorded_at);
CREATE INDEX memories_changed ON memories (user_id, revision);
CREATE INDEX memories_replaced ON memories (user_id, replaced_by) WHERE replaced_by IS NOT NULL;
CREATE INDEX memories_terms ON memories USING gin (terms);
-- Whose a memory is, for clients that name it by its id alone.
CREATE INDEX memories_by_id ON memories (id);

CREATE TABLE summaries (
    user_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    session text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    level bigint NOT NULL,
    start_seq bigint NOT NULL,
    end_seq bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    generation_ms bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    base_id uuid,
    strategy text NOT NULL,
    status text NOT NULL,
    structured text,
    text text NOT NULL,
    PRIMARY KEY (user_id, id)
) PARTITION BY HASH (user_id);
CREATE INDEX summaries_by_reach ON summaries (user_id, session, end_seq);
CREATE INDEX summaries_changed ON summaries (user_id, revision);
CREATE UNIQUE INDEX summaries_processing ON summaries (user_id, session) WHERE status = 'processing';

-- `kind` says what `item` is: 0 a turn, 1 a memory, 2 a summary.
CREATE TABLE vectors (
    user_id text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    item uuid NOT NULL,
    revision bigint NOT NULL,
    scale real NOT NULL,
    components bytea NOT NULL,
    PRIMARY KEY (user_id, kind, item, model)
) PARTITION BY HASH (user_id);
CREATE INDEX vectors_changed ON vectors (user_id, model, revision);

CREATE TABLE segments (
    user_id text COLLATE "C" NOT NULL,
    space text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (user_id, space, first)
) PARTITION BY HASH (user_id);

CREATE TABLE progress (
    user_id text COLLATE "C" NOT NULL,
    space text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    PRIMARY KEY (user_id, space)
) PARTITION BY HASH (user_id);

CREATE TABLE requests (
    user_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    created_at bigint NOT NULL,
    session text COLLATE "C",
    metric text NOT NULL,
    PRIMARY KEY (user_id, id)
) PARTITION BY HASH (user_id);
CREATE INDEX requests_recent ON requests (user_id, created_at);

CREATE TABLE idempotency (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bigint NOT NULL,
    created_at bigint NOT NULL,
    answer text NOT NULL,
    PRIMARY KEY (user_id, key)
) PARTITION BY HASH (user_id);

-- Jobs are claimed over all users, so they are one table, ordered by the time at which they are due. It stays small: finished
-- jobs are removed.
CREATE TABLE jobs (
    number bigint GENERATED ALWAYS AS IDENTITY,
    user_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    run_at bigint NOT NULL,
    lease_until bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    lease_id uuid,
    attempts bigint NOT NULL,
    status text NOT NULL,
    session text COLLATE "C",
    kind text COLLATE "C" NOT NULL,
    lease_worker text,
    last_error text,
    payload text NOT NULL,
    result text,
    PRIMARY KEY (user_id, id)
) WITH (fillfactor = 70);
CREATE INDEX jobs_open ON jobs (run_at, created_at, id) WHERE status IN ('queued', 'leased');
CREATE INDEX jobs_leased ON jobs (user_id, session) WHERE status = 'leased';
CREATE INDEX jobs_waiting ON jobs (user_id, session, kind) WHERE status = 'queued';
CREATE INDEX jobs_done ON jobs (user_id, updated_at) WHERE status = 'done';

-- A key's hash has to be unique over all users, so this small table is not partitioned.
CREATE TABLE keys (
    user_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    per_minute bigint,
    concurrent bigint,
    name text,
    scopes text NOT NULL,
    prefix text NOT NULL,
    recall_scope text,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX keys_recent ON keys (created_at, id);
