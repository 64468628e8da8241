-- Version 4: programs note the parts of current summaries themselves. A trigger did that, and Citus distributes no table that
-- has one. Programs of version 3 rely on the trigger and may run until they are replaced. Whatever they write leaves `noted`
-- behind `revision`, by which a program of this version finds it and notes the parts (apply/parts.rs).

-- Dropping a trigger locks the partitions before the table, and writers lock the table first.
LOCK TABLE summaries IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER summaries_parts ON summaries;
DROP FUNCTION strata_note_parts ();
DROP FUNCTION strata_parts_of (text);

-- The revision of the summary when its session was noted. The second statement fills the column of the rows that exist; an
-- UPDATE would leave their old versions in the index.
ALTER TABLE summaries ADD COLUMN noted bigint;
ALTER TABLE summaries ALTER COLUMN noted TYPE bigint USING revision;
CREATE INDEX summaries_unnoted ON summaries (user_id) WHERE noted IS DISTINCT FROM revision;
