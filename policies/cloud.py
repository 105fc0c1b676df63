"""Policies about AWS: buckets, and what roles may do."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy, object_policy
from policies.judging.unknown import CannotDecide, known
from policies.judging.view import Resource, View, dig
from policies.reading.each import each

_BUCKETS: Final = frozenset({"aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2"})
_BLOCK: Final = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
_BLOCKED: Final = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
# `log-delivery-write` and what gives rights to the owner of the bucket are not public.
_PUBLIC_ACLS: Final = frozenset({"public-read", "public-read-write", "authenticated-read"})
_PUBLIC_GROUPS: Final = ("/groups/global/AllUsers", "/groups/global/AuthenticatedUsers")
_ALGORITHMS: Final = frozenset({"AES256", "aws:kms", "aws:kms:dsse"})
_ADMINISTRATORS: Final = frozenset({"AdministratorAccess", "PowerUserAccess", "IAMFullAccess"})
_DOCUMENTS: Final = frozenset(
    {"aws:iam/policy:Policy", "aws:iam/rolePolicy:RolePolicy", "aws:iam/userPolicy:UserPolicy"}
    | {"aws:iam/groupPolicy:GroupPolicy"}
)
# Actions that AWS offers for all resources only, or that show names at most.
_HARMLESS: Final = ("Describe", "List")
_WITHOUT_RESOURCE: Final = frozenset({"ecr:GetAuthorizationToken", "sts:GetCallerIdentity", "cloudwatch:PutMetricData"})


@estate_policy(
    "bucket-exposed",
    "No bucket is public or without encryption",
    why="Models are the work of months, and whoever may write a bucket runs code in the servers that load from it.",
    fix="give the bucket a BucketPublicAccessBlock with all four fields true, acl private, a policy that names its "
    "principals, and sseAlgorithm AES256 or aws:kms",
    severity=Severity.CRITICAL,
    dev=Level.MANDATORY,
)
def bucket_exposed(view: View) -> Iterator[Finding]:
    """Buckets, and what stands beside them."""
    parts = [found for found in view.resources if found.type.startswith("aws:s3/bucket")]
    blocks = [one.inputs.get("bucket") for one in parts if one.type == _BLOCK]
    targets = {target for target in blocks if known(target)}
    sure = all(map(known, blocks))

    def check(found: Resource) -> Iterator[str]:
        yield from _exposed(found)
        # Where there is no engine, an id is made of the name.
        if found.type in _BUCKETS and not targets & {found.name, f"{found.name}-id", _name(found)}:
            if not sure:
                raise CannotDecide(
                    "which bucket a BucketPublicAccessBlock is for; give the bucket a name, and use that"
                )
            yield "has no BucketPublicAccessBlock"

    yield from each(parts, check, lambda found: found)


def _name(bucket: Resource) -> str:
    name = bucket.inputs.get("bucket")
    return name if known(name) and isinstance(name, str) else bucket.name


def _exposed(found: Resource) -> Iterator[str]:
    acl = found.at("acl", default="private")
    if acl in _PUBLIC_ACLS:
        yield f"acl is {acl}"
    grants = [*found.at("grants", default=[]), *found.at("accessControlPolicy", "grants", default=[])]
    for grant in grants:
        uri = dig(grant, "uri", default=dig(grant, "grantee", "uri", default=""))
        if uri.endswith(_PUBLIC_GROUPS):
            yield f"grants rights to {uri.rpartition('/')[2]}"
    if found.type == _BLOCK and (off := [part for part in _BLOCKED if not found.at(part, default=False)]):
        yield f"{', '.join(off)} not true"
    for statement in _statements(found.at("policy", default={})):
        everybody = "*" in _principals(dig(statement, "Principal", default=[]))
        if everybody and dig(statement, "Effect") == "Allow" and not dig(statement, "Condition", default={}):
            yield "its policy allows something to everybody (Principal *)"
    encryption = "bucketServerSideEncryptionConfiguration" in found.type
    given = found.at("rules" if encryption else "serverSideEncryptionConfiguration")
    if (encryption or given is not None) and not (set(_algorithms(given)) & _ALGORITHMS):
        yield f"its encryption names no algorithm of {', '.join(sorted(_ALGORITHMS))}"


def _algorithms(value: Any) -> Iterator[str]:  # noqa: ANN401  # JSON
    if not known(value):
        raise CannotDecide("the encryption of a bucket is unknown")
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from [dig(value, key)] if key == "sseAlgorithm" else _algorithms(item)
    elif isinstance(value, list):
        for item in value:
            yield from _algorithms(item)


def _principals(principal: Any) -> set[str]:  # noqa: ANN401  # JSON
    """AWS principals of a statement; those of services and federations are none of everybody."""
    return set(_several(principal if not isinstance(principal, Mapping) else dig(principal, "AWS", default=[])))


@object_policy(
    "iam-wildcard",
    "No IAM policy allows everything",
    why="A role of everything makes of one bad model, or one stolen key, the loss of the account.",
    fix="name the actions and the ARNs of the resources, e.g. s3:GetObject on arn:aws:s3:::<bucket>/<path>/*",
    severity=Severity.HIGH,
    dev=Level.ADVISORY,
)
def iam_wildcard(found: Resource, view: View) -> Iterator[str]:
    """Documents, documents inside roles, and attachments of what AWS has made for administrators."""
    del view
    if not found.type.startswith("aws:iam/"):
        return
    documents = [found.at("policy", default={})] if found.type in _DOCUMENTS else []
    documents += [dig(one, "policy", default={}) for one in found.at("inlinePolicies", default=[])]
    for document in documents:
        for index, statement in enumerate(_statements(document)):
            if dig(statement, "Effect", default="Allow") == "Allow":
                yield from (f"statement {index} {what}" for what in _allows(statement))
    attached = [found.at("policyArn", default=""), *found.at("managedPolicyArns", default=[])]
    for arn in [*attached, *found.at("policyArns", default=[])]:
        if not known(arn):
            raise CannotDecide("an attached policy is unknown")
        if ":aws:policy/" in arn and arn.rpartition("/")[2] in _ADMINISTRATORS:
            yield f"attaches {arn.rpartition('/')[2]}"


def _allows(statement: Mapping[str, Any]) -> Iterator[str]:
    actions = _several(dig(statement, "Action", default=[]))
    if "NotAction" in statement:
        yield "allows everything but its NotAction"
    if "NotResource" in statement:
        yield "allows its actions on everything but its NotResource"
    whole = [action for action in actions if action == "*" or action.endswith(":*")]
    if whole:
        yield f"allows every action: {', '.join(whole)}"
    if "*" not in _several(dig(statement, "Resource", default=[])) or dig(statement, "Condition", default={}):
        return
    needs = [one for one in actions if one not in _WITHOUT_RESOURCE and not _action(one).startswith(_HARMLESS)]
    if needs:
        yield f"allows {', '.join(needs)} on every resource (*)"


def _action(action: str) -> str:
    return action.partition(":")[2]


def _several(value: Any) -> list[str]:  # noqa: ANN401  # JSON
    """One string or a list of strings, as documents have it."""
    values = value if isinstance(value, list) else [value]
    if not all(known(one) for one in values):
        raise CannotDecide("a part of a policy document is unknown")
    return [one for one in values if isinstance(one, str)]


def _statements(document: Any) -> list[Mapping[str, Any]]:  # noqa: ANN401  # JSON
    """The statements of a policy document, which is a text or an object."""
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError:
            raise CannotDecide("a policy document is not JSON") from None
    found = dig(document, "Statement", default=[])
    return found if isinstance(found, list) else [found]
