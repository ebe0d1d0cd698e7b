import type { LedgerLevel, LedgerRecord } from './ledger-record.js'

/** What a ledger says of one key of one policy. */
export interface LedgerBalance extends LedgerLevel {
  /** Tokens that were spent, in all: choose the records of a window for what was spent in it. */
  readonly spent: number
  /** Those of them that were beyond the policy. */
  readonly over: number
  /** Tokens that works still hold, before what they have added since. */
  readonly held: number
}

/** A balance that is being added up. */
interface Adding {
  spent: number
  over: number
  readonly holds: Map<string, number>
}

/** A record, or its row of a table, whose numbers drivers give as text. */
type RecordOrRow = Pick<LedgerRecord, 'writer' | 'event' | 'levels'> & {
  readonly [column in 'hold' | 'tokens' | 'over']?: number | string | bigint | null | undefined
}

/**
 * Adds up the records of a ledger, those of each writer in the order of their numbers.
 *
 * @example
 * const { rows } = await pool.query('SELECT * FROM sluicegate_ledger ORDER BY writer, number')
 * replayedLedger(rows)
 */
export function replayedLedger(records: Iterable<RecordOrRow>): readonly LedgerBalance[] {
  const balances = new Map<string, Adding>()
  for (const { writer, event, hold, levels, ...amounts } of records) {
    const [tokens, over] = [Number(amounts.tokens), Number(amounts.over ?? 0)]
    for (const { whole, policy, key } of levels) {
      const id = JSON.stringify({ whole, policy, key })
      const balance = balances.get(id) ?? { spent: 0, over: 0, holds: new Map<string, number>() }
      balances.set(id, balance)
      const work = `${writer} ${hold}`
      if (event === 'open') balance.holds.set(work, tokens)
      else if (event === 'reset') balance.spent = 0
      else {
        balance.spent = Math.max(0, balance.spent + tokens)
        balance.over += over
        const held = balance.holds.get(work)
        if (event === 'close' || event === 'lapse') balance.holds.delete(work)
        else if (event === 'add' && held !== undefined) balance.holds.set(work, Math.max(0, held - tokens))
      }
    }
  }
  return [...balances].map(([id, { spent, over, holds }]) => {
    const level = JSON.parse(id) as LedgerLevel
    return { ...level, spent, over, held: [...holds.values()].reduce((sum, held) => sum + held, 0) }
  })
}
