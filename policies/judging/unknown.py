"""Values that a preview does not know yet, and that must not pass for known ones."""

from typing import Any, Final, NoReturn

from google.protobuf import json_format

# The marks of Pulumi's wire format, see pulumi.runtime.rpc.
_UNKNOWN: Final = frozenset(
    {
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  # a mark, not a secret
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


class CannotDecide(Exception):  # noqa: N818  # not an error of the policy
    """A policy needed a value that is not known before the update."""


class _Marker:
    """Stands where a value should be; whoever looks at it cannot decide."""

    _why = ""

    def _refuse(self, *_: object) -> NoReturn:
        raise CannotDecide(self._why)

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __iter__ = __len__ = _refuse
    __getitem__ = __add__ = __radd__ = __mul__ = __rmul__ = __int__ = __float__ = __str__ = __format__ = _refuse
    __hash__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __deepcopy__(self, memo: object) -> "_Marker":
        return self


class Unknown(_Marker):
    """A value that only the update will bring."""

    _why = "a value is not known before the update"

    def __repr__(self) -> str:
        return "<unknown>"


class Sealed(_Marker):
    """A Pulumi secret: policies know that it is one, and nothing of what it says."""

    _why = "a value is secret"

    def __repr__(self) -> str:
        return "<secret>"


UNKNOWN: Final = Unknown()
SEALED: Final = Sealed()


def known(value: object) -> bool:
    """Whether a value, but not what is inside it, can be looked at."""
    return not isinstance(value, _Marker)


def plain(value: Any) -> Any:  # noqa: ANN401  # JSON
    """Data of Pulumi's wire format, as JSON, with marks in place of what is unknown or secret."""
    if isinstance(value, str):
        return UNKNOWN if value in _UNKNOWN else value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)  # protobuf knows doubles only
    if not isinstance(value, dict):
        return value
    match value.get(_SIGNATURE):
        case None:
            return {key: plain(item) for key, item in value.items()}
        case signature if signature == _SECRET:
            return SEALED
        case signature if signature == _OUTPUT:
            inner = plain(value["value"]) if "value" in value else UNKNOWN
            return SEALED if value.get("secret") else inner
    return UNKNOWN  # an asset, an archive or a reference, whose content nobody here sees


def from_struct(struct: Any) -> dict[str, Any]:  # noqa: ANN401  # protobuf generates its classes
    """A ``google.protobuf.Struct`` as :func:`plain` data."""
    return plain(json_format.MessageToDict(struct))
