"""What programs, the kernel and Slurm print where memory ran out, of a GPU or of its host. Pure."""

import re
from typing import Final

MESSAGE: Final = re.compile(
    r"(?m)MemoryError(?::|[ \t]*$)|Error: (?:CUDA|HIP) out of memory"
    r"|CUDA out of memory\. Tried to allocate|CUDA (?:driver )?error: out of memory"
    r"|Cuda failure (?:\d+ )?'out of memory'|cudaErrorMemoryAllocation: out of memory"
    r"|RESOURCE_EXHAUSTED: Out of memory|can't allocate memory|\[Errno 12\]"
    r"|Detected \d+ oom[_-]kill event|srun: error: [^\n]*: Out Of Memory"
)
"""In a line or in several: of a run that was launched here as of a log."""
