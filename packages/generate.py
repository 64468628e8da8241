"""Writes the Python and TypeScript clients from the server's OpenAPI document.

    python3 generate.py OPENAPI.json            writes the files that differ
    python3 generate.py OPENAPI.json --check    says which files would change, and fails if one would

`operations.json` says which routes the clients offer and what the methods are called. Paths, parameters, fields, types and
descriptions come from the document. The transports (`_transport.py`, `transport.ts`) are written by hand.
"""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator

HERE = Path(__file__).parent
MADE = "Made by packages/generate.py from the OpenAPI document; change the server or operations.json."
WIDTH = 100

Schema = dict[str, Any]


def main(arguments: list[str]) -> int:
    document = json.loads(Path(arguments[0]).read_text())
    wanted = json.loads((HERE / "operations.json").read_text())["methods"]
    api = Api(document, wanted)
    files = {
        HERE / "python/strata_memory/types.py": python_types(api),
        HERE / "python/strata_memory/_client.py": python_client(api),
        HERE / "npm/src/types.ts": typescript_types(api),
        HERE / "npm/src/client.ts": typescript_client(api),
    }
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(HERE.parent)} does not say what the server says")
        return 1 if stale else 0
    for path in stale:
        path.write_text(files[path])
        print(f"wrote {path.relative_to(HERE.parent)}")
    return 0


# What both languages need to know


@dataclass
class Parameter:
    """A parameter of a method."""

    name: str
    wire_name: str
    place: str  # path, query, header or body
    schema: Schema
    required: bool
    about: str


@dataclass
class Method:
    """A method of the clients: one operation of the document."""

    name: str
    http_method: str
    path: str
    about: str
    first: list[Parameter]
    named: list[Parameter]
    answer: Schema
    repeatable: bool
    session: str | None

    def parameters(self, place: str) -> list[Parameter]:
        return [it for it in self.first + self.named if it.place == place]


@dataclass
class Api:
    """The methods, and the schemas that they use."""

    document: Schema
    wanted: list[dict[str, Any]]
    methods: list[Method] = field(init=False)
    schemas: dict[str, Schema] = field(init=False)

    def __post_init__(self) -> None:
        operations = {
            operation["operationId"]: (http_method, path, operation)
            for path, methods in self.document["paths"].items()
            for http_method, operation in methods.items()
            if isinstance(operation, dict) and "operationId" in operation
        }
        missing = [it["operation"] for it in self.wanted if it["operation"] not in operations]
        if missing:
            sys.exit(f"the server has no operation {', '.join(missing)}")
        self.methods = [self.method(it, *operations[it["operation"]]) for it in self.wanted]
        used: dict[str, Schema] = {}
        for method in self.methods:
            for schema in [method.answer, *(it.schema for it in method.first + method.named)]:
                self.collect(schema, used)
        self.collect({"$ref": "#/components/schemas/ErrorResponse"}, used)
        self.schemas = dict(sorted(used.items()))

    def method(self, wanted: dict[str, Any], http_method: str, path: str, operation: Schema) -> Method:
        rename = wanted.get("rename", {})
        for wire_name, name in rename.items():
            path = path.replace("{" + wire_name + "}", "{" + name + "}")
        parameters = [
            Parameter(
                rename.get(it["name"], it["name"]), it["name"], it["in"], it["schema"], it.get("required", False), it.get("description", "")
            )
            for it in operation.get("parameters", [])
            # The client names users and sessions in the query or the body, where they may have any characters.
            if not it["name"].startswith("X-Strata-")
        ]
        parameters += self.body_parameters(operation)
        for it in parameters:
            it.name = it.name.lower().replace("-", "_")
        session = wanted.get("session")
        first = [by_name(parameters, name) for name in wanted.get("first", [])]
        named = sorted((it for it in parameters if it not in first), key=lambda it: (not it.required, it.name))
        for it in parameters:
            it.required = it.required and it.name != session
        answers = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        return Method(
            name=wanted["name"],
            http_method=http_method.upper(),
            path=path,
            about="\n\n".join(filter(None, [operation.get("summary"), operation.get("description")])),
            first=first,
            named=named,
            answer=answers[0]["content"]["application/json"]["schema"],
            repeatable=http_method != "post"
            or operation.get("x-strata-scopes") == ["read"]
            or any(it.wire_name == "Idempotency-Key" for it in parameters),
            session=session,
        )

    def body_parameters(self, operation: Schema) -> Iterator[Parameter]:
        body = operation.get("requestBody")
        if body is None:
            return
        properties, required = self.fields(body["content"]["application/json"]["schema"])
        for name, schema in properties.items():
            about = description(schema)
            # Other names of the same thing are there for other programs.
            if not about.startswith("The same as "):
                yield Parameter(name, name, "body", schema, name in required, about)

    def resolve(self, schema: Schema) -> Schema:
        if "$ref" in schema:
            return self.document["components"]["schemas"][name_of(schema)]
        return schema

    def fields(self, schema: Schema) -> tuple[dict[str, Schema], list[str]]:
        """The fields of an object, and which of them are always there."""
        schema = self.resolve(schema)
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for part in schema.get("allOf", []):
            if "$ref" in part or "type" in part:
                more, always = self.fields(part)
                properties |= more
                required += always
        return properties | schema.get("properties", {}), required + schema.get("required", [])

    def is_free(self, name: str) -> bool:
        """Whether a schema contains itself: such JSON has no fixed fields."""
        return name in references(self.document["components"]["schemas"][name])

    def collect(self, schema: Schema, used: dict[str, Schema]) -> None:
        for name in references(schema):
            if name not in used and not self.is_free(name):
                used[name] = self.document["components"]["schemas"][name]
                self.collect(used[name], used)


