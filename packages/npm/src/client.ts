// The client.
// Made by packages/generate.py from the OpenAPI document; change the server or operations.json.

import { Transport } from "./transport.js";
import type {
  AddResponse,
  DeletedResponse,
  Format,
  HistoryEntry,
  Kind,
  MemoriesResponse,
  MemoryResponse,
  MessageRequest,
  Moment,
  PromptResponse,
  RecallScope,
  RecordResponse,
  RemovedResponse,
  Scope,
  SearchResponse,
  SearchedKind,
  SessionResponse,
  SessionsResponse,
  StatementRequest,
  StatusResponse,
  TurnsResponse,
} from "./types.js";

/** Strata over HTTP. */
export class Strata extends Transport {
  /**
   * Append messages to a session
   *
   * When the call returns, the turns are durable, numbered without gaps, and found by the next
   * search. With an `Idempotency-Key`, a repeated call records nothing and returns the first call's
   * answer.
   */
  async record(
    messages: Array<MessageRequest>,
    options: {
      /** makes a repeated call harmless */
      idempotency_key?: string | null;
      /** The session, which is created if it does not exist. Defaults to the session `default`. */
      session_id?: string | null;
      /** The owner of the session. Defaults to the user `default`. */
      user_id?: string | null;
    } = {},
  ): Promise<RecordResponse> {
    const answer = await this.call("POST", "/turns", {
      body: {
        messages: messages,
        session_id: this.sessionOr(options.session_id),
        user_id: this.userOr(options.user_id),
      },
      headers: {
        "Idempotency-Key": this.keyOr(options.idempotency_key),
      },
    });
    return answer as RecordResponse;
  }

