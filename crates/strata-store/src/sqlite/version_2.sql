-- Version 2: what an index in memory is fed from. Items are found by the revision of their last change, vectors by a
-- count of their own, and segments hold what was derived from a range of revisions.

ALTER TABLE users ADD COLUMN vectors INTEGER NOT NULL DEFAULT 0;

CREATE INDEX turns_changed ON turns (user_id, revision);
CREATE INDEX memories_changed ON memories (user_id, revision);
CREATE INDEX summaries_changed ON summaries (user_id, revision);

-- Vectors of version 1 were counted by the user's revision: the count goes on from there.
UPDATE users SET vectors = coalesce((SELECT max(revision) FROM vectors WHERE user_id = users.id), 0);
CREATE INDEX vectors_changed ON vectors (user_id, model_id, revision);

CREATE TABLE segments (
    user_id INTEGER NOT NULL REFERENCES users (id),
    space TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (user_id, space, first)
) STRICT;

CREATE TABLE progress (
    user_id INTEGER NOT NULL REFERENCES users (id),
    space TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (user_id, space)
) STRICT, WITHOUT ROWID;
