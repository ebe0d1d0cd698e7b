import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { NodeSet } from 'sluicegate-testkit/outage/node-set.js'
import { Random } from 'sluicegate-testkit/random.js'
import { CountedShare, REMEMBERED_MS, SHARE_RULES, type ShareRules, UNKNOWN_SHARE } from '../../../dist/shared/outage/local-share.js'

/** The rules of a history: those of a limiter, and how long the store remembers a node. */
interface HistoryRules extends ShareRules {
  readonly name: string
  readonly rememberedMs: number
}

const SOUND_SHARES: HistoryRules = { ...SHARE_RULES, name: 'sound', rememberedMs: REMEMBERED_MS }

/** Each has to be found. */
const FAULTY_SHARES: readonly HistoryRules[] = [
  { ...SOUND_SHARES, name: 'a share from a stale node count', trustedMs: Number.POSITIVE_INFINITY },
  { ...SOUND_SHARES, name: 'a smaller count holds at once', heldMs: 0 },
  { ...SOUND_SHARES, name: 'a new limiter trusts its first count', settledMs: 0 },
  { ...SOUND_SHARES, name: 'the store forgets a node before it calls again', rememberedMs: 30_000 },
]

/** Every node calls once a minute at least, where the store loses its data. */
const OFTEN_MS = 60_000

/** The sum of the shares at the beginning of an outage, and what it may be. */
interface OutageShares {
  readonly nodes: number
  readonly sum: number
  readonly bound: number
}

/** A limiter that shares the policy, and what it did. */
class HistoryNode {
  readonly share: CountedShare
  readonly everyMs: number
  readonly countedMs: number[] = []
  isCut = false
  /** Whether the store did not answer since the last outage: that one goes on, with the share that it began with. */
  isWaiting = false

  /** @param everyMs between its calls on average. */
  constructor(id: string, everyMs: number, nowMs: () => number, store: NodeSet, rules: ShareRules) {
    this.everyMs = everyMs
    const count = async (): Promise<number> => {
      this.countedMs.push(nowMs())
      return store.count(nowMs() * 1000, id)
    }
    // Its clock began at another time.
    const offMs = everyMs * 1e6
    this.share = new CountedShare({ nowMs: () => nowMs() + offMs }, count, rules)
  }
}

/**
 * A random history of up to `most` nodes that join, leave, start again, fall silent and are cut off, over a store that may lose its data. Returns
 * the sum of the shares of all nodes that an outage takes the store from, for each outage of it.
 */
async function nodeHistory(seed: number, most: number, rules: HistoryRules): Promise<OutageShares[]> {
  const history = new NodeHistory(new Random(seed), most, rules)
  await history.play()
  return history.outages
}

class NodeHistory {
  readonly outages: OutageShares[] = []
  private readonly random: Random
  private readonly rules: HistoryRules
  private readonly store: NodeSet
  private readonly mayLose: boolean
  private readonly most: number
  private nodes: HistoryNode[] = []
  private ids = 0
  private nowMs = 0
  private lostMs = Number.NEGATIVE_INFINITY

  constructor(random: Random, most: number, rules: HistoryRules) {
    this.random = random
    this.rules = rules
    this.store = new NodeSet(rules.rememberedMs * 1000)
    this.mayLose = random.chance(0.4)
    this.most = random.magnitude(1, most)
  }

  async play(): Promise<void> {
    const { random } = this
    this.join(random.integer(1, this.most))
    const phases = random.integer(1, 6)
    for (let phase = 0; phase < phases; phase++) {
      await this.pass(random.magnitude(1, 400))
      this.happen(phase === phases - 1)
    }
    await this.pass(random.magnitude(1, 60))
    this.outage(this.nodes.filter(({ isCut }) => !isCut))
  }

  private happen(isLast: boolean): void {
    const { random, nodes } = this
    const part = random.fraction() ** 2
    const some = nodes.filter(() => random.chance(part))
    const event = random.pick(['join', 'leave', 'restart', 'outage', 'heal'] as const)
    if (isLast && this.mayLose) this.lose()
    if (event === 'leave' || event === 'restart') this.leave(some)
    if (event === 'join' || event === 'restart') this.join(event === 'join' ? random.integer(1, this.most) : some.length)
    // Who is cut off does not call once a minute.
    if (event === 'outage' && !this.mayLose) this.outage(some.filter(({ isCut }) => !isCut))
    if (event === 'heal') for (const node of nodes) node.isCut = false
  }

  private lose(): void {
    this.store.lose()
    this.lostMs = this.nowMs
  }

  private join(count: number): void {
    const { random, store, rules } = this
    for (let i = 0; i < Math.min(count, this.most - this.nodes.length); i++) {
      const everyMs = random.pick([50, 1_000, 10_000, ...(this.mayLose ? [] : [100_000, 400_000])])
      this.nodes.push(new HistoryNode(String(this.ids++), everyMs, () => this.nowMs, store, rules))
    }
  }

  private leave(gone: readonly HistoryNode[]): void {
    this.nodes = this.nodes.filter((node) => !gone.includes(node))
  }

