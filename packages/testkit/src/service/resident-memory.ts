import { readFileSync } from 'node:fs'

/** The resident set of a process, as Linux tells it. */
export function residentBytes(pid: number | undefined): number {
  const [, kB] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kB) * 1_024
}
