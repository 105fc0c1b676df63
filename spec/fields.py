"""Field types and the base class that model files and stack files share."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Final, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from spec.names import COMPANIONS, DNS_LABEL, MODEL_NAME_MAX, POOL_NAME_MAX, REVISION_NAME_MAX, suggest_dns_label
from spec.problems import Problem


class Spec(BaseModel):
    """Base of everything a person writes: no unknown field, no silent conversion, no later change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)


def refuse(message: str, *, allowed: str = "", fix: str = "", field: str = "") -> NoReturn:
    """Refuse a value from inside a validator, with the way out.

    Args:
        message: what is wrong.
        allowed: what would be accepted.
        fix: the next thing to do.
        field: the field inside the validated mapping that is to blame, as its author writes it.

    Raises:
        PydanticCustomError: always; ``spec.validation`` turns it into a Problem.
    """
    refuse_all([Problem(field, message, allowed=allowed, fix=fix)])


def refuse_all(problems: Sequence[Problem]) -> NoReturn:
    """Refuse a value for several reasons at once; fields are relative to the value.

    Raises:
        PydanticCustomError: always; ``spec.validation`` hands the problems on.
    """
    raise PydanticCustomError("refused", "{message}", {"message": problems[0].message, "problems": list(problems)})


_MEMORY: Final = re.compile(r"^([0-9]+(?:\.[0-9]+)?)(Ki|Mi|Gi|Ti|k|M|G|T)$")
_CPU: Final = re.compile(r"^([0-9]+m|[0-9]+(\.[0-9]{1,3})?)$")
_DURATION: Final = re.compile(r"^([0-9]+)(ms|s|m|h)$")
_MEMORY_UNIT: Final = {
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
}  # fmt: skip
_DURATION_UNIT: Final = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}


def memory_bytes(quantity: str) -> int:
    """Bytes of a memory quantity such as ``8Gi``.

    Raises:
        ValueError: not a memory quantity.
    """
    match = _MEMORY.fullmatch(quantity)
    if not match:
        raise ValueError(quantity)
    return int(Decimal(match[1]) * _MEMORY_UNIT[match[2]])


def mebibytes(quantity: str) -> int:
    """Whole MiB of a memory quantity, rounded down."""
    return memory_bytes(quantity) // 2**20


def cpu_millis(quantity: str) -> int:
    """Thousandths of a CPU of a CPU quantity such as ``500m`` or ``4``."""
    return int(quantity[:-1]) if quantity.endswith("m") else int(Decimal(quantity) * 1000)


def duration_seconds(duration: str) -> Decimal:
    """Seconds of a duration such as ``300s``.

    Raises:
        ValueError: not a duration.
    """
    match = _DURATION.fullmatch(duration)
    if not match:
        raise ValueError(duration)
    return Decimal(match[1]) * _DURATION_UNIT[match[2]]


def _check_memory(value: object) -> str:
    if isinstance(value, str) and _MEMORY.fullmatch(value) and memory_bytes(value) > 0:
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number or (isinstance(value, str) and value.replace(".", "", 1).isdigit()):
        refuse(
            "memory needs a unit",
            allowed="a number and Ki, Mi, Gi, Ti, k, M, G or T",
            fix=f"write {value}Mi for mebibytes or {value}Gi for gibibytes",
        )
    refuse(
        "not a memory quantity",
        allowed="a number and Ki, Mi, Gi, Ti, k, M, G or T",
        fix="write for example 8Gi",
    )


def _check_cpu(value: object) -> str:
    text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    if _CPU.fullmatch(text) and cpu_millis(text) > 0:
        return text
    refuse(
        "not a CPU quantity",
        allowed="CPUs (4, 0.5) or thousandths (500m)",
        fix='write for example "4" or 500m',
    )


def _check_duration(value: object) -> str:
    if isinstance(value, str) and _DURATION.fullmatch(value):
        return value
    refuse("not a duration", allowed="a whole number and ms, s, m or h", fix="write for example 60s")


def _dns_label(longest: int) -> BeforeValidator:
    def check(value: object) -> str:
        allowed = (
            f"1 to {longest} characters: a-z, 0-9 and -, beginning with a letter and ending with a letter or digit"
        )
        if not isinstance(value, str):
            refuse("must be text", allowed=allowed, fix="choose a name of letters")
        if len(value) <= longest and DNS_LABEL.fullmatch(value):
            return value
        suggestion = suggest_dns_label(value, longest)
        message = "not a DNS label" if len(value) <= longest else f"longer than {longest} characters"
        refuse(message, allowed=allowed, fix=f"write {suggestion}" if suggestion else "choose a name of letters")

    return BeforeValidator(check)


MEMORY_PATTERN: Final = _MEMORY.pattern
Memory = Annotated[str, BeforeValidator(_check_memory), WithJsonSchema({"type": "string", "pattern": MEMORY_PATTERN})]
Cpu = Annotated[
    str,
    BeforeValidator(_check_cpu),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": _CPU.pattern}, {"type": "number", "exclusiveMinimum": 0}]}),
]
Duration = Annotated[
    str, BeforeValidator(_check_duration), WithJsonSchema({"type": "string", "pattern": _DURATION.pattern})
]


