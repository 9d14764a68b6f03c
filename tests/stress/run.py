"""Run the stress for as long as you like: `python tests/stress/run.py --seconds 600 --signals`.

Each round takes a part of the time with other settings; the first violation ends it with exit code 1.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOUND = 3
"""Exit code when a mistake that was put in was found."""


def say(*words: object, sep: str = " ") -> None:
    """Say something to whoever runs this."""
    sys.stdout.write(sep.join(map(str, words)) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run rounds until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--round", type=float, default=10.0, help="seconds of one round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--signals", action="store_true", help="interrupt the main thread in each round")
    parser.add_argument("--path", type=Path, help="where the stores are made; a memory disk is fastest")
    parser.add_argument("--mutation", help="put in a mistake that has to be found")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.stress.engine import Run
    from tests.stress.mutations import MUTATIONS
    from tests.stress.notes import Settings

    faulthandler.enable()
    logging.getLogger("pykka").setLevel(logging.CRITICAL)
    logging.getLogger("sealog").setLevel(logging.CRITICAL)
    if arguments.mutation:
        mutation, needs = MUTATIONS[arguments.mutation]
        settings = Settings(arguments.seconds, arguments.seed, faults=0.0, chaos=False, answer_s=1.0)
        for name, value in needs.items():
            setattr(settings, name, value)
        folder = Path(tempfile.mkdtemp(prefix="sealog-stress-", dir=arguments.path))
        run = Run(folder / "store", settings)
        mutation()
        found = run.run().violations
        say(*found[:3], dict(run.notes.counts), sep="\n")
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(FOUND if found else 0)  # threads that hang would keep the process
    end = time.monotonic() + arguments.seconds
    total = 0
    for number in itertools.count(arguments.seed):
        rnd = random.Random(number)
        settings = Settings(
            seconds=min(arguments.round, max(end - time.monotonic(), 1)),
            seed=number,
            threads=rnd.choice((4, 12, 24)),
            sessions=rnd.choice((1, 4, 10)),
            live=rnd.choice((1, 3, 20)),
            faults=rnd.choice((0.0, 0.002, 0.01)),
            signals=arguments.signals and rnd.random() < 0.7,
            chaos=rnd.random() < 0.7,
            reopen_s=rnd.choice((0.0, 0.2, 3.0)),
            switch_s=rnd.choice((0.0, 1e-6, 5e-5, 0.05)),
            messages_max=rnd.choice((0, 4, 64)),
        )
        folder = Path(tempfile.mkdtemp(prefix="sealog-stress-", dir=arguments.path))
        result = Run(folder / "store", settings).run()
        total += result.acknowledged
        say(f"{settings}\n  {result.acknowledged} acknowledged, {result.stored} stored, {result.counts}")
        if result.violations:
            say(f"  VIOLATIONS in {folder}: {result.violations[:10]}")
            faulthandler.dump_traceback()
            return 1
        shutil.rmtree(folder)
        if time.monotonic() >= end:
            say(f"{total} acknowledged in all, no violation")
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
