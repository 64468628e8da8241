"""What programs do with OpenAI's and LangChain's packages, against the server whose URL is the only argument.

Plain asserts: the first that fails ends the script with a traceback, which the test shows.
"""

import sys

import openai
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

URL = sys.argv[1]
KEY = "sk-test"


def client(session, **options):
    headers = {"X-Strata-User": "ada", "X-Strata-Session": session}
    return openai.OpenAI(base_url=URL, api_key=KEY, default_headers=headers, **options)


def user(content):
    return {"role": "user", "content": content}


def plain():
    answer = client("plain").chat.completions.create(model="m", messages=[user("my cat is called Miso")])
    assert answer.choices[0].message.content == "reply to my cat is called Miso"
    assert answer.usage.total_tokens == 15
    raw = client("memory").chat.completions.with_raw_response.create(
        model="m", messages=[user("what is my cat called")], extra_body={"memory_id": "memory", "memory_top_k": 3}
    )
    assert raw.headers["x-strata-request-id"]
    assert raw.headers["x-upstream"] == "scripted"
    assert raw.parse().choices[0].message.content == "reply to what is my cat called"
    assert [model.id for model in client("plain").models.list()] == ["m-1"]


def streamed():
    chunks = client("streamed").chat.completions.create(
        model="m", messages=[user("say one two three")], stream=True
    )
    words = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(word for word in words if word) == "one two three", words
    # A client that leaves in the middle: the model says one word, and nothing more before it has left.
    with client("left").chat.completions.create(
        model="m", messages=[user("hang on please")], stream=True
    ) as chunks:
        next(iter(chunks))
    # A model that breaks off.
    try:
        list(client("broken").chat.completions.create(model="m", messages=[user("break off now please")], stream=True))
    except openai.APIConnectionError:
        pass
    else:
        raise AssertionError("a broken stream must not look like a whole one")


def tools():
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    messages = [user("call weather")]
    answer = client("tools").chat.completions.create(model="m", messages=messages, tools=[tool])
    call = answer.choices[0].message.tool_calls[0]
    assert (call.function.name, call.function.arguments) == ("weather", '{"place":"Lisbon"}')
    messages += [answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    answer = client("tools").chat.completions.create(model="m", messages=messages, tools=[tool])
    assert answer.choices[0].message.content == "reply to call weather"
    streamed = client("streamed tools").chat.completions.create(
        model="m", messages=[user("call weather")], tools=[tool], stream=True
    )
    calls = [chunk.choices[0].delta.tool_calls for chunk in streamed]
    assert [call[0].function.name for call in calls if call] == ["weather"]


def images():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    content = [{"type": "text", "text": "what is this"}, image]
    answer = client("image").chat.completions.create(model="m", messages=[user(content)])
    assert answer.choices[0].message.content == "reply to what is this"


def errors():
    for status, kind in [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (503, openai.InternalServerError),
    ]:
        try:
            client("errors", max_retries=0).chat.completions.create(model="m", messages=[user(f"fail {status}")])
        except kind as error:
            assert error.status_code == status and error.body["message"] == "as asked", error.body
        else:
            raise AssertionError(f"status {status} must raise {kind}")
    # An error of Strata's own reads as one of OpenAI's.
    try:
        client("errors").chat.completions.create(model="m", messages=[user("x")], extra_body={"memory_top_k": 0})
    except openai.BadRequestError as error:
        assert "memory_top_k" in error.message and error.type == "invalid_request_error", error.message
    else:
        raise AssertionError("a wrong option must be refused")
    answer = client("retried", max_retries=2).chat.completions.create(model="m", messages=[user("fail once please")])
    assert answer.choices[0].message.content == "reply to fail once please"


def langchain():
    headers = {"X-Strata-User": "ada", "X-Strata-Session": "chain"}
    model = ChatOpenAI(base_url=URL, api_key=KEY, model="m", default_headers=headers)
    history = [SystemMessage("be brief"), HumanMessage("say first")]
    answer = model.invoke(history)
    assert answer.content == "first", answer
    history += [AIMessage(answer.content), HumanMessage("say second words")]
    words = "".join(chunk.content for chunk in model.stream(history))
    assert words == "second words", words


def remembered():
    """Told in one conversation, and asked in others."""
    answer = client("told").chat.completions.create(model="m", messages=[user("my canoe is called Heron")])
    assert answer.choices[0].message.content == "reply to my canoe is called Heron"
    question = "what is my canoe called"
    raw = client("asked").chat.completions.with_raw_response.create(model="m", messages=[user(question)])
    assert int(raw.headers["x-strata-memory-items"]) > 0, raw.headers
    assert raw.parse().choices[0].message.content == "reply to " + question
    chunks = client("asked-streamed").chat.completions.create(model="m", messages=[user(question)], stream=True)
    words = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert words == "reply to " + question, words

    def chain(session):
        headers = {"X-Strata-User": "ada", "X-Strata-Session": session}
        return ChatOpenAI(base_url=URL, api_key=KEY, model="m", default_headers=headers)

    assert chain("asked-chain").invoke(question).content == "reply to " + question
    words = "".join(chunk.content for chunk in chain("asked-chain-streamed").stream(question))
    assert words == "reply to " + question, words


for step in [plain, streamed, tools, images, errors, langchain, remembered]:
    step()
    print(step.__name__, "done")
