import { collectDefaultMetrics, type Metric, Registry } from 'prom-client'
import type { FleetStats } from 'sluicegate/redis'
import type { CallRates, Engine, ServedPolicy } from './engine/engine.js'
import { LATENCY_BOUNDS_S } from './engine/latency.js'
import type { HitCounts } from './envoy/hit-counts.js'
import type { ListenerTraffic } from './protocols/protocol-server.js'
import type { ReloadState } from './reload.js'
import type { SnapshotState } from './snapshots.js'

/** One line of a metric. */
interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** Where it differs from the metric's own name, as in a histogram. */
  readonly metricName?: string
}

/** The connections of all listeners. */
export interface Traffic {
  all(): readonly ListenerTraffic[]
}

/** The exposition of everything that the engine counted, and of the process. */
export interface Metrics {
  readonly contentType: string
  /** Prometheus text format 0.0.4. It costs milliseconds. */
  render(): Promise<string>
  /** The same as data, to be summed over processes. */
  json(): Promise<MetricJson[]>
}

/** A metric of one process. */
export type MetricJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number]

/** Figures of parts of the service that may be missing. */
export interface MoreMetrics {
  readonly hits?: HitCounts | undefined
  readonly reloads?: { readonly state: ReloadState } | undefined
  readonly snapshots?: { readonly state: SnapshotState } | undefined
}

/**
 * Metrics of `engine`, read at each scrape: a decision costs a plain addition, never a label. Keys are
 * unbounded text from clients and never appear.
 */
