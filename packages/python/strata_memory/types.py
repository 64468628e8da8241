"""The JSON of requests and answers.

Made by packages/generate.py from the OpenAPI document; change the server or operations.json.
"""

from typing import Any, Literal, NotRequired, TypedDict

# The kind of a change.
AddEvent = Literal["ADD", "UPDATE", "DELETE", "NONE"]

# The kind of a candidate.
CandidateKind = Literal["turn", "memory", "summary"]

# The kind of a step.
Event = Literal["ADD", "UPDATE", "DELETE"]

# The form of a prompt.
Format = Literal["flat", "chat"]

# The kind of a found item.
FoundKind = Literal["turn", "summary", "fact", "preference", "schedule", "todo", "decision", "event", "relation", "work", "instruction"]

# The kind of a memory.
Kind = Literal["fact", "preference", "schedule", "todo", "decision", "event", "relation", "work", "instruction"]

# RFC 3339; a date alone, as `2026-01-31`, is taken too
Moment = str | float

# The outcome of a candidate.
OutcomeName = Literal["served", "below_threshold", "not_chosen", "over_budget", "shown", "same_question", "said_again", "no_content"]

# How far recall looks from a session.
RecallScope = Literal["session", "user"]

# The role of a speaker.
Role = Literal["user", "assistant", "system", "tool"]

# Where a memory holds, or where recall searches.
Scope = Literal["session", "user", "global"]

# The kind of items that a search looks for.
SearchedKind = Literal["turn", "memory", "summary"]


class AddResponse(TypedDict):
    """The memories that were added."""

    # Whether statements were inferred. `false` means that they are stored in the given words.
    inferred: bool

    results: "list[AddedMemory]"


class AddedMemory(TypedDict):
    """The change of one memory."""

    # The kind of the change.
    event: "AddEvent"

    # Its id.
    id: str

    # The statement.
    memory: str

    # The statement that this one replaces.
    previous_memory: NotRequired[str]


class CandidateResponse(TypedDict):
    """The outcome of one candidate. A part of the score that did not count, or that the retrieval path
    does not have, is `null`.
    """

    # Its age, in days.
    age_days: NotRequired["float | None"]

    # The encoder's cosine.
    encoder: NotRequired["float | None"]

    # How many places it moved up because it is newer than a similar statement; negative if it is
    # the older one.
    fresher_by: int

    # Its id.
    id: str

    # The reader's judgement whether it answers, as log odds, if the scores left a doubt.
    judged: NotRequired["float | None"]

    # The kind of the item.
    kind: "CandidateKind"

    # The part of the score that likeness to the best answers added.
    likeness: NotRequired["float | None"]

    # The cosine of the means of word vectors.
    mean: NotRequired["float | None"]

    # The outcome.
    outcome: "OutcomeName"

    # Its place by relevance, from 1.
    place: int

    # The outcome in words.
    reason: str

    # The relevance for the question, from 0 to 1.
    relevance: float

    # The score: all of these together.
    score: float

    # Relevance and recency together, from 0 to 1.
    served_score: NotRequired["float | None"]

    # The share of the question's weight that its words match, by BM25.
    terms: NotRequired["float | None"]

    # Whether it is from a time that the question names.
    timely: bool

    # The share of the question's weight that the vectors of its words match.
    words: NotRequired["float | None"]


class CutResponse(TypedDict):
    """A part that the budget cut."""

    # How many of the things named by `what` were cut; 0 if they are not counted.
    count: int

    # The layer, by the name of its tag.
    layer: str

    # The kind of the part, and whether it was moved elsewhere.
    what: str


class DeletedResponse(TypedDict):
    """The result of a deletion."""

    # The number of memories that were removed from recall and lists. They can be restored.
    deleted: int

    # A message for a person.
    message: str

    # The number of destroyed items, with `forget`.
    removed: NotRequired["RemovedCounts"]


