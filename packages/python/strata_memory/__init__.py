"""Memory for any LLM application: a typed client of Strata, and the program itself.

    from strata_memory import Strata

    with Strata(user="ada", session="trip") as memory:
        memory.record([{"role": "user", "content": "I am allergic to peanuts."}])
        print(memory.search("what must Ada not eat?")["results"])

The package carries the binary, so `strata serve` starts the server. `AsyncStrata` has the same methods for asyncio. The
answers are the server's JSON as it is; `strata_memory.types` describes it.
"""

from ._client import AsyncStrata, Strata
from ._errors import StrataConnectionError, StrataError

__all__ = ["AsyncStrata", "Strata", "StrataConnectionError", "StrataError"]
