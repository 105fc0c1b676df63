"""Files that a model file names, which lie beside it."""

from pathlib import Path

from spec.problems import Problem


def read_beside(name: object, folder: Path) -> tuple[str | None, Problem | None]:
    """Text of a file in the folder of the model files.

    Args:
        name: as written in the model file.
        folder: folder of the model files.

    Returns:
        The text and None, or None and what is wrong with the name or the file.
    """
    if not isinstance(name, str) or Path(name).name != name or name in {"", ".."}:
        message = "must be the name of a file beside the model file"
        fix = "put the file beside the model file, and write its bare name"
        return None, Problem("", message, name, "a file name without folders", fix)
    try:
        return (folder / name).read_text(encoding="utf-8"), None
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        fix = f"put {name} into {folder.name}/"
        return None, Problem("", f"cannot be read: {reason}", name, "a text file", fix)
