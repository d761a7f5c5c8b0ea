"""MLPerf training logs: `:::MLLOG {…}`, JSON behind a marker.

A log holds no steps but, for each block of training, the mean time of its steps. The result is the
mean over all blocks, weighted by their steps. Source: mlcommons/logging, and mlperf_common's callback.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from perfdb.errors import Problem
from perfdb.formats import settings
from perfdb.formats.base import Configuration, Content, ParsedLog
from perfdb.formats.numbers import count, finite, positive
from perfdb.formats.scan import Piece, Scan, pieces, plain
from perfdb.formats.steps import MOST_KEPT, few
from perfdb.record import Figures, Outcome

NAME = "mlperf"
