-- What the reader notes about a memory: the thread that it belongs to, the memory that it may contradict, and how sure the
-- reader was of the change that closed it, in per cent.
ALTER TABLE memories ADD COLUMN thread BLOB;
ALTER TABLE memories ADD COLUMN disputed BLOB;
ALTER TABLE memories ADD COLUMN certainty INTEGER;
