-- Version 7: how far the questions of a key look in a session: `session` or `user`; NULL leaves it to the settings.
ALTER TABLE keys ADD COLUMN recall_scope TEXT;
