import { readFileSync } from 'node:fs'
import { arch, cpus, loadavg, release, totalmem, type } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { goVersion } from './rivals.js'

/** Where a run took place. */
export type Machine = ReturnType<typeof machine>

export function machine() {
  const [first] = cpus()
  return {
    cpu: first?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    os: distribution(),
    kernel: `${type()} ${release().split('-')[0]} ${arch()}`,
    node: `${process.version} (V8 ${process.versions.v8})`,
    go: goVersion()?.replace('go version ', '') ?? 'none',
  }
}

/** Runnable tasks, averaged over the last minute: how quiet the machine was. */
export function load(): number {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100
}

function distribution(): string {
  try {
    return /^PRETTY_NAME="?([^"\n]+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? process.platform
  } catch {
    return process.platform
  }
}

/** Of one core, over the length of a repeat: what others may use beyond the cores that the subject leaves them. */
const DISTURBANCE = 0.15
const LOOK_MS = 60
const MS_PER_TICK = 10

/** Readings of who used the processors, to tell a disturbed repeat from a quiet one. Linux; elsewhere every repeat is quiet. */
type Usage = ReturnType<typeof usage>

export function usage(pid: number) {
  return { atMs: performance.now(), machineMs: machineMs(), subjectMs: processMs(pid) }
}

/** Whether others used more between two readings than the cores that a subject with `threads` threads leaves them. */
export function disturbed(before: Usage, after: Usage, leftCores: number): boolean {
  const others = after.machineMs - before.machineMs - (after.subjectMs - before.subjectMs)
  const elapsedMs = after.atMs - before.atMs
  // Processor time is counted in ticks on both sides: two of them are no evidence.
  return others > elapsedMs * leftCores + Math.max(elapsedMs * DISTURBANCE, 2 * MS_PER_TICK)
}

/** Waits until the others kept to the cores left to them for a moment, at most `patienceMs`. */
export async function quiet(patienceMs: number, leftCores: number): Promise<void> {
  const deadlineMs = performance.now() + patienceMs
  for (;;) {
    const before = machineMs()
    await sleep(LOOK_MS)
    if (machineMs() - before <= LOOK_MS * leftCores + MS_PER_TICK || performance.now() >= deadlineMs) return
  }
}

/** Cores that a subject with `threads` threads leaves to others. */
export function coresLeftBy(threads: number): number {
  return Math.max(0, cpus().length - threads)
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
