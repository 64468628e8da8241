// The JSON of requests and answers.
// Made by packages/generate.py from the OpenAPI document; change the server or operations.json.

/** The kind of a change. */
export type AddEvent = "ADD" | "UPDATE" | "DELETE" | "NONE";

/** The memories that were added. */
export interface AddResponse {
  /** Whether statements were inferred. `false` means that they are stored in the given words. */
  inferred: boolean;
  results: Array<AddedMemory>;
}

/** The change of one memory. */
export interface AddedMemory {
  /** The kind of the change. */
  event: AddEvent;
  /** Its id. */
  id: string;
  /** The statement. */
  memory: string;
  /** The statement that this one replaces. */
  previous_memory?: string;
}

/** The kind of a candidate. */
export type CandidateKind = "turn" | "memory" | "summary";

/**
 * The outcome of one candidate. A part of the score that did not count, or that the retrieval path
 * does not have, is `null`.
 */
export interface CandidateResponse {
  /** Its age, in days. */
  age_days?: number | null;
  /** The encoder's cosine. */
  encoder?: number | null;
  /**
   * How many places it moved up because it is newer than a similar statement; negative if it is the
   * older one.
   */
  fresher_by: number;
  /** Its id. */
  id: string;
  /** The reader's judgement whether it answers, as log odds, if the scores left a doubt. */
  judged?: number | null;
  /** The kind of the item. */
  kind: CandidateKind;
  /** The part of the score that likeness to the best answers added. */
  likeness?: number | null;
  /** The cosine of the means of word vectors. */
  mean?: number | null;
  /** The outcome. */
  outcome: OutcomeName;
  /** Its place by relevance, from 1. */
  place: number;
  /** The outcome in words. */
  reason: string;
  /** The relevance for the question, from 0 to 1. */
  relevance: number;
  /** The score: all of these together. */
  score: number;
  /** Relevance and recency together, from 0 to 1. */
  served_score?: number | null;
  /** The share of the question's weight that its words match, by BM25. */
  terms?: number | null;
  /** Whether it is from a time that the question names. */
  timely: boolean;
  /** The share of the question's weight that the vectors of its words match. */
  words?: number | null;
}

/** A part that the budget cut. */
export interface CutResponse {
  /** How many of the things named by `what` were cut; 0 if they are not counted. */
  count: number;
  /** The layer, by the name of its tag. */
  layer: string;
  /** The kind of the part, and whether it was moved elsewhere. */
  what: string;
}

/** The result of a deletion. */
export interface DeletedResponse {
  /** The number of memories that were removed from recall and lists. They can be restored. */
  deleted: number;
  /** A message for a person. */
  message: string;
  /** The number of destroyed items, with `forget`. */
  removed?: RemovedCounts;
}

/** A failure. */
export interface ErrorDetail {
  /** The code of the failure, for a program. */
  code: string;
  /** The problem and how to solve it, for a person. */
  message: string;
  /**
   * The class of failure: `invalid_request_error`, `authentication_error`, `permission_error`,
   * `not_found_error`, `rate_limit_error` or `server_error`.
   */
  type: string;
}

/** The body of every failure, on every route. */
export interface ErrorResponse {
  /** The message again, on the routes that mem0's clients call. */
  detail?: string;
  /** The failure. */
  error: ErrorDetail;
}

/** The kind of a step. */
export type Event = "ADD" | "UPDATE" | "DELETE";

/** The form of a prompt. */
export type Format = "flat" | "chat";