export function createMetrics(engine: Engine, traffic: Traffic, version: string, { hits, reloads, snapshots }: MoreMetrics = {}): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // Gauges with a counter's name: Prometheus' own check refuses them.
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`)
  const add: Add = (type, name, help, collect) => {
    registry.registerMetric(collected(type, name, help, collect))
  }
  const sum = (read: (listener: ListenerTraffic) => number): number => traffic.all().reduce((total, each) => total + read(each), 0)
  const eachPolicy = (read: (served: ServedPolicy) => number) => (): Sample[] =>
    Array.from(engine.policies, (served) => ({ labels: { policy: served.name }, value: read(served) }))

  add('gauge', 'sluicegate_build_info', 'The version that runs; always 1.', () => [{ labels: { version }, value: 1 }])
  add(
    'counter',
    'sluicegate_decisions_total',
    'Takes by policy and outcome: allowed, denied, or impossible (a cost that can never pass).',
    () => Array.from(engine.policies, outcomes).flat(),
  )
  add('counter', 'sluicegate_part_denials_total', 'Denials of several policies at once, by the part that each answered for.', () =>
    Array.from(engine.policies, partDenials).flat(),
  )
  add(
    'counter',
    'sluicegate_peeks_total',
    'Questions that took nothing.',
    eachPolicy((served) => served.counts.peeks),
  )
  add(
    'counter',
    'sluicegate_decision_errors_total',
    'Takes and peeks without a decision, by the code of the error: outages, never denials.',
    () =>
      Array.from(engine.policies, (served) =>
        Array.from(served.errors, ([code, value]) => ({ labels: { policy: served.name, code }, value })),
      ).flat(),
  )
  if (hits !== undefined) {
    const help =
      'Hits of descriptors of Envoy by rule and outcome: allowed, denied, shadowed (a rule in shadow mode would deny) or refunded.'
    add('counter', 'sluicegate_descriptor_hits_total', help, () => descriptorHits(hits))
  }
  add('histogram', 'sluicegate_decision_duration_seconds', 'Time that a take spent in the engine.', () => latencySamples(engine))
  add(
    'gauge',
    'sluicegate_keys',
    'Keys in the table, full keys that are not yet replaced included; of several policies at once the mean of their tables.',
    eachPolicy((served) => served.stats().keys),
  )
  add(
    'counter',
    'sluicegate_evictions_total',
    'Keys forgotten while they still had debt.',
    eachPolicy((served) => served.stats().evictions),
  )
  add(
    'counter',
    'sluicegate_refusals_total',
    'Newcomers denied because there was no room for them.',
    eachPolicy((served) => served.stats().refusals),
  )
  add(
    'counter',
    'sluicegate_overflows_total',
    'Newcomers without room that passed on the budget that they share.',
    eachPolicy((served) => served.stats().overflows),
  )
  add(
    'counter',
    'sluicegate_cas_retries_total',
    'Swaps that lost a race and were tried again.',
    eachPolicy((served) => served.stats().casRetries),
  )
  add(
    'gauge',
    'sluicegate_memory_bytes',
    'Size of the table of keys, as far as it is in use.',
    eachPolicy((served) => served.stats().memoryBytes),
  )
  addCallRates(engine.callRates, add)
  const eachShared = (read: (stats: FleetStats) => number) => (): Sample[] =>
    Array.from(engine.policies).flatMap((served) => {
      const stats = served.storeStats()
      return stats === undefined ? [] : [{ labels: { policy: served.name }, value: read(stats) }]
    })
  add('counter', 'sluicegate_sources_total', 'Answers to takes by what decided: memory, lease, store or outage.', () =>
    Array.from(engine.policies, ({ name, sources }) =>
      Object.entries(sources).map(([source, value]) => ({ labels: { policy: name, source }, value })),
    ).flat(),
  )
  add(
    'counter',
    'sluicegate_store_calls_total',
    'Calls that the store answered.',
    eachShared((stats) => stats.storeCalls),
  )
  add(
    'counter',
    'sluicegate_store_failures_total',
    'Calls to the store that failed or timed out.',
    eachShared((stats) => stats.storeFailures),
  )
  add(
    'counter',
    'sluicegate_outage_tokens_total',
    'Tokens given out during outages: the most by which this process can exceed its policies.',
    eachShared((stats) => stats.outageTokens),
  )
  add(
    'gauge',
    'sluicegate_leases',
    'Keys with a lease or a cached denial in this process.',
    eachShared((stats) => stats.leases),
  )
  add('gauge', 'sluicegate_store_reachable', 'Whether the store can be reached; 1 in memory.', () => [
    { labels: {}, value: engine.storage.isReachable ? 1 : 0 },
  ])
  add('gauge', 'sluicegate_reservations', 'Open reservations.', () => [{ labels: {}, value: engine.reservations.size }])
  add('counter', 'sluicegate_reservations_lapsed_total', 'Reservations that were neither settled nor cancelled in their time.', () => [
    { labels: {}, value: engine.reservations.lapsed },
  ])
  add('gauge', 'sluicegate_permits', 'Permits of concurrency that are held over the wire.', () => [
    { labels: {}, value: engine.permits.size },
  ])
  add('counter', 'sluicegate_permits_expired_total', 'Permits that ended without a release.', () => [
    { labels: {}, value: engine.permits.expired },
  ])
  const reloadGauge = (name: string, help: string, type: 'counter' | 'gauge', read: (state: ReloadState) => number): void =>
    add(type, name, help, () => (reloads === undefined ? [] : [{ labels: {}, value: read(reloads.state) }]))
  add('counter', 'sluicegate_config_reloads_total', 'Attempts to put a changed configuration in force, by result.', () =>
    reloads === undefined
      ? []
      : [
          { labels: { result: 'success' }, value: reloads.state.succeeded },
          { labels: { result: 'failure' }, value: reloads.state.failed },
        ],
  )
  reloadGauge(
    'sluicegate_config_reload_failed',
    'Whether the last attempt failed, so that an older configuration is in force.',
    'gauge',
    (state) => (state.fault === undefined ? 0 : 1),
  )
  reloadGauge(
    'sluicegate_config_last_success_timestamp_seconds',
    'Unix time at which the configuration in force was read.',
    'gauge',
    (state) => state.lastSuccessMs / 1000,
  )
  add('gauge', 'sluicegate_snapshot_failed', 'Whether the last snapshot could not be written.', () =>
    snapshots === undefined ? [] : [{ labels: {}, value: snapshots.state.hasFailed ? 1 : 0 }],
  )
  add('gauge', 'sluicegate_snapshot_last_success_timestamp_seconds', 'Unix time of the last snapshot; 0 before the first one.', () =>
    snapshots === undefined ? [] : [{ labels: {}, value: (snapshots.state.lastSuccessMs ?? 0) / 1000 }],
  )
  add('gauge', 'sluicegate_connections', 'Connections that are open.', () => [{ labels: {}, value: sum(({ open }) => open) }])
  add('gauge', 'sluicegate_requests_in_flight', 'Requests that are being answered: at most one of a connection.', () => [
    { labels: {}, value: sum(({ inFlight }) => inFlight) },
  ])
  add('counter', 'sluicegate_connections_cut_total', 'Connections that a bound closed, by the reason.', () =>
    [...new Set(traffic.all().flatMap(({ cuts }) => Object.keys(cuts)))].map((reason) => ({
      labels: { reason },
      value: sum(({ cuts }) => cuts[reason] ?? 0),
    })),
  )
  return { contentType: registry.contentType, render: () => registry.metrics(), json: () => registry.getMetricsAsJSON() }
}

type Add = (type: 'counter' | 'gauge' | 'histogram', name: string, help: string, collect: () => Sample[]) => void

/** Decisions of `CL.THROTTLE`, which belong to no policy. */
function addCallRates(rates: CallRates, add: Add): void {
  const figure = (value: () => number) => (): Sample[] => [{ labels: {}, value: value() }]
  add('counter', 'sluicegate_throttle_decisions_total', 'Takes whose rate came with the call, by outcome.', () => {
    const { allowed, denied, impossible } = rates.counts
    return Object.entries({ allowed, denied, impossible }).map(([outcome, value]) => ({ labels: { outcome }, value }))
  })
  add(
    'counter',
    'sluicegate_throttle_peeks_total',
    'Calls with their own rate that took nothing.',
    figure(() => rates.counts.peeks),
  )
  add(
    'gauge',
    'sluicegate_throttle_keys',
    'Keys whose rate comes with each call, full keys that are not yet replaced included.',
    figure(() => rates.stats().keys),
  )
  add(
    'counter',
    'sluicegate_throttle_evictions_total',
    'Such keys evicted while they still had debt.',
    figure(() => rates.stats().evictions),
  )
  add(
    'counter',
    'sluicegate_throttle_refusals_total',
    'Such new keys denied because there was no room for them.',
    figure(() => rates.stats().refusals),
  )
}

function outcomes({ name, counts }: ServedPolicy): Sample[] {
  const { allowed, denied, impossible } = counts
  return Object.entries({ allowed, denied, impossible }).map(([outcome, value]) => ({ labels: { policy: name, outcome }, value }))
}

function partDenials({ name, denialsByPart }: ServedPolicy): Sample[] {
  return Array.from(denialsByPart, ([part, value]) => ({ labels: { policy: name, part }, value }))
}

function descriptorHits(hits: HitCounts): Sample[] {
  return Array.from(hits.entries(), ([descriptor, counts]) =>
    Object.entries(counts).map(([outcome, value]) => ({ labels: { descriptor, outcome }, value })),
  ).flat()
}

/** Prometheus wants each bucket to hold all that is below its bound. */
function latencySamples({ latency }: Engine): Sample[] {
  const name = 'sluicegate_decision_duration_seconds'
  let below = 0
  const buckets = Array.from(latency.buckets, (observations, i) => {
    below += observations
    return { metricName: `${name}_bucket`, labels: { le: LATENCY_BOUNDS_S[i] ?? '+Inf' }, value: below }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: {}, value: latency.sumS },
    { metricName: `${name}_count`, labels: {}, value: below },
  ]
}

/** A metric whose values are read at each scrape; the library's own classes would keep a second copy of each count. */
function collected(type: string, name: string, help: string, collect: () => Sample[]): Metric {
  const metric = {
    name,
    help,
    type,
    aggregator: 'sum',
    get: async () => ({ name, help, type, aggregator: 'sum', values: collect() }),
    reset() {},
  }
  return metric as unknown as Metric
}
