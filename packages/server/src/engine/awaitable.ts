/** A value, or a promise of it: in memory verbs answer at once, over a shared store some of them wait for it. */
export type Awaitable<Value> = Value | Promise<Value>

/** `next(value)`: at once for a value, later for a promise. A microtask for each decision in memory would cost more than the decision. */
export function whenDone<Value, Result>(value: Awaitable<Value>, next: (value: Value) => Result): Awaitable<Awaited<Result> | Result> {
  return value instanceof Promise ? (value.then(next) as Promise<Awaited<Result>>) : next(value)
}

/**
 * Calls `ask` for each item, and gives the results in their order: at once when none of them is a promise. Where a call throws, promises of the calls before it
 * are handled: an unhandled rejection ends the process.
 */
export function answersOf<Item, Value>(items: readonly Item[], ask: (item: Item, i: number) => Awaitable<Value>): Awaitable<Value[]> {
  const values: Awaitable<Value>[] = []
  try {
    for (const [i, item] of items.entries()) values.push(ask(item, i))
  } catch (error) {
    for (const value of values) if (value instanceof Promise) value.catch(() => undefined)
    throw error
  }
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as Value[])
}
