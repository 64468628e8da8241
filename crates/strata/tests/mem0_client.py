"""A program that uses mem0ai's own client, and one that was written for mem0's self-hosted server, against Strata.

Usage: mem0_client.py URL. Nothing here is Strata's: the client is the package's, the plain calls are those that mem0's server
documents.
"""

import asyncio
import sys

import httpx
from mem0 import AsyncMemoryClient, MemoryClient
from mem0.exceptions import MemoryNotFoundError, ValidationError


def hosted(url):
    """The package's client; only its host is changed."""
    client = MemoryClient(api_key="anything", host=url)
    learned = client.add("I live in Lisbon", user_id="frida", infer=True)["results"]
    assert learned and learned[0]["event"] == "ADD" and "Lisbon" in learned[0]["memory"], learned
    assert client.get_all(filters={"user_id": "frida"})["count"] == len(learned)
    client.delete_all(user_id="frida")

    added = client.add(
        [
            {"role": "user", "content": "I am allergic to peanuts"},
            {"role": "assistant", "content": "Noted."},
        ],
        user_id="alice",
        metadata={"category": "health", "severity": 8},
    )
    assert [(entry["memory"], entry["event"]) for entry in added["results"]] == [("I am allergic to peanuts", "ADD")]
    peanuts = added["results"][0]["id"]
    client.add("My sister lives in Lisbon", user_id="alice", metadata={"category": "family"}, agent_id="planner")
    client.add("I take the train to work", user_id="alice", run_id="commute", metadata={"category": "travel", "severity": 1})
    client.add("Bob plays chess", filters={"user_id": "bob"})

    found = client.search("what am I allergic to?", filters={"user_id": "alice"}, top_k=2)
    assert found["results"][0]["id"] == peanuts and 0 < found["results"][0]["score"] <= 1, found
    assert found["results"][0]["metadata"] == {"category": "health", "severity": 8}
    for filters, expected in [
        ({"AND": [{"user_id": "alice"}, {"category": {"in": ["family", "travel"]}}]}, 2),
        ({"user_id": "alice", "severity": {"gte": 5}}, 1),
        ({"AND": [{"user_id": "alice"}, {"NOT": [{"category": "health"}]}]}, 2),
        ({"AND": [{"user_id": "alice"}, {"OR": [{"run_id": "commute"}, {"agent_id": "planner"}]}]}, 2),
        ({"user_id": "alice", "category": "*"}, 3),
        ({"user_id": "alice", "metadata": {"category": {"icontains": "HEAL"}}}, 1),
        ({"user_id": "alice", "created_at": {"gte": "2000-01-01"}}, 3),
        ({"user_id": "carol"}, 0),
    ]:
        everything = client.get_all(filters=filters)
        assert everything["count"] == len(everything["results"]) == expected, (filters, everything)
        found = client.search("allergic sister Lisbon train work", filters=filters, top_k=10, threshold=0.0)
        assert {entry["id"] for entry in found["results"]} == {entry["id"] for entry in everything["results"]}, filters
    pages = [client.get_all(filters={"user_id": "alice"}, page=page, page_size=2) for page in (1, 2)]
    assert [len(page["results"]) for page in pages] == [2, 1] and pages[0]["next"] and not pages[1]["next"], pages

    assert client.get(peanuts)["user_id"] == "alice"
    assert client.update(peanuts, text="I am allergic to all nuts")["memory"] == "I am allergic to all nuts"
    assert client.update(peanuts, metadata={"category": "food"})["metadata"] == {"category": "food"}
    events = [(entry["event"], entry["new_memory"]) for entry in client.history(peanuts)]
    assert events[0] == ("ADD", "I am allergic to peanuts") and events[1][0] == "UPDATE", events
    client.batch_update([{"memory_id": peanuts, "text": "I am allergic to nuts"}])
    assert client.get(peanuts)["memory"] == "I am allergic to nuts"

    assert {entity["name"]: entity["total_memories"] for entity in client.users()["results"]} == {"alice": 3, "bob": 1}
    assert "deleted" in client.delete(peanuts)["message"]
    try:
        client.get(peanuts)
        raise AssertionError("it was deleted")
    except MemoryNotFoundError as error:
        assert "deleted" in str(error), error
    try:
        client.search("x", filters={"user_id": "alice", "category": {"like": "x"}})
        raise AssertionError("this operator does not exist")
    except ValidationError as error:
        assert "`like`" in str(error), error
    # Strata refuses what it does not have, and says so; nothing is passed on to a model's server.
    for refused in [
        lambda: client.feedback(memory_id=peanuts, feedback="POSITIVE"),
        lambda: client.create_memory_export(schema={"type": "object"}, user_id="alice"),
        lambda: client.get_memory_export(user_id="alice"),
        lambda: client.get_summary(filters={"user_id": "alice"}),
    ]:
        try:
            refused()
        except Exception as error:  # noqa: BLE001
            said = f"{error} {getattr(error, 'debug_info', '')} {getattr(getattr(error, 'response', None), 'text', '')}"
            assert "Strata has no POST" in said and "mem0" in said, repr(error)
        else:
            raise AssertionError("it must be refused")
    others = client.get_all(filters={"user_id": "alice"})["results"]
    client.batch_delete([{"memory_id": others[0]["id"]}])
    client.delete_all(user_id="alice")
    assert client.get_all(filters={"user_id": "alice"})["count"] == 0
    assert client.get_all(filters={"user_id": "bob"})["count"] == 1, "only alice's were deleted"
    client.delete_users(user_id="bob")
    assert client.get_all(filters={"user_id": "bob"})["count"] == 0


