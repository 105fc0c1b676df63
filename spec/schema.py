"""Write the JSON Schemas of model files and stack files, which every YAML file points its editor to."""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from spec import names
from spec.estate import EstateSpec
from spec.model import ModelSpec
from spec.triton import schema as triton_schema

FOLDER: Final = Path(__file__).with_name("schemas")
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def model_schema() -> dict[str, Any]:
    """Schema of ``models/*.yaml``."""
    schema = _schema(ModelSpec)
    schema["title"] = "A model of the estate"
    file = {
        "type": "object",
        "additionalProperties": False,
        "required": ["file"],
        "properties": {"file": {"type": "string", "description": "a config.pbtxt beside the model file"}},
    }
    config = {"anyOf": [triton_schema.reference(), file], "description": "Triton ModelConfig in its own field names"}
    schema["properties"]["config"] = config
    schema["$defs"]["MemberSpec"]["properties"]["config"] = config
    schema["$defs"] |= triton_schema.definitions()
    return schema


def stack_schema() -> dict[str, Any]:
    """Schema of ``Pulumi.<stack>.yaml``: the project's own keys are closed, the engine's are left alone."""
    estate = _schema(EstateSpec)
    definitions = estate.pop("$defs")
    properties = {f"{names.PROJECT}:{key}": value for key, value in estate["properties"].items()}
    overrides = properties[f"{names.PROJECT}:models"]
    overrides["description"] = "fields that replace those of a model file, by model name; null removes a field"
    return {
        "$schema": _DIALECT,
        "title": "Settings of a stack",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "required": [f"{names.PROJECT}:environment"],
                "properties": properties,
                "propertyNames": {"anyOf": [{"enum": sorted(properties)}, {"not": {"pattern": f"^{names.PROJECT}:"}}]},
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
    return {"$schema": _DIALECT} | schema


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
    for name, schema in (("model", model_schema()), ("stack", stack_schema())):
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