class ErrorDetail(TypedDict):
    """A failure."""

    # The code of the failure, for a program.
    code: str

    # The problem and how to solve it, for a person.
    message: str

    # The class of failure: `invalid_request_error`, `authentication_error`, `permission_error`,
    # `not_found_error`, `rate_limit_error` or `server_error`.
    type: str


class ErrorResponse(TypedDict):
    """The body of every failure, on every route."""

    # The message again, on the routes that mem0's clients call.
    detail: NotRequired[str]

    # The failure.
    error: "ErrorDetail"


class FoundItem(TypedDict):
    """A found item."""

    # The agent it belongs to.
    agent_id: NotRequired["str | None"]

    # When it was said or learned.
    created_at: str

    # A current memory that it may contradict, if it is a memory. The newer of the two comes first.
    disputed_with: NotRequired[str]

    # Its id.
    id: str

    # The kind of the item.
    kind: "FoundKind"

    # Its text, or the part of it that fits the budget.
    memory: str

    # The client's metadata.
    metadata: dict[str, Any]

    # The name of the speaker of the turn, or of the turn that a memory was learned from.
    name: NotRequired[str]

    # The relevance for the question, from 0 to 1. `threshold` is compared with it.
    relevance: float

    # The role of the speaker, if it is a turn.
    role: NotRequired["Role | None"]

    # When it was said: the time of the turn, or of the turn that a memory was learned from.
    said_at: str

    # The score: relevance and recency together, from 0 to 1.
    score: float

    # The session it belongs to.
    session_id: NotRequired["str | None"]

    # The turns that it comes from.
    source: "Source"

    # Whether the text was shortened.
    truncated: bool

    # When it last changed.
    updated_at: str

    # When the statement became true.
    valid_from: str

    # When the statement stopped being true; `null` while it is true.
    valid_to: NotRequired["str | None"]


class HistoryEntry(TypedDict):
    """One step in the history of a memory."""

    # When it happened.
    created_at: str

    # The kind of the step.
    event: "Event"

    # The history of the statement in a sentence: when it was believed, what replaced it, and which
    # turn said so.
    explanation: str

    # The id of the statement. Former statements have ids of their own.
    id: str

    # Whether the statement is deleted.
    is_deleted: bool

    # The kind of the statement.
    kind: "Kind"

    # The requested memory.
    memory_id: str

    # The statement after this step.
    new_memory: NotRequired["str | None"]

    # The statement before this step.
    old_memory: NotRequired["str | None"]

    # The memory that replaced it.
    replaced_by: NotRequired["str | None"]

    # The turns that it comes from.
    source: "Source"

    # When the statement became true.
    valid_from: str

    # When the statement stopped being true.
    valid_to: NotRequired["str | None"]


class LayerResponse(TypedDict):
    """One layer's share of a prompt."""

    # The layer, by the name of its tag.
    name: str

    # Its tokens.
    tokens: int


class MemoriesResponse(TypedDict):
    """Memories, the newest first."""

    results: "list[MemoryResponse]"


class MemoryResponse(TypedDict):
    """A memory."""

    # The agent it belongs to.
    agent_id: NotRequired["str | None"]

    # How sure the reader was of the change that closed it, or of the dispute, in per cent.
    certainty: NotRequired[int]

    # The confidence, from 0 to 1.
    confidence: float

    # When its first statement was recorded. An edit does not change it.
    created_at: str

    # A current memory that it may contradict. The newer of the two comes first in lists.
    disputed_with: NotRequired[str]

    # Why recall does not return it; `null` if recall does.
    hidden: NotRequired["str | None"]

    # Its id. An edit does not change it.
    id: str

    # The kind of the statement.
    kind: "Kind"

    # The statement.
    memory: str

    # The client's metadata.
    metadata: dict[str, Any]

    # The memory that replaced it.
    replaced_by: NotRequired["str | None"]

    # The session it is bound to.
    run_id: NotRequired["str | None"]

    # Where it holds.
    scope: "Scope"

    # The turns that it comes from.
    source: "Source"

    # How a todo ended: `done` or `dropped`.
    todo: NotRequired[str]

    # When it last changed.
    updated_at: str

    # The user it belongs to; `null` if the scope is `global`.
    user_id: NotRequired["str | None"]

    # When the statement became true.
    valid_from: str

    # When the statement stopped being true; `null` while it is true.
    valid_to: NotRequired["str | None"]