def by_name(parameters: list[Parameter], name: str) -> Parameter:
    found = [it for it in parameters if it.name == name]
    if not found:
        sys.exit(f"operations.json names a parameter `{name}` that the server does not have")
    return found[0]


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield name_of(schema)
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def name_of(schema: Schema) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[-1]


def description(schema: Schema) -> str:
    if "description" in schema:
        return str(schema["description"])
    return next((description(part) for part in schema.get("oneOf", []) if description(part)), "")


def alternatives(schema: Schema) -> list[Schema] | None:
    """The parts of a union."""
    if isinstance(schema.get("type"), list):
        return [schema | {"type": one} for one in schema["type"]]
    parts = schema.get("oneOf") or schema.get("anyOf")
    # `null` last, as people write it.
    return sorted(parts, key=lambda part: part.get("type") == "null") if parts else None


# Python


def python_type(api: Api, schema: Schema) -> str:
    if "$ref" in schema:
        return "Any" if api.is_free(name_of(schema)) else name_of(schema)
    if "enum" in schema:
        return "Literal[" + ", ".join(json.dumps(value) for value in schema["enum"]) + "]"
    parts = alternatives(schema)
    if parts:
        return " | ".join(dict.fromkeys(python_type(api, part) for part in parts))
    simple = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "dict[str, Any]"}
    if schema.get("type") == "array":
        return f"list[{python_type(api, schema.get('items', {}))}]"
    return simple.get(schema.get("type", ""), "Any")


def python_types(api: Api) -> str:
    lines = ['"""The JSON of requests and answers.', "", MADE, '"""', "", "from typing import Any, Literal, NotRequired, TypedDict"]
    literals, objects = [], []
    for name, schema in api.schemas.items():
        properties, required = api.fields(schema)
        if not properties:
            literals += ["", *comment(description(schema), "# "), f"{name} = {python_type(api, schema)}"]
            continue
        objects += ["", "", f"class {name}(TypedDict):", *docstring(description(schema), "    ")]
        for key, value in properties.items():
            kind = quoted(python_type(api, value))
            objects += ["", *comment(description(value), "    # ")]
            objects += [f"    {key}: {kind if key in required else f'NotRequired[{kind}]'}"]
    return "\n".join(lines + literals + objects) + "\n"


