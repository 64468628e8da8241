// HTTP by `fetch`: time limits and errors. The generated client extends it.

/** The address of the server, and the defaults of a client. */
export interface StrataOptions {
  /** The address of the server. Defaults to `http://127.0.0.1:8100`. */
  url?: string;
  /** The user of calls that name none. */
  user?: string;
  /** The session of calls that name none. */
  session?: string;
  /** A key, as `strata keys create` shows it. */
  apiKey?: string;
  /** How long to wait for the server, in milliseconds. Defaults to 30,000. */
  timeout?: number;
}

/** The server refused a request, or could not be reached (then `status` is 0). */
export class StrataError extends Error {
  override name = "StrataError";

  constructor(
    message: string,
    /** The HTTP status; 0 if there was no answer. */
    readonly status: number,
    /** The class of failure, such as `invalid_request_error` or `not_found_error`. */
    readonly type: string,
    /** The code of the failure, for a program. */
    readonly code: string,
    /** The id under which the server's log knows the request. */
    readonly requestId: string | null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

type Values = Record<string, unknown>;

/** Sends requests and reads answers. */
export class Transport {
  readonly #url: string;
  readonly #options: StrataOptions;

  constructor(options: StrataOptions = {}) {
    const url = options.url ?? "http://127.0.0.1:8100";
    if (!/^https?:\/\//.test(url)) {
      throw new TypeError(`\`${url}\` is no address of a server; it begins with http:// or https://`);
    }
    this.#url = url.replace(/\/+$/, "");
    this.#options = options;
  }

  protected userOr(user?: string | null): string | undefined {
    return user ?? this.#options.user;
  }

  protected sessionOr(session?: string | null): string | undefined {
    return session ?? this.#options.session;
  }

  protected escaped(part?: string): string {
    if (part === undefined) throw new TypeError("name a session: as a parameter, or as `session` of the client");
    return encodeURIComponent(part);
  }

  protected keyOr(key?: string | null): string {
    return key ?? crypto.randomUUID();
  }

  protected async call(
    method: string,
    path: string,
    parts: { query?: Values; body?: Values; headers?: Values },
  ): Promise<unknown> {
    const query = new URLSearchParams();
    for (const [name, value] of given(parts.query)) query.set(name, String(value));
    const headers = new Headers({ Accept: "application/json" });
    for (const [name, value] of given(parts.headers)) headers.set(name, String(value));
    if (this.#options.apiKey !== undefined) headers.set("X-API-Key", this.#options.apiKey);
    const request: RequestInit = { method, headers, signal: AbortSignal.timeout(this.#options.timeout ?? 30_000) };
    if (parts.body) {
      headers.set("Content-Type", "application/json");
      request.body = JSON.stringify(Object.fromEntries(given(parts.body)));
    }
    const target = this.#url + path + (query.size > 0 ? `?${query}` : "");
    let response: Response;
    let text: string;
    try {
      response = await fetch(target, request);
      text = await response.text();
    } catch (cause) {
      const error = cause as Error;
      const reason = (error.cause as Error | undefined)?.message || error.message;
      throw new StrataError(`no answer from ${this.#url}: ${reason}`, 0, "connection_error", "no_answer", null, { cause });
    }
    if (response.ok) return text === "" ? null : JSON.parse(text);
    throw refusal(response, text);
  }
}

function given(values: Values = {}): Array<[string, unknown]> {
  return Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
}

/** The error of an answer; one that is not Strata's own, such as a gateway's, is shown as it is. */
function refusal(response: Response, text: string): StrataError {
  let error: { message?: string; type?: string; code?: string } = {};
  try {
    error = (JSON.parse(text) as { error?: typeof error }).error ?? {};
  } catch {
    error = { message: text.slice(0, 200) };
  }
  return new StrataError(
    error.message || `status ${response.status}`,
    response.status,
    error.type ?? "server_error",
    error.code ?? "unknown",
    response.headers.get("X-Strata-Request-Id"),
  );
}
