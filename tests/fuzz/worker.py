"""Feeds one target under atheris until its time is over or a fault is found. Started by cli.py.

Coverage of perfdb decides which inputs are changed further; half of the changes are the fuzzer's
own, half are those of tests.fuzz.mutations.
"""

import sys
import warnings
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["perfdb"]):
    from tests.fuzz import seeds, targets
from tests.fuzz.mutations import MUTATIONS

MOST_SECONDS_WAITED = 1200
"""For one input that waits for ever; what it may take of a processor is in tests.fuzz.targets."""

MOST_MEMORY_MIB = 1536


def main() -> None:
    """TARGET SECONDS FOLDER: what is found is written into the folder as fault-SHA1."""
    name, seconds, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    warnings.simplefilter("error")
    starts = seeds.of(name)
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(starts):
        (corpus / f"seed-{number:03}").write_bytes(content)

    def changed(content: bytes, most_bytes: int, seed: int) -> bytes:
        chance = Random(seed)
        if chance.random() < 0.5:
            return bytes(atheris.Mutate(content, most_bytes))
        mutation = chance.choice(list(MUTATIONS.values()))
        return mutation(chance, content, chance.choice(starts))[:most_bytes]

    flags = {
        "max_total_time": seconds,
        "max_len": max(targets.TARGETS[name].most_bytes, *map(len, starts)),
        "timeout": MOST_SECONDS_WAITED,
        "report_slow_units": MOST_SECONDS_WAITED,
        "rss_limit_mb": MOST_MEMORY_MIB,
        "artifact_prefix": f"{folder}/fault-",
        "print_final_stats": 1,
    }
    arguments = [f"-{flag}={value}" for flag, value in flags.items()]
    atheris.Setup(
        [sys.argv[0], *arguments, str(corpus)],
        lambda content: targets.checked(name, content),
        custom_mutator=changed,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
