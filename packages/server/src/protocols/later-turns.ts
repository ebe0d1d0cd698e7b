/** The time of one event-loop turn for calls that wait, besides the first of them. */
const TURN_MS = 1

/** In the order of arrival; those before `next` have run. */
let waiting: ((isAlone: boolean) => void)[] = []
let next = 0

/**
 * Calls `go` in a later turn of the event loop, after all that wait already. Node accepts one new connection a turn, so that turns have to be short:
 * a connection behind a hundred others waits for a hundred of them. `isAlone`: no other call waits.
 */
export function inLaterTurn(go: (isAlone: boolean) => void): void {
  if (waiting.push(go) === 1) setImmediate(turn)
}

function turn(): void {
  const untilMs = performance.now() + TURN_MS
  // Calls added meanwhile wait for the next turn.
  const end = waiting.length
  const isAlone = end - next === 1
  do waiting[next++]?.(isAlone)
  while (next < end && performance.now() < untilMs)
  waiting = waiting.slice(next)
  next = 0
  if (waiting.length > 0) setImmediate(turn)
}
