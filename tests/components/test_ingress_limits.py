"""Limits: rates for each consumer and model, sizes, and copies of requests that are larger than Envoy's buffers."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.components.conftest import Render
from tests.components.exposed import API, AUTH, DOMAIN, THREE, stack
from tests.components.proxy import Request, answer, services

Renderer = Callable[..., Render]
INFER = "/v2/models/m/infer"
RATE = "envoy.filters.http.local_ratelimit"
SIZE = "envoy.filters.http.buffer"
# A request of EAS's example, and a frame of NADP's.
EXAMPLES = [1_072_812, 6_220_800]


def patches(found: Render, kind: str) -> list[dict[str, Any]]:
    filters = found.objects("EnvoyFilter")
    return [one for item in filters for one in item["spec"]["configPatches"] if one["applyTo"] == kind]


def http_filter(found: Render, name: str) -> dict[str, Any]:
    (value,) = [one["patch"]["value"] for one in patches(found, "HTTP_FILTER") if one["patch"]["value"]["name"] == name]
    return value


def on_routes(found: Render, key: str) -> dict[str, Any]:
    """What the patches set on each route, by its name."""
    return {
        one["match"]["routeConfiguration"]["vhost"]["route"]["name"]: one["patch"]["value"][key]
        for one in patches(found, "HTTP_ROUTE")
        if key in one["patch"]["value"]
    }


def names(found: Render) -> set[str]:
    return {rule["name"] for rules in services(found).values() for rule in rules if "route" in rule}


LIMITED = {
    "m": AUTH + "traffic: {limits: {requestsPerSecond: 50}}\n",
    "n": "traffic: {limits: {requestsPerSecond: 7}}\n",
    "free": "",
}


class TestRate:
    @pytest.fixture
    def limited(self, render: Renderer) -> Render:
        return render(LIMITED, **stack())

    def test_what_others_change_comes_before(self, limited: Render) -> None:
        assert {one["spec"]["priority"] for one in limited.objects("EnvoyFilter")} == {10}

    def test_each_consumer_has_its_own_bucket_where_tokens_are_asked_for(self, limited: Render) -> None:
        descriptors = {
            tuple((entry["key"], entry.get("value")) for entry in one["entries"]): one["token_bucket"]
            for one in http_filter(limited, RATE)["typed_config"]["descriptors"]
        }
        # An entry without a value is a bucket for each value that comes.
        assert {key: bucket["max_tokens"] for key, bucket in descriptors.items()} == {
            (("model-of-consumer", "m"), ("consumer", None)): 50,
            (("model", "n"),): 7,
        }
        for bucket in descriptors.values():
            assert (bucket["tokens_per_fill"], bucket["fill_interval"]) == (bucket["max_tokens"], "1s")

    def test_a_consumer_is_whom_the_token_names(self, limited: Render) -> None:
        _, each = http_filter(limited, RATE)["typed_config"]["rate_limits"]
        (path,) = [
            action["metadata"]["metadata_key"]
            for action in each["actions"]
            if action["metadata"]["descriptor_key"] == "consumer"
        ]
        assert path == {"key": "envoy.filters.http.jwt_authn", "path": [{"key": "payload"}, {"key": "sub"}]}

    def test_every_route_of_a_limited_model_says_whose_it_is(self, limited: Render) -> None:
        told = {
            route: value["filter_metadata"]["triton-estate"] for route, value in on_routes(limited, "metadata").items()
        }
        assert told == {
            f"{model}.{protocol}": {key: model}
            for model, key in (("m", "model-of-consumer"), ("n", "model"))
            for protocol in ("grpc-stream", "grpc", "http")
        }

    def test_keys_of_routes_are_those_of_the_buckets(self, limited: Render) -> None:
        config = http_filter(limited, RATE)["typed_config"]
        made = [[action["metadata"]["descriptor_key"] for action in one["actions"]] for one in config["rate_limits"]]
        wanted = [[entry["key"] for entry in one["entries"]] for one in config["descriptors"]]
        assert all(keys in made for keys in wanted)

    def test_every_patched_route_is_there(self, limited: Render) -> None:
        assert set(on_routes(limited, "metadata")) <= names(limited)

    def test_what_has_no_limit_passes(self, limited: Render) -> None:
        config = http_filter(limited, RATE)["typed_config"]
        assert config["token_bucket"]["max_tokens"] == 2**32 - 1
        assert config["always_consume_default_token_bucket"] is False

    def test_too_much_is_told_clearly(self, limited: Render) -> None:
        config = http_filter(limited, RATE)["typed_config"]
        # 429 is Envoy's own default; gRPC clients send UNAVAILABLE again at once.
        assert "status" not in config
        assert config["rate_limited_as_resource_exhausted"] is True
        assert config["response_headers_to_add"][0]["header"] == {"key": "retry-after", "value": "1"}
        for share in ("filter_enabled", "filter_enforced"):
            assert config[share] == {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}

    def test_and_in_the_form_that_clients_read(self, limited: Render) -> None:
        (patch,) = patches(limited, "NETWORK_FILTER")
        assert patch["patch"]["operation"] == "MERGE"
        value = patch["patch"]["value"]
        assert patch["match"]["listener"]["filterChain"]["filter"] == {"name": value["name"]}
        over_grpc, over_http = value["typed_config"]["local_reply_config"]["mappers"]
        assert over_grpc["body"] == over_http["body"]
        assert "body_format_override" not in over_grpc
        assert over_http["body_format_override"] == {"json_format": {"error": "%LOCAL_REPLY_BODY%"}}
        # Answers of routes themselves, 411 and 413, are left as they are.
        only = over_http["filter"]
        assert only["status_code_filter"]["comparison"]["op"] == "EQ"
        assert only["status_code_filter"]["comparison"]["value"]["default_value"] == 429
        assert only in over_grpc["filter"]["and_filter"]["filters"]

    def test_testers_are_limited_too(self, render: Renderer) -> None:
        more = THREE + "traffic: {split: {v1: 100}, limits: {requestsPerSecond: 5}, "
        more += "testers: {header: {name: a, value: b}, to: v2}}\n"
        found = render({"m": more}, **stack())
        assert set(on_routes(found, "metadata")) == names(found)

    def test_refused_tokens_count_for_nobody(self, limited: Render) -> None:
        (patch,) = [one for one in patches(limited, "HTTP_FILTER") if one["patch"]["value"]["name"] == RATE]
        assert patch["patch"]["operation"] == "INSERT_BEFORE"
        sub = patch["match"]["listener"]["filterChain"]["filter"]["subFilter"]["name"]
        assert sub == "envoy.filters.http.router"


class TestSize:
    LIMITED = "traffic: {limits: {maxRequestSize: 8Mi}}\n"

    @pytest.mark.parametrize("more", ["", LIMITED], ids=["default", "limited"])
    @pytest.mark.parametrize("size", EXAMPLES)
    def test_what_clients_really_send_passes(self, size: int, more: str, render: Renderer) -> None:
        found = render({"m": more}, **stack())
        reached = answer(found, Request(f"m.{DOMAIN}", INFER, headers={"content-length": str(size)}))
        assert reached
        assert reached.to == "m-v1:8000"

    @pytest.mark.parametrize(("host", "prefix"), [(f"m.{DOMAIN}", ""), (API, "/m")], ids=["host", "prefix"])
    @pytest.mark.parametrize(("size", "status"), [(8 * 2**20, 0), (8 * 2**20 + 1, 413), (10**12, 413)])
    def test_a_longer_one_is_refused_before_it_is_read(
        self, size: int, status: int, host: str, prefix: str, render: Renderer
    ) -> None:
        found = render({"m": self.LIMITED}, **stack())
        reached = answer(found, Request(host, prefix + INFER, headers={"content-length": str(size)}))
        assert reached
        assert reached.status == status

    def test_one_that_does_not_say_its_length_is_refused(self, render: Renderer) -> None:
        found = render({"m": self.LIMITED}, **stack())
        reached = answer(found, Request(f"m.{DOMAIN}", INFER, headers={"transfer-encoding": "chunked"}))
        assert reached
        assert reached.status == 411

    def test_asking_needs_no_length(self, render: Renderer) -> None:
        found = render({"m": self.LIMITED}, **stack())
        reached = answer(found, Request(f"m.{DOMAIN}", "/v2/models/m", method="GET"))
        assert reached
        assert reached.to == "m-v1:8000"

    def test_the_answer_says_why(self, render: Renderer) -> None:
        rules = services(render({"m": self.LIMITED}, **stack()))[f"m.{DOMAIN}"]
        texts = [rule["directResponse"]["body"]["string"] for rule in rules if "directResponse" in rule]
        assert "8388608 bytes" in texts[0]
        assert "Content-Length" in texts[1]

    def test_unary_grpc_is_held_and_streams_are_not(self, render: Renderer) -> None:
        found = render({"m": self.LIMITED, "n": ""}, **stack())
        assert http_filter(found, SIZE)["disabled"] is True
        (route,) = on_routes(found, "typed_per_filter_config").items()
        assert route[0] == "m.grpc"
        assert route[1][SIZE]["buffer"] == {"max_request_bytes": 8 * 2**20}

    def test_without_a_limit_nothing_is_held(self, render: Renderer) -> None:
        assert SIZE not in str(render({"m": ""}, **stack()).objects("EnvoyFilter"))


class TestCopies:
    """Envoy drops the copy of a request that is larger than what it buffers."""

    MIRRORED = THREE + "traffic: {split: {v1: 100}, mirror: {to: v3}"

    @pytest.mark.parametrize(
        ("more", "size"),
        [("}\n", 64 * 2**20), (", limits: {maxRequestSize: 8Mi}}\n", 8 * 2**20)],
        ids=["default", "limit"],
    )
    def test_large_requests_are_copied_too(self, more: str, size: int, render: Renderer) -> None:
        found = render({"m": self.MIRRORED + more, "n": ""}, **stack())
        limits = on_routes(found, "request_body_buffer_limit")
        assert limits == dict.fromkeys(("m.grpc-stream", "m.grpc", "m.http"), size)
        assert all(size > example for example in EXAMPLES)

    def test_without_copies_nothing_is_buffered(self, render: Renderer) -> None:
        assert not on_routes(render({"m": ""}, **stack()), "request_body_buffer_limit")
