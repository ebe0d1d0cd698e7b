import { StoreError } from '../errors.js'
import { type Override, OverrideMap, OverrideTiers } from '../layers/override-map.js'
import { numbersIn } from '../owner/message.js'
import type { OtherRequests } from '../owner/owner-session.js'
import type { Policy } from '../policy/policy.js'
import { newOperationId } from '../shared/backend.js'
import type { KeptOverrides, OverrideStore } from '../shared/layers/override-cache.js'
import type { WorkerProcess } from './channel.js'
import type { PrimaryLink } from './primary-link.js'

/** The overrides of a limiter, which the primary keeps. */
export class ClusterOverrides implements OverrideStore {
  private readonly link: PrimaryLink

  constructor(link: PrimaryLink) {
    this.link = link
  }

  async load(version: number): Promise<KeptOverrides> {
    const [now, policies] = await this.request('overrides', version)
    if (typeof now !== 'number') throw new StoreError('OUTAGE', 'the primary gave an answer that cannot be read')
    return { version: now, policies: now === version ? undefined : pairsIn(policies) }
  }

  async set(key: string, policy: Policy): Promise<boolean> {
    return numbersIn(await this.request('setOverride', key, policy), 1)[0] === 1
  }

  async delete(key: string): Promise<boolean> {
    return numbersIn(await this.request('deleteOverride', key), 1)[0] === 1
  }

  private request(verb: string, ...args: readonly unknown[]): Promise<readonly unknown[]> {
    return this.link.request([newOperationId(), verb, ...args])
  }
}

function* pairsIn(pairs: unknown): Generator<readonly [string, unknown]> {
  for (const pair of Array.isArray(pairs) ? pairs : []) if (Array.isArray(pair)) yield [pair[0], pair[1]]
}

/** A served limiter for the policy of an override. */
interface ServedOverride {
  serve(worker: WorkerProcess): () => void
  close(): void
}

/** Overrides in a primary: it serves each of their policies to all workers. */
export class ServedOverrides extends OverrideMap {
  private readonly tiers: OverrideTiers<ServedOverride>
  private readonly workers = new Set<WorkerProcess>()

  constructor(own: () => Policy, make: (override: Override) => ServedOverride) {
    super(own)
    // No version of an earlier primary, which a worker may remember, equals one of these.
    this.version = Date.now() * 1000
    this.tiers = new OverrideTiers({
      make: (override) => this.made(make(override)),
      close: (served) => served.close(),
      isUsed: (content) => this.isUsed(content),
    })
  }

  override set(key: string, policy: Policy): void {
    super.set(key, policy)
    // Served before any worker knows of it.
    this.tiers.of(this.of(key) as Override)
  }

  /** Serves a worker until the returned function is called. */
  serve(worker: WorkerProcess): () => void {
    this.workers.add(worker)
    for (const served of this.tiers.all) served.serve(worker)
    return () => {
      this.workers.delete(worker)
      // Serving a worker again returns the same end.
      for (const served of this.tiers.all) served.serve(worker)()
    }
  }

  close(): void {
    for (const served of this.tiers.all) served.close()
  }

  /** Of workers. */
  readonly requests: OtherRequests = {
    overrides: (version) => (version === this.version ? [this.version] : [this.version, [...this.list()]]),
    setOverride: (key, policy) => {
      this.set(key as string, policy as Policy)
      return [1]
    },
    deleteOverride: (key) => [this.delete(key as string) ? 1 : 0],
  }

  private made(served: ServedOverride): ServedOverride {
    for (const worker of this.workers) served.serve(worker)
    return served
  }
}
