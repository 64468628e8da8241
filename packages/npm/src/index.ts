// Memory for any LLM application: a typed client of Strata. The package also carries the program `strata`.

export { Strata } from "./client.js";
export { StrataError, type StrataOptions } from "./transport.js";
export type * from "./types.js";
