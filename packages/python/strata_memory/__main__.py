"""`python -m strata_memory` runs the program that the package carries."""

import os
import sys
import sysconfig


def program() -> str:
    """The path of the program."""
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        path = os.path.join(sysconfig.get_path("scripts", scheme), "strata")
        if os.path.isfile(path):
            return path
    raise FileNotFoundError("this installation has no program `strata`; install the package again")


if __name__ == "__main__":
    path = program()
    os.execv(path, [path, *sys.argv[1:]])
