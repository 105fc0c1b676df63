"""What the corpus shows badly of the policies about security: boundaries, absent and unknown values, many at once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import security
from policies.judging.judge import Judge, Outcome, Verdict
from policies.judging.pack import judge_all
from policies.judging.policy import Policy
from policies.judging.settings import StackPolicies
from policies.judging.unknown import SEALED, UNKNOWN
from policies.judging.view import Resource, View
from tests.policies.project import spec_of, thing

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhY21lIn0.c2lnbmF0dXJlLW9mLWl0"  # noqa: S105  # signed by nobody
KEY = "AKIAIOSFODNN7EXAMPLE"
SERVING = {"app.kubernetes.io/name": "triton"}


def judged(policy: Policy, *resources: Resource, **settings: object) -> list[Verdict]:
    """What one policy says of some resources of a prod stack."""
    view = View("test", spec_of("prod"), StackPolicies.model_validate(settings))
    return judge_all(Judge([policy], view), resources)


def said(policy: Policy, *resources: Resource, **settings: object) -> list[str]:
    """The messages of :func:`judged`."""
    return [one.message for one in judged(policy, *resources, **settings)]


def deployment(spec: dict[str, Any] | None = None, name: str = "a", namespace: str = "serving") -> Resource:
    """A Deployment whose pods serve."""
    pod = {"metadata": {"labels": SERVING}, "spec": {"containers": [{"name": "triton"}]} | (spec or {})}
    metadata = {"name": name, "namespace": namespace}
    return Resource("kubernetes:apps/v1:Deployment", name, {"metadata": metadata, "spec": {"template": pod}})


def container(**fields: object) -> Resource:
    """A Deployment of one container."""
    return deployment({"containers": [{"name": "triton", **fields}]})


def kubernetes(kind: str, api: str = "core/v1", namespace: str = "serving", name: str = "a", **fields: Any) -> Resource:
    """A Kubernetes object."""
    return Resource(f"kubernetes:{api}:{kind}", name, {"metadata": {"name": name, "namespace": namespace}, **fields})


class TestSecretInPlainSight:
    POLICY = security.secret_in_plain_sight

    @pytest.mark.parametrize(
        ("name", "value", "found"),
        [
            ("DB_PASSWORD", "hunter2", True),
            ("dbPassword", "hunter2", True),
            ("PGPASSWORD", "hunter2", True),
            ("HF_TOKEN", "hf_abcdefgh", True),
            ("API_KEY", "k3y", True),
            ("OPENAI_APIKEY", "k3y", True),
            ("AWS_SECRET_ACCESS_KEY", "k3y", True),
            ("OAUTH_CLIENT_SECRET", "k3y", True),
            ("SESSION_SECRET", "k3y", True),
            ("TLS_SECRET", "gamma-tls", False),
            ("DB_PASSWORD_FILE", "hunter2", False),
            ("DB_PASSWORD", "/run/secrets/db", False),
            ("DB_PASSWORD", "$(DB)", False),
            ("DB_PASSWORD", "${DB}", False),
            ("DB_PASSWORD", "", False),
            ("DB_PASSWORD", None, False),
            ("TOKEN_URL", "https://issuer.example.com", False),
            ("TOKENIZER", "bert", False),
            ("EOS_TOKEN", "END", False),
            ("CACHE_TOKEN", "128", False),
            ("PUBLIC_KEY", "abc", False),
            ("KEYSTONE", "abc", False),
        ],
    )
    def test_names_of_variables(self, name: str, value: str | None, found: bool) -> None:
        assert bool(said(self.POLICY, container(env=[{"name": name, "value": value}]))) == found

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (["--password=hunter2"], True),
            (["--password", "hunter2"], True),
            (["--api-key=k3y"], True),
            (["--password", "--verbose"], False),
            (["--password"], False),
            (["--password-file=/run/p"], False),
            (["--token=$(TOKEN)"], False),
            (["sh", "-c", "export DB_PASSWORD=hunter2; exec server"], True),
            (["sh", "-c", "exec server --token hunter2"], True),
            (["sh", "-c", 'exec server --token "$TOKEN"'], False),
            (["--model-repository=s3://acme/token"], False),
        ],
    )
    @pytest.mark.parametrize("part", ["args", "command"])
    def test_arguments(self, part: str, words: list[str], found: bool) -> None:
        assert bool(said(self.POLICY, container(**{part: words}))) == found

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            (f"x {TOKEN} y", "a token (JWT)"),
            (f"id={KEY}", "the id of an AWS access key"),
            (f"X{KEY}", None),
            ("-----BEGIN PRIVATE KEY-----", "a private key"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"),
            ("-----BEGIN PUBLIC KEY-----", None),
            ("-----BEGIN CERTIFICATE-----", None),
            ("postgres://app:hunter2@db:5432/x", "an address with a password"),
            ("postgres://app:$(PASSWORD)@db:5432/x", None),
            ("postgres://app:<password>@db/x", None),
            ("postgres://app@db:5432/x", None),
            ("https://example.com:8443/a@b", None),
            ("s3://https://minio.example.com:9000/acme/a", None),
            ("eyJhbGciOiJSUzI1NiJ9", None),
        ],
    )
    @pytest.mark.parametrize("kind", ["ConfigMap", "ServiceEntry", "Release"])
    def test_shapes_in_any_kind(self, kind: str, text: str, found: str | None) -> None:
        group = {"ConfigMap": "core/v1", "ServiceEntry": "networking.istio.io/v1", "Release": "helm.sh/v3"}[kind]
        resource = Resource(f"kubernetes:{group}:{kind}", "a", {"values": {"deep": [{"text": text}]}})
        assert said(self.POLICY, resource) == ([f"values.deep[0].text holds {found}"] if found else [])

    @pytest.mark.parametrize("secret", ["hunter2-hunter2", TOKEN, KEY, "redis://u:hunter2-hunter2@h"])
    def test_no_message_says_the_secret(self, secret: str) -> None:
        env = [{"name": "DB_PASSWORD", "value": secret}]
        one = container(env=env, args=[f"--token={secret}"])
        two = kubernetes("ConfigMap", data={"a": f"password: {secret}", "token": secret})
        messages = [*said(self.POLICY, one), *said(self.POLICY, two)]
        assert len(messages) >= 4
        assert not [text for text in messages if secret in text or "hunter2" in text]

    @pytest.mark.parametrize(
        "resource",
        [
            kubernetes("ConfigMap", data={"a": SEALED}),
            kubernetes("ConfigMap", data=SEALED),
            container(env=[{"name": "A", "value": SEALED}]),
            container(args=["a", SEALED]),
            Resource("kubernetes:helm.sh/v3:Release", "a", {"values": {"grafana": {"adminPassword": SEALED}}}),
            kubernetes("Prometheus", "monitoring.coreos.com/v1", spec={"remoteWrite": [{"url": SEALED}]}),
            Resource("kubernetes:core/v1:Secret", "a", {"metadata": {"name": "a", "annotations": {"b": SEALED}}}),
        ],
        ids=lambda resource: resource.type,
    )
    def test_a_pulumi_secret_outside_a_secret(self, resource: Resource) -> None:
        assert "is a Pulumi secret" in said(self.POLICY, resource)[0]

    @pytest.mark.parametrize("part", ["data", "stringData"])
    @pytest.mark.parametrize("value", [SEALED, {"password": SEALED}, {"password": "hunter2"}, UNKNOWN])
    def test_a_secret_may_hold_secrets(self, part: str, value: object) -> None:
        assert said(self.POLICY, Resource("kubernetes:core/v1:Secret", "a", {part: value})) == []

    def test_what_is_not_of_kubernetes_keeps_its_own_secrets(self) -> None:
        assert said(self.POLICY, Resource("aws:rds/instance:Instance", "a", {"password": SEALED})) == []

    def test_an_unknown_part_is_undecided_and_the_rest_is_looked_at(self) -> None:
        found = judged(self.POLICY, container(env=[{"name": UNKNOWN, "value": "a"}], args=[TOKEN]))
        assert [one.outcome for one in found] == [Outcome.VIOLATED, Outcome.UNDECIDED]

    def test_an_unknown_value_is_not_here_yet(self) -> None:
        assert said(self.POLICY, container(env=[{"name": "DB_PASSWORD", "value": UNKNOWN}])) == []

    @given(st.text(max_size=60))
    def test_any_text_can_be_read(self, text: str) -> None:
        assert all("failed" not in one for one in said(self.POLICY, kubernetes("ConfigMap", data={"a": text})))

    def test_a_large_file_is_read_in_a_moment(self) -> None:
        text = "".join(f"name-{number}: some value, and more of it: {number}\n" for number in range(40_000))
        assert said(self.POLICY, kubernetes("ConfigMap", data={"a": text + f"password: {KEY[:8]}\n"})) == [
            "data.a, password has a literal value, and its name says that it is secret"
        ]


class TestServiceAccountToken:
    POLICY = security.service_account_token

    @pytest.mark.parametrize(
        ("pod", "account", "found"),
        [
            ({}, None, True),
            ({"automountServiceAccountToken": False}, None, False),
            ({"serviceAccountName": "a"}, {}, True),
            ({"serviceAccountName": "a"}, {"automountServiceAccountToken": False}, False),
            ({"serviceAccountName": "a", "automountServiceAccountToken": True}, {"automountServiceAccountToken": False},
             True),
            ({"serviceAccount": "a"}, {}, True),
        ],
    )  # fmt: skip
    def test_the_pod_decides_before_its_account(self, pod: dict[str, Any], account: Any, found: bool) -> None:
        accounts = [] if account is None else [kubernetes("ServiceAccount", **account)]
        assert bool(said(self.POLICY, deployment(pod), *accounts)) == found

    @pytest.mark.parametrize(
        ("kind", "subject", "found"),
        [
            ("RoleBinding", {"kind": "ServiceAccount", "name": "a"}, False),
            ("ClusterRoleBinding", {"kind": "ServiceAccount", "name": "a", "namespace": "serving"}, False),
            ("ClusterRoleBinding", {"kind": "ServiceAccount", "name": "a", "namespace": "other"}, True),
            ("ClusterRoleBinding", {"kind": "ServiceAccount", "name": "b", "namespace": "serving"}, True),
            ("ClusterRoleBinding", {"kind": "Group", "name": "system:serviceaccounts:serving"}, False),
            ("ClusterRoleBinding", {"kind": "User", "name": "a", "namespace": "serving"}, True),
        ],
    )
    def test_a_bound_account_needs_its_token(self, kind: str, subject: dict[str, str], found: bool) -> None:
        binding = kubernetes(kind, "rbac.authorization.k8s.io/v1", subjects=[subject])
        account = kubernetes("ServiceAccount")
        assert bool(said(self.POLICY, deployment({"serviceAccountName": "a"}), account, binding)) == found

    def test_an_account_of_others_may_be_bound_elsewhere(self) -> None:
        pod = kubernetes("Pod", spec={"serviceAccountName": "theirs", "containers": []})
        assert said(self.POLICY, pod) == []
        assert said(self.POLICY, deployment({"serviceAccountName": "theirs"})) != []  # Triton never needs one

    def test_what_is_unknown_of_one_does_not_hide_another(self) -> None:
        found = judged(self.POLICY, deployment({"serviceAccountName": UNKNOWN}, "b"), deployment())
        assert [(one.outcome, one.where) for one in found] == [
            (Outcome.VIOLATED, "Deployment/a"),
            (Outcome.UNDECIDED, "stack"),
        ]
        assert "Deployment/b: serviceAccountName is unknown" in found[1].message


class TestPodSecurity:
    @staticmethod
    def namespace(level: object, name: str = "serving") -> Resource:
        labels = {} if level is None else {"pod-security.kubernetes.io/enforce": level}
        return Resource("kubernetes:core/v1:Namespace", name, {"metadata": {"name": name, "labels": labels}})

    @pytest.mark.parametrize(
        ("name", "level", "found"),
        [
            ("serving", "restricted", False),
            ("serving", "baseline", True),
            ("serving", "privileged", True),
            ("serving", None, True),
            ("gpu-system", "privileged", False),
            ("gpu-system", None, True),
            ("istio-system", "privileged", True),  # without sidecars nothing there needs it
            ("istio-system", "baseline", False),
            ("theirs", "baseline", False),
            ("theirs", "Restricted", True),
        ],
    )
    def test_levels(self, name: str, level: str | None, found: bool) -> None:
        assert bool(said(security.pod_security_level, self.namespace(level, name))) == found

    def test_a_namespace_without_any_labels(self) -> None:
        assert said(security.pod_security_level, Resource("kubernetes:core/v1:Namespace", "a", {})) == [
            "no label pod-security.kubernetes.io/enforce"
        ]

    @pytest.mark.parametrize(("level", "count"), [("restricted", 4), ("baseline", 0), ("privileged", 0), (None, 0)])
    def test_a_pod_that_says_nothing_is_refused_by_restricted_alone(self, level: str | None, count: int) -> None:
        assert len(said(security.pod_hardening, deployment(), self.namespace(level))) == count

    def test_a_namespace_of_others_is_not_known(self) -> None:
        assert said(security.pod_hardening, deployment()) == []
        assert said(security.pod_hardening, deployment(namespace="other"), self.namespace("restricted")) == []

    @pytest.mark.parametrize(
        ("context", "text"),
        [
            ({"runAsNonRoot": False}, "runAsNonRoot is not true"),
            ({"runAsUser": 0}, "runAsUser is 0"),
            ({"allowPrivilegeEscalation": None}, "allowPrivilegeEscalation is not false"),
            ({"capabilities": {"drop": ["NET_RAW"]}}, "capabilities.drop is not [ALL]"),
            ({"capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE", "NET_BIND_SERVICE"]}},
             "capabilities.add has SYS_PTRACE"),
            ({"seccompProfile": {"type": "Unconfined"}}, "seccompProfile is Unconfined"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("part", ["containers", "initContainers"])
    def test_each_container_is_asked(self, part: str, context: dict[str, Any], text: str) -> None:
        good = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        pod = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        containers = {"containers": [{"name": "c", "securityContext": good}], "securityContext": pod}
        containers |= {part: [{"name": "c", "securityContext": good | context}]}
        assert said(security.pod_hardening, deployment(containers), self.namespace("restricted")) == [
            f"container c: {text}"
        ]


class TestWideRbac:
    @pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
    @pytest.mark.parametrize(
        ("rule", "count"),
        [
            ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, 3),
            ({"apiGroups": ["apps"], "resources": ["*"], "verbs": ["get"]}, 1),
            ({"apiGroups": ["custom.metrics.k8s.io"], "resources": ["*"], "verbs": ["get"]}, 0),
            ({"apiGroups": ["custom.metrics.k8s.io", ""], "resources": ["*"], "verbs": ["get"]}, 1),
            ({"apiGroups": [""], "resources": ["pods"], "verbs": ["impersonate", "bind"]}, 1),
            ({"nonResourceURLs": ["*"], "verbs": ["get"]}, 0),
            ({}, 0),
        ],
    )
    def test_rules(self, kind: str, rule: dict[str, Any], count: int) -> None:
        role = kubernetes(kind, "rbac.authorization.k8s.io/v1", rules=[rule])
        assert len(said(security.wide_rbac, role)) == count

    @pytest.mark.parametrize(("kind", "found"), [("Role", False), ("ClusterRole", True)])
    def test_secrets_of_one_namespace_or_of_all(self, kind: str, found: bool) -> None:
        rule = {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["list", "create"]}
        messages = said(security.wide_rbac, kubernetes(kind, "rbac.authorization.k8s.io/v1", rules=[rule]))
        assert messages == (["rule 0 allows to list the secrets of all namespaces"] if found else [])

    @pytest.mark.parametrize("fields", [{}, {"rules": None, "aggregationRule": {}}, {"subjects": None}])
    def test_absent_fields(self, fields: dict[str, Any]) -> None:
        for kind in ("ClusterRole", "ClusterRoleBinding"):
            assert said(security.wide_rbac, kubernetes(kind, "rbac.authorization.k8s.io/v1", **fields)) == []


class TestNetworkOpen:
    POLICY = security.network_open

    @staticmethod
    def closed(**spec: Any) -> Resource:
        spec = {"policyTypes": ["Ingress", "Egress"], "podSelector": {"matchLabels": SERVING}} | spec
        return kubernetes("NetworkPolicy", "networking.k8s.io/v1", spec=spec)

    @pytest.mark.parametrize(
        ("spec", "messages"),
        [
            ({}, []),
            ({"podSelector": {}}, []),
            ({"podSelector": None}, []),
            ({"podSelector": {"matchLabels": {"app": "other"}}}, ["no NetworkPolicy selects its pods"]),
            ({"policyTypes": None}, ["no NetworkPolicy says where its pods go"]),
            ({"policyTypes": None, "egress": []}, []),
            ({"policyTypes": ["Egress"]}, ["no NetworkPolicy says who comes in to its pods"]),
            ({"ingress": [{}]}, ["ingress rule 0 lets in everybody to every port"]),
            ({"ingress": [{"from": [{"podSelector": {}}]}]}, []),
            ({"ingress": [{"ports": [{"port": 8000}]}]}, []),  # no gateway in this stack that it would lead past
            ({"ingress": [{"from": [{"ipBlock": {"cidr": "::/0"}}], "ports": [{"port": 1}]}]},
             ["ingress rule 0 lets in ::/0"]),
            ({"egress": [{}]}, ["egress rule 0 lets out to everywhere on every port"]),
            ({"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}, []),
            ({"egress": [{"ports": [{"port": 443}]}, {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]},
             ["egress rule 1 lets out to 0.0.0.0/0 on every port"]),
            ({"policyTypes": ["Egress"], "ingress": [{}]}, ["no NetworkPolicy says who comes in to its pods"]),
        ],
    )  # fmt: skip
    def test_rules(self, spec: dict[str, Any], messages: list[str]) -> None:
        assert said(self.POLICY, deployment(), self.closed(**spec)) == messages

    def test_two_policies_close_one_direction_each(self) -> None:
        both = [self.closed(policyTypes=["Ingress"]), self.closed(policyTypes=["Egress"])]
        assert said(self.POLICY, deployment(), *both) == []

    def test_a_policy_of_another_namespace_closes_nothing(self) -> None:
        assert said(self.POLICY, deployment(namespace="other"), self.closed()) == ["no NetworkPolicy selects its pods"]

    @pytest.mark.parametrize(("type_", "found"), [("LoadBalancer", True), ("NodePort", True), (None, False)])
    def test_services(self, type_: str | None, found: bool) -> None:
        service = kubernetes("Service", spec={"type": type_, "selector": SERVING})
        other = kubernetes("Service", spec={"type": "LoadBalancer", "selector": {"app": "other"}})
        empty = kubernetes("Service", spec={"type": "LoadBalancer"})
        assert bool(said(self.POLICY, deployment(), self.closed(), service, other, empty)) == found

    def test_pods_that_do_not_serve_are_not_asked(self) -> None:
        assert said(self.POLICY, kubernetes("Pod", spec={"containers": []})) == []


class TestCloud:
    BUCKET = Resource("aws:s3/bucket:Bucket", "models", {"bucket": "acme-models"})

    @staticmethod
    def block(bucket: object, **fields: object) -> Resource:
        parts = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
        inputs = {"bucket": bucket} | dict.fromkeys(parts, True) | fields
        return Resource("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "models", inputs)

    @pytest.mark.parametrize("bucket", ["acme-models", "models", "models-id"])
    def test_a_block_by_the_name_or_by_the_id_of_a_recording(self, bucket: str) -> None:
        assert said(security.bucket_exposed, self.BUCKET, self.block(bucket)) == []

    def test_a_block_of_an_unknown_bucket_cannot_be_decided(self) -> None:
        (found,) = judged(security.bucket_exposed, self.BUCKET, self.block(UNKNOWN))
        assert found.outcome is Outcome.UNDECIDED
        assert "aws:s3/bucket:Bucket/models: which bucket" in found.message

    def test_each_of_the_four_fields(self) -> None:
        block = self.block("acme-models", blockPublicPolicy=False, restrictPublicBuckets=None)
        assert said(security.bucket_exposed, self.BUCKET, block) == [
            "blockPublicPolicy, restrictPublicBuckets not true"
        ]

    @pytest.mark.parametrize(
        ("given_", "found"),
        [
            ({"rule": {"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}}, False),
            ({"rules": [{"applyServerSideEncryptionByDefaults": [{"sseAlgorithm": "aws:kms"}]}]}, False),
            ({"rule": {"bucketKeyEnabled": True}}, True),
            ({}, True),
            (None, False),  # AWS encrypts by itself
        ],
    )
    def test_encryption(self, given_: object, found: bool) -> None:
        bucket = Resource(self.BUCKET.type, "models", {"serverSideEncryptionConfiguration": given_})
        assert bool(said(security.bucket_exposed, bucket, self.block("models"))) == found

    @pytest.mark.parametrize(
        ("statement", "count"),
        [
            ({"Effect": "Allow", "Action": "*", "Resource": "*"}, 2),
            ({"Effect": "Deny", "Action": "*", "Resource": "*"}, 0),
            ({"Effect": "Allow", "Action": ["s3:*"], "Resource": "arn:aws:s3:::a"}, 1),
            ({"Effect": "Allow", "Action": ["s3:Get*"], "Resource": "arn:aws:s3:::a"}, 0),
            ({"Effect": "Allow", "Action": ["ec2:Describe*", "ecr:GetAuthorizationToken"], "Resource": ["*"]}, 0),
            ({"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["*"]}, 1),
            ({"Effect": "Allow", "NotAction": ["iam:*"], "Resource": "arn:aws:s3:::a"}, 1),
            ({"Effect": "Allow", "Action": ["s3:GetObject"], "NotResource": "arn:aws:s3:::a"}, 1),
        ],
    )
    @pytest.mark.parametrize("text", [False, True])
    @pytest.mark.parametrize("listed", [False, True])
    def test_documents_of_iam(self, statement: dict[str, Any], count: int, text: bool, listed: bool) -> None:
        document = {"Version": "2012-10-17", "Statement": [statement] if listed else statement}
        policy = Resource("aws:iam/policy:Policy", "a", {"policy": json.dumps(document) if text else document})
        assert len(said(security.iam_wildcard, policy)) == count

    @pytest.mark.parametrize("document", ["not JSON", UNKNOWN, {"Statement": [{"Action": UNKNOWN, "Resource": "a"}]}])
    def test_a_document_that_nobody_can_read_cannot_be_decided(self, document: object) -> None:
        (found,) = judged(security.iam_wildcard, Resource("aws:iam/rolePolicy:RolePolicy", "a", {"policy": document}))
        assert found.outcome is Outcome.UNDECIDED

    def test_policies_of_administrators(self) -> None:
        arns = ["arn:aws:iam::aws:policy/PowerUserAccess", "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"]
        assert said(security.iam_wildcard, Resource("aws:iam/role:Role", "a", {"managedPolicyArns": arns})) == [
            "attaches PowerUserAccess"
        ]


class TestImageRegistry:
    @pytest.mark.parametrize(
        ("image", "allowed", "found"),
        [
            ("nvcr.io/nvidia/tritonserver:25.08-py3", "nvcr.io", False),
            ("nvcr.io/nvidia/tritonserver@sha256:ab", "nvcr.io/nvidia/", False),
            ("nvcr.io/nvidia-mirror/tritonserver:1", "nvcr.io/nvidia", True),
            ("python:3.13", "docker.io/library", False),
            ("grafana/grafana:12", "docker.io/grafana", False),
            ("localhost:5000/triton", "localhost:5000", False),
            ("localhost:5000/triton", "docker.io", True),
            ("registry.example.com/triton", "docker.io", True),
        ],
    )
    def test_prefixes_end_where_a_part_of_the_name_ends(self, image: str, allowed: str, found: bool) -> None:
        assert bool(said(security.image_registry, container(image=image), registries=[allowed])) == found

    def test_without_a_list_every_registry_is_good(self) -> None:
        assert said(security.image_registry, container(image="anything")) == []

    def test_an_unknown_image_cannot_be_decided(self) -> None:
        (found,) = judged(security.image_registry, container(image=UNKNOWN), registries=["nvcr.io"])
        assert (found.outcome, found.refuses) == (Outcome.UNDECIDED, True)


class TestKinds:
    @pytest.mark.parametrize(
        ("type_", "found"),
        [
            ("kubernetes:core/v1:ConfigMap", False),
            ("kubernetes:apps/v1:Deployment", False),
            ("kubernetes:apps/v1:DeploymentPatch", True),
            ("kubernetes:example.com/v1:Deployment", True),
            ("kubernetes:networking.istio.io/v1alpha3:EnvoyFilter", False),
            ("kubernetes:helm.sh/v4:Chart", False),
            ("kubernetes:helm.sh/v3:Release", True),
            ("triton-estate:gpu:GpuNodePool", False),
            ("pulumi:providers:aws", False),
            ("pulumi:pulumi:Stack", False),
            ("aws:s3/bucketPolicy:BucketPolicy", False),
            ("aws:ec2/instance:Instance", True),
            ("gcp:container/cluster:Cluster", True),
        ],
    )
    def test_types(self, type_: str, found: bool) -> None:
        assert bool(said(security.kind_nobody_judges, Resource(type_, "a", {}))) == found


class TestObjectTooLarge:
    POLICY = security.object_too_large
    MEBIBYTE = 2**20

    @pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
    @pytest.mark.parametrize(("more", "found"), [(0, False), (1, True)])
    def test_the_data_of_a_config_map_or_secret(self, kind: str, more: int, found: bool) -> None:
        data = {"a": "x" * (self.MEBIBYTE // 2), "b": "é" * (self.MEBIBYTE // 4) + "x" * more}
        messages = said(self.POLICY, kubernetes(kind, data=data))
        assert messages == ([f"its data has {self.MEBIBYTE + 1} bytes, and {self.MEBIBYTE} are allowed"] * found)

    def test_bytes_count_as_what_they_are(self) -> None:
        assert said(self.POLICY, kubernetes("ConfigMap", binaryData={"a": "A" * (self.MEBIBYTE * 5 // 4)})) == []
        assert said(self.POLICY, kubernetes("ConfigMap", binaryData={"a": "A" * (self.MEBIBYTE * 3 // 2)})) != []

    @pytest.mark.parametrize(("size", "found"), [(256 * 1024, False), (256 * 1024 + 1, True)])
    def test_annotations(self, size: int, found: bool) -> None:
        resource = thing(inputs={"metadata": {"name": "a", "annotations": {"key": "x" * (size - 3)}}})
        assert bool(said(self.POLICY, resource)) == found

    @pytest.mark.parametrize(("size", "found"), [(1_500_000, False), (1_600_000, True)])
    def test_the_object_as_a_whole(self, size: int, found: bool) -> None:
        assert (
            bool(said(self.POLICY, kubernetes("PrometheusRule", "monitoring.coreos.com/v1", spec="x" * size))) == found
        )

    def test_what_is_unknown_has_no_size(self) -> None:
        resource = kubernetes("ConfigMap", data={"a": UNKNOWN, "b": SEALED}, binaryData=UNKNOWN)
        assert said(self.POLICY, resource) == []
