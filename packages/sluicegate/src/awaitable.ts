/** At once where that is possible, else a promise. */
export type Awaitable<Value> = Value | Promise<Value>

/** What `next` makes of a value: at once if the value is there. */
export function chained<Value, Next>(value: Awaitable<Value>, next: (value: Value) => Awaitable<Next>): Awaitable<Next> {
  return isPromise(value) ? value.then(next) : next(value)
}

/**
 * What `ask` says of each: at once if all is there. Where it throws, those that were asked before are still heard: a promise that rejects while
 * nobody listens ends the process.
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

/** Listens to what nobody waits for. */
export function ignore(value: unknown): void {
  if (isPromise(value)) value.then(nothing, nothing)
}

/** Those of other makes as well. */
export function isPromise<Value>(value: Awaitable<Value>): value is Promise<Value> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}

function nothing(): void {}
