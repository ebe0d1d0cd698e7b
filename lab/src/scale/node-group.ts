import type { Policy } from 'sluicegate'

/** Nodes that share the limits of keys through one server of a store, and the demand for these keys. */
export interface NodeGroup {
  readonly policy: Policy
  readonly nodes: number
  readonly keys: number
  /** Requests a second, of all nodes for all keys; each is for any key on any node. */
  readonly perSecond: number
  /** Key of a request in place of a uniform one: takes a fraction in [0, 1). */
  readonly keyOf?: (fraction: number) => number
  /** Node of a request in place of a uniform one: takes a fraction in [0, 1) and the seconds since the start. */
  readonly nodeOf?: (fraction: number, atS: number) => number
  /** Whether a node cannot reach the store. */
  readonly isCutOff?: (node: number, atS: number) => boolean
  /** Called with each decision. */
  readonly onDecided?: (node: number, decided: Decided) => void
  /** How far ahead nodes lease tokens; 0: every take is one call. */
  readonly horizonMs: number
  /** Time on the network of a call from a node, both ways together. */
  readonly roundTripUs: (node: number, fraction: number) => number
  /** Processor time of the store for a call. */
  readonly serviceUs: number
  readonly timeoutMs?: number
  /** Of the policy, for each node while the store does not answer. */
  readonly localShare?: number
  /** Simulated time that is counted, after a time that is not. */
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly seed: number
}

/** A decision about a request; times are seconds since the start. */
export interface Decided {
  readonly askedS: number
  readonly atS: number
  readonly allowed: boolean
}

/** What a group of nodes did, over the counted time. */
export type GroupFigures = GroupMeter['figures']

/** Counts what a simulated group does, as it happens. */
export class GroupMeter {
  readonly #group: NodeGroup
  readonly #fromUs: number
  readonly #waitsUs: number[] = []
  readonly #excess: KeyExcess[]
  #sent = 0
  #allowed = 0
  #calls = 0
  #busyUs = 0
  #withoutStore = 0

  constructor(group: NodeGroup, startUs: number) {
    this.#group = group
    this.#fromUs = startUs + group.warmUpSeconds * 1e6
    this.#excess = Array.from({ length: group.keys }, () => new KeyExcess(group.policy))
  }

  /** A request that came at `askedUs` is decided. */
  decided(key: number, askedUs: number, nowUs: number, isAllowed: boolean, isWithoutStore = false): void {
    if (isAllowed) this.#excess[key]?.admitted(nowUs)
    if (askedUs < this.#fromUs) return
    this.#sent++
    if (isAllowed) this.#allowed++
    if (isWithoutStore) this.#withoutStore++
    if (nowUs > askedUs) this.#waitsUs.push(nowUs - askedUs)
  }

  /** The store has carried out a call. */
  called(nowUs: number, serviceUs: number): void {
    if (nowUs < this.#fromUs) return
    this.#calls++
    this.#busyUs += serviceUs
  }

  get figures() {
    const { policy, keys, seconds } = this.#group
    const sent = Math.max(1, this.#sent)
    const waits = this.#waitsUs.sort((a, b) => a - b)
    const budget = (keys * policy.limit * seconds * 1000) / policy.windowMs
    // Requests that did not wait are the shortest.
    const waitMs = (share: number): number => (waits[Math.floor(share * sent) - (sent - waits.length)] ?? 0) / 1000
    return {
      sent: this.#sent,
      allowed: this.#allowed,
      calls: this.#calls,
      callsPerRequest: this.#calls / sent,
      callsPerToken: this.#calls / Math.max(1, this.#allowed),
      /** Admitted tokens over what the limits of all keys allow. */
      budgetUse: this.#allowed / budget,
      /** Admitted requests over requests. */
      admittedShare: this.#allowed / sent,
      /** The share of the time in which the store works. */
      storeBusy: this.#busyUs / (seconds * 1e6),
      /** Time to a decision, over all requests. */
      p50Ms: waitMs(0.5),
      p99Ms: waitMs(0.99),
      /** Decided without the store, as calls took too long. */
      withoutStore: this.#withoutStore,
      /** Tokens by which the worst key is over its policy in any interval. */
      over: Math.max(0, ...this.#excess.map(({ over }) => over)),
    }
  }
}

/** By how many tokens the worst interval of one key is over its policy; admissions come in the order of time. */
export class KeyExcess {
  over = 0
  readonly #perUs: number
  readonly #burst: number
  #admitted = 0
  #lowest = Number.POSITIVE_INFINITY

  constructor({ limit, windowMs, burst }: Pick<Policy, 'limit' | 'windowMs' | 'burst'>) {
    this.#perUs = limit / (windowMs * 1000)
    this.#burst = burst
  }

  admitted(nowUs: number): void {
    this.#lowest = Math.min(this.#lowest, this.#admitted - this.#perUs * nowUs)
    this.#admitted++
    this.over = Math.max(this.over, this.#admitted - this.#perUs * nowUs - this.#lowest - this.#burst)
  }
}

/** Requests of a group: from one to the next, and where it goes. */
export function arrivalUs({ perSecond }: Pick<NodeGroup, 'perSecond'>, fraction: number): number {
  return Math.max(1, Math.round((-Math.log(1 - fraction) * 1e6) / perSecond))
}

export function keyOf({ keys, keyOf: own }: Pick<NodeGroup, 'keys' | 'keyOf'>, fraction: number): number {
  return own === undefined ? Math.floor(fraction * keys) : own(fraction)
}
