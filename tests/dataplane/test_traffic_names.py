"""Each model is reached by its name, and by no other one; what operators do is not reached at all."""

from typing import Any

import grpc
import pytest

from tests.dataplane.gateway_calls import ask
from tests.dataplane.gateway_scene import API, DOMAIN, MODELS, Scene, host

OPEN = [name for name in MODELS if "auth" not in MODELS[name]]


class TestNames:
    """Each model is reached by its name, and by no other one."""

    def test_there_are_enough_of_them(self) -> None:
        assert len(MODELS) >= 20

    @pytest.mark.parametrize("name", OPEN)
    def test_its_host(self, name: str, routed: Scene) -> None:
        pods = routed.addresses(f"{name}-v1") | routed.addresses(f"{name}-v2")
        for asked in (host(name), f"{host(name)}:80", host(name).upper()):
            answer = routed.caller.infer(asked, name)
            assert answer.status == 200, answer
            assert answer.pod in pods
        with routed.caller.channel(host(name)) as channel:
            assert ask(channel, name).pod in pods

    @pytest.mark.parametrize("name", OPEN)
    def test_its_prefix(self, name: str, routed: Scene) -> None:
        answer = routed.caller.http(API, f"/{name}/v2/models/{name}/infer?a=b")
        assert answer.status == 200, answer
        assert answer.pod in routed.addresses(f"{name}-v1") | routed.addresses(f"{name}-v2")
        assert answer.body["path"] == f"/v2/models/{name}/infer?a=b"

    @pytest.mark.parametrize(
        ("asked", "path"),
        [
            (host("model-12"), "/v2/models/model-12/infer"),
            (DOMAIN, "/v2/models/model-1/infer"),
            ("other.example.com", "/v2/models/model-1/infer"),
            (API, "/model-12/v2/models/model-12/infer"),
            (API, "/model-1x/v2/models/model-1/infer"),
            (API, "/v2/models/model-1/infer"),
            (API, "/model-1/model-2/v2/models/model-1/infer"),
        ],
    )
    def test_no_other(self, asked: str, path: str, routed: Scene) -> None:
        routed.gate.backends.take()
        assert routed.caller.http(asked, path).status == 404
        assert not routed.gate.backends.take()

    @pytest.mark.parametrize(
        "path",
        [
            "/v2/repository/index",
            "/v2/repository/models/model-1/load",
            "/v2/repository/models/model-1/unload",
            "/v2/systemsharedmemory/status",
            "/v2/cudasharedmemory/region/a/register",
            "/v2/trace/setting",
            "/v2/logging",
            "/v2/models/model-1/trace/setting",
            "/v2/models/model-1/../../repository/models/model-1/unload",
            "/v2/models/%2e%2e/repository/index",
            "/metrics",
            "/",
        ],
    )
    def test_what_operators_do_has_no_route(self, path: str, routed: Scene) -> None:
        routed.gate.backends.take()
        for asked, prefix in ((host("model-1"), ""), (API, "/model-1")):
            assert routed.caller.http(asked, f"{prefix}{path}").status == 404
        assert not routed.gate.backends.take()

    @pytest.mark.parametrize("method", ["RepositoryModelLoad", "RepositoryIndex", "TraceSetting", "LogSettings"])
    def test_nor_over_grpc(self, method: str, routed: Scene) -> None:
        routed.gate.backends.take()
        with routed.caller.channel(host("model-1")) as channel:
            call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
            with pytest.raises(grpc.RpcError) as caught:
                call(b"", timeout=10)
        error: Any = caught.value
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED
        assert not routed.gate.backends.take()