  private async pass(seconds: number): Promise<void> {
    const { random } = this
    for (let i = 0; i < seconds; i++) {
      this.nowMs += 1_000
      for (const node of this.nodes) {
        const { isCut, everyMs, share, countedMs } = node
        if (isCut) continue
        const isDue = this.mayLose && this.nowMs - (countedMs.at(-1) ?? this.nowMs) >= OFTEN_MS
        const calls = everyMs < 1_000 ? 1_000 / everyMs : Number(isDue || random.chance(1_000 / everyMs))
        if (calls > 0) node.isWaiting = false
        for (let left = calls; left > 0; left--) share.answered()
      }
      await undefined
    }
    await undefined
  }

  /** The store is gone for these nodes. */
  private outage(nodes: readonly HistoryNode[]): void {
    const asked = nodes.filter(({ isWaiting }) => !isWaiting)
    for (const node of asked) {
      node.isCut = true
      node.isWaiting = true
    }
    const known = asked.filter(({ countedMs }) => this.isKnown(countedMs))
    const sum = asked.reduce((all, { share }) => all + share.forOutage(), 0)
    this.outages.push({ nodes: asked.length, sum, bound: this.boundOf(known) + UNKNOWN_SHARE * (asked.length - known.length) })
  }

  private isKnown(countedMs: readonly number[]): boolean {
    const { settledMs, trustedMs } = SOUND_SHARES
    const lastMs = countedMs.at(-1) ?? Number.NEGATIVE_INFINITY
    // After a long silence a node is as new.
    const firstMs = countedMs.findLast((ms, i) => ms - (countedMs[i - 1] ?? Number.NEGATIVE_INFINITY) > trustedMs) ?? 0
    return lastMs - firstMs >= settledMs && this.nowMs - lastMs <= trustedMs
  }

  /** 1, and as much again for each that came since any of the others counted, over those that were there. */
  private boundOf(known: readonly HistoryNode[]): number {
    if (known.length === 0) return 0
    const heardMs = known.map(({ countedMs }) => this.wholeCountMs(countedMs))
    const fromMs = Math.min(...heardMs)
    const toMs = Math.max(...heardMs)
    const before = known.filter(({ countedMs }) => wasThere(countedMs, fromMs, toMs)).length
    return 1 + (known.length - before) / before
  }

  /** When a node last heard a count of all: not in the minute after the store lost its data. */
  private wholeCountMs(countedMs: readonly number[]): number {
    const { lostMs } = this
    const isWhole = (ms: number): boolean => ms < lostMs || ms >= lostMs + OFTEN_MS
    return countedMs.findLast(isWhole) ?? Number.NEGATIVE_INFINITY
  }
}

/** Whether a store that forgets nothing too early had the node all the time. */
function wasThere(countedMs: readonly number[], fromMs: number, toMs: number): boolean {
  let lastMs = countedMs.findLast((ms) => ms <= fromMs) ?? Number.NEGATIVE_INFINITY
  if (fromMs - lastMs >= REMEMBERED_MS) return false
  for (const ms of countedMs) {
    if (ms <= lastMs || ms > toMs) continue
    if (ms - lastMs >= REMEMBERED_MS) return false
    lastMs = ms
  }
  return toMs - lastMs < REMEMBERED_MS
}

/** Random histories, most of few nodes, some of up to a thousand. */
const HISTORIES = shortOrLong(150, 500)
const MOST_NODES = shortOrLong(100, 500)
const MOST_FOR_A_FAULT = 3_000
/** They once found something, in histories of up to a thousand nodes. */
const SAVED_SEEDS: readonly number[] = [138_311_762]

interface Found {
  readonly seed: number
  readonly over: OutageShares | undefined
  readonly outages: readonly OutageShares[]
}

async function first(seeds: Iterable<number>, rules: HistoryRules, mostNodes: number): Promise<Found> {
  const outages: OutageShares[] = []
  let last = 0
  for (const seed of seeds) {
    last = seed
    const found = await nodeHistory(seed, mostNodes, rules)
    outages.push(...found)
    const over = found.find(({ sum, bound }) => sum > bound + 1e-9)
    if (over !== undefined) return { seed, over, outages }
  }
  return { seed: last, over: undefined, outages }
}

test('the shares of an outage are together at most one budget, one more for each joiner beside those before, and a tenth for each unknown', async (t) => {
  const from = Math.floor(Math.random() * 2 ** 30)
  assert.equal((await first(SAVED_SEEDS, SOUND_SHARES, 1_000)).over, undefined)
  const { seed, over, outages } = await first(seedsFrom(from, HISTORIES), SOUND_SHARES, MOST_NODES)
  assert.equal(over, undefined, `seed ${seed}: ${JSON.stringify(over)}`)
  const worst = Math.max(...outages.map(({ sum }) => sum))
  const mean = outages.reduce((all, { sum }) => all + sum, 0) / outages.length
  assert.ok(mean > 0.3, 'the budget is used')
  t.diagnostic(`seeds from ${from}: ${outages.length} outages, budgets in use: ${mean.toFixed(2)} on average, ${worst.toFixed(1)} at most`)
})

for (const rules of FAULTY_SHARES) {
  test(`the histories find the planted fault: ${rules.name}`, async (t) => {
    const { seed, over } = await first(seedsFrom(1, MOST_FOR_A_FAULT), rules, 60)
    assert.notEqual(over, undefined)
    t.diagnostic(`found in history ${seed}: ${JSON.stringify(over)}`)
  })
}
