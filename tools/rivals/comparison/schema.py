"""The part of JSON Schema that schemas/*.json use. Any other keyword is an error of the schema: a schema never seems to
check more than it does. Standard library only."""

import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "schemas"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KEYWORDS = {"$schema", "title", "description", "type", "properties", "required", "additionalProperties", "items", "enum",
            "const", "minimum", "minItems", "minLength", "pattern"}


class Invalid(Exception):
    """A sentence a fault, joined by newlines."""


def is_of(value, name):
    if name in ("number", "integer"):
        kinds = (int, float) if name == "number" else (int,)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults(value, schema, where="$"):
    """Every way in which `value` breaks `schema`, as sentences."""
    unknown = set(schema) - KEYWORDS
    if unknown:
        return [f"The schema of {where} uses {sorted(unknown)[0]!r}, which is not one of {sorted(KEYWORDS)}."]
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(is_of(value, name) for name in names):
            return [f"{where} is {json.dumps(value)[:60]}; it must be of type {' or '.join(names)}."]
    out = []
    if "const" in schema and value != schema["const"]:
        out.append(f"{where} is {json.dumps(value)}; it must be {json.dumps(schema['const'])}.")
    if "enum" in schema and value not in schema["enum"]:
        out.append(f"{where} is {json.dumps(value)}; allowed are {', '.join(map(json.dumps, schema['enum']))}.")
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            out.append(f"{where} is shorter than {schema['minLength']} characters.")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            out.append(f"{where} is {json.dumps(value)}; it must match {schema['pattern']}.")
    elif isinstance(value, dict):
        out += object_faults(value, schema, where)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            out.append(f"{where} has {len(value)} items; at least {schema['minItems']} are needed.")
        for i, item in enumerate(value):
            out += faults(item, schema.get("items", {}), f"{where}[{i}]")
    elif is_of(value, "number") and "minimum" in schema and value < schema["minimum"]:
        out.append(f"{where} is {value}; it must be at least {schema['minimum']}.")
    return out


def object_faults(value, schema, where):
    properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    out = [f"{where} lacks {key!r}." for key in schema.get("required", []) if key not in value]
    for key, member in value.items():
        if key in properties:
            out += faults(member, properties[key], f"{where}.{key}")
        elif more is False:
            out.append(f"{where} has {key!r}; allowed are {', '.join(sorted(properties))}.")
        elif isinstance(more, dict):
            out += faults(member, more, f"{where}.{key}")
    return out


def load(name):
    """The committed schema of that name, such as "engine"."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def check(value, name, what):
    """Raises Invalid unless `value` is as the committed schema `name` says; `what` names the value in messages."""
    found = faults(value, load(name))
    if found:
        raise Invalid("\n".join(f"{what}: {fault}" for fault in found))
