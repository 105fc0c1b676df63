"""An EKS node group: what a GPU pool of ``provider: eks`` says about it.

Sources: the EKS user guide (AMI types, device plugin), the EC2 instance type pages (cards of an instance).
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from spec.fields import Spec, refuse

# Amazon Linux 2023 with the NVIDIA driver and without a device plugin: the driver is there, the plugin is ours to run.
GPU_AMIS: Final = ("AL2023_x86_64_NVIDIA", "AL2023_ARM_64_NVIDIA")


def _check_ami(value: str) -> str:
    message = "has no NVIDIA driver: its nodes would be ready without a GPU"
    if value.startswith("BOTTLEROCKET") and value.endswith("NVIDIA"):
        message = "brings a device plugin of its own, and two of them would hand out one card twice"
    elif value == "AL2_x86_64_GPU":
        message = "is no longer made for the versions of Kubernetes that EKS offers"
    if value not in GPU_AMIS:
        refuse(message, allowed=" or ".join(GPU_AMIS), fix=f"write {GPU_AMIS[0]}, or leave ami out")
    return value


def _text(form: str, what: str, allowed: str, example: str) -> tuple[AfterValidator, WithJsonSchema]:
    pattern = re.compile(form)

    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            refuse(f"not {what}", allowed=allowed, fix=f"write for example {example}")
        return value

    return AfterValidator(check), WithJsonSchema({"type": "string", "pattern": form})


def _check_subnets(value: list[str]) -> list[str]:
    if not value:
        refuse("a node has to start somewhere", allowed="at least one subnet", fix="name the cluster's private subnets")
    return value


Ami = Annotated[str, AfterValidator(_check_ami), WithJsonSchema({"type": "string", "enum": list(GPU_AMIS)})]
ClusterName = Annotated[
    str,
    *_text(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$", "the name of an EKS cluster",
           "1 to 100 of A-Z, a-z, 0-9, - and _", "serving-prod"),
]  # fmt: skip
RoleArn = Annotated[
    str,
    *_text(r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+$", "the ARN of an IAM role",
           "arn:aws:iam::<account>:role/<name>", "arn:aws:iam::123456789012:role/gpu-nodes"),
]  # fmt: skip
SubnetId = Annotated[
    str,
    *_text(r"^subnet-[0-9a-f]{8,17}$", "the id of a subnet", "subnet-<8 to 17 hexadecimal digits>",
           "subnet-0a1b2c3d4e5f67890"),
]  # fmt: skip
Subnets = Annotated[list[SubnetId], AfterValidator(_check_subnets)]
InstanceType = Annotated[
    str,
    *_text(r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$", "an EC2 instance type", "<family>.<size>", "g5.xlarge"),
]  # fmt: skip
Region = Annotated[
    str, *_text(r"^[a-z]{2}(-[a-z]+)+-[0-9]$", "an AWS region", "<area>-<direction>-<number>", "eu-central-1")
]

_BY_SIZE: Final = {
    "xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "16xlarge": 1, "12xlarge": 4, "24xlarge": 4,
    "48xlarge": 8, "metal": 8,
}  # fmt: skip
_FAMILIES: Final = ("g4dn", "g5", "g6", "g6e")
_BY_TYPE: Final = {
    "p3.2xlarge": 1, "p3.8xlarge": 4, "p3.16xlarge": 8, "p3dn.24xlarge": 8, "p4d.24xlarge": 8, "p4de.24xlarge": 8,
    "p5.4xlarge": 1, "p5.48xlarge": 8, "p5e.48xlarge": 8, "p5en.48xlarge": 8, "p6-b200.48xlarge": 8,
}  # fmt: skip


class EksSpec(Spec):
    """A managed node group of an EKS cluster.

    Attributes:
        cluster: name of the cluster.
        node_role_arn: IAM role of its nodes.
        subnets: subnets that nodes may start in.
        instance_type: EC2 instance type.
        min: fewest nodes; 0 lets the cluster autoscaler give up the last one.
        max: most nodes.
        ami: AMI type; one with the NVIDIA driver.
        disk_gib: root volume of a node, GiB; holds images and synced models.
        spot: whether EC2 may take a node back at two minutes' notice, for a lower price.
        region: region of the cluster; by default that of the AWS provider.
    """

    cluster: ClusterName
    node_role_arn: RoleArn
    subnets: Subnets
    instance_type: InstanceType
    min: Annotated[int, Field(ge=0, le=450)] = 0
    max: Annotated[int, Field(ge=1, le=450)]
    ami: Ami = GPU_AMIS[0]
    disk_gib: Annotated[int, Field(ge=40, le=16384)] = 200
    spot: bool = False
    region: Region | None = None

    @model_validator(mode="after")
    def _max_is_not_below_min(self) -> "EksSpec":
        if self.min > self.max:
            refuse("more nodes at least than at most", allowed=f"0 to {self.max}", fix="raise max", field="min")
        return self

    @property
    def cards(self) -> int | None:
        """Cards of one instance, None for a type that is not known here."""
        family, _, size = self.instance_type.partition(".")
        return _BY_SIZE.get(size) if family in _FAMILIES else _BY_TYPE.get(self.instance_type)
