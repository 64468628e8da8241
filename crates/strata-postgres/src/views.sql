-- Views with the names and columns of the designs, so that their queries run as written. They hold the data of all users.

DROP VIEW IF EXISTS memory, chat_turns, chat_summaries, memory_request_metrics, memories_structured;

-- The sliding-window design: the versions of each session's window.
CREATE VIEW memory AS
SELECT id AS memory_id, session AS conversation_id, text AS memory_text, start_seq AS start_sequence,
       end_seq AS end_sequence, base_id AS base_memory_id, status,
       'epoch'::timestamptz + created_at * interval '1 microsecond' AS created_at,
       generation_ms AS generation_time_ms, user_id
FROM summaries WHERE strategy = 'window';

-- The evolution plan: all turns.
CREATE VIEW chat_turns AS
SELECT id, user_id, session AS session_id, seq AS turn_index, role, content,
       'epoch'::timestamptz + created_at * interval '1 microsecond' AS created_at,
       token_count, metadata::jsonb AS meta, hidden_reason
FROM turns;

-- The evolution plan: summaries, with the machine-readable part under `meta->'structured'`.
CREATE VIEW chat_summaries AS
SELECT id, user_id, session AS session_id, text AS summary, start_seq AS start_turn_index, end_seq AS end_turn_index,
       jsonb_build_object('structured', structured::jsonb, 'strategy', strategy, 'level', level, 'status', status,
                          'input_tokens', input_tokens, 'output_tokens', output_tokens) AS meta,
       'epoch'::timestamptz + created_at * interval '1 microsecond' AS created_at
FROM summaries;

-- The evolution plan: one row for each request that recalled something.
CREATE VIEW memory_request_metrics AS
SELECT id, user_id, session AS session_id,
       'epoch'::timestamptz + created_at * interval '1 microsecond' AS created_at,
       m ->> 'query' AS query,
       (m ->> 'fts_hits')::int AS fts_hits,
       (m ->> 'trgm_hits')::int AS trgm_hits,
       (m ->> 'vector_hits')::int AS vector_hits,
       (m ->> 'used_fallback')::boolean AS used_fallback,
       m ->> 'retrieval_path' AS retrieval_path,
       (m ->> 'context_items')::int AS context_items,
       (m ->> 'estimated_tokens')::int AS estimated_tokens,
       (m ->> 'truncated')::boolean AS truncated,
       ((m ->> 'latency_retrieval_us')::bigint / 1000)::int AS latency_retrieval_ms,
       ((m ->> 'latency_llm_us')::bigint / 1000)::int AS latency_llm_ms,
       m ->> 'error_stage' AS error_stage
FROM (SELECT *, metric::jsonb AS m FROM requests) r;

-- The evolution plan: the statements with their time of validity.
CREATE VIEW memories_structured AS
SELECT id, user_id, kind AS type, content, confidence,
       'epoch'::timestamptz + valid_from * interval '1 microsecond' AS valid_from,
       'epoch'::timestamptz + valid_to * interval '1 microsecond' AS valid_to,
       source_summary AS source_summary_id,
       'epoch'::timestamptz + recorded_at * interval '1 microsecond' AS created_at,
       session AS session_id, replaced_by, hidden_reason
FROM memories;
