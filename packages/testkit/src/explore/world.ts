import type { Call, Outcome, Why } from './call.js'
import type { GivenPermit } from './explored-call.js'
import type { ExploredKey } from './explored-core.js'
import { isRate, PolicyRecords } from './explored-policy.js'
import { ExploredThread, STACK_BYTES } from './explored-thread.js'
import { emptyLedger, type Ledger, NEVER } from './ledger.js'
import { explanation, type History } from './linearization.js'
import { hasVerb, latestUs, type Scenario } from './scenario.js'
import { TO_THE_END } from './search.js'

const PAGE_BYTES = 65_536
const PAGES = 5
const SECTION = 0
const FIRST_COMPANIONS = 3 * PAGE_BYTES
const SHARED_COUNTERS = FIRST_COMPANIONS + PAGE_BYTES / 2
const RINGS_AT = FIRST_COMPANIONS + (3 * PAGE_BYTES) / 4
/** Of all ring words, and of rings with two places. */
const RINGS_BYTES = 1024
const FIRST_STACK = 4 * PAGE_BYTES
/** What the core writes for a time before all others. */
const LONG_AGO_US = -(2 ** 62)
const REASONS: readonly Exclude<Why, 'answered'>[] = ['REFUSED', 'BANNED', 'CONTENDED', 'LATE', 'EVICTED', 'OVERFLOWED']
/** Behind the last counter of a section. */
const COUNTERS_END = 320
const AUDIT_STAMP = 1_000_000
/** When the auditor looks once more, in windows after the last clock: what has to be over by then is. */
const LATER_LOOKS = [0.25, 0.5, 0.75, 1, 2]

/** The shared memory of one scenario with all its threads, put back to the start before each schedule. */
export class World {
  readonly threads: readonly ExploredThread[]
  readonly table: Table
  private readonly scenario: Scenario
  private readonly founder: ExploredThread
  private readonly auditor: ExploredThread
  private readonly blocks: PolicyRecords
  private readonly words: Int32Array
  private readonly pristine: Int32Array
  private readonly regions: readonly { at: number; words: Int32Array }[]
  private readonly names: ReadonlyMap<number, Why>
  private readonly start: Ledger
  private readonly updates: boolean
  /** Index of the epoch's own half of the epoch word. */
  private readonly epochAt: number
  private readonly ringsAt: number

