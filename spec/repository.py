"""Where a model repository lies, in the exact form that Triton takes."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

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
_HOST_PORT: Final = re.compile(r"^[A-Za-z0-9.-]+:[0-9]{1,5}$")
_BUCKET: Final = re.compile(r"^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$")


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
        """The form for ``--model-repository`` (Triton user guide, Model Repository, Cloud Storage)."""
        if self.scheme == "pvc":
            return f"/models/{self.path}".rstrip("/")
        if not self.endpoint:
            return f"{self.scheme}://{self.bucket}/{self.path}"
        # Triton takes host:port for plain HTTP and wants the https:// kept for TLS.
        return f"s3://{self.endpoint.removeprefix('http://')}/{self.bucket}/{self.path}"

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
        refuse("not a repository address", allowed=_FORMS)
    scheme, rest = value.split("://", 1)
    match scheme:
        case "s3":
            return _s3(rest)
        case "gs":
            bucket, path = _bucket_and_folder(rest, "gs://bucket/folder")
            return Repository("gs", bucket, path)
        case "as":
            account, path = _bucket_and_folder(rest, "as://account/container/folder")
            if "/" not in path:
                refuse(
                    "the root of a container is not a model repository",
                    fix=f"write as://{account}/{path}/folder",
                )
            return Repository("as", account, path)
        case "pvc":
            claim, _, path = rest.partition("/")
            if not DNS_LABEL.match(claim):
                refuse("not the name of a PersistentVolumeClaim", allowed="pvc://claim or pvc://claim/folder")
            return Repository("pvc", claim, _folder(path) if path.strip("/") else "")
        case "oss":
            refuse(
                "Triton has no oss:// store; OSS speaks the S3 protocol",
                allowed=_FORMS,
                fix=f"write s3://https://oss-REGION.aliyuncs.com:443/{rest}",
            )
    refuse("unknown scheme", allowed=_FORMS)
    return None


def _s3(rest: str) -> Repository:
    form = "s3://bucket/folder or s3://[https://]host:port/bucket/folder"
    if rest.startswith(("http://", "https://")):
        url = urlsplit(rest)
        if not _HOST_PORT.match(url.netloc):
            refuse(
                "an S3 endpoint needs host and port",
                allowed="s3://https://host:port/bucket/folder",
                fix=f"write s3://{url.scheme}://{url.netloc or 'host'}:{_DEFAULT_PORT[url.scheme]}{url.path}",
            )
        endpoint, rest = (
            f"{url.scheme}://{url.netloc}",
            url.path.lstrip("/") if not url.path.startswith("//") else "/",
        )
    elif ":" in rest.split("/", 1)[0]:
        host, _, rest = rest.partition("/")
        if not _HOST_PORT.match(host):
            refuse("not host:port", allowed=form)
        endpoint = f"http://{host}"
    else:
        endpoint = ""
        host = rest.split("/", 1)[0]
        if host.endswith((".amazonaws.com", ".aliyuncs.com", ".digitaloceanspaces.com")):
            refuse(
                "a host stands where the bucket belongs",
                allowed=form,
                fix="write s3://bucket/folder for AWS, or put host:port before the bucket for another store",
            )
    host = endpoint.partition("://")[2]
    bucket, path = _bucket_and_folder(rest, form)
    if host.startswith(f"{bucket}.") or re.match(r"^[^.]+\.s3[.-]", host):
        refuse(
            "the bucket belongs in the path, not in the host name",
            allowed="s3://https://host:port/bucket/folder",
            fix="leave the bucket out of the host",
        )
    return Repository("s3", bucket, path, endpoint)


def _bucket_and_folder(rest: str, form: str) -> tuple[str, str]:
    bucket, _, path = rest.partition("/")
    if not _BUCKET.match(bucket):
        refuse(f"{bucket!r} is not a bucket name", allowed=form)
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
        refuse("// inside the path is an empty folder name", fix="write single slashes")
    if any(part in {".", ".."} for part in path.split("/")) or any(c.isspace() for c in path):
        refuse("the path must be plain folder names", allowed="no . or .. and no white space")
    return path