/** A found item. */
export interface FoundItem {
  /** The agent it belongs to. */
  agent_id?: string | null;
  /** When it was said or learned. */
  created_at: string;
  /** A current memory that it may contradict, if it is a memory. The newer of the two comes first. */
  disputed_with?: string;
  /** Its id. */
  id: string;
  /** The kind of the item. */
  kind: FoundKind;
  /** Its text, or the part of it that fits the budget. */
  memory: string;
  /** The client's metadata. */
  metadata: Record<string, unknown>;
  /** The name of the speaker of the turn, or of the turn that a memory was learned from. */
  name?: string;
  /** The relevance for the question, from 0 to 1. `threshold` is compared with it. */
  relevance: number;
  /** The role of the speaker, if it is a turn. */
  role?: Role | null;
  /** When it was said: the time of the turn, or of the turn that a memory was learned from. */
  said_at: string;
  /** The score: relevance and recency together, from 0 to 1. */
  score: number;
  /** The session it belongs to. */
  session_id?: string | null;
  /** The turns that it comes from. */
  source: Source;
  /** Whether the text was shortened. */
  truncated: boolean;
  /** When it last changed. */
  updated_at: string;
  /** When the statement became true. */
  valid_from: string;
  /** When the statement stopped being true; `null` while it is true. */
  valid_to?: string | null;
}

/** The kind of a found item. */
export type FoundKind = "turn" | "summary" | "fact" | "preference" | "schedule" | "todo" | "decision" | "event" | "relation" | "work" | "instruction";

/** One step in the history of a memory. */
export interface HistoryEntry {
  /** When it happened. */
  created_at: string;
  /** The kind of the step. */
  event: Event;
  /**
   * The history of the statement in a sentence: when it was believed, what replaced it, and which
   * turn said so.
   */
  explanation: string;
  /** The id of the statement. Former statements have ids of their own. */
  id: string;
  /** Whether the statement is deleted. */
  is_deleted: boolean;
  /** The kind of the statement. */
  kind: Kind;
  /** The requested memory. */
  memory_id: string;
  /** The statement after this step. */
  new_memory?: string | null;
  /** The statement before this step. */
  old_memory?: string | null;
  /** The memory that replaced it. */
  replaced_by?: string | null;
  /** The turns that it comes from. */
  source: Source;
  /** When the statement became true. */
  valid_from: string;
  /** When the statement stopped being true. */
  valid_to?: string | null;
}

/** The kind of a memory. */
export type Kind = "fact" | "preference" | "schedule" | "todo" | "decision" | "event" | "relation" | "work" | "instruction";

/** One layer's share of a prompt. */
export interface LayerResponse {
  /** The layer, by the name of its tag. */
  name: string;
  /** Its tokens. */
  tokens: number;
}

/** Memories, the newest first. */
export interface MemoriesResponse {
  results: Array<MemoryResponse>;
}

/** A memory. */
export interface MemoryResponse {
  /** The agent it belongs to. */
  agent_id?: string | null;
  /** How sure the reader was of the change that closed it, or of the dispute, in per cent. */
  certainty?: number;
  /** The confidence, from 0 to 1. */
  confidence: number;
  /** When its first statement was recorded. An edit does not change it. */
  created_at: string;
  /** A current memory that it may contradict. The newer of the two comes first in lists. */
  disputed_with?: string;
  /** Why recall does not return it; `null` if recall does. */
  hidden?: string | null;
  /** Its id. An edit does not change it. */
  id: string;
  /** The kind of the statement. */
  kind: Kind;
  /** The statement. */
  memory: string;
  /** The client's metadata. */
  metadata: Record<string, unknown>;
  /** The memory that replaced it. */
  replaced_by?: string | null;
  /** The session it is bound to. */
  run_id?: string | null;
  /** Where it holds. */
  scope: Scope;
  /** The turns that it comes from. */
  source: Source;
  /** How a todo ended: `done` or `dropped`. */
  todo?: string;
  /** When it last changed. */
  updated_at: string;
  /** The user it belongs to; `null` if the scope is `global`. */
  user_id?: string | null;
  /** When the statement became true. */
  valid_from: string;
  /** When the statement stopped being true; `null` while it is true. */
  valid_to?: string | null;
}

