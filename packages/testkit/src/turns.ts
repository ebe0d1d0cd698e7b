/** Lets the event loop turn so often. */
export async function turns(count = 1): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Lets it turn until it is so. */
export async function turnsUntil(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await turns()
}

/** Lets what waits for settled promises run within this turn, so many steps of it. */
export async function microtasks(count: number): Promise<void> {
  for (let step = 0; step < count; step++) await undefined
}
