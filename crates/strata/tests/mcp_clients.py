"""The official MCP client against Strata, over both transports and both lifecycles of the protocol.

Usage: mcp_clients.py BINARY STORE URL — stdio is tried with BINARY on STORE, HTTP with the server at URL, which serves the
same store.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

TOOLS = {
    "search_memories", "add_memory", "get_memories", "get_memory", "update_memory", "delete_memory",
    "delete_all_memories", "forget_user", "get_context", "explain_recall",
}
READING = {"search_memories", "get_memories", "get_memory", "get_context", "explain_recall"}
DELETING = {"update_memory", "delete_memory", "delete_all_memories", "forget_user"}


@asynccontextmanager
async def over_stdio(binary, store, user, mode, *, log=()):
    arguments = ["mcp", "--store", f"sqlite:{store}", "--user", user, *log]
    environment = {"XDG_CONFIG_HOME": "no-such-directory"}
    parameters = StdioServerParameters(
        command=binary, args=arguments, env=environment, cwd=os.path.dirname(store)
    )
    async with Client(parameters, mode=mode) as client:
        yield client


@asynccontextmanager
async def over_http(url, headers, mode):
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client:
            yield client


async def done(client, tool, **arguments):
    """A call that must succeed; its structured content, which the client has checked against the tool's schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result.content)
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client, tool, **arguments):
    """A call that must fail as a tool's result; what the model is told."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, result)
    return result.content[0].text


async def describes_itself(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == TOOLS, set(tools)
    for name, tool in tools.items():
        assert len(tool.description) > 100, name
        assert tool.annotations.read_only_hint == (name in READING), name
        assert tool.annotations.destructive_hint == (name in DELETING), name
        assert tool.annotations.open_world_hint is False
        schema = tool.input_schema
        assert schema["type"] == "object" and schema["additionalProperties"] is False, schema
        for field, described in schema["properties"].items():
            assert described.get("description"), (name, field)
    assert tools["add_memory"].input_schema["required"] == ["text"]
    assert tools["search_memories"].output_schema["properties"]["results"]["type"] == "array"
    assert "search_memories" in client.instructions
    return tools


async def remembers(client):
    added = await done(client, "add_memory", text="Ada drinks oolong in the morning", kind="preference",
                       metadata={"topic": "tea"})
    memory_id = added["results"][0]["id"]
    assert added["results"][0]["event"] == "ADD"
    await done(client, "add_memory", text="艾达住在里斯本", session_id="trip")

    found = await done(client, "search_memories", query="what does Ada drink in the morning?", limit=3)
    assert found["results"][0]["id"] == memory_id, found
    assert found["results"][0]["metadata"] == {"topic": "tea"}
    found_chinese = await done(client, "search_memories", query="艾达住在哪里", session_id="trip")
    assert found_chinese["results"][0]["memory"] == "艾达住在里斯本", found_chinese

    explained = await done(client, "explain_recall", request_id=found["request_id"])
    assert explained["candidates"][0]["outcome"] == "served", explained
    why = await done(client, "explain_recall", request_id=found["request_id"], item_id=memory_id)
    assert "served" in why["reason"], why

    await done(client, "update_memory", memory_id=memory_id, text="Ada drinks coffee in the morning")
    shown = await done(client, "get_memory", memory_id=memory_id, history=True)
    assert shown["memory"] == "Ada drinks coffee in the morning"
    assert [entry["memory"] for entry in shown["history"]][0] == "Ada drinks oolong in the morning"

    listed = await done(client, "get_memories", limit=1)
    assert listed["results"][0]["id"] == memory_id and listed["next_offset"] == 1, "what changed last comes first"
    listed = await done(client, "get_memories", limit=1, offset=1)
    assert listed["results"][0]["memory"] == "艾达住在里斯本", listed
    listed = await done(client, "get_memories", kind="todo")
    assert listed == {"results": []}
    return memory_id


async def refuses_clearly(client, memory_id):
    unknown = "00000000-0000-7000-8000-000000000000"
    assert "search_memories" in await refused(client, "get_memory", memory_id=unknown)
    assert "does not exist" in await refused(client, "update_memory", memory_id=unknown, text="x")
    assert "empty" in await refused(client, "search_memories", query="  ")
    assert "unknown field `colour`" in await refused(client, "add_memory", text="x", colour="red")
    assert "missing field `text`" in await refused(client, "add_memory")
    assert "`fact`" in await refused(client, "add_memory", text="x", kind="rumour")
    assert "Correct the arguments" in await refused(client, "get_memory", memory_id="no-id")
    assert "does not exist" in await refused(client, "get_context", session_id="nowhere")
    try:
        await client.call_tool("forget_everything", {})
        raise AssertionError("a tool that does not exist was called")
    except MCPError as error:
        assert "search_memories" in str(error), error


async def offers_resources(client, memory_id):
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == ["strata://memories/{id}"]
    page = await client.list_resources()
    uri = f"strata://memories/{memory_id}"
    assert uri in [str(resource.uri) for resource in page.resources]
    contents = (await client.read_resource(uri)).contents[0]
    assert contents.mime_type == "application/json"
    assert json.loads(contents.text)["memory"] == "Ada drinks coffee in the morning"
    for wrong in ["strata://memories/00000000-0000-7000-8000-000000000000", "strata://sessions/x", "file:///etc/passwd"]:
        try:
            await client.read_resource(wrong)
            raise AssertionError(wrong)
        except MCPError:
            pass


async def lists_all_pages(client):
    for number in range(120):
        await done(client, "add_memory", text=f"the garden has plant number {number}")
    first = await client.list_resources()
    assert len(first.resources) == 100 and first.next_cursor
    # What is added meanwhile shifts nothing.
    await done(client, "add_memory", text="the garden has a pond")
    second = await client.list_resources(cursor=first.next_cursor)
    assert second.next_cursor is None
    uris = [str(resource.uri) for page in (first, second) for resource in page.resources]
    assert len(uris) == len(set(uris)) >= 120


async def forgets(client, memory_id):
    assert (await done(client, "delete_memory", memory_id=memory_id))["deleted"] == 1
    assert "deleted" in await refused(client, "get_memory", memory_id=memory_id)
    deleted = await done(client, "delete_all_memories", session_id="trip")
    assert deleted["deleted"] == 1
    await done(client, "delete_all_memories")
    assert (await done(client, "get_memories"))["results"] == []


async def whole_life(client):
    await describes_itself(client)
    memory_id = await remembers(client)
    await refuses_clearly(client, memory_id)
    await offers_resources(client, memory_id)
    await forgets(client, memory_id)


async def main(binary, store, url):
    for mode in ("legacy", "auto"):
        async with over_stdio(binary, store, f"stdio-{mode}", mode) as client:
            await whole_life(client)
        print(f"stdio {mode}: ok")
        async with over_http(url, {"X-Strata-User": f"http-{mode}"}, mode) as client:
            await whole_life(client)
        print(f"http {mode}: ok")

    # One file behind both doors, and the user of a door is the user whatever a call says.
    headers = {"X-Strata-User": "shared", "X-Strata-Session": "desk"}
    async with over_stdio(binary, store, "shared", "auto") as one, over_http(url, headers, "auto") as other:
        await done(one, "add_memory", text="the shed key hangs behind the door", user_id="somebody-else")
        found = await done(other, "search_memories", query="where is the shed key?", user_id="somebody-else")
        assert found["results"][0]["memory"] == "the shed key hangs behind the door", found
        await lists_all_pages(one)
        async with httpx2.AsyncClient(base_url=url) as http:
            messages = [{"role": "user", "content": f"message {number}"} for number in range(30)]
            body = {"user_id": "shared", "session_id": "desk", "messages": messages}
            (await http.post("/turns", json=body)).raise_for_status()
        context = await done(other, "get_context", turns=5)
        assert context["session_id"] == "desk"
        assert [entry["content"] for entry in context["recent_history"]] == [f"message {n}" for n in range(25, 30)]
        assert "the shed key hangs behind the door" in context["facts"]
    async with over_http(url, {}, "auto") as client:
        nobody = await done(client, "search_memories", query="where is the shed key?")
        assert nobody["results"] == [] and nobody["note"], nobody
        somebody = await done(client, "get_memories", user_id="somebody-else")
        assert somebody["results"] == [], "the door's user goes before the call's"
    print("shared: ok")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
