import type { PostgresProcess } from 'sluicegate-testkit'
import { callFor } from './callers.js'
import { CONTENDERS } from './contenders.js'
import type { BudgetRow } from './postgres-results.js'

const BUDGET = 1_000
const CALLERS = 64
const LONGEST_MS = 60_000

/** Two pools of connections, as of two processes, race for an unused key. */
export async function measureBudget(server: PostgresProcess): Promise<BudgetRow[]> {
  const rows: BudgetRow[] = []
  for (const open of CONTENDERS) {
    const pair = [await open(server.url, BUDGET), await open(server.url, BUDGET)]
    const counts = await Promise.all(pair.map((each) => callFor(each, CALLERS, () => `hot ${each.name}`, LONGEST_MS, BUDGET * 2)))
    const admitted = counts.reduce((sum, each) => sum + each.admitted, 0)
    rows.push({ name: pair[0]?.name ?? '', budget: BUDGET, admitted })
    await Promise.all(pair.map((each) => each.close()))
  }
  return rows
}
