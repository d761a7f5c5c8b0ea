"""`perfdb`, or `python -m perfdb`: Ctrl-C ends it with 130, also while it starts and as it ends."""

import os
import signal
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """The console script."""
    within = signal.getsignal(signal.SIGINT)
    if (
        within is signal.default_int_handler
    ):  # else it is ignored, as of what runs in the background
        signal.signal(signal.SIGINT, leave)
    try:
        from perfdb.cli import main as run  # noqa: PLC0415  loads what takes a while

        signal.signal(signal.SIGINT, within)
        run()
    except KeyboardInterrupt:  # a second one, as the first was told of
        os._exit(INTERRUPTED)
    finally:
        if within is signal.default_int_handler:
            signal.signal(signal.SIGINT, leave)


def leave(_signal: int, _frame: FrameType | None) -> None:
    """End at once: nothing is at work that would have to be ended."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