  constructor(module: WebAssembly.Module, scenario: Scenario) {
    this.scenario = scenario
    const memory = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES, shared: true })
    const keys = scenario.homes.map(keyAt)
    const scripts = [scenario.before, auditCalls(scenario), ...scenario.threads]
    const made: ExploredThread[] = []
    const cores = scripts.map((_, i) => ExploredThread.instantiate(module, memory, () => made[i] as ExploredThread))
    const constant = (name: string): number => (cores[0] as unknown as Record<string, WebAssembly.Global>)[name]?.value as number
    this.blocks = new PolicyRecords(memory, constant, FIRST_COMPANIONS)
    const founded: GivenPermit[] = []
    for (const [i, core] of cores.entries()) {
      const calls = scripts[i] as readonly Call[]
      const parts = { core, memory, keys, blocks: this.blocks, policy: scenario.policy, founded, calls }
      made.push(new ExploredThread({ ...parts, stack: FIRST_STACK + i * STACK_BYTES }))
    }
    const [founder, auditor, ...threads] = made as [ExploredThread, ExploredThread, ...ExploredThread[]]
    this.founder = founder
    this.auditor = auditor
    this.threads = threads
    this.names = new Map(REASONS.map((name) => [constant(name), name]))
    this.words = new Int32Array(memory.buffer)
    this.epochAt = constant('EPOCH') / 4 + 1
    this.ringsAt = constant('RINGS') / 4
    const extensions = isRate(scenario.policy) || scenario.policy.encoding === 'FIXED' ? undefined : this.blocks.extensions
    this.table = new Table({ words: this.words, constant, entries: scenario.lines * scenario.entriesPerLine, extensions })
    this.updates = hasVerb(scenario, 'update') || scenario.movesBase
    this.found()
    founded.push(...founder.given)
    this.pristine = this.words.slice()
    this.start = this.settledLedger()
    this.regions = this.changing(keys).map(([from, to]) => ({ at: from / 4, words: this.pristine.subarray(from / 4, to / 4) }))
  }

  reset(): void {
    this.restore()
    for (const thread of this.threads) thread.reset()
    if (!this.updates) return
    // A thread may have been stopped between its copy of a policy's numbers and that of its epoch. So that it takes all of
    // them again, it sees another epoch first.
    this.words[this.epochAt] = ~(this.words[this.epochAt] as number)
    for (const thread of [this.auditor, ...this.threads]) thread.attach()
    this.restore()
    for (const thread of [this.auditor, ...this.threads]) thread.attach()
  }

  private restore(): void {
    for (const { at, words } of this.regions) this.words.set(words, at)
    this.blocks.reset()
  }

  /** A fresh thread looks at each key, and takes one token of each. */
  audit(): void {
    if (this.updates) this.auditor.attach()
    this.auditor.reset()
    this.auditor.run(TO_THE_END, AUDIT_STAMP)
  }

  /** Whether the auditor came to an end. */
  get isAudited(): boolean {
    return this.auditor.isDone
  }

  /** Every thread's results, and the auditor's, for a signature. */
  get results(): readonly ExploredThread[] {
    return [...this.threads, this.auditor]
  }

  history(): History {
    const outcomes = [
      ...this.scenario.threads.flatMap((calls, i) => this.outcomes(this.threads[i] as ExploredThread, calls, i)),
      ...this.audited(),
    ]
    const begun = outcomes.filter(({ began }) => began !== Number.POSITIVE_INFINITY)
    return {
      before: this.start,
      outcomes: begun,
      takeoverHighUs: this.takeoverHighUs(),
      evictions: this.table.evictions - this.table.evictionsIn(this.pristine),
      uncounted: begun.filter(({ ended }) => ended === Number.POSITIVE_INFINITY).length,
      mayRefuse: this.scenario.mayRefuse,
    }
  }

  /** Whether anything changed outside what each schedule puts back: then schedules would not start alike. */
  isClean(): boolean {
    this.reset()
    return this.words.subarray(0, FIRST_STACK / 4).every((word, i) => word === this.pristine[i])
  }

  private found(): void {
    const { lines, denyWhenFull, parts, overflow, policy, before } = this.scenario
    const { core } = this.founder
    core.grant(TO_THE_END)
    // As a limiter that nobody else has been given yet.
    core.setAlone(true)
    core.create(SECTION, lines, denyWhenFull)
    this.words[this.ringsAt] = RINGS_AT
    this.words[this.ringsAt + 1] = Math.max(1, (lines * this.scenario.entriesPerLine) / 2)
    if (parts !== undefined) core.addParts(...parts)
    if (overflow !== undefined) core.admitOverflow(SHARED_COUNTERS, overflow.counters, overflow.limit, overflow.windowUs)
    const firstUs = Math.min(latestUs(this.scenario), ...before.map(({ nowUs }) => nowUs))
    const block = core.propose()
    this.blocks.write(block, policy, this.blocks.next(policy, undefined))
    core.update(block, firstUs, 0)
    this.founder.reset()
    if (before.length > 0) this.founder.run(TO_THE_END, 0)
    core.setAlone(false)
    for (const thread of [this.auditor, ...this.threads]) thread.attach()
  }

  /** What the calls before the start mean, by the model; they have to have answered so. */
  private settledLedger(): Ledger {
    const { before, policy, homes, mayRefuse, overflow } = this.scenario
    const outcomes = inOrder(this.outcomes(this.founder, before, -1), -before.length)
    const empty = emptyLedger(policy, homes.length, overflow)
    const start = { before: empty, outcomes, takeoverHighUs: NEVER, evictions: this.table.evictions, uncounted: 0, mayRefuse }
    const settled = explanation(start)
    if (settled === undefined) throw new Error(`"${this.scenario.name}": furnishing the table went wrong`)
    return settled
  }

  private takeoverHighUs(): number {
    const us = this.table.takeoverHighIn(this.pristine)
    return us <= LONG_AGO_US ? NEVER : us
  }

  private audited(): Outcome[] {
    return inOrder(this.outcomes(this.auditor, auditCalls(this.scenario), this.threads.length), AUDIT_STAMP)
  }

  private outcomes(thread: ExploredThread, calls: readonly Call[], id: number): Outcome[] {
    return calls.map((call, i) => {
      const ended = thread.ended[i] as number
      const reason = this.names.get(thread.whys[i] as number) ?? 'answered'
      const why = ended === Number.POSITIVE_INFINITY ? 'answered' : reason
      const forgotten = why === 'EVICTED' ? (thread.forgotten[i] as number) : -1
      const ending = { began: thread.began[i] as number, ended, why, value: thread.values[i] as number, more: thread.mores[i] as number }
      return { call: withPermit(call, thread.untils[i] as number), thread: id, ...ending, forgotten }
    })
  }

  /** Byte ranges that a schedule may write. */
  private changing(keys: readonly ExploredKey[]): [number, number][] {
    const { table, scenario } = this
    const ranges: [number, number][] = [[0, COUNTERS_END], [table.from, table.to], [...table.descriptors]]
    if (table.extensions !== undefined) ranges.push([...table.extensions])
    if (scenario.overflow !== undefined) ranges.push([SHARED_COUNTERS, SHARED_COUNTERS + scenario.overflow.counters * 8])
    if (hasVerb(scenario, 'open')) ranges.push([RINGS_AT, RINGS_AT + RINGS_BYTES])
    if (this.updates) ranges.push(table.blocks)
    if (hasVerb(scenario, 'block')) for (const key of keys) ranges.push(table.gateOf(key))
    return ranges
  }
}

