"""A real server takes the arguments and config.pbtxt files that are rendered, and understands them as written."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from components.serving import runtime
from spec.resolve import Model
from spec.triton import ModelConfig
from tests.dataplane.serving import Ports, Service, placed, wait
from tests.dataplane.sources import SAMPLES

SERVED = (*SAMPLES, "corners", "halves")


def differences(ours: Message, theirs: Message, path: str = "") -> list[str]:
    """Fields that we set and that the server does not report with the same value."""
    found: list[str] = []
    for field, value in ours.ListFields():
        at, other = f"{path}.{field.name}".lstrip("."), getattr(theirs, field.name)
        if field.message_type is None:
            found += [] if value == other else [f"{at}: {value!r}, reported {other!r}"]
            continue
        if field.message_type.GetOptions().map_entry:
            pairs = [(f"{at}.{key}", value[key], other.get(key)) for key in value]
        elif field.is_repeated:
            found += [] if len(value) == len(other) else [f"{at}: {len(value)} entries, reported {len(other)}"]
            pairs = [(f"{at}[{i}]", one, two) for i, (one, two) in enumerate(zip(value, other, strict=False))]
        else:
            pairs = [(at, value, other)]
        for where, one, two in pairs:
            if isinstance(one, Message) and isinstance(two, Message):
                found += differences(one, two, where)
            elif one != two:
                found.append(f"{where}: {one!r}, reported {two!r}")
    return found


def reported(service: Service, name: str) -> ModelConfig:
    return json_format.ParseDict(service.json(f"/v2/models/{name}/config"), ModelConfig())


@pytest.mark.parametrize("name", SERVED)
def test_the_server_reports_every_field_of_a_rendered_config(name: str, services: Mapping[str, Service]) -> None:
    service = services[name]
    for inside, config in service.revision.configs.items():
        assert differences(config, reported(service, inside)) == []


def test_a_field_that_the_server_sees_otherwise_is_noticed(services: Mapping[str, Service]) -> None:
    service = services["photo-tagger"]
    changed = ModelConfig()
    changed.CopyFrom(service.revision.configs["decode"])
    changed.instance_group[0].count += 1
    changed.output[0].dims[2] = 7
    assert [one.partition(":")[0] for one in differences(changed, reported(service, "decode"))] == [
        "output[0].dims",
        "instance_group[0].count",
    ]


def test_a_model_without_a_config_of_ours_keeps_that_of_its_repository(services: Mapping[str, Service]) -> None:
    service = services["fraud-score"]
    assert not service.revision.configs
    assert [one.name for one in reported(service, "fraud-score").input] == ["amounts"]


def test_all_models_of_a_service_are_loaded(services: Mapping[str, Service]) -> None:
    ready = {(one["name"], one["state"]) for one in services["photo-tagger"].json("/v2/repository/index", {})}
    assert ready == {("photo-tagger", "READY"), ("decode", "READY"), ("classify", "READY")}


def test_only_the_versions_of_the_policy_are_loaded(services: Mapping[str, Service]) -> None:
    assert services["corners"].json("/v2/models/corners")["versions"] == ["1", "3"]


def test_the_warm_up_sample_ran_before_the_first_request(services: Mapping[str, Service]) -> None:
    service = services["corners"]
    before, _, _ = service.log.read_text().partition("Started HTTPService")
    # Triton makes of a sample's batch as many requests, in each version.
    (sample,) = service.revision.configs["corners"].model_warmup
    assert before.count("executes") == 2 * sample.batch_size


def test_several_instances_are_several_processes(services: Mapping[str, Service]) -> None:
    log = services["photo-tagger"].log.read_text()
    assert log.count("TRITONBACKEND_ModelInstanceInitialize: decode_") == 4


def test_the_server_carries_the_name_of_its_model(services: Mapping[str, Service]) -> None:
    assert {service.json("/v2")["name"] for service in services.values()} == set(SERVED)


def test_explicit_control_loads_what_the_file_names_and_nothing_else(
    start: Callable[..., Service], model: Callable[[str], Model]
) -> None:
    service = start(model("explicit").primary, more=("stray",)).until_ready()
    states = {one["name"]: one.get("state", "") for one in service.json("/v2/repository/index", {})}
    assert states == {"explicit": "READY", "helper": "READY", "stray": ""}
    assert service.http("/v2/models/stray/ready")[0] == 400
    assert service.end() == 0


def test_poll_control_follows_the_repository(start: Callable[..., Service], model: Callable[[str], Model]) -> None:
    service = start(model("polled").primary).until_ready()
    folder = service.log.parent / "models" / "polled"
    assert service.json("/v2/models/polled")["versions"] == ["3"]
    shutil.copytree(folder / "3", service.log.parent / "4")
    (service.log.parent / "4").rename(folder / "4")
    wait(lambda: '"versions":["4"]' in service.http("/v2/models/polled")[1], service)
    assert service.end() == 0


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("backend: 'python' max_batch_sizes: 4", "failed to read text proto"),
        ("name: 'other' backend: 'python'", "unexpected directory name"),
        ("backend: 'onnxruntime'", "unable to find backend library"),
    ],
)
def test_a_config_that_triton_refuses_ends_the_server(
    broken: str, said: str, start: Callable[..., Service], model: Callable[[str], Model]
) -> None:
    service = start(model("rejected").primary, broken=broken)
    assert service.process.wait(30) == 1
    assert said in service.log.read_text()


def test_only_ports_and_repository_differ_from_what_is_rendered(model: Callable[[str], Model], tmp_path: Path) -> None:
    rendered = runtime.server_arguments(model("corners").primary, runtime.MODELS_PATH)
    changed = placed(rendered, Ports(1, 2, 3), tmp_path)
    assert [(old, new) for old, new in zip(rendered, changed, strict=True) if old != new] == [
        ("--model-repository=/models", f"--model-repository={tmp_path}"),
        ("--http-port=8000", "--http-port=1"),
        ("--grpc-port=8001", "--grpc-port=2"),
        ("--metrics-port=8002", "--metrics-port=3"),
    ]
