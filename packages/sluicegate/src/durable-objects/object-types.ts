// What this library uses of Cloudflare's runtime: the types of `@cloudflare/workers-types` fit, and need not be installed.

/** The binding of a class of Durable Objects. */
export interface ObjectNamespace {
  idFromName(name: string): object
  get(id: never): { fetch(url: string, init: { method: string; body: string }): Promise<Pick<Response, 'ok' | 'status' | 'json' | 'text'>> }
}

/** What a Durable Object is constructed with. */
export interface ObjectState {
  readonly storage: ObjectStorage
  blockConcurrencyWhile<Result>(callback: () => Promise<Result>): Promise<Result>
}

/** The storage of one object: entries that are put together are stored together. */
export interface ObjectStorage {
  list<Value>(): Promise<Map<string, Value>>
  put(entries: Record<string, unknown>): Promise<void>
  delete(names: string[]): Promise<number>
  deleteAll(): Promise<void>
  getAlarm(): Promise<number | null>
  setAlarm(atMs: number): Promise<void>
}

/** The part of a `Request` that an object reads. */
export interface ObjectRequest {
  readonly method: string
  readonly headers: { get(name: string): string | null }
  text(): Promise<string>
}
