"""Write the JSON Schemas of model files and stack files, which every YAML file points its editor to."""

import argparse
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from spec import names
from spec.contract import Contract
from spec.estate import EstateSpec
from spec.model import ModelSpec, RevisionSpec
from spec.signing import KEYS_SETTING
from spec.triton import schema as triton_schema

FOLDER: Final = Path(__file__).with_name("schemas")
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def model_schema() -> dict[str, Any]:
    """Schema of ``models/*.yaml``."""
    schema = _schema(ModelSpec)
    schema["title"] = "A model of the estate"
    described = _schema(RevisionSpec)["properties"]  # whose words stand in its own docstring
    schema["properties"] |= described
    file = {
        "type": "object",
        "additionalProperties": False,
        "required": ["file"],
        "properties": {"file": {"type": "string", "description": "a config.pbtxt beside the model file"}},
    }
    config = {"anyOf": [triton_schema.reference(), file], "description": "Triton ModelConfig in its own field names"}
    schema["properties"]["config"] = schema["$defs"]["MemberSpec"]["properties"]["config"] = config
    schema["$defs"] |= triton_schema.definitions()
    fields = {name: schema["properties"][name] for name in described}
    revision = {"type": "object", "additionalProperties": False, "properties": fields}
    schema["$defs"]["Revision"] = _differences(revision, schema["$defs"]) | {
        "description": "the fields in which this revision differs from the file; null removes one"
    }
    named = schema["properties"]["revisions"]["patternProperties"]
    schema["properties"]["revisions"]["patternProperties"] = {form: {"$ref": "#/$defs/Revision"} for form in named}
    return schema


def contract_schema() -> dict[str, Any]:
    """Schema of the stack's outputs."""
    return _schema(Contract)


def stack_schema() -> dict[str, Any]:
    """Schema of ``Pulumi.<stack>.yaml``: the project's own keys are closed, the engine's are left alone."""
    estate = _schema(EstateSpec)
    definitions = estate.pop("$defs")
    for name, value in definitions["GatewaySpec"]["properties"].items():  # whose words stand in its own docstring
        definitions["IngressSpec"]["properties"][name]["description"] = value["description"]
    properties = {f"{names.PROJECT}:{key}": value for key, value in estate["properties"].items()}
    overrides = properties[f"{names.PROJECT}:models"]
    overrides["description"] = "fields that replace those of a model file, by model name; null removes a field"
    # A secret, which is encrypted in the file: only the program under the engine can read it.
    allowed = sorted([*properties, f"{names.PROJECT}:{KEYS_SETTING}"])
    return {
        "$schema": _DIALECT,
        "title": "Settings of a stack",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "required": [f"{names.PROJECT}:environment"],
                "properties": properties,
                "propertyNames": {"anyOf": [{"enum": allowed}, {"not": {"pattern": f"^{names.PROJECT}:"}}]},
            }
        },
        "$defs": definitions,
    }


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True)
    for found in (schema, *schema.get("$defs", {}).values()):
        summary, texts = _words(found.pop("description", ""))
        if summary:
            found["description"] = summary
        for name, value in found.get("properties", {}).items():
            value.pop("title", None)
            if not isinstance(value.get("default"), int | float | str):
                value.pop("default", None)  # an object or null: says nothing that its own schema does not
            if name in texts:
                value["description"] = texts[name]
            if "patternProperties" in value:
                value["additionalProperties"] = False
    return {"$schema": _DIALECT} | schema


def _differences(found: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a JSON merge patch for what a schema describes: nothing is required, and null removes a field."""
    if "$ref" in found:
        name = found["$ref"].rpartition("/")[2]
        if definitions[name].get("type") != "object":
            return found
        if (changed := f"{name}.Differences") not in definitions:
            definitions[changed] = {}  # until it is known: a definition may refer to itself
            definitions[changed] = _differences(definitions[name], definitions)
        return found | {"$ref": f"#/$defs/{changed}"}
    result = {key: value for key, value in found.items() if key not in {"required", "default"}}
    if "anyOf" in result:
        result["anyOf"] = [_differences(form, definitions) for form in result["anyOf"]]
    for key in ("properties", "patternProperties"):
        if key in result:
            result[key] = {name: _or_null(_differences(value, definitions)) for name, value in result[key].items()}
    if isinstance(result.get("additionalProperties"), dict):
        result["additionalProperties"] = _or_null(_differences(result["additionalProperties"], definitions))
    return result


def _or_null(found: dict[str, Any]) -> dict[str, Any]:
    if {"type": "null"} in found.get("anyOf", []):
        return found
    words = {key: value for key, value in found.items() if key == "description"}
    form = {key: value for key, value in found.items() if key != "description"}
    return {"anyOf": [form, {"type": "null"}]} | words


def field_texts(model: type[BaseModel]) -> dict[str, str]:
    """What the docstrings of a spec and of its bases say about each field, by its name in the file."""
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base.__doc__:
            texts |= _words(inspect.cleandoc(base.__doc__))[1]
    return texts


def _words(docstring: str) -> tuple[str, dict[str, str]]:
    """First line of a class's docstring, and the text of each attribute by its name in the file."""
    summary, _, attributes = docstring.partition("\n")
    joined = re.sub(r"\n {8,}", " ", attributes)
    return summary, {
        to_camel(name): text.strip() for name, text in re.findall(r"^ *(\w+): (.+)$", joined, re.MULTILINE)
    }


def _render(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def main() -> int:
    """Write the schemas, or with ``--check`` say which are out of date."""
    parser = argparse.ArgumentParser(prog="python -m spec.schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if a file is out of date")
    check = parser.parse_args().check
    stale = []
    schemas = {"model": model_schema(), "stack": stack_schema(), "contract": contract_schema()}
    for name, schema in schemas.items():
        path, text = FOLDER / f"{name}.schema.json", _render(schema)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if not check:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale and check:
        sys.stderr.write(f"out of date: {', '.join(stale)}\n  fix: run `make schemas` and commit the result\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