class MessageRequest(TypedDict):
    """A message."""

    # The text of the message.
    content: str

    # When it was said. Defaults to now.
    created_at: NotRequired["Moment | None"]

    # Whether a tool's call failed. If absent, Strata looks for an error in the content.
    failed: NotRequired["bool | None"]

    # Whether the turn is embedded even if embedding costs money.
    high_value: NotRequired["bool | None"]

    # A JSON object of the client's own. It comes back as it was sent and changes nothing else.
    metadata: NotRequired["dict[str, Any] | None"]

    # The speaker's name.
    name: NotRequired["str | None"]

    # The role of the speaker.
    role: "Role"

    # The tokens that the model reports for a reply. If absent, Strata counts them.
    usage: NotRequired["Usage"]


class NotesResponse(TypedDict):
    """Notes about a turn that a client can record with it."""

    # Whether the tool call failed, if the client reported it.
    failed: NotRequired[bool]

    # Whether the turn is embedded even if embedding costs money.
    high_value: NotRequired[bool]

    # Whether the reply was interrupted.
    interrupted: NotRequired[bool]

    # The id of the tool call that this result answers.
    tool_call_id: NotRequired[str]

    # The tool calls that a reply asks for, each with `id`, `name` and `arguments`.
    tool_calls: NotRequired["list[dict[str, Any]]"]

    # The tokens that the model reported for a reply.
    usage: NotRequired["Usage"]


class PromptMessage(TypedDict):
    """A message for a chat model."""

    # The text.
    content: str

    # Who says it.
    role: "Role"


class PromptResponse(TypedDict):
    """A prompt, and how its size came about."""

    # The parts that the budget cut, in the order of cutting.
    cut: "list[CutResponse]"

    # The layers in the prompt, in their order.
    layers: "list[LayerResponse]"

    # The messages of a chat.
    messages: NotRequired["list[PromptMessage]"]

    # The text of a flat prompt.
    prompt: NotRequired[str]

    # The tokens of the whole prompt.
    tokens: int


class RecordResponse(TypedDict):
    """The turns that are now durable, in the order given."""

    turns: "list[RecordedTurn]"


class RecordedTurn(TypedDict):
    """A recorded turn."""

    # Its id.
    id: str

    # Its place in the session, from 0 and without gaps.
    seq: int


class RemovedCounts(TypedDict):
    """The number of destroyed items."""

    # Memories, former statements included.
    memories: int

    # Sessions.
    sessions: int

    # Summaries.
    summaries: int

    # Turns.
    turns: int


class RemovedResponse(TypedDict):
    """The destroyed data."""

    # The counts.
    removed: "RemovedCounts"


class SearchResponse(TypedDict):
    """The items that a search found, the best first."""

    # Why the search was wider than the session.
    expansion: NotRequired["str | None"]

    # The request's id, as in the header `X-Strata-Request-Id`.
    request_id: str

    results: "list[FoundItem]"

    # The retrieval path that found the items: `fts`, `trgm`, `vector`, `window`, `summaries_only`
    # or `nothing`.
    retrieval_path: str

    # Where recall searched.
    scope: "Scope"

    # The tokens of the items.
    tokens: int

    # The outcome of each candidate, with `explain`.
    trace: NotRequired["TraceResponse"]

    # Whether the budget shortened an item or left one out.
    truncated: bool

    # How many damaged items of the user were passed over; `strata doctor` names them.
    unreadable: NotRequired[int]

    # A name that the request left out although its answer depends on it.
    warning: NotRequired[str]


class SessionResponse(TypedDict):
    """A session without its turns."""

    # When it was first written to.
    created_at: str

    # Its name.
    id: str

    # How many turns it has.
    turn_count: int

    # When it was last written to.
    updated_at: str

    # Its user.
    user_id: str


