# SPDX-License-Identifier: Apache-2.0
"""``python -m conformance.goldens``: hold the goldens of the kit's models against this engine, or write them anew."""

from __future__ import annotations

import argparse
import sys

from conformance.goldens.engine import GOLDENS, made
from conformance.goldens.manifest import ManifestError, by_key, read, write
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_FINDINGS, EXIT_OK


def main(argv: list[str] | None = None) -> int:
    """Exit code 1 where a golden is another one than this engine gives, 3 where the manifest cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m conformance.goldens", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write conformance/goldens/engine.json")
    options = parser.parse_args(argv)
    fresh = tuple(made())
    if options.write:
        write(GOLDENS, fresh)
        sys.stdout.write(f"{len(fresh)} goldens written to {GOLDENS}\n")
        return EXIT_OK
    try:
        kept = by_key(read(GOLDENS))
    except ManifestError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_COULD_NOT_RUN
    found = by_key(fresh)
    changed = [key for key in {**kept, **found} if _other(kept.get(key), found.get(key))]
    sys.stdout.writelines(f"{' / '.join(key)}: changed\n" for key in changed)
    sys.stdout.write(f"{len(found) - len(changed)} of {len(found)} goldens are what this engine gives\n")
    return EXIT_FINDINGS if changed else EXIT_OK


def _other(kept: object, found: object) -> bool:
    hashes = [getattr(entry, "token_ids_sha256", None) for entry in (kept, found)]
    models = [getattr(entry, "model_sha256", None) for entry in (kept, found)]
    return hashes[0] != hashes[1] or models[0] != models[1]


if __name__ == "__main__":
    sys.exit(main())
