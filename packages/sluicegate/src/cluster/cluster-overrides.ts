import { StoreError } from '../errors.js'
import type { Policy } from '../policy/policy.js'
import { newOperationId } from '../shared/backend.js'
import type { KeptOverrides, OverrideStore } from '../shared/layers/override-cache.js'
import { numbersIn } from './message.js'
import type { PrimaryLink } from './primary-link.js'

/** The overrides of a limiter, which the primary keeps. */
export class ClusterOverrides implements OverrideStore {
  private readonly link: PrimaryLink

  constructor(link: PrimaryLink) {
    this.link = link
  }

  async load(version: number): Promise<KeptOverrides> {
    const [now, policies] = await this.ask('overrides', version)
    if (typeof now !== 'number') throw new StoreError('OUTAGE', 'the primary gave an answer that cannot be read')
    return { version: now, policies: now === version ? undefined : pairsIn(policies) }
  }

  async set(key: string, policy: Policy): Promise<boolean> {
    return numbersIn(await this.ask('setOverride', key, policy), 1)[0] === 1
  }

  async delete(key: string): Promise<boolean> {
    return numbersIn(await this.ask('deleteOverride', key), 1)[0] === 1
  }

  private ask(verb: string, ...args: readonly unknown[]): Promise<readonly unknown[]> {
    return this.link.ask(newOperationId(), verb, ...args)
  }
}

function* pairsIn(pairs: unknown): Generator<readonly [string, unknown]> {
  for (const pair of Array.isArray(pairs) ? pairs : []) if (Array.isArray(pair)) yield [pair[0], pair[1]]
}