class SessionsResponse(TypedDict):
    """A user's sessions, the most recently written first."""

    sessions: "list[SessionResponse]"


class Source(TypedDict):
    """The turns that an item comes from."""

    # The turns that state it.
    turns: "list[SourceTurn]"


class SourceTurn(TypedDict):
    """A turn that an item comes from."""

    # Its id.
    id: str

    # Its place in the session; absent if the turn has been destroyed.
    seq: NotRequired[int]

    # Its session; absent if the turn has been destroyed.
    session_id: NotRequired[str]


class StatementRequest(TypedDict):
    """A message."""

    # The text of the message.
    content: str

    # When it was said. Defaults to now.
    created_at: NotRequired["Moment | None"]

    # Whether a tool's call failed. If absent, Strata looks for an error in the content.
    failed: NotRequired["bool | None"]

    # Whether the turn is embedded even if embedding costs money.
    high_value: NotRequired["bool | None"]

    # A JSON object of the client's own. It comes back as it was sent and changes nothing else.
    metadata: NotRequired["dict[str, Any] | None"]

    # The speaker's name.
    name: NotRequired["str | None"]

    # The role of the speaker.
    role: "Role"

    # The tokens that the model reports for a reply. If absent, Strata counts them.
    usage: NotRequired["Usage"]


class StatusResponse(TypedDict):
    """The server works."""

    # `ok` or `ready`.
    status: str


class TraceResponse(TypedDict):
    """The trace of one recall."""

    # The candidates, the most relevant first.
    candidates: "list[CandidateResponse]"

    # Why the scope was widened.
    expansion: NotRequired["str | None"]

    # Items that contain a word of the question.
    fts_hits: int

    # The question.
    query: str

    # The retrieval path that found the items: `fts`, `trgm`, `vector`, `window`, `summaries_only`
    # or `nothing`.
    retrieval_path: str

    # Where recall searched.
    scope: "Scope"

    # Items found by trigrams.
    trgm_hits: int

    # Items compared by their vectors.
    vector_hits: int


class TurnResponse(TypedDict):
    """A turn."""

    # Whether the tool call failed, if the client reported it.
    failed: NotRequired[bool]

    # Whether the turn is embedded even if embedding costs money.
    high_value: NotRequired[bool]

    # Whether the reply was interrupted.
    interrupted: NotRequired[bool]

    # The id of the tool call that this result answers.
    tool_call_id: NotRequired[str]

    # The tool calls that a reply asks for, each with `id`, `name` and `arguments`.
    tool_calls: NotRequired["list[dict[str, Any]]"]

    # The tokens that the model reported for a reply.
    usage: NotRequired["Usage"]

    # The agent that owns the memories learned from this turn.
    agent_id: NotRequired[str]

    # The text.
    content: str

    # When it was said.
    created_at: str

    # The `seq` of the turn that this turn follows; `null` if it begins a conversation. If this
    # field is absent, the turn follows the visible turn before it.
    follows: NotRequired["int | None"]

    # Why recall does not return it; absent if recall does.
    hidden: NotRequired[str]

    # Its id.
    id: str

    # The client's metadata, exactly as it was sent.
    metadata: dict[str, Any]

    # The speaker's name.
    name: NotRequired[str]

    # The role of the speaker.
    role: "Role"

    # Its place in the session, from 0 and without gaps.
    seq: int

    # The tokens of `content`.
    token_count: int

    # Whether the content was cut to the maximum size of a turn.
    truncated: NotRequired[bool]


class TurnsResponse(TypedDict):
    """A part of a session, by `seq`."""

    # Present if more turns follow: the `after` of the next page.
    next_after: NotRequired[int]

    turns: "list[TurnResponse]"


class Usage(TypedDict):
    """The tokens of a reply, as OpenAI or Anthropic name them; other fields are ignored."""

    # The tokens of the reply, also called `output_tokens`.
    completion_tokens: NotRequired["int | None"]

    # The tokens of the prompt, also called `input_tokens`.
    prompt_tokens: NotRequired["int | None"]