  /**
   * Search memory
   *
   * Returns turns and memories that answer a question, the best first. Each memory names the turns
   * that it comes from.
   */
  async search(
    query: string,
    options: {
      /** Only memories of this agent. */
      agent_id?: string | null;
      /** Searches the items that were visible at this time, instead of now. */
      as_of?: Moment | null;
      /** Whether to return the outcome of each candidate, and to store it with the request. */
      explain?: boolean | null;
      filters?: unknown | null;
      /**
       * The kinds to search: turns, memories and summaries. Without it, turns and memories; if none
       * of them is relevant enough, the summaries (`retrieval_path` is then `summaries_only`).
       */
      kinds?: Array<SearchedKind> | null;
      /** The most tokens of all items together, instead of the setting `max_context_tokens`. */
      max_tokens?: number | null;
      /** The weight of relevance against diversity, instead of the setting. */
      mmr_lambda?: number | null;
      /** The weight of recency, instead of the setting. */
      recency_weight?: number | null;
      /**
       * Whether a cross-encoder reads the best candidates with the question and reorders them,
       * instead of the setting `recall.rerank`. The scores stay the same.
       */
      rerank?: boolean | null;
      /**
       * Where to search: `session` searches one session, `user` all items of the user, `global`
       * also the memories that all users share. By default recall searches the session if one is
       * named, and goes beyond it if it finds too little there or if the question refers to other
       * sessions. Without a session it searches all items of the user. In both cases it includes
       * the memories that all users share. With `session` and no session named, the session is
       * `default`, and the answer has a `warning`. A session that is named without a user is always
       * searched alone, with the memories that all users share; so is each session with a key, or
       * by default with the setting, whose recall scope is `session`. The answer's `scope` says
       * where recall searched.
       */
      scope?: Scope | null;
      /** The session the question is asked in. */
      session_id?: string | null;
      /**
       * Excludes items with a lower relevance, instead of the setting `score_threshold`. Above 0,
       * recent turns are not returned as a fallback if nothing matches.
       */
      threshold?: number | null;
      /** The most items. It raises the number of items and never their tokens. */
      top_k?: number | null;
      /** The user whose memory is searched. Defaults to the user `default`. */
      user_id?: string | null;
    } = {},
  ): Promise<SearchResponse> {
    const answer = await this.call("POST", "/search", {
      body: {
        query: query,
        agent_id: options.agent_id,
        as_of: options.as_of,
        explain: options.explain,
        filters: options.filters,
        kinds: options.kinds,
        max_tokens: options.max_tokens,
        mmr_lambda: options.mmr_lambda,
        recency_weight: options.recency_weight,
        rerank: options.rerank,
        scope: options.scope,
        session_id: this.sessionOr(options.session_id),
        threshold: options.threshold,
        top_k: options.top_k,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as SearchResponse;
  }

  /**
   * Make a prompt
   *
   * The prompt contains the question, the known state, a summary of the earlier turns, the recent
   * turns, and for a chat the items that recall finds. Nothing is recorded, and the session need
   * not exist.
   */
  async prompt(
    question: string,
    options: {
      /** the session's name, percent-encoded */
      session_id?: string;
      /** The form of the prompt. Defaults to `flat`. */
      format?: Format | null;
      /**
       * The most tokens of the prompt without the question, instead of the setting
       * `prompt.max_tokens`. The question is never cut.
       */
      max_tokens?: number | null;
      /**
       * For a chat: how far recall looks, instead of the setting `recall.scope`. Without a user, or
       * with a key whose recall scope is `session`, recall always stays in the session.
       */
      memory_scope?: RecallScope | null;
      /** The owner of the session. Defaults to the user `default`. */
      user_id?: string | null;
    } = {},
  ): Promise<PromptResponse> {
    const answer = await this.call("POST", `/sessions/${this.escaped(this.sessionOr(options.session_id))}/prompt`, {
      body: {
        question: question,
        format: options.format,
        max_tokens: options.max_tokens,
        memory_scope: options.memory_scope,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as PromptResponse;
  }

  /**
   * Add memories
   *
   * With `infer`, messages are recorded as turns and Strata learns from them before it answers. A
   * `text` is stored in its own words and reconciled with the known memories. With `infer: false`
   * statements are stored unchanged, all or none.
   */
  async add(
    text?: string | null,
    options: {
      /** The agent it belongs to. */
      agent_id?: string | null;
      /**
       * Whether statements are inferred and reconciled with the known memories. Defaults to `true`
       * for `messages`. By default a `text` is reconciled, but not read as a message.
       */
      infer?: boolean | null;
      /** The kind of the statement. Defaults to `fact`. An inferred statement has its own kind. */
      kind?: Kind | null;
      /**
       * The messages of a conversation. By default they are recorded as turns, and Strata learns
       * from the user's messages. With `infer: false`, each message of role `user` becomes one
       * memory, unchanged.
       */
      messages?: Array<StatementRequest> | null;
      /** A JSON object of the client's own. It is stored with the memories, also with inferred ones. */
      metadata?: Record<string, unknown> | null;
      /** The session in which it was said, or to which a statement is bound. */
      run_id?: string | null;
      /**
       * Where the memory holds. Defaults to `session` if `run_id` names one, else to `user`. With
       * `session` and no session named, the session is `default`. For inferred memories the setting
       * `learn.into` decides: omit this field, or set it to `user`.
       */
      scope?: Scope | null;
      /** The owner of the memory. Defaults to the user `default`. */
      user_id?: string | null;
    } = {},
  ): Promise<AddResponse> {
    const answer = await this.call("POST", "/memories", {
      body: {
        text: text,
        agent_id: options.agent_id,
        infer: options.infer,
        kind: options.kind,
        messages: options.messages,
        metadata: options.metadata,
        run_id: options.run_id,
        scope: options.scope,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as AddResponse;
  }

  /**
   * List memories
   *
   * `filters`, a JSON object as in `POST /search`, narrows the list.
   */
  async memories(
    options: {
      /** Only memories of this agent. */
      agent_id?: string;
      /** The memories that were believed then, instead of now. */
      as_of?: string | number;
      /** Only memories of this kind. */
      kind?: "fact" | "preference" | "schedule" | "todo" | "decision" | "event" | "relation" | "work" | "instruction";
      /** The most entries to list. */
      limit?: number;
      /** How many entries to leave out at the start. */
      offset?: number;
      /** Only memories that are bound to this session. */
      run_id?: string;
      /** `global` for the memories that all users share, instead of the user's own. */
      scope?: "user" | "global";
      /** The owner of the memories. Defaults to the user `default`. */
      user_id?: string;
    } = {},
  ): Promise<MemoriesResponse> {
    const answer = await this.call("GET", "/memories", {
      query: {
        agent_id: options.agent_id,
        as_of: options.as_of,
        kind: options.kind,
        limit: options.limit,
        offset: options.offset,
        run_id: options.run_id,
        scope: options.scope,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as MemoriesResponse;
  }

  /** Show a memory */
  async memory(
    id: string,
    options: {
      /** `global` for the memories that all users share, instead of the user's own. */
      scope?: "user" | "global";
      /**
       * The owner of the memory. Defaults to the user of the key or the header, else to the owner
       * of the memory.
       */
      user_id?: string;
    } = {},
  ): Promise<MemoryResponse> {
    const answer = await this.call("GET", `/memories/${this.escaped(id)}`, {
      query: {
        scope: options.scope,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as MemoryResponse;
  }

  /**
   * Revise a memory
   *
   * The memory keeps its id. Its former statement stays in its history.
   */
  async revise(
    id: string,
    text?: string | null,
    options: {
      /** Replaces the metadata. If this field is absent, the metadata stays. */
      metadata?: Record<string, unknown> | null;
      /** `global` for the memories that all users share, instead of the user's own. */
      scope?: "user" | "global";
      /**
       * The owner of the memory. Defaults to the user of the key or the header, else to the owner
       * of the memory.
       */
      user_id?: string;
    } = {},
  ): Promise<MemoryResponse> {
    const answer = await this.call("PUT", `/memories/${this.escaped(id)}`, {
      query: {
        scope: options.scope,
        user_id: this.userOr(options.user_id),
      },
      body: {
        text: text,
        metadata: options.metadata,
      },
    });
    return answer as MemoryResponse;
  }

  /**
   * Delete a memory
   *
   * The memory is removed from recall and lists, and can be restored. `forget=true` destroys it and
   * its former statements.
   */
  async deleteMemory(
    id: string,
    options: {
      /** `true` destroys the memory and its former statements for good. */
      forget?: boolean;
      /** `global` for the memories that all users share, instead of the user's own. */
      scope?: "user" | "global";
      /**
       * The owner of the memory. Defaults to the user of the key or the header, else to the owner
       * of the memory.
       */
      user_id?: string;
    } = {},
  ): Promise<DeletedResponse> {
    const answer = await this.call("DELETE", `/memories/${this.escaped(id)}`, {
      query: {
        forget: options.forget,
        scope: options.scope,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as DeletedResponse;
  }

  /** Restore a deleted memory */
  async restore(
    id: string,
    options: {
      /** `global` for the memories that all users share, instead of the user's own. */
      scope?: "user" | "global";
      /**
       * The owner of the memory. Defaults to the user of the key or the header, else to the owner
       * of the memory.
       */
      user_id?: string;
    } = {},
  ): Promise<MemoryResponse> {
    const answer = await this.call("POST", `/memories/${this.escaped(id)}/restore`, {
      query: {
        scope: options.scope,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as MemoryResponse;
  }

  /**
   * Read a memory's history
   *
   * Every statement that this memory replaced, its own statement, and every statement that replaced
   * it, the oldest first.
   */
  async history(
    id: string,
    options: {
      /** `global` for the memories that all users share, instead of the user's own. */
      scope?: "user" | "global";
      /**
       * The owner of the memory. Defaults to the user of the key or the header, else to the owner
       * of the memory.
       */
      user_id?: string;
    } = {},
  ): Promise<Array<HistoryEntry>> {
    const answer = await this.call("GET", `/memories/${this.escaped(id)}/history`, {
      query: {
        scope: options.scope,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as Array<HistoryEntry>;
  }

  /** List a user's sessions */
  async sessions(
    options: {
      /** The most entries to list. */
      limit?: number;
      /** How many entries to leave out at the start. */
      offset?: number;
      /** The owner of the sessions. Defaults to the user `default`. */
      user_id?: string;
    } = {},
  ): Promise<SessionsResponse> {
    const answer = await this.call("GET", "/sessions", {
      query: {
        limit: options.limit,
        offset: options.offset,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as SessionsResponse;
  }

  /** Show a session */
  async session(
    session_id?: string,
    options: {
      /** The user. Defaults to the user `default`. */
      user_id?: string;
    } = {},
  ): Promise<SessionResponse> {
    const answer = await this.call("GET", `/sessions/${this.escaped(this.sessionOr(session_id))}`, {
      query: {
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as SessionResponse;
  }

  /** Read a session's turns */
  async turns(
    session_id?: string,
    options: {
      /** Only turns with a greater `seq`. */
      after?: number;
      /** The most entries to list. */
      limit?: number;
      /** The owner of the session. Defaults to the user `default`. */
      user_id?: string;
    } = {},
  ): Promise<TurnsResponse> {
    const answer = await this.call("GET", `/sessions/${this.escaped(this.sessionOr(session_id))}/turns`, {
      query: {
        after: options.after,
        limit: options.limit,
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as TurnsResponse;
  }

  /**
   * Destroy a session
   *
   * Its turns, its summaries and the memories bound to it are destroyed too. This cannot be undone.
   */
  async deleteSession(
    session_id: string,
    options: {
      /** The user. Defaults to the user `default`. */
      user_id?: string;
    } = {},
  ): Promise<RemovedResponse> {
    const answer = await this.call("DELETE", `/sessions/${this.escaped(session_id)}`, {
      query: {
        user_id: this.userOr(options.user_id),
      },
    });
    return answer as RemovedResponse;
  }

  /** Check that the store can be read and written */
  async ready(
  ): Promise<StatusResponse> {
    const answer = await this.call("GET", "/readyz", {
    });
    return answer as StatusResponse;
  }
}
