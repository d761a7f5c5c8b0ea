"""`perfdb`, or `python -m perfdb`: Ctrl-C ends it with 130, also while it starts and as it ends."""

import os
import signal
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """The console script."""
    before = signal.getsignal(signal.SIGINT)
    # A shell's background job ignores SIGINT, and goes on ignoring it.
    is_heeded = before is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, leave)
    try:
        from perfdb.cli import main as run  # noqa: PLC0415  takes half a second to load

        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:  # a second Ctrl-C, while the first one was reported
        os._exit(INTERRUPTED)
    finally:
        if is_heeded:
            signal.signal(signal.SIGINT, leave)


def leave(_signal: int, _frame: FrameType | None) -> None:
    """End at once: no work has begun, or all is done."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
