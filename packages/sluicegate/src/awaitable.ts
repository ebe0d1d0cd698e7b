/** A value, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>

/** When a limiter answers: `now`, from memory, or `later`, when its store has. */
export type When = 'now' | 'later'

/** What a limiter answers: in memory a value, over a store a promise of it. */
export type Answered<Time extends When, Value> = Time extends 'now' ? Value : Promise<Value>

/** What a limiter decides: over a store the value itself, where it leased tokens, or a promise of it. */
export type Decided<Time extends When, Value> = Time extends 'now' ? Value : Awaitable<Value>

/** Calls `next` with a value: at once if the value is there, otherwise when the promise resolves. */
export function chained<Value, Next>(value: Awaitable<Value>, next: (value: Value) => Awaitable<Next>): Awaitable<Next> {
  return isPromise(value) ? value.then(next) : next(value)
}

/**
 * Calls `ask` for each item: returns an array if all results are there, otherwise a promise. If a call throws, promises of the earlier
 * calls are handled: an unhandled rejection ends the process.
 */
export function answersOf<Item, Value>(items: readonly Item[], ask: (item: Item) => Awaitable<Value>): Awaitable<readonly Value[]> {
  const values: Awaitable<Value>[] = []
  try {
    for (const item of items) values.push(ask(item))
  } catch (error) {
    for (const value of values) ignore(value)
    throw error
  }
  return values.some(isPromise) ? Promise.all(values) : (values as Value[])
}

/** Handles the rejection of a promise whose result is not needed. */
export function ignore(value: unknown): void {
  if (isPromise(value)) value.then(nothing, nothing)
}

/** Any object with `then`. */
export function isPromise<Value>(value: Awaitable<Value>): value is Promise<Value> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}

function nothing(): void {}
