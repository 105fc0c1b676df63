"""Base class of the arguments of every component."""

from pydantic import BaseModel, ConfigDict


class Args(BaseModel):
    """Frozen, no unknown field; holds resolved specs, which are dataclasses."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
