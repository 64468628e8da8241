-- Version 3: what a job did and spent; which jobs wait for a session, so that the same work is not asked for twice; and
-- API keys.

ALTER TABLE jobs ADD COLUMN result TEXT;
CREATE INDEX jobs_waiting ON jobs (user_id, session, kind) WHERE status = 'queued';
CREATE INDEX jobs_done ON jobs (user_id, updated_at) WHERE status = 'done';

-- Of a key's secret its SHA-256 is kept and nothing else; the user `*` has the keys that are bound to nobody.
CREATE TABLE keys (
    row INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    id BLOB NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    name TEXT,
    scopes TEXT NOT NULL,
    prefix TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    per_minute INTEGER,
    concurrent INTEGER,
    UNIQUE (user_id, id)
) STRICT;
CREATE INDEX keys_recent ON keys (created_at, id);
