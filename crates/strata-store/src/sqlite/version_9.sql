-- Version 9: which parts the current summary of a session has, so that for instance the open todos of all sessions are found
-- without reading every summary. The current summary is the completed one of the window that reaches furthest.

-- Bits: 1 facts, 2 preferences, 4 decisions, 8 todos, 16 entities (`SummaryPart::bit`).
ALTER TABLE sessions ADD COLUMN parts INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_with_parts ON sessions (user_id, updated_at DESC, name, parts) WHERE parts > 0;

-- The triggers below keep `sessions.parts` equal to this view. A damaged summary has no parts.
CREATE VIEW parts_of_sessions (session_id, parts) AS
SELECT s.id, coalesce((
    SELECT CASE WHEN json_valid(m.structured) THEN
        coalesce(json_array_length(m.structured, '$.facts') > 0, 0)
        + 2 * coalesce(json_array_length(m.structured, '$.preferences') > 0, 0)
        + 4 * coalesce(json_array_length(m.structured, '$.decisions') > 0, 0)
        + 8 * coalesce(json_array_length(m.structured, '$.todos') > 0, 0)
        + 16 * coalesce(json_array_length(m.structured, '$.entities') > 0, 0) END
    FROM summaries m WHERE m.session_id = s.id AND m.strategy = 'window' AND m.status = 'completed'
    ORDER BY m.end_seq DESC, m.created_at DESC, m.id DESC LIMIT 1), 0)
FROM sessions s;

UPDATE sessions SET parts = (SELECT p.parts FROM parts_of_sessions p WHERE p.session_id = sessions.id)
WHERE id IN (SELECT session_id FROM summaries WHERE strategy = 'window' AND status = 'completed');

CREATE TRIGGER summaries_added AFTER INSERT ON summaries BEGIN
    UPDATE sessions SET parts = (SELECT p.parts FROM parts_of_sessions p WHERE p.session_id = NEW.session_id)
    WHERE id = NEW.session_id;
END;
CREATE TRIGGER summaries_replaced AFTER UPDATE ON summaries BEGIN
    UPDATE sessions SET parts = (SELECT p.parts FROM parts_of_sessions p WHERE p.session_id = NEW.session_id)
    WHERE id = NEW.session_id;
END;
CREATE TRIGGER summaries_removed AFTER DELETE ON summaries BEGIN
    UPDATE sessions SET parts = (SELECT p.parts FROM parts_of_sessions p WHERE p.session_id = OLD.session_id)
    WHERE id = OLD.session_id;
END;
