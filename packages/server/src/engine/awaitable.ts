/** A value, or a promise of it: in memory verbs answer at once, over a shared store some of them wait for it. */
export type Awaitable<Value> = Value | Promise<Value>

/** `next(value)`: at once for a value, later for a promise. A microtask for each decision in memory would cost more than the decision. */
export function whenDone<Value, Result>(value: Awaitable<Value>, next: (value: Value) => Result): Awaitable<Awaited<Result> | Result> {
  return value instanceof Promise ? (value.then(next) as Promise<Awaited<Result>>) : next(value)
}

/** The results of `values` in their order: at once when none of them is a promise. */
export function allDone<Value>(values: readonly Awaitable<Value>[]): Awaitable<Value[]> {
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as Value[])
}
