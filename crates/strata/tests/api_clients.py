"""What programs do with the clients of the providers' APIs, against the server whose root URL is the only argument.

Each client is told something in one conversation and asked in another; the scripted model repeats the question, and the
test looks at what reached it. Plain asserts: the first that fails ends the script with a traceback, which the test shows.
"""

import asyncio
import os
import sys

ROOT = sys.argv[1]
URL = ROOT + "/v1"
KEY = "sk-test"
os.environ.update(OPENAI_AGENTS_DISABLE_TRACING="1", LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_TELEMETRY="False")

import anthropic  # noqa: E402
import openai  # noqa: E402

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


IMAGE_URL = "data:image/png;base64," + PIXEL


def fails(call, *words):
    """A call that must fail, with these words in its error."""
    try:
        call()
    except Exception as error:  # noqa: BLE001
        said = f"{type(error).__name__} {error}"
        assert all(word in said for word in words), said
    else:
        raise AssertionError(f"{words} must raise")


def headers(name, session):
    return {"X-Strata-User": name, "X-Strata-Session": session}


def responses():
    def client(session):
        return openai.OpenAI(base_url=URL, api_key=KEY, default_headers=headers("responses", session))

    told = client("told").responses.create(model="m", input="my canoe is called Heron", instructions="be brief")
    assert told.output_text == "reply to my canoe is called Heron", told
    assert told.usage.total_tokens == 15
    with client("asked").responses.stream(model="m", input="what is my canoe called") as events:
        words = [event.delta for event in events if event.type == "response.output_text.delta"]
        final = events.get_final_response()
    assert "".join(words) == final.output_text == "reply to what is my canoe called", words
    going_on = client("asked").responses.create(model="m", input="say yes", previous_response_id=final.id)
    assert going_on.output_text == "yes"
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": False}
    items = [{"role": "user", "content": "call weather"}]
    answer = client("tools").responses.create(model="m", input=items, tools=[tool])
    call = answer.output[0]
    assert (call.type, call.name, call.arguments) == ("function_call", "weather", '{"place":"Lisbon"}'), call
    items += answer.output
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
    answer = client("tools").responses.create(model="m", input=items, tools=[tool])
    assert answer.output_text == "reply to call weather", answer.output
    image = {"type": "input_image", "image_url": IMAGE_URL}
    content = [{"type": "input_text", "text": "what is this"}, image]
    answer = client("image").responses.create(model="m", input=[{"role": "user", "content": content}])
    assert answer.output_text == "reply to what is this"
    try:
        client("errors").with_options(max_retries=0).responses.create(model="m", input="fail 429")
    except openai.RateLimitError as error:
        assert error.body["message"] == "as asked", error.body
    else:
        raise AssertionError("status 429 must raise")
    client("asked").responses.delete(final.id)
    # A response that works in the background is fetched until it has ended, and once more.
    made = client("background").responses.create(model="m", input="take your time", background=True)
    assert made.status == "queued", made
    fetched = [client("background").responses.retrieve(made.id) for _ in range(4)]
    assert [one.status for one in fetched] == ["in_progress", "completed", "completed", "completed"], fetched
    assert fetched[-1].output_text == "reply to take your time", fetched[-1]


