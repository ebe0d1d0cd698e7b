import { FaultProxy, type PostgresProcess } from 'sluicegate-testkit'
import { summaryOf } from '../samples.js'
import { callFor } from './callers.js'
import { CONTENDERS, type Contender, PLENTY } from './contenders.js'
import type { PostgresRow, RatesEffort } from './postgres-results.js'

const CALLERS = [1, 16, 256]
const KEYS = [1, 100_000]
const ADDED_MS = [0, 2]
/** Decisions of each contender before the first cell: what runs for the first thousands of times is not compiled yet. */
const WARM_UP = 5000
const LONGEST_WARM_UP_MS = 10_000

/** Decisions a second of all contenders, in each cell. */
export async function measureRates(server: PostgresProcess, effort: RatesEffort): Promise<PostgresRow[]> {
  await using proxy = await FaultProxy.before(server)
  await warmUp(server.url)
  proxy.set({ kind: 'latency', delayMs: 1 })
  const far = server.urlAt(proxy.port)
  const rows: PostgresRow[] = []
  for (const addedMs of ADDED_MS) {
    const contenders = await Promise.all(CONTENDERS.map((open) => open(addedMs === 0 ? server.url : far, PLENTY)))
    for (const keys of KEYS) {
      for (const callers of CALLERS) rows.push(...(await sideBySide(contenders, effort, { addedMs, keys, callers })))
    }
    await Promise.all(contenders.map((each) => each.close()))
  }
  return rows
}

async function warmUp(url: string): Promise<void> {
  for (const open of CONTENDERS) {
    const contender = await open(url, PLENTY - 1)
    await callFor(contender, 1, () => 'warm', LONGEST_WARM_UP_MS, WARM_UP)
    await contender.close()
  }
}

/** All in turns, so that what else the machine does disturbs all alike. */
async function sideBySide(
  contenders: readonly Contender[],
  { rounds, roundMs }: RatesEffort,
  cell: Pick<PostgresRow, 'addedMs' | 'keys' | 'callers'>,
): Promise<PostgresRow[]> {
  const { addedMs, keys, callers } = cell
  const rates = contenders.map((): number[] => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, contender] of contenders.entries()) {
      const { decisions, ms } = await callFor(contender, callers, () => `user ${Math.floor(Math.random() * keys)}`, roundMs)
      rates[i]?.push(Math.round((decisions / ms) * 1000))
    }
  }
  return contenders.map(({ name }, i) => {
    const perSecond = summaryOf(rates[i] as number[])
    console.error(`${addedMs} ms, ${keys} keys, ${callers} callers: ${name} ${perSecond.median}/s (${perSecond.min} to ${perSecond.max})`)
    return { ...cell, name, perSecond }
  })
}
