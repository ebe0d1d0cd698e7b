import { checkOptions } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import { CallGuard, NO_EVENTS } from '../shared/calls/call-guard.js'
import { CrossSlotBackend } from '../shared/calls/cross-slot-backend.js'
import { storeOf } from '../shared/limiter-over.js'
import type { OpenStore, StoreUse } from '../shared/open-store.js'
import { noteAccounts } from '../shared/shared-accounts.js'
import { encodingsOf } from '../shared/steps/policy-encoding.js'
import { type ComputingStore, StepBackend } from '../shared/steps/step-backend.js'
import type { Store, StoreOptions } from '../shared/store.js'
import type { CommandRunner } from './command-runner.js'
import { type HashTag, RedisKeys } from './redis-keys.js'
import { RedisOverrides } from './redis-overrides.js'
import { RedisRegionPool } from './redis-region-pool.js'
import { RedisScripts } from './redis-scripts.js'
import { warnAtStart, warnOfMissingListener } from './redis-warnings.js'
import { type RedisClient, runnerFor } from './runner-for.js'

/** What {@link redis} takes beside the client. */
export interface RedisOptions extends StoreOptions {
  /**
   * On a cluster: puts several keys into one hash slot, so that `allOf` can charge them together.
   *
   * @defaultValue none
   * @example redis(client, { hashTag: (key) => key.split(':')[0] ?? key })
   */
  readonly hashTag?: HashTag | undefined
}

const OPTIONS: readonly string[] = ['prefix', 'hashTag'] satisfies (keyof RedisOptions)[]

/**
 * Redis or Valkey as the store of limiters: one server, Sentinel or Cluster. You create, connect and close the client.
 *
 * Keys in Redis contain the policy's name. Give it a name, and its numbers may change while spent tokens stay spent. A default name is made
 * from the numbers, so a changed policy starts full.
 *
 * @throws {PolicyError} `CLIENT_INVALID`, and on an unknown option or one out of range.
 * @example
 * const store = redis(await createClient().connect())
 * const limiter = createLimiter(tokenBucket({ limit: 100, window: '1s', name: 'api' }), { store })
 * const { allowed } = await limiter.take('user:42')
 */
export function redis(client: RedisClient, options: RedisOptions = {}): Store {
  const { prefix = 'sluicegate', hashTag } = checkOptions(options, OPTIONS, "{ prefix: 'eu' }", 'redis()')
  const runner = runnerFor(client)
  void warnAtStart(runner)
  warnOfMissingListener(runner, client)
  return redisOver(runner, { prefix, hashTag })
}

/** The store over commands, however they are sent. */
export function redisOver(runner: CommandRunner, { prefix = 'sluicegate', hashTag }: RedisOptions): Store {
  const keys = new RedisKeys(prefix, hashTag)
  return scriptedStore(new RedisScripts(runner, keys), ({ clock, timeoutMs }, permitOf) => ({
    overridesOf: ({ name }) => new RedisOverrides(runner, keys, name),
    regionStore: (region) => {
      // The home may be the same server: what a region holds has names of its own.
      const ownKeys = new RedisKeys(`${prefix}@${region}`, hashTag)
      const scripts = new RedisScripts(runner, ownKeys)
      // The limiter around it has the circuits: a second one would fail calls that the first one lets through to look at the server.
      const guard = new CallGuard(scripts, clock, timeoutMs, NO_EVENTS, true)
      return {
        pools: (_policy, name) => new RedisRegionPool(runner, ownKeys, guard, name),
        connect: (policy, lengthOf, names) => new StepBackend(scripts, encodingsOf(policy, lengthOf, names), permitOf),
      }
    },
    created: (limiter) => noteAccounts(runner, accountsOf(keys, limiter.policy), limiter),
  }))
}

/** What begins the keys of each policy. */
function accountsOf(keys: RedisKeys, policy: Policy): readonly string[] {
  return encodingsOf(policy).encodings.map(({ name, storedName }) => keys.before(name, storedName))
}

/** Over any scripts. @param besides what the store has besides. */
export function scriptedStore(
  scripts: ComputingStore & Pick<RedisScripts, 'serverOf' | 'slotOf'> & Partial<Pick<RedisScripts, 'countNodes'>>,
  besides: (use: StoreUse, permitOf: (id: number) => string) => Omit<OpenStore, 'under'> = () => ({}),
): Store {
  return storeOf({
    name: 'redis',
    open: (use) => {
      const permitOf = permitNames()
      const { countNodes } = scripts
      return {
        ...besides(use, permitOf),
        isHomeable: true,
        under: () => ({
          places: scripts,
          crossSlot: CrossSlotBackend,
          connect: (policy, lengthOf, names) => new StepBackend(scripts, encodingsOf(policy, lengthOf, names), permitOf),
          ...(countNodes && { countNodes: (policies, id) => countNodes.call(scripts, policies, id) }),
        }),
      }
    },
  })
}

/** Names of permits, which sort in the order of the operations of a process. */
function permitNames(): (id: number) => string {
  const process = globalThis.crypto.randomUUID()
  return (id) => `${process}:${id.toString(36).padStart(8, '0')}`
}
