import type { ClockHandle } from '../clock.js'
import { isClockHandle, isPlaceIn } from '../memory/handle-check.js'

/** A rate table for another thread: opaque and structured-clonable. */
export interface RateTableHandle {
  readonly sluicegate: 1
  readonly memory: WebAssembly.Memory
  readonly section: number
  readonly secret: readonly [number, number]
  readonly clock: ClockHandle
}

/** Whether the shapes are those of a handle; what is in the memory is not looked at. */
export function isRateTableHandle(handle: unknown): handle is RateTableHandle {
  const { sluicegate, memory, section, secret, clock } = Object(handle) as Partial<RateTableHandle>
  return sluicegate === 1 && isPlaceIn(memory, section, secret) && isClockHandle(clock)
}
