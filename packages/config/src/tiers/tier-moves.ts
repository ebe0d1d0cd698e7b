import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Tiers } from './tiers.js'

/** A key with another limit than before, and the id of that limit; empty for the policy's own. */
export type TierMove = readonly [key: string, id: string]

const KEYS_PER_SLICE = 1_000
/** What was found ahead of its use, by the tiers that come into force. */
const foundAhead = new WeakMap<Tiers, { readonly before: Tiers | undefined; readonly moves: readonly TierMove[] }>()

/** The keys that have another limit under `after`, of those that either names. */
export function movesBetween(before: Tiers | undefined, after: Tiers | undefined): readonly TierMove[] {
  if (before === after) return []
  const ahead = after && foundAhead.get(after)
  if (ahead !== undefined && ahead.before === before) return ahead.moves
  const finding = moves(before, after)
  for (;;) {
    const { done, value } = finding.next()
    if (done) return value
  }
}

/** Finds what {@link movesBetween} will return, and lets others run in between: a million keys take a while. */
export async function findMoves(before: Tiers | undefined, after: Tiers): Promise<void> {
  const finding = moves(before, after)
  for (;;) {
    const { done, value } = finding.next()
    if (done) {
      foundAhead.set(after, { before, moves: value })
      return
    }
    await nextTurn()
  }
}

function* moves(before: Tiers | undefined, after: Tiers | undefined): Generator<void, TierMove[]> {
  const found: TierMove[] = []
  let looked = 0
  for (const tiers of [before, after]) {
    for (const key of tiers?.exactKeys() ?? []) {
      const from = before?.idOf(key) ?? ''
      if (from !== (after?.idOf(key) ?? '')) found.push([key, from])
      if (++looked % KEYS_PER_SLICE === 0) yield
    }
  }
  return found
}