def anthropics():
    def client(session, **options):
        return anthropic.Anthropic(base_url=ROOT, api_key=KEY, default_headers=headers("anthropic", session), **options)

    def ask(session, content, **more):
        messages = [{"role": "user", "content": content}] if not isinstance(content, dict) else content["messages"]
        return client(session).messages.create(model="m", max_tokens=50, messages=messages, **more)

    system = [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}]
    told = ask("told", "my canoe is called Heron", system=system)
    assert told.content[0].text == "reply to my canoe is called Heron", told
    with client("asked").messages.stream(
        model="m", max_tokens=50, messages=[{"role": "user", "content": "what is my canoe called"}]
    ) as events:
        words = "".join(events.text_stream)
        final = events.get_final_message()
    assert words == final.content[0].text == "reply to what is my canoe called", words
    tool = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
    messages = [{"role": "user", "content": "call weather"}]
    answer = ask("tools", {"messages": messages}, tools=[tool])
    call = answer.content[0]
    assert (call.type, call.name, call.input) == ("tool_use", "weather", {"place": "Lisbon"}), call
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    answer = ask("tools", {"messages": messages}, tools=[tool])
    assert answer.content[0].text == "reply to call weather", answer
    # Documents and marked parts stay as they are, also in the message in front of which memory is put.
    marked = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    source = {"type": "text", "media_type": "text/plain", "data": "The log of a voyage, in two parts."}
    paper = {"type": "document", "source": source, "title": "Log", "citations": {"enabled": True}, **marked}
    answer = ask("document", [paper, {"type": "text", "text": "what is my canoe called", **marked}])
    assert answer.content[0].text == "reply to what is my canoe called", answer
    messages = [{"role": "user", "content": [{"type": "text", "text": "call weather", **marked}]}]
    call = ask("cached-tools", {"messages": messages}, tools=[tool]).content[0]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}], **marked}
    messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    answer = ask("cached-tools", {"messages": messages}, tools=[tool])
    assert answer.content[0].text == "reply to call weather", answer
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    answer = ask("image", [image, {"type": "text", "text": "what is this"}])
    assert answer.content[0].text == "reply to what is this", answer
    counted = client("told").messages.count_tokens(model="m", messages=[{"role": "user", "content": "count"}])
    assert counted.input_tokens == 7
    try:
        client("errors", max_retries=0).messages.create(
            model="m", max_tokens=5, messages=[{"role": "user", "content": "fail 529"}]
        )
    except anthropic.APIStatusError as error:
        assert error.status_code == 529 and error.body["error"]["message"] == "as asked", error.body
    else:
        raise AssertionError("status 529 must raise")
    # An error of Strata's own reads as one of Anthropic's.
    try:
        ask("errors", "x", extra_body={"memory_top_k": 0})
    except anthropic.BadRequestError as error:
        assert "memory_top_k" in error.message, error.message
    else:
        raise AssertionError("a wrong option must be refused")


def agents():
    from agents import Agent, OpenAIResponsesModel, Runner, function_tool

    @function_tool
    def weather(place: str) -> str:
        """The weather of a place."""
        return "sunny"

    async def run(session, question):
        client = openai.AsyncOpenAI(base_url=URL, api_key=KEY, default_headers=headers("agents", session))
        agent = Agent(
            name="guide", instructions="be brief", tools=[weather], model=OpenAIResponsesModel("m", openai_client=client)
        )
        if not session.startswith("streamed"):
            return (await Runner.run(agent, question)).final_output
        result = Runner.run_streamed(agent, question)
        async for _ in result.stream_events():
            pass
        return result.final_output

    assert asyncio.run(run("told", "my canoe is called Heron")) == "reply to my canoe is called Heron"
    assert asyncio.run(run("asked", "what is my canoe called")) == "reply to what is my canoe called"
    assert asyncio.run(run("tools", "call weather")) == "reply to call weather"
    assert asyncio.run(run("streamed", "what is my canoe called")) == "reply to what is my canoe called"
    assert asyncio.run(run("streamed-tools", "call weather")) == "reply to call weather"
    content = [{"type": "input_text", "text": "what is this"}, {"type": "input_image", "image_url": IMAGE_URL}]
    items = [{"role": "user", "content": content}]
    assert asyncio.run(run("image", items)) == "reply to what is this"
    fails(lambda: asyncio.run(run("errors", "fail 422")), "422", "as asked")


