import type { TargetPlan } from 'sluicegate-commands/load/load-plan.js'
import { ErrorTexts, type LoadOutcome, type LoadTarget } from 'sluicegate-commands/load/load-plan.js'
import { UsageError } from 'sluicegate-commands/terminal/usage-error.js'
import type { StorageConfig } from 'sluicegate-config/config.js'
import { allPolicies } from 'sluicegate-config/domains.js'
import { readConfig } from 'sluicegate-config/read-config.js'
import { DEFAULT_REDIS, redisUrlFault } from 'sluicegate-config/storage.js'
import { type Decision, Engine } from '../engine/engine.js'
import { MEMORY } from '../engine/engine-limiter.js'
import { createLog } from '../log.js'

/** The library itself: in the memory of this process, or over a store. Each process of the load has an engine of its own. */
export async function engineTarget({ kind, url, policy: name, cost, config: path }: TargetPlan): Promise<LoadTarget> {
  if (path === undefined) throw new UsageError('say which file has the policy: --config FILE')
  const config = readConfig(path)
  const storage =
    kind === 'memory'
      ? MEMORY
      : await (await import('../engine/shared-storage.js')).sharedStorage(redisAt(url, config.storage), createLog('error'))
  await storage.connect().catch(async (error: Error) => {
    await storage.close()
    throw new UsageError(error.message, 1)
  })
  const engine = new Engine(allPolicies(config), { storage })
  const served = name === undefined ? [...engine.policies][0] : engine.policy(name)
  if (served === undefined) throw new UsageError(`${path} has no policy ${name ?? ''}`)
  const errors = new ErrorTexts()
  const failed = (error: unknown): LoadOutcome => errors.add((error as Error).message)
  // What is decided without the store says nothing of it.
  const outcomeOf = ({ allowed, source }: Decision): LoadOutcome =>
    source === 'outage' ? errors.add('the store did not answer in time') : allowed ? 'allowed' : 'denied'
  return {
    take(key) {
      try {
        const decision = served.take(key, cost)
        return decision instanceof Promise ? decision.then(outcomeOf, failed) : Promise.resolve(outcomeOf(decision))
      } catch (error) {
        return Promise.resolve(failed(error))
      }
    },
    errors,
    async close() {
      engine.close()
      await storage.close()
    },
  }
}

function redisAt(url: string, storage: StorageConfig): Extract<StorageConfig, { kind: 'redis' }> {
  const fault = redisUrlFault(url)
  if (fault !== undefined) throw new UsageError(`the target ${fault}`)
  const options = storage.kind === 'redis' ? storage : { ...DEFAULT_REDIS, isCluster: false }
  return { ...options, kind: 'redis', urls: [url] }
}