def _label_type(longest: int) -> dict[str, object]:
    return {"type": "string", "pattern": DNS_LABEL.pattern, "maxLength": longest}


DnsLabel = Annotated[str, _dns_label(63), WithJsonSchema(_label_type(63))]
PoolName = Annotated[str, _dns_label(POOL_NAME_MAX), WithJsonSchema(_label_type(POOL_NAME_MAX))]


def _not_taken(roles: Sequence[str], *, whole: bool) -> AfterValidator:
    """Refuses names whose objects would be named as those that stand beside the replicas of another model."""

    def check(value: str) -> str:
        for role in roles:
            if value.endswith(f"-{role}") or (whole and value == role):
                refuse(
                    f"would be mistaken for the {role} of a model", allowed="another name", fix="choose another name"
                )
        return value

    return AfterValidator(check)


RevisionName = Annotated[
    str,
    _not_taken(COMPANIONS, whole=True),
    _dns_label(REVISION_NAME_MAX),
    WithJsonSchema(_label_type(REVISION_NAME_MAX)),
]
ModelName = Annotated[
    str,
    _not_taken(COMPANIONS, whole=False),
    _dns_label(MODEL_NAME_MAX),
    WithJsonSchema(_label_type(MODEL_NAME_MAX)),
]


def _matches(pattern: re.Pattern[str], what: str, allowed: str, example: str) -> BeforeValidator:
    def check(value: object) -> str:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        refuse(f"not {what}", allowed=allowed, fix=f"write for example {example}")

    return BeforeValidator(check)


_LABEL_VALUE: Final = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
# The longest that leaves room for ".pbtxt" in a key of a ConfigMap.
TRITON_NAME: Final = re.compile(r"^[A-Za-z0-9][-A-Za-z0-9_.]{0,246}$")
TRITON_NAME_FORM: Final = "1 to 247 letters, digits, -, _ and ., beginning with a letter or digit"
_IMAGE: Final = re.compile(
    r"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})$"
)

LabelValue = Annotated[
    str,
    _matches(
        _LABEL_VALUE,
        "a Kubernetes label value",
        "1 to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit",
        "team-vision",
    ),
    WithJsonSchema({"type": "string", "pattern": _LABEL_VALUE.pattern}),
]
TritonName = Annotated[
    str,
    _matches(TRITON_NAME, "a Triton model name", TRITON_NAME_FORM, "resnet50"),
    WithJsonSchema({"type": "string", "pattern": TRITON_NAME.pattern}),
]
# An image without tag or digest is another one every day.
Image = Annotated[
    str,
    _matches(
        _IMAGE,
        "a container image with a tag or a digest",
        "[registry/]name:tag, [registry/]name@sha256:digest, or both: [registry/]name:tag@sha256:digest",
        "nvcr.io/nvidia/tritonserver:25.08-py3",
    ),
    WithJsonSchema({"type": "string", "pattern": _IMAGE.pattern}),
]

_DNS_NAME: Final = re.compile(r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")
DnsName = Annotated[
    str,
    _matches(_DNS_NAME, "a Kubernetes object name", "1 to 253 of a-z, 0-9, - and .", "my-name"),
    WithJsonSchema({"type": "string", "pattern": _DNS_NAME.pattern}),
]
_LABEL_KEY: Final = re.compile(
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LabelKey = Annotated[
    str,
    _matches(_LABEL_KEY, "a Kubernetes label key", "[prefix/]name", "topology.kubernetes.io/zone"),
    WithJsonSchema({"type": "string", "pattern": _LABEL_KEY.pattern}),
]

_ENVIRONMENT_NAME: Final = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_SECRET_NAME: Final = re.compile(
    r"(?i)secret|token(?![a-z])|password|passwd|credential|api_?key|access_?key|private_?key"
)
# What the component or the node decides.
_OWNED_VARIABLES: Final = {
    "HOME": "the component, because the root file system is read-only",
    "NVIDIA_VISIBLE_DEVICES": "the device plugin; setting it goes around the scheduler",
    "CUDA_VISIBLE_DEVICES": "the device plugin; setting it goes around the scheduler",
}


def _check_environment(variables: dict[str, str]) -> dict[str, str]:
    problems = []
    for name in variables:
        if not _ENVIRONMENT_NAME.fullmatch(name):
            message, allowed = "not the name of an environment variable", "letters, digits and _, no digit first"
            problems.append(Problem(name, message, name, allowed, "rename it"))
        elif name in _OWNED_VARIABLES:
            problems.append(Problem(name, f"is decided by {_OWNED_VARIABLES[name]}", fix=f"leave {name} out"))
        elif _SECRET_NAME.search(name):
            fix = "put it into a Secret of the namespace and name that: credentials: {secret: <name>}"
            message = "looks like a secret, which has no place in a file"
            problems.append(Problem(name, message, "(not shown)", "absent", fix))
    if problems:
        refuse_all(problems)
    return variables


Environment = Annotated[dict[str, str], AfterValidator(_check_environment)]
