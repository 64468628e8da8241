-- Version 11: users take turns with their jobs, so the next job of the next user is found without reading the jobs of another one.

CREATE INDEX jobs_in_turn ON jobs (user_id, run_at, created_at, id) WHERE status IN ('queued', 'leased');
