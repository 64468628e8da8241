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
    image = {"type": "input_image", "image_url": "data:image/png;base64," + PIXEL}
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
        return (await Runner.run(agent, question)).final_output

    assert asyncio.run(run("told", "my canoe is called Heron")) == "reply to my canoe is called Heron"
    assert asyncio.run(run("asked", "what is my canoe called")) == "reply to what is my canoe called"
    assert asyncio.run(run("tools", "call weather")) == "reply to call weather"


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


def pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def by_openai(kind):
        def model(session):
            client = openai.AsyncOpenAI(base_url=URL, api_key=KEY, default_headers=headers("pydantic", session))
            return kind("m", provider=OpenAIProvider(openai_client=client))

        return model

    kinds = [("responses", by_openai(OpenAIResponsesModel)), ("chat", by_openai(OpenAIChatModel))]
    for name, model in kinds:
        told = Agent(model(name + "-told"), instructions="be brief").run_sync("my canoe is called Heron")
        assert told.output == "reply to my canoe is called Heron", (name, told.output)
        asked = Agent(model(name + "-asked")).run_sync("what is my canoe called")
        assert asked.output == "reply to what is my canoe called", (name, asked.output)


def langchain():
    from langchain_openai import ChatOpenAI

    for by_responses in [True, False]:
        def model(session):
            name = headers("langchain", f"{session}-{by_responses}")
            return ChatOpenAI(
                base_url=URL, api_key=KEY, model="m", default_headers=name, use_responses_api=by_responses
            )

        told = model("told").invoke("my canoe is called Heron")
        assert told.text == "reply to my canoe is called Heron", told
        words = "".join(chunk.text for chunk in model("asked").stream("what is my canoe called"))
        assert words == "reply to what is my canoe called", words


def instructors():
    import instructor
    from pydantic import BaseModel

    class Weather(BaseModel):
        place: str

    client = instructor.from_openai(
        openai.OpenAI(base_url=URL, api_key=KEY, default_headers=headers("instructor", "tools"))
    )
    try:
        found = client.chat.completions.create(
            model="m", response_model=Weather, max_retries=0, messages=[{"role": "user", "content": "call Weather"}]
        )
    except Exception as error:  # noqa: BLE001
        raise AssertionError(f"instructor failed: {error}") from error
    assert found.place == "Lisbon", found


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
    answer = client("tools").chat(model="m", messages=[{"role": "user", "content": "call weather"}])
    assert answer.message.tool_calls[0].function.name == "weather", answer


def azure():
    client = openai.AzureOpenAI(
        azure_endpoint=ROOT, api_key=KEY, api_version="2024-10-21", default_headers=headers("azure", "told")
    )
    answer = client.chat.completions.create(model="d", messages=[{"role": "user", "content": "my canoe is called Heron"}])
    assert answer.choices[0].message.content == "reply to my canoe is called Heron", answer
    client = client.with_options(default_headers=headers("azure", "asked"))
    answer = client.chat.completions.create(model="d", messages=[{"role": "user", "content": "what is my canoe called"}])
    assert answer.choices[0].message.content == "reply to what is my canoe called", answer


for step in [
    responses, anthropics, agents, litellms, pydantic_ai, langchain, instructors, ollamas, azure,
]:
    step()
    print(step.__name__, "done", flush=True)
