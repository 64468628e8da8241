-- Version 10: what every chat asks for is found without reading all memories of the user: the standing instructions, and what
-- was deleted.

CREATE INDEX memories_of_kind ON memories (user_id, kind, recorded_at, id);
CREATE INDEX memories_hidden ON memories (user_id, recorded_at, id) WHERE hidden_at IS NOT NULL;