function keyAt(home: number, index: number): ExploredKey {
  // The low word's upper half chooses the line, its lower half is part of the fingerprint.
  return { low: (Math.floor(home * 65_536) << 16) | 2, high: index + 1 }
}

/** The call of a thread about the permit that it held. */
function withPermit(call: Call, untilUs: number): Call {
  const isPermits = call.verb === 'release' || call.verb === 'heartbeat'
  return isPermits && !Number.isNaN(untilUs) ? { ...call, bound: untilUs } : call
}

function auditCalls(scenario: Scenario): Call[] {
  const nowUs = latestUs(scenario)
  const looks = scenario.homes.map((_, key): Call => ({ verb: 'peek', key, nowUs, amount: 0 }))
  const first = [...looks, ...looks.map((call): Call => ({ ...call, verb: 'take', amount: 1 }))]
  if (isRate(scenario.policy)) return first
  return [
    ...first,
    ...LATER_LOOKS.flatMap((windows) => looks.map((call) => ({ ...call, nowUs: nowUs + windows * scenario.policy.windowUs }))),
  ]
}

function inOrder(outcomes: readonly Outcome[], first: number): Outcome[] {
  return outcomes.map((outcome, i) => ({ ...outcome, began: first + i, ended: first + i }))
}

/** More policies than one schedule makes; the world checks that no other block is touched. */
const RECORDS_USED = 16
/** More descriptors than one schedule opens at once. */
const DESCRIPTORS_USED = 8
const COUNTERS = ['KEYS', 'EVICTIONS'] as const
/** The two highest bits of a state word, as a signed number's: a mark, or a ticket of a swap over several words. */
const TICKET = -1
const MARK = -2

/** What the table is read from. */
interface TableParts {
  readonly words: Int32Array
  readonly constant: (name: string) => number
  readonly entries: number
  /** Bytes of what keys have beside their entries. */
  readonly extensions: readonly [number, number] | undefined
}

