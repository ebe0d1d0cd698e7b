import { StoreError } from '../errors.js'
import { KeyLane, type LaneParts, type Work } from './key-lane.js'
import { KnownStates } from './known-states.js'
import { StepsTogether } from './steps-together.js'
import type { TimedStore } from './timed-store.js'
import { WriteIds } from './write-ids.js'
import { WriterTurns } from './writer-turns.js'

/** Calls that may wait for one key. */
const MOST_WAITING = 10_000

/**
 * The lanes of one store: each key is in one lane at a time, so calls of a process never race each other, whatever lists of keys they come with.
 * A call whose keys are in several lanes waits until these have ended, and so do all calls that come after it for one of its keys.
 */
export class StoreLanes {
  readonly calls: TimedStore
  /** Of a store that computes. */
  readonly steps: StepsTogether | undefined
  private readonly parts: LaneParts
  /** By key. */
  private readonly lanes = new Map<string, KeyLane>()
  /** In the order in which they came. */
  private parked: Work[] = []

  constructor(calls: TimedStore) {
    this.calls = calls
    this.steps = calls.store.step === undefined ? undefined : new StepsTogether(calls)
    this.parts = {
      calls,
      known: new KnownStates(),
      turns: new WriterTurns(() => calls.nowMs(), calls.longestMs / 4),
      writes: new WriteIds(),
      release: (key, lane) => {
        if (lane.isClosed) lane.claims.push(key)
        else this.lanes.delete(key)
      },
    }
  }

  add(work: Work): void {
    if (!this.join(work)) this.parked.push(work)
  }

  /** False: it has to wait for lanes to end. */
  private join(work: Work): boolean {
    const owners = new Set<KeyLane>()
    for (const key of work.keys) {
      const owner = this.lanes.get(key)
      if (owner !== undefined) owners.add(owner)
    }
    const [owner] = owners
    const waiting = owner?.isClosed ? this.parked.length : (owner?.count ?? 0)
    if (waiting >= MOST_WAITING) {
      work.reject(new StoreError('CONTENTION', `${MOST_WAITING} calls of this process wait for this key already`))
      return true
    }
    if (owner !== undefined && (owners.size > 1 || owner.isClosed)) {
      for (const each of owners) each.isClosed = true
      // Later calls for its other keys come after it.
      for (const key of work.keys) {
        if (this.lanes.has(key)) continue
        this.lanes.set(key, owner)
        owner.claims.push(key)
      }
      return false
    }
    const lane = owner ?? new KeyLane(this.parts)
    for (const key of work.keys) this.lanes.set(key, lane)
    lane.add(work)
    if (owner === undefined) void lane.run().then(() => this.ended(lane))
    return true
  }

  private ended(lane: KeyLane): void {
    if (!lane.isClosed) return
    for (const key of lane.claims) this.lanes.delete(key)
    const { parked } = this
    this.parked = []
    for (const work of parked) this.add(work)
  }
}
