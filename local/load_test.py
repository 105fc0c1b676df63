"""Print the load test of a model, for ``kubectl apply``."""

from pathlib import Path

import pulumi_kubernetes as k8s
import yaml
from pydantic_core import PydanticCustomError

from components.ingress import access
from components.serving import load_test
from local.recorder import plain, record
from spec.catalog import load
from spec.problems import Problem, SpecError
from spec.resolve import Model, Revision
from spec.stack_file import stack_settings
from spec.validation import closest


def manifest(
    project: Path, stack: str, model: str, *, revision: str | None, image: str | None, concurrency: str
) -> str:
    """The Job, and its requests where the model's owner wrote one, as YAML.

    Args:
        project: folder of the project.
        stack: name of the stack.
        model: name of the model.
        revision: name of the revision, by default the one with the largest weight.
        image: image with perf_analyzer, by default the SDK image of the server's release.
        concurrency: requests in flight, ``first:last:step``.

    Raises:
        SpecError: no such model or revision, or one that cannot be tested.
    """
    estate = load(project / "models", stack_settings(project, stack), f"Pulumi.{stack}.yaml")
    chosen, namespace = _revision(estate.model(model), revision), estate.spec.namespace
    # Beside a sidecar of its own where the models have one: they let nobody in who has no identity.
    found = access.access(estate.spec)
    try:
        job = load_test.job(
            chosen,
            namespace,
            image=image or load_test.client_image(chosen),
            concurrency=concurrency,
            labels=access.pod_labels(found) if found else None,
            annotations=access.pod_annotations(found) if found else None,
        )
    except PydanticCustomError as refusal:
        raise SpecError((refusal.context or {})["problems"]) from None
    data = load_test.request_data(chosen)

    def program() -> None:
        if data is not None:
            k8s.core.v1.ConfigMap("data", load_test.config_map(chosen, namespace, data))
        k8s.batch.v1.Job("job", job)

    recording = record(program, stack=stack)
    return yaml.safe_dump_all([plain(found.inputs) for found in recording.objects()], sort_keys=False)


def _revision(model: Model, name: str | None) -> Revision:
    known = {found.name: found for found in model.revisions}
    if name is None:
        return model.primary
    if name not in known:
        hint = closest(name, list(known)) or "name one of them"
        raise SpecError([Problem("", "the model has no such revision", name, ", ".join(known), hint)])
    return known[name]
