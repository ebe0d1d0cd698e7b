/** At once where that is possible, else a promise. */
export type Awaitable<Value> = Value | Promise<Value>

/** What `next` makes of a value: at once if the value is there. */
export function chained<Value, Next>(value: Awaitable<Value>, next: (value: Value) => Awaitable<Next>): Awaitable<Next> {
  return isPromise(value) ? value.then(next) : next(value)
}

/** Several values: at once if all are there. */
export function together<Value>(values: readonly Awaitable<Value>[]): Awaitable<readonly Value[]> {
  return values.some(isPromise) ? Promise.all(values) : (values as readonly Value[])
}

/** Those of other makes as well. */
export function isPromise<Value>(value: Awaitable<Value>): value is Promise<Value> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