async def hosted_async(url):
    async with AsyncMemoryClient(api_key="anything", host=url) as client:
        added = await client.add("Dora collects stamps", user_id="dora")
        found = await client.search("what does Dora collect?", filters={"user_id": "dora"})
        assert found["results"][0]["id"] == added["results"][0]["id"]
        await client.delete_all(user_id="dora")


def self_hosted(url):
    """A program for mem0's self-hosted server: its routes, its payloads."""
    with httpx.Client(base_url=url) as http:
        messages = [{"role": "user", "content": "I like hiking in the Alps"}]
        body = {"messages": messages, "user_id": "erik", "metadata": {"topic": "sport"}, "infer": False}
        added = http.post("/memories", json=body).raise_for_status().json()["results"][0]
        assert added["event"] == "ADD" and added["memory"] == "I like hiking in the Alps"
        memory = added["id"]
        one = http.get(f"/memories/{memory}").raise_for_status().json()
        assert {"id", "memory", "user_id", "metadata", "created_at", "updated_at"} <= set(one), one
        everything = http.get("/memories", params={"user_id": "erik"}).raise_for_status().json()["results"]
        assert [entry["id"] for entry in everything] == [memory]
        query = {"query": "do I like hiking in the Alps?", "user_id": "erik", "filters": {"topic": "sport"}, "rerank": True}
        found = http.post("/search", json=query).raise_for_status().json()["results"]
        assert found[0]["id"] == memory and found[0]["metadata"] == {"topic": "sport"}, found
        query["filters"] = {"topic": {"ne": "sport"}}
        assert http.post("/search", json=query).raise_for_status().json()["results"] == []
        filters = {"user_id": "erik", "filters": '{"topic": {"in": ["sport"]}}'}
        assert len(http.get("/memories", params=filters).raise_for_status().json()["results"]) == 1
        http.put(f"/memories/{memory}", json={"text": "I like climbing in the Alps"}).raise_for_status()
        history = http.get(f"/memories/{memory}/history").raise_for_status().json()
        assert [entry["event"] for entry in history] == ["ADD", "UPDATE"]
        deleted = http.delete(f"/memories/{memory}").raise_for_status().json()
        assert deleted["message"] == "Memory deleted successfully"
        gone = http.get(f"/memories/{memory}")
        assert gone.status_code == 404 and memory in gone.json()["detail"], gone.text
        http.post("/memories", json=body).raise_for_status()
        assert http.delete("/memories", params={"user_id": "erik"}).raise_for_status().json()["message"]
        assert http.post("/reset").raise_for_status().json() == {"message": "All memories reset"}


if __name__ == "__main__":
    hosted(sys.argv[1])
    asyncio.run(hosted_async(sys.argv[1]))
    self_hosted(sys.argv[1])
