"""References to container images, taken apart.

Source: the grammar of the distribution project, ``[host[:port]/]path[:tag][@digest]``.
"""

from dataclasses import dataclass

_LONGEST_LABEL = 63  # characters of a Kubernetes label value
_SHOWN_OF_DIGEST = 12  # as container engines shorten it


@dataclass(frozen=True)
class Image:
    """A reference to an image.

    Attributes:
        name: registry and path, e.g. ``nvcr.io/nvidia/tritonserver``.
        tag: None where there is none; whoever pulls takes ``latest`` then, unless there is a digest.
        digest: e.g. ``sha256:`` and 64 digits, None where there is none. It goes before the tag.
    """

    name: str
    tag: str | None = None
    digest: str | None = None

    @property
    def version(self) -> str:
        """The tag, or the beginning of the digest, as the value of a Kubernetes label; empty where there is neither."""
        text = self.tag or (self.digest or "").rpartition(":")[2][:_SHOWN_OF_DIGEST]
        return text[:_LONGEST_LABEL].strip("-_.")


def parse_image(text: str) -> Image:
    """Take a reference apart; one that is no good as a whole is not refused."""
    reference, _, digest = text.partition("@")
    folder, slash, last = reference.rpartition("/")
    # A colon before the last slash stands before the port of a registry.
    path, _, tag = last.partition(":")
    return Image(f"{folder}{slash}{path}", tag or None, digest or None)