def litellms():
    import litellm

    def ask(model, session, question, **more):
        messages = [{"role": "user", "content": question}]
        answer = litellm.completion(
            model=model, messages=messages, api_key=KEY, extra_headers=headers("litellm", session), **more
        )
        if more.get("stream"):
            return "".join(chunk.choices[0].delta.content or "" for chunk in answer)
        return answer.choices[0].message.content

    for model, base in [("openai/m", URL), ("anthropic/m", ROOT)]:
        kind = model.split("/")[0]
        answer = ask(model, kind + "-told", "my canoe is called Heron", api_base=base)
        assert answer == "reply to my canoe is called Heron", (model, answer)
        answer = ask(model, kind + "-asked", "what is my canoe called", api_base=base, stream=True)
        assert answer == "reply to what is my canoe called", (model, answer)
        tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
        messages = [{"role": "user", "content": "call weather"}]
        more = {"model": model, "api_base": base, "api_key": KEY, "tools": [tool]}
        more["extra_headers"] = headers("litellm", kind + "-tools")
        reply = litellm.completion(messages=messages, **more).choices[0].message
        call = reply.tool_calls[0]
        assert call.function.name == "weather" and "Lisbon" in call.function.arguments, call
        messages += [reply.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        answer = litellm.completion(messages=messages, **more).choices[0].message.content
        assert answer == "reply to call weather", (model, answer)
        content = [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {"url": IMAGE_URL}}]
        answer = ask(model, kind + "-image", content, api_base=base)
        assert answer == "reply to what is this", (model, answer)
        fails(lambda: ask(model, kind + "-errors", "fail 422", api_base=base, num_retries=0), "as asked")


def pydantic_ai():
    import base64

    from pydantic_ai import Agent, BinaryContent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    def by_anthropic(session):
        client = anthropic.AsyncAnthropic(
            base_url=ROOT, api_key=KEY, default_headers=headers("pydantic", session), max_retries=0
        )
        return AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))

    def by_openai(kind):
        def model(session):
            client = openai.AsyncOpenAI(base_url=URL, api_key=KEY, default_headers=headers("pydantic", session), max_retries=0)
            return kind("m", provider=OpenAIProvider(openai_client=client))

        return model

    kinds = [
        ("responses", by_openai(OpenAIResponsesModel)),
        ("chat", by_openai(OpenAIChatModel)),
        ("anthropic", by_anthropic),
    ]
    image = BinaryContent(base64.b64decode(PIXEL), media_type="image/png")

    def weather(place: str) -> str:
        """The weather of a place."""
        return "sunny"

    async def streamed(agent, question):
        async with agent.run_stream(question) as result:
            return await result.get_output()

    for name, model in kinds:
        told = Agent(model(name + "-told"), instructions="be brief").run_sync("my canoe is called Heron")
        assert told.output == "reply to my canoe is called Heron", (name, told.output)
        asked = Agent(model(name + "-asked")).run_sync("what is my canoe called")
        assert asked.output == "reply to what is my canoe called", (name, asked.output)
        answer = asyncio.run(streamed(Agent(model(name + "-streamed")), "what is my canoe called"))
        assert answer == "reply to what is my canoe called", (name, answer)
        called = Agent(model(name + "-tools"), tools=[weather]).run_sync("call weather")
        assert called.output == "reply to call weather", (name, called.output)
        seen = Agent(model(name + "-image")).run_sync(["what is this", image])
        assert seen.output == "reply to what is this", (name, seen.output)
        fails(lambda: Agent(model(name + "-errors")).run_sync("fail 422"), "422", "as asked")


def langchain():
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    def weather(place: str) -> str:
        """The weather of a place."""
        return "sunny"

    for by_responses in [True, False]:
        def model(session):
            name = headers("langchain", f"{session}-{by_responses}")
            return ChatOpenAI(
                base_url=URL, api_key=KEY, model="m", default_headers=name, use_responses_api=by_responses, max_retries=0
            )

        told = model("told").invoke("my canoe is called Heron")
        assert told.text == "reply to my canoe is called Heron", told
        words = "".join(chunk.text for chunk in model("asked").stream("what is my canoe called"))
        assert words == "reply to what is my canoe called", words
        tools = model("tools").bind_tools([weather])
        asked = [HumanMessage("call weather")]
        reply = tools.invoke(asked)
        assert reply.tool_calls[0]["args"] == {"place": "Lisbon"}, reply
        result = ToolMessage("sunny", tool_call_id=reply.tool_calls[0]["id"])
        assert tools.invoke([*asked, reply, result]).text == "reply to call weather"
        content = [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {"url": IMAGE_URL}}]
        assert model("image").invoke([HumanMessage(content)]).text == "reply to what is this"
        fails(lambda: model("errors").invoke("fail 422"), "422", "as asked")