def quoted(kind: str) -> str:
    """A type that may name a class further down."""
    return kind if kind in ("str", "int", "float", "bool", "Any", "dict[str, Any]") else f'"{kind}"' if '"' not in kind else kind


def python_client(api: Api) -> str:
    names = sorted(name for name in api.schemas if name != "ErrorResponse")
    used = [name for name in names if any(uses(api, method, name) for method in api.methods)]
    lines = [
        '"""The clients.',
        "",
        MADE,
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any, Literal, Sequence, cast",
        "",
        "from ._transport import AsyncTransport, Transport",
        "from .types import (",
        *(f"    {name}," for name in used),
        ")",
    ]
    lines += ["", "", "class Strata(Transport):", '    """Strata over HTTP. Threads may share a client."""']
    for method in api.methods:
        lines += python_method(api, method, "def", "")
    lines += ["", "", "class AsyncStrata(AsyncTransport):", '    """Strata over HTTP, for asyncio. Tasks may share a client."""']
    for method in api.methods:
        lines += python_method(api, method, "async def", "await ")
    return "\n".join(lines) + "\n"


def uses(api: Api, method: Method, name: str) -> bool:
    schemas = [method.answer, *(it.schema for it in method.first + method.named)]
    return any(name in references(schema) for schema in schemas)


def python_parameter(api: Api, it: Parameter) -> str:
    kind = python_type(api, it.schema)
    if kind.startswith("list["):
        kind = "Sequence" + kind[4:]
    if it.required:
        return f"{it.name}: {kind}"
    return f"{it.name}: {kind if kind.endswith('| None') else kind + ' | None'} = None"


def python_method(api: Api, method: Method, define: str, wait: str) -> list[str]:
    answer = python_type(api, method.answer)
    lines = ["", f"    {define} {method.name}("]
    lines += ["        self,", *(f"        {python_parameter(api, it)}," for it in method.first)]
    if method.named:
        lines += ["        *,", *(f"        {python_parameter(api, it)}," for it in method.named)]
    lines += [f"    ) -> {answer}:", *docstring(method.about, "        ", method.first + method.named)]
    lines += [f"        answer = {wait}self._call(", f'            "{method.http_method}",', f"            {python_path(method)},"]
    for place, name in [("query", "query"), ("body", "body"), ("header", "headers")]:
        parameters = method.parameters(place)
        if parameters:
            lines += [f"            {name}={{", *(f'                "{it.wire_name}": {value(method, it, python=True)},' for it in parameters)]
            lines += ["            },"]
    lines += [f"            repeatable={method.repeatable},", "        )", f"        return cast({json.dumps(answer)}, answer)"]
    return lines


def python_path(method: Method) -> str:
    parameters = method.parameters("path")
    if not parameters:
        return f'"{method.path}"'
    path = method.path
    for it in parameters:
        path = path.replace("{" + it.name + "}", "{self._escaped(" + value(method, it, python=True) + ")}")
    return f'f"{path}"'


def value(method: Method, it: Parameter, python: bool) -> str:
    """A parameter, or what the client itself has for it."""
    own = {"user_id": "user", method.session: "session"}.get(it.name)
    here = it.name if python or it in method.first else f"options.{it.name}"
    if it.wire_name == "Idempotency-Key":
        return f"self._key({here})" if python else f"this.keyOr({here})"
    if own is None:
        return here
    return f"self._{own}({here})" if python else f"this.{own}Or({here})"


def comment(text: str, mark: str) -> list[str]:
    return [f"{mark}{line}".rstrip() for line in wrapped(text, WIDTH - len(mark))]


