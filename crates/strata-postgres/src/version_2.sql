-- Version 2: which parts the current summary of a session has, so that for instance the open todos of all sessions are found
-- without reading every summary. The current summary is the completed one of the window that reaches furthest. Triggers keep
-- the column, so that processes of version 1 keep it as well.

-- Bits: 1 facts, 2 preferences, 4 decisions, 8 todos, 16 entities (`SummaryPart::bit`).
ALTER TABLE sessions ADD COLUMN parts smallint NOT NULL DEFAULT 0;
CREATE INDEX sessions_with_parts ON sessions (user_id, updated_at DESC, session, parts) WHERE parts > 0;

CREATE FUNCTION strata_parts_of (structured text) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(sum(bit), 0)::smallint
    FROM (VALUES ('facts', 1), ('preferences', 2), ('decisions', 4), ('todos', 8), ('entities', 16)) AS part (name, bit)
    WHERE CASE WHEN json_typeof(structured::json -> name) = 'array'
        THEN json_array_length(structured::json -> name) > 0 ELSE false END
$$;

CREATE FUNCTION strata_note_parts () RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed record;
BEGIN
    IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF;
    UPDATE sessions SET parts = coalesce((
        SELECT strata_parts_of(m.structured) FROM summaries m
        WHERE m.user_id = changed.user_id AND m.session = changed.session
            AND m.strategy = 'window' AND m.status = 'completed'
        ORDER BY m.end_seq DESC, m.created_at DESC, m.id DESC LIMIT 1), 0)
    WHERE user_id = changed.user_id AND session = changed.session;
    RETURN NULL;
END
$$;

UPDATE sessions s SET parts = strata_parts_of(m.structured)
FROM (
    SELECT DISTINCT ON (user_id, session) user_id, session, structured FROM summaries
    WHERE strategy = 'window' AND status = 'completed'
    ORDER BY user_id, session, end_seq DESC, created_at DESC, id DESC) m
WHERE s.user_id = m.user_id AND s.session = m.session;

CREATE TRIGGER summaries_parts AFTER INSERT OR UPDATE OR DELETE ON summaries
FOR EACH ROW EXECUTE FUNCTION strata_note_parts();
