"""Where a model repository lies, in the exact form that Triton takes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from spec.fields import refuse
from spec.names import DNS_LABEL

_FORMS: Final = (
    "s3://bucket/folder, s3://host:port/bucket/folder, s3://https://host:port/bucket/folder, "
    "gs://bucket/folder, as://account/container/folder or pvc://claim/folder"
)
_DEFAULT_PORT: Final = {"http": 80, "https": 443}
_HOST_PORT: Final = re.compile(r"[A-Za-z0-9.-]+:([0-9]{1,5})")
_LAST_PORT: Final = 65535
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")
# What can only be a host: an IPv4 address, a name inside a cluster or a network, a store's own domain.
_HOST: Final = re.compile(
    r"^[0-9]+(\.[0-9]+){3}$|^localhost$|\.(svc|local|internal|amazonaws\.com|aliyuncs\.com|digitaloceanspaces\.com)$"
)
_BUCKET_IN_HOST: Final = re.compile(r"[^.]+\.(s3|oss)[.-]|([^.]+\.){2,}digitaloceanspaces\.com:")
_S3_FORMS: Final = "s3://bucket/folder or s3://[https://]host:port/bucket/folder"


@dataclass(frozen=True)
class Repository:
    """A folder that holds one ``<model>/<version>/`` tree for each model that the server loads.

    Attributes:
        scheme: ``s3``, ``gs``, ``as`` or ``pvc``.
        bucket: bucket, storage account (``as``) or claim (``pvc``).
        path: folder inside it, without leading or trailing slash; for ``as`` it begins with the container.
        endpoint: ``http://host:port`` or ``https://host:port`` of an S3-compatible store, else ``""``.
    """

    scheme: str
    bucket: str
    path: str
    endpoint: str = ""

    @property
    def uri(self) -> str:
        """The form for ``--model-repository`` (Triton user guide, Model Repository, Cloud Storage).

        A claim has none, because Triton sees a mounted folder: it is shown as its author writes it.
        """
        # Triton takes host:port for plain HTTP and wants the https:// kept for TLS.
        endpoint = f"{self.endpoint.removeprefix('http://')}/" if self.endpoint else ""
        return f"{self.scheme}://{endpoint}{self.bucket}/{self.path}".rstrip("/")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate from a string."""
        del source, handler
        return core_schema.no_info_plain_validator_function(parse)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """A string with a known scheme."""
        del schema, handler
        return {
            "type": "string",
            "pattern": "^(s3|gs|as|pvc)://.+",
            "description": f"Model repository: {_FORMS}",
        }


def parse(value: object) -> Repository:
    """Check a repository URI.

    Raises:
        PydanticCustomError: not a form that Triton takes, with the right form.
    """
    if isinstance(value, Repository):
        return value
    if not isinstance(value, str) or "://" not in value:
        refuse("not a repository address", allowed=_FORMS, fix="write for example s3://bucket/folder")
    scheme, rest = value.split("://", 1)
    if scheme == "oss":
        refuse(
            "Triton has no oss:// store; OSS speaks the S3 protocol",
            allowed=_FORMS,
            fix=f"write s3://https://oss-REGION.aliyuncs.com:443/{rest}",
        )
    if scheme not in _READERS:
        refuse(f"unknown scheme {scheme}://", allowed=_FORMS, fix="write for example s3://bucket/folder")
    if any(character in rest for character in "?#"):
        refuse("a repository address has no parameters", allowed=_FORMS, fix="leave out what follows ? or #")
    return _READERS[scheme](rest)


def _s3(rest: str) -> Repository:
    endpoint, rest = _endpoint(rest)
    bucket, path = _bucket_and_folder(rest, _S3_FORMS)
    host = endpoint.partition("://")[2]
    if host.startswith(f"{bucket}.") or _BUCKET_IN_HOST.match(host):
        refuse(
            "the bucket belongs in the path, not in the host name",
            allowed="s3://https://host:port/bucket/folder",
            fix="leave the bucket out of the host",
        )
    return Repository("s3", bucket, path, endpoint)


