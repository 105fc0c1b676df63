"""Repository addresses: exactly the forms that Triton takes, and the right form for every other one."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from spec.fields import Spec
from spec.problems import Problem
from spec.repository import Repository, parse
from spec.source import Source
from spec.validation import validate


class Holder(Spec):
    repository: Repository


def refusal(uri: Any) -> Problem:
    spec, (problem,) = validate(Holder, {"repository": uri}, Source("m.yaml", {}))
    assert spec is None
    assert problem.allowed
    assert problem.fix
    return problem


GOOD = [
    ("s3://bucket/path", Repository("s3", "bucket", "path"), "s3://bucket/path"),
    ("s3://bucket/a/b/", Repository("s3", "bucket", "a/b"), "s3://bucket/a/b"),
    ("s3://my.dotted.bucket/x", Repository("s3", "my.dotted.bucket", "x"), "s3://my.dotted.bucket/x"),
    ("s3://host:9000/bucket/path", Repository("s3", "bucket", "path", "http://host:9000"), "s3://host:9000/bucket/path"),
    (
        "s3://http://host:9000/bucket/path",
        Repository("s3", "bucket", "path", "http://host:9000"),
        "s3://host:9000/bucket/path",
    ),
    (
        "s3://https://host:9000/bucket/path",
        Repository("s3", "bucket", "path", "https://host:9000"),
        "s3://https://host:9000/bucket/path",
    ),
    (
        "s3://10.0.0.1:9000/bucket/path",
        Repository("s3", "bucket", "path", "http://10.0.0.1:9000"),
        "s3://10.0.0.1:9000/bucket/path",
    ),
    (
        "s3://https://oss-cn-shanghai.aliyuncs.com:443/triton-model-repo/models",
        Repository("s3", "triton-model-repo", "models", "https://oss-cn-shanghai.aliyuncs.com:443"),
        "s3://https://oss-cn-shanghai.aliyuncs.com:443/triton-model-repo/models",
    ),
    ("gs://bucket/path", Repository("gs", "bucket", "path"), "gs://bucket/path"),
    ("as://account/container/path", Repository("as", "account", "container/path"), "as://account/container/path"),
    ("as://account/container/a/b/", Repository("as", "account", "container/a/b"), "as://account/container/a/b"),
    ("pvc://claim", Repository("pvc", "claim", ""), "pvc://claim"),
    ("pvc://claim/", Repository("pvc", "claim", ""), "pvc://claim"),
    ("pvc://claim/a/b", Repository("pvc", "claim", "a/b"), "pvc://claim/a/b"),
]  # fmt: skip
NO_ADDRESS, ROOT, HOST = "not a repository address", "the root of a bucket is not", "a host stands where the bucket"
BAD: list[tuple[object, str]] = [
    # Not an address of a store at all.
    (None, NO_ADDRESS), (5, NO_ADDRESS), ("", NO_ADDRESS), ("/models", NO_ADDRESS), ("s3:bucket/x", NO_ADDRESS),
    ({"uri": "s3://bucket/x"}, NO_ADDRESS), ("https://bucket/x", "unknown scheme https://"),
    ("file:///models", "unknown scheme file://"), ("S3://bucket/x", "unknown scheme S3://"),
    ("oss://triton-model-repo/models", "Triton has no oss:// store"),
    # A folder is missing.
    ("s3://bucket", ROOT), ("s3://bucket/", ROOT), ("gs://bucket", ROOT), ("s3://host:9000/bucket", ROOT),
    ("s3://https://host:9000/bucket/", ROOT), ("as://account/container", "the root of a container"),
    ("as://account", "the root of a container"), ("as://account/container/", "the root of a container"),
    # Host and port.
    ("s3://https://host/bucket/path", "an S3 endpoint needs host and port"),
    ("s3://http://host/bucket/path", "an S3 endpoint needs host and port"),
    ("s3://https://host:/bucket/path", "an S3 endpoint needs host and port"),
    ("s3://https://host:70000/bucket/path", "an S3 endpoint needs host and port"),
    ("s3://host:/bucket/path", "not host:port"), ("s3://host:0/bucket/path", "not host:port"),
    ("s3://host:port/bucket/path", "not host:port"), ("s3://:9000/bucket/path", "not host:port"),
    ("s3://host:99999/bucket/path", "not host:port"), ("s3://[::1]:9000/bucket/path", "not host:port"),
    ("s3://10.0.0.1/bucket/path", HOST), ("s3://localhost/bucket/path", HOST),
    ("s3://minio.storage.svc/bucket/path", HOST), ("s3://minio.storage.svc.cluster.local/bucket/path", HOST),
    ("s3://s3.eu-west-1.amazonaws.com/bucket/path", HOST), ("s3://bucket.s3.amazonaws.com/path", HOST),
    # The bucket as a part of the host.
    ("s3://https://bucket.s3.amazonaws.com:443/path/x", "the bucket belongs in the path"),
    ("s3://https://bucket.host:9000/bucket/path", "the bucket belongs in the path"),
    ("s3://https://repo.oss-cn-shanghai.aliyuncs.com:443/models/x", "the bucket belongs in the path"),
    ("s3://https://repo.nyc3.digitaloceanspaces.com:443/models/x", "the bucket belongs in the path"),
    ("as://account.blob.core.windows.net/container/path", "not the name of a storage account"),
    # Names and folders.
    ("s3://Bucket/x", "'Bucket' is not a bucket name"), ("s3://b/x", "'b' is not a bucket name"),
    ("gs://b*k/x", "'b*k' is not a bucket name"), ("s3:///x", "'' is not a bucket name"),
    ("s3://host:9000//bucket/path", "'' is not a bucket name"), ("s3://bucket//path", "// inside the path"),
    ("s3://bucket/a//b", "// inside the path"), ("s3://host:9000/bucket/a//b", "// inside the path"),
    ("gs://bucket//a", "// inside the path"), ("as://account/container//a", "// inside the path"),
    ("pvc://claim//a", "// inside the path"), ("s3://bucket/../x", "plain folder names"),
    ("s3://bucket/./x", "plain folder names"), ("s3://bucket/a b", "plain folder names"),
    ("s3://bucket/x\n", "plain folder names"), ("pvc://claim/..", "plain folder names"),
    ("pvc://Claim/x", "not the name of a PersistentVolumeClaim"), ("pvc:///x", "not the name of a Persistent"),
    # What would be dropped or leak.
    ("s3://bucket/x?versionId=3", "no parameters"), ("s3://https://host:9000/bucket/path?x=1", "no parameters"),
    ("s3://bucket/x#part", "no parameters"), ("s3://key:secret@host:9000/bucket/x", "credentials"),
    ("s3://https://key:secret@host:9000/bucket/x", "credentials"),
]  # fmt: skip


class TestForms:
    @pytest.mark.parametrize(("written", "repository", "uri"), GOOD)
    def test_a_good_one_is_read(self, written: str, repository: Repository, uri: str) -> None:
        del uri
        assert parse(written) == repository

    @pytest.mark.parametrize(("written", "repository", "uri"), GOOD)
    def test_triton_is_given_exactly_this(self, written: str, repository: Repository, uri: str) -> None:
        del repository
        assert parse(written).uri == uri

    @pytest.mark.parametrize(("written", "message"), BAD)
    def test_a_bad_one_is_refused_with_the_right_form(self, written: object, message: str) -> None:
        assert message in refusal(written).message

    @pytest.mark.parametrize("written", [written for written, _, _ in GOOD])
    def test_the_schema_takes_every_good_one(self, written: str) -> None:
        assert re.search(TypeAdapter(Repository).json_schema()["pattern"], written)

    @given(
        st.sampled_from(["", "http://minio:9000", "https://store.example.com:443"]),
        st.from_regex(r"[a-z0-9][a-z0-9-]{1,20}[a-z0-9]", fullmatch=True),
        st.lists(st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,9}", fullmatch=True), min_size=1, max_size=4),
    )
    def test_what_triton_is_given_reads_as_the_same_repository(
        self, endpoint: str, bucket: str, path: list[str]
    ) -> None:
        repository = Repository("s3", bucket, "/".join(path), endpoint)
        assert parse(repository.uri) == repository


class TestFixes:
    def test_oss_is_offered_over_the_s3_protocol(self) -> None:
        fix = refusal("oss://triton-model-repo/models").fix
        assert fix == "write s3://https://oss-REGION.aliyuncs.com:443/triton-model-repo/models"
        assert parse(fix.removeprefix("write ")).bucket == "triton-model-repo"

    @pytest.mark.parametrize(
        ("written", "fix"),
        [("s3://https://host/bucket/path", "s3://https://host:443/bucket/path"),
         ("s3://http://host/bucket/path", "s3://http://host:80/bucket/path"),
         ("as://account/container", "as://account/container/folder")],
    )  # fmt: skip
    def test_a_fix_is_an_address_that_is_accepted(self, written: str, fix: str) -> None:
        assert refusal(written).fix == f"write {fix}"
        assert parse(fix)

    def test_a_password_is_not_repeated_in_the_fix(self) -> None:
        assert "secret" not in refusal("s3://https://key:secret@host:9000/bucket/x").fix
