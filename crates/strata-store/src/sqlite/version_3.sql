-- Version 3: what a job did and spent, and which jobs wait for a session, so that the same work is not asked for twice.

ALTER TABLE jobs ADD COLUMN result TEXT;
CREATE INDEX jobs_waiting ON jobs (user_id, session, kind) WHERE status = 'queued';
CREATE INDEX jobs_done ON jobs (user_id, updated_at) WHERE status = 'done';