def _endpoint(rest: str) -> tuple[str, str]:
    """The endpoint of an S3-compatible store, empty for AWS, and what follows it."""
    scheme, marker, behind = rest.partition("://")
    if marker and scheme in _DEFAULT_PORT:
        host, _, path = behind.partition("/")
        if "@" in host:
            _refuse_credentials()
        if not _is_host_port(host):
            name = host.partition(":")[0] or "host"
            refuse(
                "an S3 endpoint needs host and port",
                allowed="s3://https://host:port/bucket/folder",
                fix=f"write s3://{scheme}://{name}:{_DEFAULT_PORT[scheme]}/{path}",
            )
        return f"{scheme}://{host}", path
    host, _, path = rest.partition("/")
    if "@" in host:
        _refuse_credentials()
    if ":" in host:
        if not _is_host_port(host):
            refuse("not host:port", allowed=_S3_FORMS, fix="write for example s3://host:9000/bucket/folder")
        return f"http://{host}", path
    if _HOST.search(host):
        refuse(
            "a host stands where the bucket belongs",
            allowed=_S3_FORMS,
            fix="write s3://bucket/folder for AWS, or put host:port before the bucket for another store",
        )
    return "", rest


def _refuse_credentials() -> NoReturn:
    refuse(
        "credentials do not belong in a file that everybody reads",
        allowed=_S3_FORMS,
        fix="leave user and password out of the address",
    )


def _is_host_port(text: str) -> bool:
    match = _HOST_PORT.fullmatch(text)
    return match is not None and 1 <= int(match[1]) <= _LAST_PORT


def _gs(rest: str) -> Repository:
    return Repository("gs", *_bucket_and_folder(rest, "gs://bucket/folder"))


def _as(rest: str) -> Repository:
    form = "as://account/container/folder"
    account, _, path = rest.partition("/")
    if not _ACCOUNT.fullmatch(account):
        refuse("not the name of a storage account", allowed=form, fix="write the bare account name, without host")
    container, _, folder = path.partition("/")
    if not folder.strip("/"):
        refuse(
            "the root of a container is not a model repository",
            allowed=form,
            fix=f"write as://{account}/{container or 'container'}/folder",
        )
    return Repository("as", account, _folder(path))


def _pvc(rest: str) -> Repository:
    claim, _, path = rest.partition("/")
    if not DNS_LABEL.fullmatch(claim):
        form = "pvc://claim or pvc://claim/folder"
        refuse("not the name of a PersistentVolumeClaim", allowed=form, fix="write the name that kubectl shows")
    return Repository("pvc", claim, _folder(path) if path.strip("/") else "")


_READERS: Final[Mapping[str, Callable[[str], Repository]]] = {"s3": _s3, "gs": _gs, "as": _as, "pvc": _pvc}


def _bucket_and_folder(rest: str, form: str) -> tuple[str, str]:
    bucket, _, path = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        refuse(
            f"{bucket!r} is not a bucket name", allowed=form, fix="write the bucket, 3 to 63 of a-z, 0-9, -, _ and ."
        )
    if not path.strip("/"):
        refuse(
            "the root of a bucket is not a model repository",
            allowed=form,
            fix=f"put the models in a folder of {bucket}",
        )
    return bucket, _folder(path)


def _folder(path: str) -> str:
    path = path.removesuffix("/")
    if "//" in f"/{path}":
        refuse("// inside the path is an empty folder name", allowed="plain folder names", fix="write single slashes")
    if any(part in {".", ".."} for part in path.split("/")) or any(c.isspace() for c in path):
        refuse(
            "the path must be plain folder names",
            allowed="no . or .. and no white space",
            fix="write the path from the bucket on",
        )
    return path
