-- Version 5: session versions. `writes` counts a user's change sets, and a session keeps the count of the last one that
-- wrote to it. So a version is never used twice, not even by a session that was forgotten and created anew. Existing rows
-- begin at 1, because version 0 stands for a session that does not exist.

ALTER TABLE users ADD COLUMN writes INTEGER NOT NULL DEFAULT 1;
ALTER TABLE sessions ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
