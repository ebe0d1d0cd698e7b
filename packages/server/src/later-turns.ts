/** The time of one event-loop turn for calls that wait, besides the first of them, and as much for input that has just arrived. */
const TURN_MS = 0.2

/** When the time of this turn for input is over; undefined before the first input. */
let inputUntilMs: number | undefined

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

/**
 * Whether input that has just arrived has to wait: others had the time of this turn. One turn of the event loop reads from all sockets, so that many
 * busy clients together would make it long.
 */
export function isInputTimeOver(): boolean {
  const nowMs = performance.now()
  if (inputUntilMs !== undefined) return nowMs >= inputUntilMs
  inputUntilMs = nowMs + TURN_MS
  setImmediate(beginTurn)
  return false
}

/** Goes through `steps` in later turns, so that long work delays no other client. A step ends soon, and leaves all as others may see it. */
export function inSlices<Value>(steps: Iterator<unknown, Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const slice = (): void => {
      try {
        const untilMs = performance.now() + TURN_MS
        do {
          const { done, value } = steps.next()
          if (done) {
            resolve(value as Value)
            return
          }
        } while (performance.now() < untilMs)
        inLaterTurn(slice)
      } catch (error) {
        reject(error)
      }
    }
    inLaterTurn(slice)
  })
}

function beginTurn(): void {
  inputUntilMs = undefined
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