def llama_index():
    from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai import OpenAIResponses
    from llama_index.llms.openai_like import OpenAILike

    def weather(place: str) -> str:
        """The weather of a place."""
        return "sunny"

    def chat(session):
        return OpenAILike(
            model="m", api_base=URL, api_key=KEY, is_chat_model=True, is_function_calling_model=True, max_retries=0,
            default_headers=headers("llama-index", session),
        )

    def by_responses(session):
        return OpenAIResponses(
            model="gpt-4o", api_base=URL, api_key=KEY, max_retries=0, default_headers=headers("llama-index", session)
        )

    for name, model in [("chat", chat), ("responses", by_responses)]:
        told = model(name + "-told").chat([ChatMessage(role="user", content="my canoe is called Heron")])
        assert told.message.content == "reply to my canoe is called Heron", told
        asked = [ChatMessage(role="user", content="what is my canoe called")]
        *_, last = model(name + "-asked").stream_chat(asked)
        assert last.message.content == "reply to what is my canoe called", last
        tool = FunctionTool.from_defaults(fn=weather)
        called = model(name + "-tools").chat_with_tools([tool], user_msg="call weather")
        call = model(name + "-tools").get_tool_calls_from_response(called)[0]
        assert (call.tool_name, call.tool_kwargs) == ("weather", {"place": "Lisbon"}), call
        result = ChatMessage(role="tool", content="sunny", additional_kwargs={"tool_call_id": call.tool_id})
        history = [ChatMessage(role="user", content="call weather"), called.message, result]
        after = model(name + "-tools").chat(history)
        assert after.message.content == "reply to call weather", after
        blocks = [TextBlock(text="what is this"), ImageBlock(url=IMAGE_URL)]
        seen = model(name + "-image").chat([ChatMessage(role="user", blocks=blocks)])
        assert seen.message.content == "reply to what is this", seen
        failing = [ChatMessage(role="user", content="fail 422")]
        fails(lambda: model(name + "-errors").chat(failing), "422", "as asked")


def instructors():
    import instructor
    from pydantic import BaseModel

    # The name of the class is that of the tool.
    class weather(BaseModel):
        place: str

    def completions(session):
        client = openai.OpenAI(
            base_url=URL, api_key=KEY, default_headers=headers("instructor", session), max_retries=0
        )
        return instructor.from_openai(client).chat.completions

    def ask(session, content):
        messages = [{"role": "user", "content": content}]
        return completions(session).create(model="m", response_model=None, max_retries=0, messages=messages)

    told = ask("told", "my canoe is called Heron")
    assert told.choices[0].message.content == "reply to my canoe is called Heron", told
    asked = ask("asked", "what is my canoe called")
    assert asked.choices[0].message.content == "reply to what is my canoe called", asked
    # The call is read into the model's type, and its result goes back.
    messages = [{"role": "user", "content": "call weather"}]
    found, completion = completions("tools").create_with_completion(
        model="m", response_model=weather, max_retries=0, messages=messages
    )
    assert found.place == "Lisbon", found
    reply = completion.choices[0].message
    messages.append(reply.model_dump())
    messages.append({"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": "sunny"})
    answer = completions("tools").create(model="m", response_model=None, max_retries=0, messages=messages)
    assert answer.choices[0].message.content == "reply to call weather", answer
    partial = completions("streamed").create_partial(
        model="m", response_model=weather, max_retries=0, messages=[{"role": "user", "content": "call weather"}]
    )
    *_, last = partial
    assert last.place == "Lisbon", last
    content = [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {"url": IMAGE_URL}}]
    assert ask("image", content).choices[0].message.content == "reply to what is this"
    fails(lambda: ask("errors", "fail 422"), "422", "as asked")


