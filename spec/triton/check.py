"""All checks of one model's configuration."""

from spec.problems import Problem
from spec.triton.batching import check_batching
from spec.triton.ensemble import check_ensemble_settings
from spec.triton.instances import check_instances
from spec.triton.platforms import check_files, check_platform
from spec.triton.policies import check_metrics, check_optimization, check_response_cache, check_versions
from spec.triton.proto import ModelConfig
from spec.triton.sequences import check_sequences
from spec.triton.tensors import check_batch_tensors, check_tensors
from spec.triton.warmup import check_warmup


def check(config: ModelConfig, *, gpu: bool) -> list[Problem]:
    """What Triton would refuse, ignore or read otherwise than meant in one model's configuration.

    What is left out is left to Triton's auto-completion; what is there must be right. How the steps of an
    ensemble hang together is seen by ``check_ensemble``.

    Args:
        config: the model's configuration.
        gpu: whether the service asks for a GPU.
    """
    return [
        *check_platform(config),
        *check_ensemble_settings(config),
        *check_tensors(config),
        *check_batch_tensors(config),
        *check_batching(config),
        *check_sequences(config, gpu=gpu),
        *check_instances(config, gpu=gpu),
        *check_warmup(config),
        *check_versions(config),
        *check_response_cache(config),
        *check_optimization(config, gpu=gpu),
        *check_metrics(config),
        *check_files(config),
    ]
