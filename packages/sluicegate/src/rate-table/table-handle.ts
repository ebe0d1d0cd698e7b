import { isClockHandle, isPlaceIn } from '../memory/handle-check.js'
import type { ClockHandle } from '../time/clock.js'
import type { RateTableHandle } from './rate-table.js'

/** What a handle carries. */
export interface MemoryTableHandle extends RateTableHandle {
  readonly memory: WebAssembly.Memory
  readonly section: number
  readonly secret: readonly [number, number]
  readonly clock: ClockHandle
  readonly maxKeys: number
  readonly growTo: number
}

/** Whether the shapes are those of a handle; what is in the memory is not looked at. */
export function isTableHandle(handle: unknown): handle is MemoryTableHandle {
  const { sluicegate, memory, section, secret, clock, maxKeys, growTo } = Object(handle) as Partial<MemoryTableHandle>
  return (
    sluicegate === 1 && isPlaceIn(memory, section, secret) && isClockHandle(clock) && Number.isInteger(maxKeys) && Number.isInteger(growTo)
  )
}
