#!/usr/bin/env python3
"""A scripted model: the four wire protocols that the agents speak, and nothing behind them.

A line of a prompt that starts with `PLAY ` is a script, its steps parted by ` ;; `:

    text:<words>     the last answer of the turn
    slow:<seconds>   the last answer, streamed over that time
    think:<seconds>  silence before the first byte, then the last answer
    error:<status>   an HTTP error
    bash:<command>   one call of the agent's shell tool
    bgbash:<command> the same, left running behind the turn
    permit:<command> the same, such that the agent has to ask the person first
    ask              a question to the person
    task:<step>      a subagent whose script is that step (OpenCode, Copilot)
    bgtask:<step>    the same, left running behind the turn

Every tool step is one assistant message. The server keeps no state: which step is next follows from how many tool
calls the conversation already shows after the script. A request without a script, or one that offers no tools (agents
ask for titles that way), gets one short sentence.

    model_server.py --port-file FILE [--log FILE]

It listens on 127.0.0.1, on a port of the kernel's choice that it writes into FILE, until it is ended by a signal.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MARK = "PLAY "
SEPARATOR = ";;"
CLOSING_STEPS = frozenset({"text", "slow", "think", "error"})
NUMBER_STEPS = frozenset({"slow", "think", "error"})
TOOL_STEPS = frozenset({"bash", "bgbash", "permit", "ask", "task", "bgtask"})
# One delta each half second keeps an agent's own stream timeout far away.
SLOW_PIECE_SECONDS = 0.5
# Codex hands a command that runs longer than this to the background and ends its tool call.
CODEX_BACKGROUND_YIELD_MS = 500
CODEX_FOREGROUND_YIELD_MS = 60_000
# Copilot asks the model again about a command that runs for longer.
COPILOT_INITIAL_WAIT_SECONDS = 60
# More than any agent sends; a body past it is refused.
BODY_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True)
class Step:
    verb: str
    argument: str = ""


@dataclass(frozen=True)
class Turn:
    """One piece of a conversation, whatever the wire: who (`user`, `assistant`), what (`text`, `call`), and its text."""

    role: str
    kind: str
    text: str


# ---- the script -----------------------------------------------------------------------------------------------------


def script_in(text: str) -> str | None:
    """The line of a prompt that is a script; some agents put lines of their own around what the person said."""
    return next((line.strip() for line in text.splitlines() if line.lstrip().startswith(MARK)), None)


def parse_script(script: str) -> list[Step]:
    steps = []
    for part in script.removeprefix(MARK).split(SEPARATOR):
        verb, _, argument = part.strip().partition(":")
        is_number = argument.strip().replace(".", "", 1).isdigit()
        if verb not in CLOSING_STEPS | TOOL_STEPS or (verb in NUMBER_STEPS and not is_number):
            return [Step("text", f"This script has a step that I do not understand: {part.strip()!r}.")]
        steps.append(Step(verb, argument.strip()))
    return steps


def next_step(turns: list[Turn]) -> Step:
    """The step of the newest script that the conversation has not reached yet."""
    scripts = [(i, script) for i, t in enumerate(turns) if t.role == "user" and (script := script_in(t.text))]
    if not scripts:
        return Step("text", "Hello.")
    start, script = scripts[-1]
    steps = parse_script(script)
    calls_made = sum(1 for t in turns[start + 1 :] if t.kind == "call")
    tool_steps = [s for s in steps if s.verb in TOOL_STEPS]
    if calls_made < len(tool_steps):
        return tool_steps[calls_made]
    closing = [s for s in steps if s.verb in CLOSING_STEPS]
    return closing[-1] if closing else Step("text", "Done.")


def pieces(step: Step) -> Iterator[tuple[float, str]]:
    """The closing answer as (seconds to wait before, text)."""
    if step.verb == "slow":
        for number in range(max(1, round(float(step.argument) / SLOW_PIECE_SECONDS))):
            yield SLOW_PIECE_SECONDS, f"word{number} "
    elif step.verb == "think":
        yield 0.0, f"I thought for {step.argument} seconds."
    else:
        yield 0.0, step.argument or "Done."


def fresh_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


# ---- Anthropic Messages ---------------------------------------------------------------------------------------------


class Anthropic:
    """`POST /v1/messages`."""

    @staticmethod
    def turns(body: dict[str, Any]) -> list[Turn]:
        turns = []
        for message in body.get("messages", []):
            content = message.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            for block in blocks:
                if block.get("type") == "text":
                    turns.append(Turn(message["role"], "text", block.get("text", "")))
                elif block.get("type") == "tool_use":
                    turns.append(Turn("assistant", "call", block.get("name", "")))
        return turns

    @staticmethod
    def call(step: Step) -> tuple[str, dict[str, Any]]:
        if step.verb == "ask":
            options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
            question = {"question": "Which colour?", "header": "Colour", "multiSelect": False, "options": options}
            return "AskUserQuestion", {"questions": [question]}
        arguments: dict[str, Any] = {"command": step.argument, "description": "a scripted command"}
        if step.verb == "bgbash":
            arguments["run_in_background"] = True
        return "Bash", arguments

    @classmethod
    def answer(cls, http: Handler, body: dict[str, Any], step: Step) -> None:
        message = {
            "id": fresh_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "scripted"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 1},
        }
        is_call = step.verb in TOOL_STEPS
        stop_reason = "tool_use" if is_call else "end_turn"
        if not body.get("stream"):
            message["content"] = [cls._whole_block(step)]
            http.send_json({**message, "stop_reason": stop_reason})
            return
        http.start_stream()
        http.send_event("message_start", message=message)
        if is_call:
            name, arguments = cls.call(step)
            block = {"type": "tool_use", "id": fresh_id("toolu"), "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
            http.send_event("content_block_start", index=0, content_block=block)
            http.send_event("content_block_delta", index=0, delta=delta)
        else:
            http.send_event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            for wait, text in pieces(step):
                time.sleep(wait)
                http.send_event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
        http.send_event("content_block_stop", index=0)
        ending = {"stop_reason": stop_reason, "stop_sequence": None}
        http.send_event("message_delta", delta=ending, usage={"output_tokens": 10})
        http.send_event("message_stop")

    @classmethod
    def _whole_block(cls, step: Step) -> dict[str, Any]:
        if step.verb in TOOL_STEPS:
            name, arguments = cls.call(step)
            return {"type": "tool_use", "id": fresh_id("toolu"), "name": name, "input": arguments}
        return {"type": "text", "text": "".join(text for _, text in pieces(step))}


# ---- OpenAI Responses -----------------------------------------------------------------------------------------------


class Responses:
    """`POST /v1/responses`, always a stream."""

    @staticmethod
    def turns(body: dict[str, Any]) -> list[Turn]:
        turns = []
        for item in body.get("input", []):
            kind = item.get("type", "message")
            if kind == "message":
                for block in item.get("content") or []:
                    if block.get("type") in ("input_text", "output_text"):
                        turns.append(Turn(item.get("role", ""), "text", block.get("text", "")))
            elif kind.endswith("_call"):
                turns.append(Turn("assistant", "call", item.get("name", "")))
        return turns

    @staticmethod
    def call(step: Step) -> tuple[str, dict[str, Any]]:
        if step.verb == "ask":
            options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
            question = {"id": "colour", "header": "Colour", "question": "Which colour?", "options": options}
            return "request_user_input", {"questions": [question]}
        yield_ms = CODEX_BACKGROUND_YIELD_MS if step.verb == "bgbash" else CODEX_FOREGROUND_YIELD_MS
        arguments: dict[str, Any] = {"cmd": step.argument, "yield_time_ms": yield_ms}
        if step.verb == "permit":
            arguments |= {"sandbox_permissions": "require_escalated", "justification": "the script says so"}
        return "exec_command", arguments

    @classmethod
    def answer(cls, http: Handler, body: dict[str, Any], step: Step) -> None:
        response = {
            "id": fresh_id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "model": body.get("model", "scripted"),
            "status": "in_progress",
            "output": [],
        }
        http.start_stream()
        http.send_event("response.created", response=response)
        if step.verb in TOOL_STEPS:
            item = cls._send_call(http, step)
        else:
            item = cls._send_message(http, step)
        usage = {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 20,
        }
        done = {**response, "status": "completed", "output": [item], "usage": usage}
        http.send_event("response.completed", response=done)

    @classmethod
    def _send_call(cls, http: Handler, step: Step) -> dict[str, Any]:
        name, arguments = cls.call(step)
        item = {
            "type": "function_call",
            "id": fresh_id("fc"),
            "call_id": fresh_id("call"),
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        started = {**item, "arguments": "", "status": "in_progress"}
        http.send_event("response.output_item.added", output_index=0, item=started)
        http.send_event("response.output_item.done", output_index=0, item=item)
        return item

    @staticmethod
    def _send_message(http: Handler, step: Step) -> dict[str, Any]:
        item: dict[str, Any] = {"type": "message", "id": fresh_id("msg"), "role": "assistant", "content": []}
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        http.send_event("response.output_item.added", output_index=0, item={**item, "status": "in_progress"})
        part = {"type": "output_text", "text": "", "annotations": []}
        http.send_event("response.content_part.added", **place, part=part)
        for wait, text in pieces(step):
            time.sleep(wait)
            part["text"] += text
            http.send_event("response.output_text.delta", **place, delta=text)
        item |= {"content": [part], "status": "completed"}
        http.send_event("response.output_item.done", output_index=0, item=item)
        return item


# ---- OpenAI Chat Completions -----------------------------------------------------------------------------------------


class Chat:
    """`POST /v1/chat/completions`, with the tools of OpenCode, Copilot CLI and Qwen Code."""

    @staticmethod
    def turns(body: dict[str, Any]) -> list[Turn]:
        turns = []
        for message in body.get("messages", []):
            content, role = message.get("content"), message.get("role", "")
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            turns += [Turn(role, "text", part.get("text", "")) for part in parts if part.get("type") == "text"]
            for call in message.get("tool_calls") or []:
                turns.append(Turn(role, "call", (call.get("function") or {}).get("name", "")))
        return turns

    @classmethod
    def call(cls, step: Step, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The agent's own tool of this kind, with what that takes of the arguments."""
        offered = {
            tool["function"]["name"]: (tool["function"].get("parameters") or {}).get("properties") or {}
            for tool in body["tools"] if tool.get("type") == "function"
        }  # fmt: skip
        names, arguments = cls._wish(step)
        name = next((name for name in names if name in offered), names[0])
        return name, {key: value for key, value in arguments.items() if key in offered.get(name, {})}

    @staticmethod
    def _wish(step: Step) -> tuple[tuple[str, ...], dict[str, Any]]:
        """How the agents name their tools of one kind, and the arguments of them all."""
        if step.verb == "ask":
            options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
            questions = [{"question": "Which colour?", "header": "Colour", "options": options}]
            colour = {"type": "string", "title": "Colour", "enum": ["Red", "Blue"]}
            schema = {"properties": {"colour": colour}, "required": ["colour"]}
            asked = {"questions": questions, "question": "Which colour?", "choices": ["Red", "Blue"]}
            return ("question", "ask_user"), asked | {"message": "Which colour?", "requestedSchema": schema}
        if step.verb in ("task", "bgtask"):
            task: dict[str, Any] = {"description": "a scripted subagent", "prompt": f"{MARK}{step.argument}", "name": "scripted"}
            task |= {"subagent_type": "general", "agent_type": "general-purpose"}
            if step.verb == "bgtask":
                return ("task",), task | {"background": True, "mode": "background"}
            return ("task",), task | {"mode": "sync"}
        is_background = step.verb == "bgbash"
        command: dict[str, Any] = {"command": step.argument, "description": "a scripted command"}
        command |= {"mode": "async" if is_background else "sync", "initial_wait": COPILOT_INITIAL_WAIT_SECONDS}
        return ("bash", "run_shell_command"), command | {"is_background": is_background}

    @classmethod
    def answer(cls, http: Handler, body: dict[str, Any], step: Step) -> None:
        kind = "chat.completion.chunk" if body.get("stream") else "chat.completion"
        shared = {"id": fresh_id("chatcmpl"), "object": kind, "created": int(time.time()), "model": body.get("model", "scripted")}
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        is_call = step.verb in TOOL_STEPS
        reason = "tool_calls" if is_call else "stop"
        if not body.get("stream"):
            said = {"tool_calls": [cls._call_part(step, body)]} if is_call else {"content": "".join(text for _, text in pieces(step))}
            choice = {"index": 0, "message": {"role": "assistant", "content": None, **said}, "finish_reason": reason}
            http.send_json({**shared, "choices": [choice], "usage": usage})
            return

        def send(delta: dict[str, Any], finish_reason: str | None = None) -> None:
            http.send_data({**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

        http.start_stream()
        send({"role": "assistant", "content": ""})
        if is_call:
            send({"tool_calls": [{"index": 0, **cls._call_part(step, body)}]})
        else:
            for wait, text in pieces(step):
                time.sleep(wait)
                send({"content": text})
        send({}, reason)
        http.send_data({**shared, "choices": [], "usage": usage})
        http.send_data("[DONE]")

    @classmethod
    def _call_part(cls, step: Step, body: dict[str, Any]) -> dict[str, Any]:
        name, arguments = cls.call(step, body)
        return {"id": fresh_id("call"), "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


# ---- Gemini ----------------------------------------------------------------------------------------------------------


class Gemini:
    """`POST /v1beta/models/<model>:generateContent` and `:streamGenerateContent`."""

    @staticmethod
    def turns(body: dict[str, Any]) -> list[Turn]:
        turns = []
        for content in body.get("contents", []):
            role = "assistant" if content.get("role") == "model" else "user"
            for part in content.get("parts", []):
                if "text" in part:
                    turns.append(Turn(role, "text", part["text"]))
                elif "functionCall" in part:
                    turns.append(Turn(role, "call", part["functionCall"].get("name", "")))
        return turns

    @staticmethod
    def call(step: Step) -> tuple[str, dict[str, Any]]:
        if step.verb == "ask":
            options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
            question = {"question": "Which colour?", "header": "Colour", "type": "choice", "options": options}
            return "ask_user", {"questions": [question]}
        arguments = {"command": step.argument, "description": "a scripted command"}
        return "run_shell_command", arguments | {"is_background": step.verb == "bgbash"}

    @classmethod
    def answer(cls, http: Handler, body: dict[str, Any], step: Step) -> None:
        config = body.get("generationConfig") or {}
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        if schema:  # it asks for a decision of its own, such as who speaks next
            step = Step("text", json.dumps(filled(schema)))
        if step.verb in TOOL_STEPS:
            name, arguments = cls.call(step)
            said = [(0.0, {"functionCall": {"name": name, "args": arguments}})]
        else:
            said = [(wait, {"text": text}) for wait, text in pieces(step)]
        if not http.path.split("?")[0].endswith(":streamGenerateContent"):
            http.send_json(cls._response([part for _, part in said], "STOP"))
            return
        http.start_stream()
        for wait, part in said:
            time.sleep(wait)
            http.send_data(cls._response([part]))
        http.send_data(cls._response([{"text": ""}], "STOP"))

    @staticmethod
    def _response(parts: list[dict[str, Any]], finished: str | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finished:
            candidate["finishReason"] = finished
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}


def filled(schema: dict[str, Any]) -> Any:
    """The least that such a JSON schema allows."""
    if schema.get("enum"):
        return schema["enum"][0]
    match str(schema.get("type", "object")).lower():
        case "object":
            return {key: filled(value) for key, value in (schema.get("properties") or {}).items()}
        case "array":
            return []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
    return "scripted"


def wire_of(path: str) -> Any:
    """Which protocol a path belongs to; `None` for no page of ours."""
    wires = {
        "messages": Anthropic, "responses": Responses, "completions": Chat, "generateContent": Gemini, "streamGenerateContent": Gemini,
    }  # fmt: skip
    return wires.get(path.rsplit("/", 1)[-1].rsplit(":", 1)[-1])


# ---- HTTP -----------------------------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the server's own log says more."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            models = [{"id": "scripted", "object": "model", "type": "model", "display_name": "scripted"}]
            self.send_json({"object": "list", "data": models, "models": [], "has_more": False})
        else:
            self.send_json({"error": {"type": "not_found_error", "message": "no such page"}}, 404)

    def do_POST(self) -> None:
        path = self.path.split("?")[0]
        wire = wire_of(path)
        try:
            body = self._read_body()
        except (ValueError, OSError) as error:
            self.send_json({"error": {"type": "invalid_request_error", "message": str(error)}}, 400)
            return
        if path.endswith("/messages/count_tokens"):
            self.send_json({"input_tokens": 100})
            return
        if path.endswith(":countTokens"):
            self.send_json({"totalTokens": 100})
            return
        if wire is None:
            self.server.log(path=path, answer="404")
            self.send_json({"error": {"type": "not_found_error", "message": "no such page"}}, 404)
            return
        step = next_step(wire.turns(body)) if body.get("tools") else Step("text", "A title")
        self.server.log(path=path, step=f"{step.verb}:{step.argument}")
        try:
            if step.verb == "error":
                message = "the script asks for an error"
                self.send_json({"type": "error", "error": {"type": "api_error", "message": message}}, int(step.argument))
                return
            if step.verb == "think":
                time.sleep(float(step.argument))
            wire.answer(self, body, step)
        except (BrokenPipeError, ConnectionResetError):
            self.server.log(path=path, answer="the agent hung up")
            self.close_connection = True

    def _read_body(self) -> dict[str, Any]:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                if len(raw) + size > BODY_BYTES_MAX:
                    raise ValueError("the body is too large")
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            size = int(self.headers.get("content-length") or 0)
            if size > BODY_BYTES_MAX:
                raise ValueError("the body is too large")
            raw = self.rfile.read(size)
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        body = json.loads(raw or b"{}")
        if not isinstance(body, dict):
            raise ValueError("the body is no object")
        return body

    def send_json(self, value: Any, status: int = 200) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def start_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_event(self, kind: str, /, **fields: Any) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())
        self.wfile.flush()

    def send_data(self, value: dict[str, Any] | str) -> None:
        """An event without a name; a text goes out as it is."""
        self.wfile.write(f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode())
        self.wfile.flush()


class ModelServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, log_path: str | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._log_path = log_path
        self._lock = threading.Lock()

    def log(self, **fields: Any) -> None:
        if self._log_path:
            with self._lock, open(self._log_path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"at": time.time(), **fields}) + "\n")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error; anything else belongs into the log."""
        self.log(answer=f"failed: {sys.exc_info()[1]!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted model for tests.")
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--log")
    arguments = parser.parse_args()
    server = ModelServer(arguments.log)
    unfinished = f"{arguments.port_file}.new"
    with open(unfinished, "w", encoding="ascii") as file:
        file.write(str(server.server_address[1]))
    os.replace(unfinished, arguments.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
