-- Version 4: whose a memory is, for clients that name it by its id alone.

CREATE INDEX memories_by_id ON memories (id);
