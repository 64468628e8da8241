"""OpenAI's own clients over WebSockets: realtime conversations and Responses. The model behind the proxy is scripted.

Usage: realtime_clients.py. Prints the port of the model, then reads the server's URL from its input. Plain asserts: the first
that fails ends the script with a traceback, which the test shows.
"""

import json
import sys
import threading
import time

import openai
from websockets.sync.server import serve

KEY = "sk-test"


def responded(event):
    """The events of a response that repeats the question."""
    said = "reply to " + event["input"]
    made = {"id": "resp_" + str(time.monotonic_ns()), "object": "response", "model": "m-1", "status": "in_progress", "output": []}
    content = [{"type": "output_text", "text": said, "annotations": [], "logprobs": []}]
    output = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}]
    return [
        {"type": "response.created", "sequence_number": 0, "response": made},
        {"type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_1", "output_index": 0, "content_index": 0,
         "delta": said, "logprobs": []},
        {"type": "response.completed", "sequence_number": 2, "response": {**made, "status": "completed", "output": output}},
    ]


def spoken(event):
    """What the model says and hears in a realtime conversation: it speaks, and it transcribes speech after it has answered."""
    def done(text):
        content = [{"type": "output_audio", "transcript": text}]
        output = [{"type": "message", "id": "item_a", "role": "assistant", "status": "completed", "content": content}]
        response = {"id": "resp_1", "object": "realtime.response", "status": "completed", "conversation_id": "conv_1", "output": output}
        return {"type": "response.done", "event_id": "e", "response": response}

    if event["type"] == "session.update":
        return [{"type": "session.updated", "event_id": "e", "session": event["session"]}]
    if event["type"] == "response.create":
        return [done("Noted.")]
    if event["type"] == "input_audio_buffer.commit":
        return [
            {"type": "input_audio_buffer.committed", "event_id": "e", "item_id": "item_1", "previous_item_id": None},
            done("It lies in Lisbon."),
            {"type": "conversation.item.input_audio_transcription.completed", "event_id": "e", "item_id": "item_1",
             "content_index": 0, "transcript": "Where does my canoe lie?", "usage": {"type": "duration", "seconds": 1}},
        ]
    return []


def handle(connection):
    assert connection.request.headers["Authorization"] == "Bearer " + KEY
    assert not [name for name in connection.request.headers if name.lower().startswith("x-strata")]
    answer = responded if connection.request.path.startswith("/v1/responses") else spoken
    for message in connection:
        for event in answer(json.loads(message)):
            connection.send(json.dumps(event))


def client(url, session):
    headers = {"X-Strata-User": "ada", "X-Strata-Session": session}
    return openai.OpenAI(base_url=url + "/v1", api_key=KEY, default_headers=headers)


def until(connection, kind):
    """The next event of this kind."""
    return next(event for event in connection if event.type == kind)


def responses(url):
    headers = {"X-Strata-User": "ada", "X-Strata-Session": "responses"}
    with client(url, "responses").responses.connect(extra_headers=headers) as connection:
        connection.response.create(model="m", input="my canoe is called Heron")
        first = until(connection, "response.completed")
        assert first.response.output_text == "reply to my canoe is called Heron", first
        connection.response.create(model="m", input="it is green", previous_response_id=first.response.id)
        until(connection, "response.completed")


def realtime(url):
    headers = {"X-Strata-User": "ada", "X-Strata-Session": "realtime"}
    with client(url, "realtime").realtime.connect(model="m", extra_headers=headers) as connection:
        transcription = {"audio": {"input": {"transcription": {"model": "t"}}}}
        connection.session.update(session={"type": "realtime", **transcription})
        until(connection, "session.updated")
        content = [{"type": "input_text", "text": "My paddle is made of ash."}]
        connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
        connection.response.create()
        until(connection, "response.done")
        connection.input_audio_buffer.append(audio="AAAA" * 4_000)
        connection.input_audio_buffer.commit()
        until(connection, "conversation.item.input_audio_transcription.completed")


with serve(handle, "127.0.0.1", 0) as model:
    threading.Thread(target=model.serve_forever, daemon=True).start()
    print(model.socket.getsockname()[1], flush=True)
    root = sys.stdin.readline().strip()
    for step in [responses, realtime]:
        step(root)
        print(step.__name__, "done", flush=True)