def docstring(text: str, indent: str, parameters: list[Parameter] | None = None) -> list[str]:
    lines = wrapped(text, WIDTH - len(indent)) or [""]
    listed = [it for it in parameters or [] if it.about]
    if listed:
        lines += [""]
    for it in listed:
        lines += textwrap.wrap(" ".join(f"{it.name}: {it.about}".split()), WIDTH - len(indent), subsequent_indent="    ")
    quotes = 'r"""' if any("\\" in line for line in lines) else '"""'
    if len(lines) == 1:
        return [f'{indent}{quotes}{lines[0]}"""']
    return [f"{indent}{quotes}{lines[0]}", *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""']


def wrapped(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [""] if lines else []
        lines += textwrap.wrap(" ".join(paragraph.split()), width)
    return lines


# TypeScript


def typescript_type(api: Api, schema: Schema) -> str:
    if "$ref" in schema:
        return "unknown" if api.is_free(name_of(schema)) else name_of(schema)
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    parts = alternatives(schema)
    if parts:
        return " | ".join(dict.fromkeys(typescript_type(api, part) for part in parts))
    simple = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
    if schema.get("type") == "array":
        return f"Array<{typescript_type(api, schema.get('items', {}))}>"
    if schema.get("type") == "object":
        return "Record<string, unknown>"
    return simple.get(schema.get("type", ""), "unknown")


def typescript_types(api: Api) -> str:
    lines = ["// The JSON of requests and answers.", f"// {MADE}"]
    for name, schema in api.schemas.items():
        properties, required = api.fields(schema)
        lines += ["", *block(description(schema), "")]
        if not properties:
            lines += [f"export type {name} = {typescript_type(api, schema)};"]
            continue
        lines += [f"export interface {name} {{"]
        for key, value_schema in properties.items():
            lines += block(description(value_schema), "  ")
            lines += [f"  {key}{'' if key in required else '?'}: {typescript_type(api, value_schema)};"]
        lines += ["}"]
    return "\n".join(lines) + "\n"


def typescript_client(api: Api) -> str:
    names = sorted(name for name in api.schemas if name != "ErrorResponse")
    used = [name for name in names if any(uses(api, method, name) for method in api.methods)]
    lines = ["// The client.", f"// {MADE}", "", 'import { Transport } from "./transport.js";']
    lines += ["import type {", *(f"  {name}," for name in used), '} from "./types.js";', ""]
    lines += ["/** Strata over HTTP. */", "export class Strata extends Transport {"]
    for index, method in enumerate(api.methods):
        lines += ([""] if index else []) + typescript_method(api, method)
    return "\n".join(lines) + "\n}\n"


def typescript_method(api: Api, method: Method) -> list[str]:
    answer = typescript_type(api, method.answer)
    name = "".join(part.capitalize() if index else part for index, part in enumerate(method.name.split("_")))
    lines = block(method.about, "  ")
    first = [f"{it.name}{'' if it.required else '?'}: {typescript_type(api, it.schema)}" for it in method.first]
    lines += [f"  async {name}(", *(f"    {it}," for it in first)]
    if method.named:
        lines += ["    options: {"]
        for it in method.named:
            lines += block(it.about, "      ")
            lines += [f"      {it.name}{'' if it.required else '?'}: {typescript_type(api, it.schema)};"]
        lines += ["    } = {},"]
    lines += [f"  ): Promise<{answer}> {{", f'    const answer = await this.call("{method.http_method}", {typescript_path(method)}, {{']
    for place, title in [("query", "query"), ("body", "body"), ("header", "headers")]:
        parameters = method.parameters(place)
        if parameters:
            lines += [f"      {title}: {{", *(f"        {json_key(it)}: {value(method, it, python=False)}," for it in parameters), "      },"]
    return [*lines, "    });", f"    return answer as {answer};", "  }"]


def json_key(it: Parameter) -> str:
    return it.wire_name if it.wire_name.isidentifier() else f'"{it.wire_name}"'


def typescript_path(method: Method) -> str:
    path = method.path
    for it in method.parameters("path"):
        path = path.replace("{" + it.name + "}", "${this.escaped(" + value(method, it, python=False) + ")}")
    return f"`{path}`" if "$" in path else f'"{path}"'


def block(text: str, indent: str) -> list[str]:
    lines = wrapped(text.replace("*/", "* /"), WIDTH - len(indent) - 3)
    if not lines:
        return []
    if len(lines) == 1:
        return [f"{indent}/** {lines[0]} */"]
    return [f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines), f"{indent} */"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
