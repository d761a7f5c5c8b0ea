"""The model_config.yaml beside Megatron-LM's golden values: arguments and environment of the run.

It is no account of a run: it completes what the golden values say. Its arguments start as they do
on the command line, `--seq-length: 8192`. Source: tests/functional_tests.
"""

import re
from collections.abc import Mapping

from perfdb.errors import Diagnostic
from perfdb.formats import settings
from perfdb.formats.base import Content, ParsedLog
from perfdb.formats.documents import Written, checked_yaml, nothing, texts, yaml_document
from perfdb.record import PartialCase

NAME = "megatron_config"

_ARGUMENTS = re.compile(rb"(?m)^MODEL_ARGS:[ \t\r]*$")


class _Config(Written):
    MODEL_ARGS: Mapping[str, object]
    ENV_VARS: Mapping[str, object] = {}


def recognises(head: bytes, name: str) -> bool:
    """Whether the arguments of a functional test are among the first bytes."""
    return bool(_ARGUMENTS.search(head))


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """What the file says of the run beside it."""
    who = PartialCase(framework="megatron-lm")
    document = yaml_document(where, content)
    config = document if isinstance(document, Diagnostic) else checked_yaml(document, _Config)
    if isinstance(config, Diagnostic):
        return nothing(config, who)
    arguments = {
        name.lstrip("-").replace("-", "_"): str(value) for name, value in config.MODEL_ARGS.items()
    }
    log = ParsedLog(
        configuration=settings.configuration(arguments, framework="megatron-lm"),
        environment=texts(config.ENV_VARS),
        doubts=settings.doubts(arguments),
    )
    return (log,)
