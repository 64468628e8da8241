"""The clients.

Made by packages/generate.py from the OpenAPI document; change the server or operations.json.
"""

from __future__ import annotations

from typing import Any, Literal, Sequence, cast

from ._transport import AsyncTransport, Transport
from .types import (
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
)


class Strata(Transport):
    """Strata over HTTP. Threads may share a client."""

    def record(
        self,
        messages: Sequence[MessageRequest],
        *,
        idempotency_key: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
    ) -> RecordResponse:
        """Append messages to a session

        When the call returns, the turns are durable, numbered without gaps, and found by the next
        search. With an `Idempotency-Key`, a repeated call records nothing and returns the first
        call's answer.

        messages: The messages, in order.
        idempotency_key: makes a repeated call harmless
        session_id: The session, which is created if it does not exist. Defaults to the session
            `default`.
        user_id: The owner of the session. Defaults to the user `default`.
        """
        answer = self._call(
            "POST",
            "/turns",
            body={
                "messages": messages,
                "session_id": self._session(session_id),
                "user_id": self._user(user_id),
            },
            headers={
                "Idempotency-Key": self._key(idempotency_key),
            },
            repeatable=True,
        )
        return cast("RecordResponse", answer)

    def search(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        as_of: Moment | None = None,
        explain: bool | None = None,
        filters: Any | None = None,
        kinds: Sequence[SearchedKind] | None = None,
        max_tokens: int | None = None,
        mmr_lambda: float | None = None,
        recency_weight: float | None = None,
        rerank: bool | None = None,
        scope: Scope | None = None,
        session_id: str | None = None,
        threshold: float | None = None,
        top_k: int | None = None,
        user_id: str | None = None,
    ) -> SearchResponse:
        """Search memory

        Returns turns and memories that answer a question, the best first. Each memory names the
        turns that it comes from.

        query: The question, with at most 10,000 characters. A longer one is answered with 413.
        agent_id: Only memories of this agent.
        as_of: Searches the items that were visible at this time, instead of now.
        explain: Whether to return the outcome of each candidate, and to store it with the request.
        kinds: The kinds to search: turns, memories and summaries. Without it, turns and memories;
            if none of them is relevant enough, the summaries (`retrieval_path` is then
            `summaries_only`).
        max_tokens: The most tokens of all items together, instead of the setting
            `max_context_tokens`.
        mmr_lambda: The weight of relevance against diversity, instead of the setting.
        recency_weight: The weight of recency, instead of the setting.
        rerank: Whether a cross-encoder reads the best candidates with the question and reorders
            them, instead of the setting `recall.rerank`. The scores stay the same.
        scope: Where to search: `session` searches one session, `user` all items of the user,
            `global` also the memories that all users share. By default recall searches the session
            if one is named, and goes beyond it if it finds too little there or if the question
            refers to other sessions. Without a session it searches all items of the user. In both
            cases it includes the memories that all users share. With `session` and no session
            named, the session is `default`, and the answer has a `warning`. A session that is named
            without a user is always searched alone, with the memories that all users share; so is
            each session with a key, or by default with the setting, whose recall scope is
            `session`. The answer's `scope` says where recall searched.
        session_id: The session the question is asked in.
        threshold: Excludes items with a lower relevance, instead of the setting `score_threshold`.
            Above 0, recent turns are not returned as a fallback if nothing matches.
        top_k: The most items. It raises the number of items and never their tokens.
        user_id: The user whose memory is searched. Defaults to the user `default`.
        """
        answer = self._call(
            "POST",
            "/search",
            body={
                "query": query,
                "agent_id": agent_id,
                "as_of": as_of,
                "explain": explain,
                "filters": filters,
                "kinds": kinds,
                "max_tokens": max_tokens,
                "mmr_lambda": mmr_lambda,
                "recency_weight": recency_weight,
                "rerank": rerank,
                "scope": scope,
                "session_id": self._session(session_id),
                "threshold": threshold,
                "top_k": top_k,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("SearchResponse", answer)

    def prompt(
        self,
        question: str,
        *,
        session_id: str | None = None,
        format: Format | None = None,
        max_tokens: int | None = None,
        memory_scope: RecallScope | None = None,
        user_id: str | None = None,
    ) -> PromptResponse:
        """Make a prompt

        The prompt contains the question, the known state, a summary of the earlier turns, the
        recent turns, and for a chat the items that recall finds. Nothing is recorded, and the
        session need not exist.

        question: The current request.
        session_id: the session's name, percent-encoded
        format: The form of the prompt. Defaults to `flat`.
        max_tokens: The most tokens of the prompt without the question, instead of the setting
            `prompt.max_tokens`. The question is never cut.
        memory_scope: For a chat: how far recall looks, instead of the setting `recall.scope`.
            Without a user, or with a key whose recall scope is `session`, recall always stays in
            the session.
        user_id: The owner of the session. Defaults to the user `default`.
        """
        answer = self._call(
            "POST",
            f"/sessions/{self._escaped(self._session(session_id))}/prompt",
            body={
                "question": question,
                "format": format,
                "max_tokens": max_tokens,
                "memory_scope": memory_scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("PromptResponse", answer)

    def add(
        self,
        text: str | None = None,
        *,
        agent_id: str | None = None,
        infer: bool | None = None,
        kind: Kind | None = None,
        messages: Sequence[StatementRequest] | None = None,
        metadata: dict[str, Any] | None = None,
        run_id: str | None = None,
        scope: Scope | None = None,
        user_id: str | None = None,
    ) -> AddResponse:
        """Add memories

        With `infer`, messages are recorded as turns and Strata learns from them before it answers.
        A `text` is stored in its own words and reconciled with the known memories. With `infer:
        false` statements are stored unchanged, all or none.

        text: One statement. It is stored in its own words: if it is known already, the memory
            stays, and if it changes a memory, it replaces that one. With `infer: false` it is
            stored in any case, and nothing else changes. With `infer: true` it counts as a message
            of the user.
        agent_id: The agent it belongs to.
        infer: Whether statements are inferred and reconciled with the known memories. Defaults to
            `true` for `messages`. By default a `text` is reconciled, but not read as a message.
        kind: The kind of the statement. Defaults to `fact`. An inferred statement has its own kind.
        messages: The messages of a conversation. By default they are recorded as turns, and Strata
            learns from the user's messages. With `infer: false`, each message of role `user`
            becomes one memory, unchanged.
        metadata: A JSON object of the client's own. It is stored with the memories, also with
            inferred ones.
        run_id: The session in which it was said, or to which a statement is bound.
        scope: Where the memory holds. Defaults to `session` if `run_id` names one, else to `user`.
            With `session` and no session named, the session is `default`. For inferred memories the
            setting `learn.into` decides: omit this field, or set it to `user`.
        user_id: The owner of the memory. Defaults to the user `default`.
        """
        answer = self._call(
            "POST",
            "/memories",
            body={
                "text": text,
                "agent_id": agent_id,
                "infer": infer,
                "kind": kind,
                "messages": messages,
                "metadata": metadata,
                "run_id": run_id,
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=False,
        )
        return cast("AddResponse", answer)

    def memories(
        self,
        *,
        agent_id: str | None = None,
        as_of: str | float | None = None,
        kind: Literal["fact", "preference", "schedule", "todo", "decision", "event", "relation", "work", "instruction"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        run_id: str | None = None,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> MemoriesResponse:
        """List memories

        `filters`, a JSON object as in `POST /search`, narrows the list.

        agent_id: Only memories of this agent.
        as_of: The memories that were believed then, instead of now.
        kind: Only memories of this kind.
        limit: The most entries to list.
        offset: How many entries to leave out at the start.
        run_id: Only memories that are bound to this session.
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memories. Defaults to the user `default`.
        """
        answer = self._call(
            "GET",
            "/memories",
            query={
                "agent_id": agent_id,
                "as_of": as_of,
                "kind": kind,
                "limit": limit,
                "offset": offset,
                "run_id": run_id,
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("MemoriesResponse", answer)

    def memory(
        self,
        id: str,
        *,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> MemoryResponse:
        """Show a memory

        id: its id
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = self._call(
            "GET",
            f"/memories/{self._escaped(id)}",
            query={
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("MemoryResponse", answer)

    def revise(
        self,
        id: str,
        text: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> MemoryResponse:
        """Revise a memory

        The memory keeps its id. Its former statement stays in its history.

        id: its id
        text: The new statement.
        metadata: Replaces the metadata. If this field is absent, the metadata stays.
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = self._call(
            "PUT",
            f"/memories/{self._escaped(id)}",
            query={
                "scope": scope,
                "user_id": self._user(user_id),
            },
            body={
                "text": text,
                "metadata": metadata,
            },
            repeatable=True,
        )
        return cast("MemoryResponse", answer)

    def delete_memory(
        self,
        id: str,
        *,
        forget: bool | None = None,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> DeletedResponse:
        """Delete a memory

        The memory is removed from recall and lists, and can be restored. `forget=true` destroys it
        and its former statements.

        id: its id
        forget: `true` destroys the memory and its former statements for good.
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = self._call(
            "DELETE",
            f"/memories/{self._escaped(id)}",
            query={
                "forget": forget,
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("DeletedResponse", answer)

    def restore(
        self,
        id: str,
        *,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> MemoryResponse:
        """Restore a deleted memory

        id: its id
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = self._call(
            "POST",
            f"/memories/{self._escaped(id)}/restore",
            query={
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=False,
        )
        return cast("MemoryResponse", answer)

    def history(
        self,
        id: str,
        *,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> list[HistoryEntry]:
        """Read a memory's history

        Every statement that this memory replaced, its own statement, and every statement that
        replaced it, the oldest first.

        id: its id
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = self._call(
            "GET",
            f"/memories/{self._escaped(id)}/history",
            query={
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("list[HistoryEntry]", answer)

    def sessions(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        user_id: str | None = None,
    ) -> SessionsResponse:
        """List a user's sessions

        limit: The most entries to list.
        offset: How many entries to leave out at the start.
        user_id: The owner of the sessions. Defaults to the user `default`.
        """
        answer = self._call(
            "GET",
            "/sessions",
            query={
                "limit": limit,
                "offset": offset,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("SessionsResponse", answer)

    def session(
        self,
        session_id: str | None = None,
        *,
        user_id: str | None = None,
    ) -> SessionResponse:
        """Show a session

        session_id: the session's name, percent-encoded
        user_id: The user. Defaults to the user `default`.
        """
        answer = self._call(
            "GET",
            f"/sessions/{self._escaped(self._session(session_id))}",
            query={
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("SessionResponse", answer)

    def turns(
        self,
        session_id: str | None = None,
        *,
        after: int | None = None,
        limit: int | None = None,
        user_id: str | None = None,
    ) -> TurnsResponse:
        """Read a session's turns

        session_id: the session's name, percent-encoded
        after: Only turns with a greater `seq`.
        limit: The most entries to list.
        user_id: The owner of the session. Defaults to the user `default`.
        """
        answer = self._call(
            "GET",
            f"/sessions/{self._escaped(self._session(session_id))}/turns",
            query={
                "after": after,
                "limit": limit,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("TurnsResponse", answer)

    def delete_session(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
    ) -> RemovedResponse:
        """Destroy a session

        Its turns, its summaries and the memories bound to it are destroyed too. This cannot be
        undone.

        session_id: the session's name, percent-encoded
        user_id: The user. Defaults to the user `default`.
        """
        answer = self._call(
            "DELETE",
            f"/sessions/{self._escaped(session_id)}",
            query={
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("RemovedResponse", answer)

    def ready(
        self,
    ) -> StatusResponse:
        """Check that the store can be read and written"""
        answer = self._call(
            "GET",
            "/readyz",
            repeatable=True,
        )
        return cast("StatusResponse", answer)


class AsyncStrata(AsyncTransport):
    """Strata over HTTP, for asyncio. Tasks may share a client."""

    async def record(
        self,
        messages: Sequence[MessageRequest],
        *,
        idempotency_key: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
    ) -> RecordResponse:
        """Append messages to a session

        When the call returns, the turns are durable, numbered without gaps, and found by the next
        search. With an `Idempotency-Key`, a repeated call records nothing and returns the first
        call's answer.

        messages: The messages, in order.
        idempotency_key: makes a repeated call harmless
        session_id: The session, which is created if it does not exist. Defaults to the session
            `default`.
        user_id: The owner of the session. Defaults to the user `default`.
        """
        answer = await self._call(
            "POST",
            "/turns",
            body={
                "messages": messages,
                "session_id": self._session(session_id),
                "user_id": self._user(user_id),
            },
            headers={
                "Idempotency-Key": self._key(idempotency_key),
            },
            repeatable=True,
        )
        return cast("RecordResponse", answer)

    async def search(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        as_of: Moment | None = None,
        explain: bool | None = None,
        filters: Any | None = None,
        kinds: Sequence[SearchedKind] | None = None,
        max_tokens: int | None = None,
        mmr_lambda: float | None = None,
        recency_weight: float | None = None,
        rerank: bool | None = None,
        scope: Scope | None = None,
        session_id: str | None = None,
        threshold: float | None = None,
        top_k: int | None = None,
        user_id: str | None = None,
    ) -> SearchResponse:
        """Search memory

        Returns turns and memories that answer a question, the best first. Each memory names the
        turns that it comes from.

        query: The question, with at most 10,000 characters. A longer one is answered with 413.
        agent_id: Only memories of this agent.
        as_of: Searches the items that were visible at this time, instead of now.
        explain: Whether to return the outcome of each candidate, and to store it with the request.
        kinds: The kinds to search: turns, memories and summaries. Without it, turns and memories;
            if none of them is relevant enough, the summaries (`retrieval_path` is then
            `summaries_only`).
        max_tokens: The most tokens of all items together, instead of the setting
            `max_context_tokens`.
        mmr_lambda: The weight of relevance against diversity, instead of the setting.
        recency_weight: The weight of recency, instead of the setting.
        rerank: Whether a cross-encoder reads the best candidates with the question and reorders
            them, instead of the setting `recall.rerank`. The scores stay the same.
        scope: Where to search: `session` searches one session, `user` all items of the user,
            `global` also the memories that all users share. By default recall searches the session
            if one is named, and goes beyond it if it finds too little there or if the question
            refers to other sessions. Without a session it searches all items of the user. In both
            cases it includes the memories that all users share. With `session` and no session
            named, the session is `default`, and the answer has a `warning`. A session that is named
            without a user is always searched alone, with the memories that all users share; so is
            each session with a key, or by default with the setting, whose recall scope is
            `session`. The answer's `scope` says where recall searched.
        session_id: The session the question is asked in.
        threshold: Excludes items with a lower relevance, instead of the setting `score_threshold`.
            Above 0, recent turns are not returned as a fallback if nothing matches.
        top_k: The most items. It raises the number of items and never their tokens.
        user_id: The user whose memory is searched. Defaults to the user `default`.
        """
        answer = await self._call(
            "POST",
            "/search",
            body={
                "query": query,
                "agent_id": agent_id,
                "as_of": as_of,
                "explain": explain,
                "filters": filters,
                "kinds": kinds,
                "max_tokens": max_tokens,
                "mmr_lambda": mmr_lambda,
                "recency_weight": recency_weight,
                "rerank": rerank,
                "scope": scope,
                "session_id": self._session(session_id),
                "threshold": threshold,
                "top_k": top_k,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("SearchResponse", answer)

    async def prompt(
        self,
        question: str,
        *,
        session_id: str | None = None,
        format: Format | None = None,
        max_tokens: int | None = None,
        memory_scope: RecallScope | None = None,
        user_id: str | None = None,
    ) -> PromptResponse:
        """Make a prompt

        The prompt contains the question, the known state, a summary of the earlier turns, the
        recent turns, and for a chat the items that recall finds. Nothing is recorded, and the
        session need not exist.

        question: The current request.
        session_id: the session's name, percent-encoded
        format: The form of the prompt. Defaults to `flat`.
        max_tokens: The most tokens of the prompt without the question, instead of the setting
            `prompt.max_tokens`. The question is never cut.
        memory_scope: For a chat: how far recall looks, instead of the setting `recall.scope`.
            Without a user, or with a key whose recall scope is `session`, recall always stays in
            the session.
        user_id: The owner of the session. Defaults to the user `default`.
        """
        answer = await self._call(
            "POST",
            f"/sessions/{self._escaped(self._session(session_id))}/prompt",
            body={
                "question": question,
                "format": format,
                "max_tokens": max_tokens,
                "memory_scope": memory_scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("PromptResponse", answer)

    async def add(
        self,
        text: str | None = None,
        *,
        agent_id: str | None = None,
        infer: bool | None = None,
        kind: Kind | None = None,
        messages: Sequence[StatementRequest] | None = None,
        metadata: dict[str, Any] | None = None,
        run_id: str | None = None,
        scope: Scope | None = None,
        user_id: str | None = None,
    ) -> AddResponse:
        """Add memories

        With `infer`, messages are recorded as turns and Strata learns from them before it answers.
        A `text` is stored in its own words and reconciled with the known memories. With `infer:
        false` statements are stored unchanged, all or none.

        text: One statement. It is stored in its own words: if it is known already, the memory
            stays, and if it changes a memory, it replaces that one. With `infer: false` it is
            stored in any case, and nothing else changes. With `infer: true` it counts as a message
            of the user.
        agent_id: The agent it belongs to.
        infer: Whether statements are inferred and reconciled with the known memories. Defaults to
            `true` for `messages`. By default a `text` is reconciled, but not read as a message.
        kind: The kind of the statement. Defaults to `fact`. An inferred statement has its own kind.
        messages: The messages of a conversation. By default they are recorded as turns, and Strata
            learns from the user's messages. With `infer: false`, each message of role `user`
            becomes one memory, unchanged.
        metadata: A JSON object of the client's own. It is stored with the memories, also with
            inferred ones.
        run_id: The session in which it was said, or to which a statement is bound.
        scope: Where the memory holds. Defaults to `session` if `run_id` names one, else to `user`.
            With `session` and no session named, the session is `default`. For inferred memories the
            setting `learn.into` decides: omit this field, or set it to `user`.
        user_id: The owner of the memory. Defaults to the user `default`.
        """
        answer = await self._call(
            "POST",
            "/memories",
            body={
                "text": text,
                "agent_id": agent_id,
                "infer": infer,
                "kind": kind,
                "messages": messages,
                "metadata": metadata,
                "run_id": run_id,
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=False,
        )
        return cast("AddResponse", answer)

    async def memories(
        self,
        *,
        agent_id: str | None = None,
        as_of: str | float | None = None,
        kind: Literal["fact", "preference", "schedule", "todo", "decision", "event", "relation", "work", "instruction"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        run_id: str | None = None,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> MemoriesResponse:
        """List memories

        `filters`, a JSON object as in `POST /search`, narrows the list.

        agent_id: Only memories of this agent.
        as_of: The memories that were believed then, instead of now.
        kind: Only memories of this kind.
        limit: The most entries to list.
        offset: How many entries to leave out at the start.
        run_id: Only memories that are bound to this session.
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memories. Defaults to the user `default`.
        """
        answer = await self._call(
            "GET",
            "/memories",
            query={
                "agent_id": agent_id,
                "as_of": as_of,
                "kind": kind,
                "limit": limit,
                "offset": offset,
                "run_id": run_id,
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("MemoriesResponse", answer)

    async def memory(
        self,
        id: str,
        *,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> MemoryResponse:
        """Show a memory

        id: its id
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = await self._call(
            "GET",
            f"/memories/{self._escaped(id)}",
            query={
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("MemoryResponse", answer)

    async def revise(
        self,
        id: str,
        text: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> MemoryResponse:
        """Revise a memory

        The memory keeps its id. Its former statement stays in its history.

        id: its id
        text: The new statement.
        metadata: Replaces the metadata. If this field is absent, the metadata stays.
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = await self._call(
            "PUT",
            f"/memories/{self._escaped(id)}",
            query={
                "scope": scope,
                "user_id": self._user(user_id),
            },
            body={
                "text": text,
                "metadata": metadata,
            },
            repeatable=True,
        )
        return cast("MemoryResponse", answer)

    async def delete_memory(
        self,
        id: str,
        *,
        forget: bool | None = None,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> DeletedResponse:
        """Delete a memory

        The memory is removed from recall and lists, and can be restored. `forget=true` destroys it
        and its former statements.

        id: its id
        forget: `true` destroys the memory and its former statements for good.
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = await self._call(
            "DELETE",
            f"/memories/{self._escaped(id)}",
            query={
                "forget": forget,
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("DeletedResponse", answer)

    async def restore(
        self,
        id: str,
        *,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> MemoryResponse:
        """Restore a deleted memory

        id: its id
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = await self._call(
            "POST",
            f"/memories/{self._escaped(id)}/restore",
            query={
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=False,
        )
        return cast("MemoryResponse", answer)

    async def history(
        self,
        id: str,
        *,
        scope: Literal["user", "global"] | None = None,
        user_id: str | None = None,
    ) -> list[HistoryEntry]:
        """Read a memory's history

        Every statement that this memory replaced, its own statement, and every statement that
        replaced it, the oldest first.

        id: its id
        scope: `global` for the memories that all users share, instead of the user's own.
        user_id: The owner of the memory. Defaults to the user of the key or the header, else to the
            owner of the memory.
        """
        answer = await self._call(
            "GET",
            f"/memories/{self._escaped(id)}/history",
            query={
                "scope": scope,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("list[HistoryEntry]", answer)

    async def sessions(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        user_id: str | None = None,
    ) -> SessionsResponse:
        """List a user's sessions

        limit: The most entries to list.
        offset: How many entries to leave out at the start.
        user_id: The owner of the sessions. Defaults to the user `default`.
        """
        answer = await self._call(
            "GET",
            "/sessions",
            query={
                "limit": limit,
                "offset": offset,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("SessionsResponse", answer)

    async def session(
        self,
        session_id: str | None = None,
        *,
        user_id: str | None = None,
    ) -> SessionResponse:
        """Show a session

        session_id: the session's name, percent-encoded
        user_id: The user. Defaults to the user `default`.
        """
        answer = await self._call(
            "GET",
            f"/sessions/{self._escaped(self._session(session_id))}",
            query={
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("SessionResponse", answer)

    async def turns(
        self,
        session_id: str | None = None,
        *,
        after: int | None = None,
        limit: int | None = None,
        user_id: str | None = None,
    ) -> TurnsResponse:
        """Read a session's turns

        session_id: the session's name, percent-encoded
        after: Only turns with a greater `seq`.
        limit: The most entries to list.
        user_id: The owner of the session. Defaults to the user `default`.
        """
        answer = await self._call(
            "GET",
            f"/sessions/{self._escaped(self._session(session_id))}/turns",
            query={
                "after": after,
                "limit": limit,
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("TurnsResponse", answer)

    async def delete_session(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
    ) -> RemovedResponse:
        """Destroy a session

        Its turns, its summaries and the memories bound to it are destroyed too. This cannot be
        undone.

        session_id: the session's name, percent-encoded
        user_id: The user. Defaults to the user `default`.
        """
        answer = await self._call(
            "DELETE",
            f"/sessions/{self._escaped(session_id)}",
            query={
                "user_id": self._user(user_id),
            },
            repeatable=True,
        )
        return cast("RemovedResponse", answer)

    async def ready(
        self,
    ) -> StatusResponse:
        """Check that the store can be read and written"""
        answer = await self._call(
            "GET",
            "/readyz",
            repeatable=True,
        )
        return cast("StatusResponse", answer)