/** A message. */
export interface MessageRequest {
  /** The text of the message. */
  content: string;
  /** When it was said. Defaults to now. */
  created_at?: Moment | null;
  /** Whether a tool's call failed. If absent, Strata looks for an error in the content. */
  failed?: boolean | null;
  /** Whether the turn is embedded even if embedding costs money. */
  high_value?: boolean | null;
  /** A JSON object of the client's own. It comes back as it was sent and changes nothing else. */
  metadata?: Record<string, unknown> | null;
  /** The speaker's name. */
  name?: string | null;
  /** The role of the speaker. */
  role: Role;
  /** The tokens that the model reports for a reply. If absent, Strata counts them. */
  usage?: Usage;
}

/** RFC 3339; a date alone, as `2026-01-31`, is taken too */
export type Moment = string | number;

/** Notes about a turn that a client can record with it. */
export interface NotesResponse {
  /** Whether the tool call failed, if the client reported it. */
  failed?: boolean;
  /** Whether the turn is embedded even if embedding costs money. */
  high_value?: boolean;
  /** Whether the reply was interrupted. */
  interrupted?: boolean;
  /** The id of the tool call that this result answers. */
  tool_call_id?: string;
  /** The tool calls that a reply asks for, each with `id`, `name` and `arguments`. */
  tool_calls?: Array<Record<string, unknown>>;
  /** The tokens that the model reported for a reply. */
  usage?: Usage;
}

/** The outcome of a candidate. */
export type OutcomeName = "served" | "below_threshold" | "not_chosen" | "over_budget" | "shown" | "same_question" | "said_again" | "no_content";

/** A message for a chat model. */
export interface PromptMessage {
  /** The text. */
  content: string;
  /** Who says it. */
  role: Role;
}

/** A prompt, and how its size came about. */
export interface PromptResponse {
  /** The parts that the budget cut, in the order of cutting. */
  cut: Array<CutResponse>;
  /** The layers in the prompt, in their order. */
  layers: Array<LayerResponse>;
  /** The messages of a chat. */
  messages?: Array<PromptMessage>;
  /** The text of a flat prompt. */
  prompt?: string;
  /** The tokens of the whole prompt. */
  tokens: number;
}

/** How far recall looks from a session. */
export type RecallScope = "session" | "user";

/** The turns that are now durable, in the order given. */
export interface RecordResponse {
  turns: Array<RecordedTurn>;
}

/** A recorded turn. */
export interface RecordedTurn {
  /** Its id. */
  id: string;
  /** Its place in the session, from 0 and without gaps. */
  seq: number;
}

/** The number of destroyed items. */
export interface RemovedCounts {
  /** Memories, former statements included. */
  memories: number;
  /** Sessions. */
  sessions: number;
  /** Summaries. */
  summaries: number;
  /** Turns. */
  turns: number;
}

/** The destroyed data. */
export interface RemovedResponse {
  /** The counts. */
  removed: RemovedCounts;
}

/** The role of a speaker. */
export type Role = "user" | "assistant" | "system" | "tool";

/** Where a memory holds, or where recall searches. */
export type Scope = "session" | "user" | "global";

/** The items that a search found, the best first. */
export interface SearchResponse {
  /** Why the search was wider than the session. */
  expansion?: string | null;
  /** The request's id, as in the header `X-Strata-Request-Id`. */
  request_id: string;
  results: Array<FoundItem>;
  /**
   * The retrieval path that found the items: `fts`, `trgm`, `vector`, `window`, `summaries_only` or
   * `nothing`.
   */
  retrieval_path: string;
  /** Where recall searched. */
  scope: Scope;
  /** The tokens of the items. */
  tokens: number;
  /** The outcome of each candidate, with `explain`. */
  trace?: TraceResponse;
  /** Whether the budget shortened an item or left one out. */
  truncated: boolean;
  /** How many damaged items of the user were passed over; `strata doctor` names them. */
  unreadable?: number;
  /** A name that the request left out although its answer depends on it. */
  warning?: string;
}

/** The kind of items that a search looks for. */
export type SearchedKind = "turn" | "memory" | "summary";

/** A session without its turns. */
export interface SessionResponse {
  /** When it was first written to. */
  created_at: string;
  /** Its name. */
  id: string;
  /** How many turns it has. */
  turn_count: number;
  /** When it was last written to. */
  updated_at: string;
  /** Its user. */
  user_id: string;
}

