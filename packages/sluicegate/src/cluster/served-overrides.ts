import { type Override, OverrideMap } from '../layers/override-map.js'
import { OverrideTiers } from '../layers/override-tiers.js'
import type { Policy } from '../policy/policy.js'
import type { WorkerProcess } from './worker-process.js'
import type { OverridesSession } from './worker-session.js'

/** A served limiter for the policy of an override. */
interface ServedOverride {
  serve(worker: WorkerProcess): () => void
  close(): void
}

/** Overrides in a primary: it serves each of their policies to all workers. */
export class ServedOverrides extends OverrideMap implements OverridesSession {
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

  // Requests of workers.

  overrides(version: unknown): readonly unknown[] {
    return version === this.version ? [this.version] : [this.version, [...this.list()]]
  }

  setOverride(key: unknown, policy: unknown): readonly unknown[] {
    this.set(key as string, policy as Policy)
    return [1]
  }

  deleteOverride(key: unknown): readonly unknown[] {
    return [this.delete(key as string) ? 1 : 0]
  }

  private made(served: ServedOverride): ServedOverride {
    for (const worker of this.workers) served.serve(worker)
    return served
  }
}
