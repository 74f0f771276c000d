// The memory of `topicloom serve`. `schema.ts` is made of the server's OpenAPI document.
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type Schemas = components["schemas"];
export type MemoryClient = Client<paths>;

/** Where the server is, and who asks. */
export interface MemoryOptions {
  /** The server, such as `http://127.0.0.1:8321`. */
  url: string;
  /** A key of the server, if it has keys. */
  key?: string;
  /** The user that a trusted key speaks for. */
  user?: string;
  /** The scope of that user. */
  scope?: string;
}

/** A failed request: the server's sentence, and its status. */
export class MemoryError extends Error {
  constructor(message: string, readonly status: number) {
    super(message);
    this.name = "MemoryError";
  }
}

/** A client with typed paths, parameters and answers. A request that fails throws `MemoryError`. */
export function createMemoryClient({ url, key, user, scope }: MemoryOptions): MemoryClient {
  const headers: Record<string, string> = {};
  if (key) headers["Authorization"] = `Bearer ${key}`;
  if (user) headers["X-Topicloom-User"] = user;
  if (scope) headers["X-Topicloom-Scope"] = scope;
  const client = createClient<paths>({ baseUrl: url, headers });
  client.use({
    async onResponse({ response }) {
      if (response.ok) return;
      const text = await response.text();
      throw new MemoryError(readMessage(text) ?? text, response.status);
    },
  });
  return client;
}

/** The message of an error as the server writes it; nothing if something else answered. */
function readMessage(text: string): string | undefined {
  try {
    return (JSON.parse(text) as Schemas["Error"]).error.message;
  } catch {
    return undefined;
  }
}
