/** What those who wait may take of one turn of the event loop, besides the first of them. */
const TURN_MS = 1

/** In the order in which they came; those before `next` have had their turn. */
let waiting: ((isAlone: boolean) => void)[] = []
let next = 0

/**
 * Calls `go` in a later turn of the event loop, after all that wait already. Node accepts one new connection a turn, so that turns have to be short:
 * who comes behind a hundred others waits for a hundred of them. `isAlone` says whether nobody else waits.
 */
export function inLaterTurn(go: (isAlone: boolean) => void): void {
  if (waiting.push(go) === 1) setImmediate(turn)
}

function turn(): void {
  const untilMs = performance.now() + TURN_MS
  // Those who come back meanwhile wait for the next turn.
  const end = waiting.length
  const isAlone = end - next === 1
  do waiting[next++]?.(isAlone)
  while (next < end && performance.now() < untilMs)
  waiting = waiting.slice(next)
  next = 0
  if (waiting.length > 0) setImmediate(turn)
}