def ollamas():
    import ollama

    def client(session):
        return ollama.Client(host=ROOT, headers=headers("ollama", session))

    told = client("told").chat(model="m", messages=[{"role": "user", "content": "my canoe is called Heron"}])
    assert told.message.content == "reply to my canoe is called Heron", told
    chunks = client("asked").chat(
        model="m", messages=[{"role": "user", "content": "what is my canoe called"}], stream=True
    )
    words = "".join(chunk.message.content for chunk in chunks)
    assert words == "reply to what is my canoe called", words
    answer = client("generated").generate(model="m", prompt="what is my canoe called")
    assert answer.response == "reply to what is my canoe called", answer
    words = "".join(chunk.response for chunk in client("generated").generate(model="m", prompt="say one two", stream=True))
    assert words == "one two", words
    messages = [{"role": "user", "content": "call weather"}]
    answer = client("tools").chat(model="m", messages=messages)
    assert answer.message.tool_calls[0].function.name == "weather", answer
    messages += [answer.message, {"role": "tool", "tool_name": "weather", "content": "sunny"}]
    answer = client("tools").chat(model="m", messages=messages)
    assert answer.message.content == "reply to call weather", answer
    seen = {"role": "user", "content": "what is this", "images": [PIXEL]}
    assert client("image").chat(model="m", messages=[seen]).message.content == "reply to what is this"
    failing = [{"role": "user", "content": "fail 503"}]
    fails(lambda: client("errors").chat(model="m", messages=failing), "ResponseError", "as asked")


def azure():
    client = openai.AzureOpenAI(
        azure_endpoint=ROOT, api_key=KEY, api_version="2024-10-21", default_headers=headers("azure", "told")
    )
    answer = client.chat.completions.create(model="d", messages=[{"role": "user", "content": "my canoe is called Heron"}])
    assert answer.choices[0].message.content == "reply to my canoe is called Heron", answer
    def of(session):
        return client.with_options(default_headers=headers("azure", session), max_retries=0)

    def ask(session, content, **more):
        messages = content if isinstance(content, list) and "role" in content[0] else [{"role": "user", "content": content}]
        return of(session).chat.completions.create(model="d", messages=messages, **more)

    answer = ask("asked", "what is my canoe called")
    assert answer.choices[0].message.content == "reply to what is my canoe called", answer
    chunks = ask("streamed", "what is my canoe called", stream=True)
    words = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert words == "reply to what is my canoe called", words
    # The newer path of the same service.
    answer = of("responses").responses.create(model="d", input="what is my canoe called")
    assert answer.output_text == "reply to what is my canoe called", answer
    newer = openai.OpenAI(
        base_url=ROOT + "/openai/v1/", api_key=KEY, default_headers={"api-key": KEY, **headers("azure", "newer")}
    )
    answer = newer.chat.completions.create(model="d", messages=[{"role": "user", "content": "what is my canoe called"}])
    assert answer.choices[0].message.content == "reply to what is my canoe called", answer
    newer = newer.with_options(default_headers={"api-key": KEY, **headers("azure", "newer-responses")})
    answer = newer.responses.create(model="d", input="what is my canoe called")
    assert answer.output_text == "reply to what is my canoe called", answer
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    messages = [{"role": "user", "content": "call weather"}]
    reply = ask("tools", messages, tools=[tool]).choices[0].message
    call = reply.tool_calls[0]
    assert (call.function.name, call.function.arguments) == ("weather", '{"place":"Lisbon"}'), call
    messages += [reply, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    answer = ask("tools", messages, tools=[tool])
    assert answer.choices[0].message.content == "reply to call weather", answer
    content = [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {"url": IMAGE_URL}}]
    assert ask("image", content).choices[0].message.content == "reply to what is this"
    fails(lambda: ask("errors", "fail 422"), "422", "as asked")


for step in [
    responses, anthropics, agents, litellms, pydantic_ai, langchain, llama_index, instructors, ollamas, azure,
]:
    step()
    print(step.__name__, "done", flush=True)
