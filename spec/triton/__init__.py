"""Triton's model configuration: parsed, checked and written in its canonical form."""

from spec.triton.check import check
from spec.triton.ensemble import check_ensemble
from spec.triton.instances import instance_count, served_versions, version_count
from spec.triton.layout import check_layout
from spec.triton.parse import parse
from spec.triton.platforms import check_image
from spec.triton.proto import ModelConfig
from spec.triton.revisions import check_revisions
from spec.triton.text import parse_text, render
from spec.triton.values import protocol_type

__all__ = [
    "ModelConfig",
    "check",
    "check_ensemble",
    "check_image",
    "check_layout",
    "check_revisions",
    "instance_count",
    "parse",
    "parse_text",
    "protocol_type",
    "render",
    "served_versions",
    "version_count",
]
