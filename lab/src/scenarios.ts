import { setTimeout as rest } from 'node:timers/promises'
import { until } from 'sluicegate-testkit'
import { type Lab, POLICY } from './lab.js'
import type { NodeSettings, ServiceNode } from './service-node.js'

/** What happens during a run of load, and what has to hold all the same. */
export interface Scenario {
  readonly name: string
  /** As `sluicegate load` takes it. */
  readonly keys: string
  readonly mode?: NodeSettings['mode']
  /** Requests a second in place of the lab's. */
  readonly rate?: number
  /** The highest limit that is in force at some time. */
  readonly highestLimit?: number
  /** Replacements of a primary, each of which may forget what was not replicated. */
  readonly failovers?: number
  /** Whether requests may fail: those that a node had when it crashed. */
  readonly mayFail?: boolean
  /** Whether all requests have to pass, as no key has reached its limit. */
  readonly allPass?: boolean
  /** Whether a shard has to be found with more calls than the others, and the key that causes them. */
  readonly hotKey?: string
  run(lab: Lab, fault: FaultMarker): Promise<void>
}

/** Runs a fault, and marks the time that it took. */
export type FaultMarker = (label: string, run: () => Promise<void>) => Promise<void>

const HOT_KEY = 'key-1'
const HOT_NAME = `lab:rate:api:{${HOT_KEY}}`

export const SCENARIOS: readonly Scenario[] = [
  { name: 'steady', keys: 'uniform:8', run: async () => rest(6_000) },
  { name: 'hot key', keys: 'zipf:50:2.5', mode: 'exact', hotKey: HOT_KEY, run: async () => rest(6_000) },
  { name: 'key churn', keys: 'uniform:1000000', allPass: true, run: async () => rest(6_000) },
  under('shard killed', { failovers: 1 }, async (lab, fault) => {
    const primary = await lab.primaryOf(HOT_NAME)
    await fault('kill -9 of a primary', async () => {
      await primary.kill()
      await until('a replica has taken over', async () => (await lab.primaryOf(HOT_NAME)) !== primary)
    })
    await rest(2_000)
    await lab.cluster.restart(primary)
    await lab.cluster.ready()
  }),
  under('shard stopped', { failovers: 1 }, async (lab, fault) => {
    const primary = await lab.primaryOf(HOT_NAME)
    await fault('SIGSTOP of a primary', async () => {
      primary.pause()
      try {
        await rest(4_000)
      } finally {
        primary.resume()
      }
    })
    await rest(2_000)
    await lab.cluster.ready()
  }),
  under('failover and return', { failovers: 2 }, async (lab, fault) => {
    const primary = await lab.primaryOf(HOT_NAME)
    let replica = primary
    await fault('failover', async () => {
      replica = await lab.cluster.failOver(primary)
    })
    await rest(2_000)
    await fault('return', async () => {
      await lab.cluster.failOver(replica)
    })
  }),
  under('node crash', { mayFail: true }, async (lab, fault) => {
    const node = lab.nodes.at(-1) as ServiceNode
    await fault('kill -9 of a node', async () => {
      await node.crash()
      await rest(2_000)
      await node.start()
    })
  }),
  under('rolling restart', {}, async (lab, fault) => {
    for (const node of lab.nodes) {
      await fault(`restart of ${node.name}`, async () => {
        await node.stop()
        await node.start()
      })
    }
  }),
  under('rolling change of the policy', { highestLimit: 40 }, async ({ settings, nodes }, fault) => {
    for (const limit of [40, POLICY.limit]) {
      for (const node of nodes) {
        await fault(`${limit}/s on ${node.name}`, async () => {
          node.change({ ...settings, policies: { api: { ...POLICY, limit } } })
          await rest(700)
        })
      }
      await rest(1_500)
    }
  }),
  under('resize', {}, async (lab, fault) => {
    const { cluster } = lab
    // Slots move from the lowest one on, and some of the keys are among them.
    const first = await lab.primaryOf(HOT_NAME)
    let joined = first
    await fault('a shard joins', async () => {
      joined = await cluster.join()
      await cluster.reshard(joined, 400, [first])
    })
    await rest(1_000)
    await fault('the shard is drained', async () => {
      await cluster.reshard(first, 400, [joined])
      await cluster.leave(joined)
      await cluster.ready()
    })
  }),
  under('partition', { failovers: 1 }, async (lab, fault) => {
    const proxy = lab.cluster.proxies.get(await lab.primaryOf(HOT_NAME))
    await fault('a primary cannot be reached', async () => {
      proxy?.set({ kind: 'black-hole' })
      await rest(3_000)
      proxy?.set({ kind: 'none' })
    })
  }),
  under('slow Redis', {}, async (lab, fault) => {
    const proxies = [...lab.cluster.proxies.values()]
    await fault('each way 20 to 30 ms', async () => {
      for (const proxy of proxies) proxy.set({ kind: 'latency', delayMs: 20, jitterMs: 10 })
      await rest(3_000)
      for (const proxy of proxies) proxy.set({ kind: 'none' })
    })
  }),
  under('clock step', {}, async (lab, fault) => {
    const node = lab.nodes[0] as ServiceNode
    for (const seconds of [3_600, -3_600, 0]) {
      await fault(`clock of a node ${seconds} s ahead`, async () => {
        node.stepClock(seconds)
        await rest(1_500)
      })
    }
  }),
]

/** A fault under load on few keys, which are saturated: with a time before it, and one after it in which the rate comes back. */
function under(name: string, about: Partial<Scenario>, run: Scenario['run']): Scenario {
  return { name, keys: 'uniform:8', ...about, run: (lab, fault) => around(2_000, 2_000, () => run(lab, fault)) }
}

/** A fault with a time before and after it. */
export async function around(beforeMs: number, afterMs: number, run: () => Promise<void>): Promise<void> {
  await rest(beforeMs)
  await run()
  await rest(afterMs)
}
