"""Helpers around training: files, data, images."""

from __future__ import annotations

from typing import Any

from .._errors import missing_name

_LATER = (
    "audio_utils callback communicator_util create_cache data_iterator data_source data_source_implements "
    "data_source_loader dlpack download factorization function_profile get_file_handle image_utils inspection "
    "learning_rate_scheduler load nnp_format nnp_graph nvml profiler progress qnn rnn save signature_utils"
)


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name, _LATER)