/** The explored memory read from outside: entries, counters, and where they lie. Knows the layout, nothing of the protocol. */
class Table {
  readonly from: number
  readonly to: number
  /** Bytes of the policy blocks. */
  readonly blocks: [number, number]
  readonly descriptors: readonly [number, number]
  readonly extensions: readonly [number, number] | undefined
  private readonly words: Int32Array
  private readonly descriptorWords: number
  private readonly first: number
  private readonly stride: number
  private readonly entries: number
  private readonly gates: number
  private readonly gateCount: number
  private readonly keysAt: number
  private readonly evictionsAt: number
  private readonly takeoverHighAt: number

  constructor({ words, constant, entries, extensions }: TableParts) {
    this.words = words
    this.entries = entries
    this.extensions = extensions
    this.descriptors = [constant('DESCRIPTORS'), constant('DESCRIPTORS') + DESCRIPTORS_USED * constant('DESCRIPTOR_SIZE')]
    this.descriptorWords = constant('DESCRIPTOR_SIZE') / 4
    this.from = constant('TABLE')
    this.to = this.from + entries * constant('ENTRY_SIZE')
    this.blocks = [constant('RECORDS'), constant('RECORDS') + RECORDS_USED * constant('RECORD_SIZE')]
    this.gates = constant('BAN_FILTER')
    this.gateCount = Number(constant('BAN_FILTER_SLOTS'))
    this.first = this.from / 4
    this.stride = constant('ENTRY_SIZE') / 4
    const [keysAt, evictionsAt] = COUNTERS.map((name) => constant(name) / 4) as [number, number]
    this.keysAt = keysAt
    this.evictionsAt = evictionsAt
    this.takeoverHighAt = constant('TAKEOVER_HIGH') / 4
  }

  get keys(): number {
    return this.words[this.keysAt] as number
  }

  get evictions(): number {
    return this.evictionsIn(this.words)
  }

  evictionsIn(words: Int32Array): number {
    return words[this.evictionsAt] as number
  }

  takeoverHighIn(words: Int32Array): number {
    return (words[this.takeoverHighAt + 1] as number) * 2 ** 32 + ((words[this.takeoverHighAt] as number) >>> 0)
  }

  /** Bytes of the gate of a key's block. */
  gateOf({ low, high }: ExploredKey): [number, number] {
    const fingerprint = high * 65_536 + (low & 0xfffe)
    const at = this.gates + ((fingerprint / 2) % this.gateCount) * 8
    return [at, at + 8]
  }

  /** What no table may look like: undefined when all is well. `mayBeUnfinished`: a thread was stopped for good. */
  fault(mayBeUnfinished: boolean): string | undefined {
    const { words, first, stride, entries } = this
    let known = 0
    for (let i = 0; i < entries; i++) {
      const at = first + i * stride
      const stateHigh = words[at + 3] as number
      if (stateHigh < 0 && !mayBeUnfinished) return stateHigh >> 30 === MARK ? 'a mark was left behind' : 'a ticket was left behind'
      const identityHigh = words[at + 1] as number
      const identityLow = (words[at] as number) >>> 16
      if (stateHigh >> 30 === MARK || (identityHigh === 0 && identityLow === 0) || (stateHigh === 0 && words[at + 2] === 0)) continue
      known++
      for (let j = i + 1; j < entries; j++) {
        const other = first + j * stride
        if ((words[other + 3] as number) >> 30 === MARK || words[other + 1] !== identityHigh) continue
        if ((words[other] as number) >>> 16 === identityLow) return 'a key lives in two entries'
      }
    }
    if (mayBeUnfinished) return undefined
    return known === this.keys ? this.unfinished() : `${this.keys} keys are counted, ${known} are there`
  }

  /** What a swap over several words left behind. */
  private unfinished(): string | undefined {
    const { words, descriptors, extensions } = this
    for (let at = descriptors[0] / 4; at < descriptors[1] / 4; at += this.descriptorWords) {
      if (((words[at] as number) & 3) !== 0) return 'a descriptor was left open'
    }
    if (extensions === undefined) return undefined
    for (let at = extensions[0] / 4 + 1; at < extensions[1] / 4; at += 2) {
      if ((words[at] as number) >> 30 === TICKET) return 'a ticket was left behind'
    }
    return undefined
  }
}
