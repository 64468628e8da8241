-- Version 6: metadata is the client's alone. What Strata notes about a turn or a memory has columns of its own, and the
-- values that Strata wrote into the metadata move there.

-- `follows` is the `seq` of the turn that this one follows: NULL for the visible turn before it, -1 for none.
ALTER TABLE turns ADD COLUMN follows INTEGER;
ALTER TABLE turns ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN tool_calls TEXT;
ALTER TABLE turns ADD COLUMN tool_call_id TEXT;
ALTER TABLE turns ADD COLUMN failed INTEGER;
ALTER TABLE turns ADD COLUMN input_tokens INTEGER;
ALTER TABLE turns ADD COLUMN output_tokens INTEGER;
ALTER TABLE turns ADD COLUMN high_value INTEGER NOT NULL DEFAULT 0;
-- To whom the memories belong that are learned from the turn, and their metadata.
ALTER TABLE turns ADD COLUMN agent TEXT;
ALTER TABLE turns ADD COLUMN memories_in_session INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN memory_metadata TEXT;

-- Only values of the type that Strata writes are moved: the rest is a client's.
UPDATE turns SET
    follows = CASE json_type(metadata, '$.follows')
        WHEN 'null' THEN -1 WHEN 'integer' THEN json_extract(metadata, '$.follows') END,
    metadata = json_remove(metadata, '$.follows')
WHERE json_type(metadata, '$.follows') = 'null'
   OR json_type(metadata, '$.follows') = 'integer' AND typeof(json_extract(metadata, '$.follows')) = 'integer'
      AND json_extract(metadata, '$.follows') >= 0;
UPDATE turns SET interrupted = 1, metadata = json_remove(metadata, '$.interrupted')
WHERE role = 'assistant' AND json_type(metadata, '$.interrupted') = 'true';
UPDATE turns SET truncated = 1, metadata = json_remove(metadata, '$.truncated')
WHERE json_type(metadata, '$.truncated') = 'true';
UPDATE turns SET
    tool_calls = nullif(json_extract(metadata, '$.tool_calls'), '[]'),
    metadata = json_remove(metadata, '$.tool_calls')
WHERE json_type(metadata, '$.tool_calls') = 'array';
UPDATE turns SET
    tool_call_id = json_extract(metadata, '$.tool_call_id'),
    metadata = json_remove(metadata, '$.tool_call_id')
WHERE json_type(metadata, '$.tool_call_id') = 'text';
UPDATE turns SET
    agent = json_extract(metadata, '$.agent_id'),
    metadata = json_remove(metadata, '$.agent_id')
WHERE json_type(metadata, '$.agent_id') = 'text';
UPDATE turns SET memories_in_session = 1, metadata = json_remove(metadata, '$.memory_in_session')
WHERE json_type(metadata, '$.memory_in_session') = 'true';
UPDATE turns SET
    memory_metadata = nullif(json_extract(metadata, '$.memory_metadata'), '{}'),
    metadata = json_remove(metadata, '$.memory_metadata')
WHERE json_type(metadata, '$.memory_metadata') = 'object';

-- The proxy wrote exactly two figures. A client's own `usage` has counted as well and may hold more: it is copied.
UPDATE turns SET
    input_tokens = CASE coalesce(json_type(metadata, '$.usage.prompt_tokens'), json_type(metadata, '$.usage.input_tokens'))
        WHEN 'integer' THEN min(max(0, coalesce(json_extract(metadata, '$.usage.prompt_tokens'),
                                                json_extract(metadata, '$.usage.input_tokens'))), 4294967295) END,
    output_tokens = CASE coalesce(json_type(metadata, '$.usage.completion_tokens'), json_type(metadata, '$.usage.output_tokens'))
        WHEN 'integer' THEN min(max(0, coalesce(json_extract(metadata, '$.usage.completion_tokens'),
                                                json_extract(metadata, '$.usage.output_tokens'))), 4294967295) END
WHERE role = 'assistant' AND json_type(metadata, '$.usage') = 'object';
UPDATE turns SET metadata = json_remove(metadata, '$.usage')
WHERE input_tokens IS NOT NULL AND output_tokens IS NOT NULL
  AND json_remove(json_extract(metadata, '$.usage'), '$.prompt_tokens', '$.completion_tokens') = '{}';

-- Clients wrote this one: their metadata stays as it is.
UPDATE turns SET high_value = 1 WHERE json_type(metadata, '$.high_value') = 'true';
UPDATE turns SET metadata = NULL WHERE metadata = '{}';

ALTER TABLE memories ADD COLUMN todo TEXT;
ALTER TABLE memories ADD COLUMN restored_at INTEGER;
ALTER TABLE memories ADD COLUMN first_recorded_at INTEGER;

UPDATE memories SET todo = json_extract(metadata, '$.todo'), metadata = json_remove(metadata, '$.todo')
WHERE kind = 'todo' AND valid_to IS NOT NULL AND json_extract(metadata, '$.todo') IN ('done', 'dropped');
-- A time in JSON is `2026-03-01T10:00:00Z`, or with up to six digits of a second's fraction before the `Z`.
UPDATE memories SET
    restored_at = unixepoch(substr(json_extract(metadata, '$.restored_at'), 1, 19)) * 1000000
        + substr(rtrim(substr(json_extract(metadata, '$.restored_at'), 21), 'Z') || '000000', 1, 6),
    metadata = json_remove(metadata, '$.restored_at')
WHERE json_extract(metadata, '$.restored_at') GLOB '[0-9]*T*Z'
  AND unixepoch(substr(json_extract(metadata, '$.restored_at'), 1, 19)) IS NOT NULL;
UPDATE memories SET
    first_recorded_at = unixepoch(substr(json_extract(metadata, '$.first_recorded_at'), 1, 19)) * 1000000
        + substr(rtrim(substr(json_extract(metadata, '$.first_recorded_at'), 21), 'Z') || '000000', 1, 6),
    metadata = json_remove(metadata, '$.first_recorded_at')
WHERE json_extract(metadata, '$.first_recorded_at') GLOB '[0-9]*T*Z'
  AND unixepoch(substr(json_extract(metadata, '$.first_recorded_at'), 1, 19)) IS NOT NULL;
UPDATE memories SET metadata = NULL WHERE metadata = '{}';
