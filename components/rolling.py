"""What makes pods new when only their configuration has changed: Kubernetes does not look into ConfigMaps."""

import hashlib
from collections.abc import Mapping
from typing import Final

from spec import names

CONFIG_HASH: Final = f"{names.LABEL_DOMAIN}/config-sha256"


def rolled_by(files: Mapping[str, str]) -> dict[str, str]:
    """The annotation of a pod template that changes whenever one of these files does.

    Args:
        files: what the pod reads, by name.
    """
    text = "".join(f"{name}\0{content}\0" for name, content in sorted(files.items()))
    return {CONFIG_HASH: hashlib.sha256(text.encode()).hexdigest()}