/** A user's sessions, the most recently written first. */
export interface SessionsResponse {
  sessions: Array<SessionResponse>;
}

/** The turns that an item comes from. */
export interface Source {
  /** The turns that state it. */
  turns: Array<SourceTurn>;
}

/** A turn that an item comes from. */
export interface SourceTurn {
  /** Its id. */
  id: string;
  /** Its place in the session; absent if the turn has been destroyed. */
  seq?: number;
  /** Its session; absent if the turn has been destroyed. */
  session_id?: string;
}

/** A message. */
export interface StatementRequest {
  /** The text of the message. */
  content: string;
  /** When it was said. Defaults to now. */
  created_at?: Moment | null;
  /** Whether a tool's call failed. If absent, Strata looks for an error in the content. */
  failed?: boolean | null;
  /** Whether the turn is embedded even if embedding costs money. */
  high_value?: boolean | null;
  /** A JSON object of the client's own. It comes back as it was sent and changes nothing else. */
  metadata?: Record<string, unknown> | null;
  /** The speaker's name. */
  name?: string | null;
  /** The role of the speaker. */
  role: Role;
  /** The tokens that the model reports for a reply. If absent, Strata counts them. */
  usage?: Usage;
}

/** The server works. */
export interface StatusResponse {
  /** `ok` or `ready`. */
  status: string;
}

/** The trace of one recall. */
export interface TraceResponse {
  /** The candidates, the most relevant first. */
  candidates: Array<CandidateResponse>;
  /** Why the scope was widened. */
  expansion?: string | null;
  /** Items that contain a word of the question. */
  fts_hits: number;
  /** The question. */
  query: string;
  /**
   * The retrieval path that found the items: `fts`, `trgm`, `vector`, `window`, `summaries_only` or
   * `nothing`.
   */
  retrieval_path: string;
  /** Where recall searched. */
  scope: Scope;
  /** Items found by trigrams. */
  trgm_hits: number;
  /** Items compared by their vectors. */
  vector_hits: number;
}

/** A turn. */
export interface TurnResponse {
  /** Whether the tool call failed, if the client reported it. */
  failed?: boolean;
  /** Whether the turn is embedded even if embedding costs money. */
  high_value?: boolean;
  /** Whether the reply was interrupted. */
  interrupted?: boolean;
  /** The id of the tool call that this result answers. */
  tool_call_id?: string;
  /** The tool calls that a reply asks for, each with `id`, `name` and `arguments`. */
  tool_calls?: Array<Record<string, unknown>>;
  /** The tokens that the model reported for a reply. */
  usage?: Usage;
  /** The agent that owns the memories learned from this turn. */
  agent_id?: string;
  /** The text. */
  content: string;
  /** When it was said. */
  created_at: string;
  /**
   * The `seq` of the turn that this turn follows; `null` if it begins a conversation. If this field
   * is absent, the turn follows the visible turn before it.
   */
  follows?: number | null;
  /** Why recall does not return it; absent if recall does. */
  hidden?: string;
  /** Its id. */
  id: string;
  /** The client's metadata, exactly as it was sent. */
  metadata: Record<string, unknown>;
  /** The speaker's name. */
  name?: string;
  /** The role of the speaker. */
  role: Role;
  /** Its place in the session, from 0 and without gaps. */
  seq: number;
  /** The tokens of `content`. */
  token_count: number;
  /** Whether the content was cut to the maximum size of a turn. */
  truncated?: boolean;
}

/** A part of a session, by `seq`. */
export interface TurnsResponse {
  /** Present if more turns follow: the `after` of the next page. */
  next_after?: number;
  turns: Array<TurnResponse>;
}

/** The tokens of a reply, as OpenAI or Anthropic name them; other fields are ignored. */
export interface Usage {
  /** The tokens of the reply, also called `output_tokens`. */
  completion_tokens?: number | null;
  /** The tokens of the prompt, also called `input_tokens`. */
  prompt_tokens?: number | null;
}
