import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** Of one core, over the length of a repeat: what others may use without making it void. */
const DISTURBANCE = 0.15
const LOOK_MS = 60
const MS_PER_TICK = 10

/** Readings of who used the processors, to tell a disturbed repeat from a quiet one. Linux; elsewhere every repeat is quiet. */
export interface Usage {
  readonly atMs: number
  readonly machineMs: number
  readonly subjectMs: number
}

export function usage(pid: number): Usage {
  return { atMs: performance.now(), machineMs: machineMs(), subjectMs: processMs(pid) }
}

/** Whether others than the subject used the processors between two readings. */
export function disturbed(before: Usage, after: Usage): boolean {
  const others = after.machineMs - before.machineMs - (after.subjectMs - before.subjectMs)
  // Processor time is counted in ticks on both sides: two of them are no evidence.
  return others > Math.max((after.atMs - before.atMs) * DISTURBANCE, 2 * MS_PER_TICK)
}

/** Waits until the processors were idle for a moment; false when they were not within `patienceMs`. */
export async function quiet(patienceMs: number): Promise<boolean> {
  const deadlineMs = performance.now() + patienceMs
  for (;;) {
    const before = machineMs()
    await sleep(LOOK_MS)
    if (machineMs() - before <= MS_PER_TICK) return true
    if (performance.now() >= deadlineMs) return false
  }
}

function machineMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)
}

/** Processor time of a process and all its threads, user and system. */
function processMs(pid: number): number {
  if (process.platform !== 'linux') return 0
  // The fields after the name, which may hold spaces; utime and stime are the 14th and 15th of all.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
}
