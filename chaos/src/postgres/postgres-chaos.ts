import { isWithin } from '../failover.js'
import { POSTGRES_FAULTS } from './faults.js'
import { type PostgresFaultReport, postgresFault } from './postgres-fault.js'

/** What became of fleets over PostgreSQL, under each fault. */
export interface PostgresChaosReport {
  readonly date: string
  /** Whether all was as stated. */
  readonly isWithin: boolean
  readonly faults: readonly PostgresFaultReport[]
}

/** Each fault again and again, on a server for each fault. @param times each is made */
export async function postgresChaos(times: number, progress: (line: string) => void = () => undefined): Promise<PostgresChaosReport> {
  const faults: PostgresFaultReport[] = []
  for (const fault of POSTGRES_FAULTS) faults.push(await postgresFault(fault, times, progress))
  return { date: new Date().toISOString().slice(0, 10), isWithin: faults.every(isAsStated), faults }
}

/** No error for callers, no more than the bound, nothing charged twice or lost. */
export function isAsStated(report: PostgresFaultReport): boolean {
  return isWithin(report) && report.chargedWrongly === 0
}
