import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { residentBytes } from 'sluicegate-testkit/service/resident-memory.js'
import { sum } from '../samples.js'

const MS_PER_TICK = 10

/** User and system time of a process and its children; 0 where the system does not say. */
export function cpuMs({ pid }: ChildProcess): number {
  return pid === undefined ? 0 : cpuMsOf(pid)
}

/** Resident memory of a process and its children; 0 where the system does not say. */
export function rssBytes({ pid }: ChildProcess): number {
  return pid === undefined ? 0 : rssBytesOf(pid)
}

function cpuMsOf(pid: number): number {
  try {
    const [, text = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
    const fields = text.split(' ')
    return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK + sum(childrenOf(pid).map(cpuMsOf))
  } catch {
    return 0
  }
}

function rssBytesOf(pid: number): number {
  try {
    return residentBytes(pid) + sum(childrenOf(pid).map(rssBytesOf))
  } catch {
    return 0
  }
}

function childrenOf(pid: number): number[] {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number))
}
