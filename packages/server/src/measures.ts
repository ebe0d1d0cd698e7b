import type { FleetStats } from 'sluicegate/redis'
import type { Candidate } from './candidate/candidate.js'
import type { CallRates, Engine, ServedPolicy } from './engine/engine.js'
import { LATENCY_BOUNDS_S } from './engine/latency.js'
import type { HitCounts } from './envoy/hit-counts.js'
import type { ListenerTraffic } from './protocols/protocol-server.js'
import type { PolicyQuotaCounts } from './quota/quota-counts.js'
import type { QuotaService } from './quota/quota-service.js'
import type { ReloadState } from './reload.js'
import type { SnapshotState } from './snapshots.js'

/** One value of a measure. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** Where it differs from the measure's own name, as in a histogram. */
  readonly metricName?: string
}

/** What the service reports of itself, whatever system reads it. The names are those of Prometheus. */
export interface Measure {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly name: string
  readonly help: string
  /** Reads the values. */
  samples(): Sample[]
}

/** The connections of all listeners. */
export interface Traffic {
  all(): readonly ListenerTraffic[]
}

/** Figures of parts of the service that may be missing. */
export interface MoreFigures {
  readonly hits?: HitCounts | undefined
  readonly reloads?: { readonly state: ReloadState } | undefined
  readonly snapshots?: { readonly state: SnapshotState } | undefined
  readonly candidate?: Candidate | undefined
  readonly quotas?: QuotaService | undefined
}

/**
 * All measures of the service, read only when a system asks: a decision costs plain additions, never a label. Keys are unbounded text from
 * clients and never appear.
 */
export function measuresOf(engine: Engine, traffic: Traffic, version: string, more: MoreFigures = {}): readonly Measure[] {
  return [
    gauge('sluicegate_build_info', 'The version that runs; always 1.', () => [{ labels: { version }, value: 1 }]),
    ...decisionMeasures(engine),
    ...descriptorMeasures(more.hits),
    ...tableMeasures(engine),
    ...throttleMeasures(engine.callRates),
    ...candidateMeasures(engine, more.candidate),
    ...storeMeasures(engine),
    ...heldMeasures(engine),
    ...quotaMeasures(more.quotas),
    ...configMeasures(engine, more),
    ...connectionMeasures(traffic),
  ]
}

function decisionMeasures(engine: Engine): Measure[] {
  return [
    counter(
      'sluicegate_decisions_total',
      'Takes by policy and outcome: allowed, denied, or impossible (a cost that can never pass).',
      ofPolicies(engine, ({ name, counts: { allowed, denied, impossible } }) =>
        labelled('outcome', Object.entries({ allowed, denied, impossible }), { policy: name }),
      ),
    ),
    counter(
      'sluicegate_part_denials_total',
      'Denials of an all-of, by the part that the decision names.',
      ofPolicies(engine, ({ name, denialsByPart }) => labelled('part', denialsByPart, { policy: name })),
    ),
    counter(
      'sluicegate_peeks_total',
      'Calls that took nothing.',
      perPolicy(engine, ({ counts }) => counts.peeks),
    ),
    counter(
      'sluicegate_decision_errors_total',
      'Takes and peeks without a decision, by the code of the error: outages, never denials.',
      ofPolicies(engine, ({ name, errors }) => labelled('code', errors, { policy: name })),
    ),
    counter(
      'sluicegate_sources_total',
      'Answers to takes by what decided: memory, lease, store or outage.',
      ofPolicies(engine, ({ name, sources }) => labelled('source', Object.entries(sources), { policy: name })),
    ),
    {
      type: 'histogram',
      name: 'sluicegate_decision_duration_seconds',
      help: 'Time that a take spent in the engine; takes of several policies at once and CL.THROTTLE included.',
      samples: () => latencySamples(engine),
    },
  ]
}

/** Hits of Envoy's descriptors. */
function descriptorMeasures(hits: HitCounts | undefined): Measure[] {
  const help =
    'Hits of descriptors of Envoy by rule and outcome: allowed, denied, over_quota (over a quota, of a request that another quota let pass), shadowed (a rule in shadow mode would deny) or refunded.'
  return [
    counter('sluicegate_descriptor_hits_total', help, () =>
      Array.from(hits?.entries() ?? [], ([descriptor, counts]) => labelled('outcome', Object.entries(counts), { descriptor })).flat(),
    ),
    counter('sluicegate_unknown_domains_total', 'Requests of Envoy for a domain that is not configured.', () =>
      hits === undefined ? [] : [{ labels: {}, value: hits.unknownDomains }],
    ),
  ]
}

function tableMeasures(engine: Engine): Measure[] {
  return [
    gauge(
      'sluicegate_keys',
      'Keys in the table, full keys that are not yet replaced included; of several policies at once the mean of their tables.',
      perPolicy(engine, (served) => served.stats().keys),
    ),
    counter(
      'sluicegate_evictions_total',
      'Keys forgotten while they still had debt.',
      perPolicy(engine, (served) => served.stats().evictions),
    ),
    counter(
      'sluicegate_refusals_total',
      'Newcomers denied because there was no room for them.',
      perPolicy(engine, (served) => served.stats().refusals),
    ),
    counter(
      'sluicegate_overflows_total',
      'Newcomers without room that passed on the budget that they share.',
      perPolicy(engine, (served) => served.stats().overflows),
    ),
    counter(
      'sluicegate_cas_retries_total',
      'Swaps that lost a race and were tried again.',
      perPolicy(engine, (served) => served.stats().casRetries),
    ),
    gauge(
      'sluicegate_memory_bytes',
      'Size of the table of keys, as far as it is in use; it rises in steps when the table grows.',
      perPolicy(engine, (served) => served.stats().memoryBytes),
    ),
  ]
}

/** Decisions of `CL.THROTTLE`, which belong to no policy. */
function throttleMeasures(rates: CallRates): Measure[] {
  const { counts } = rates
  return [
    counter('sluicegate_throttle_decisions_total', 'Takes whose rate came with the call, by outcome.', () => {
      const { allowed, denied, impossible } = counts
      return labelled('outcome', Object.entries({ allowed, denied, impossible }))
    }),
    counter(
      'sluicegate_throttle_peeks_total',
      'Calls with their own rate that took nothing.',
      one(() => counts.peeks),
    ),
    counter(
      'sluicegate_throttle_errors_total',
      'Calls with their own rate without a decision, by the code of the error: outages, never denials.',
      () => labelled('code', rates.errors),
    ),
    counter('sluicegate_throttle_sources_total', 'Answers to takes with their own rate by what decided: memory, store or outage.', () =>
      labelled('source', Object.entries(rates.sources)),
    ),
    gauge(
      'sluicegate_throttle_keys',
      'Keys whose rate comes with each call, full keys that are not yet replaced included.',
      one(() => rates.stats().keys),
    ),
    counter(
      'sluicegate_throttle_evictions_total',
      'Such keys evicted while they still had debt.',
      one(() => rates.stats().evictions),
    ),
    counter(
      'sluicegate_throttle_refusals_total',
      'Such new keys denied because there was no room for them.',
      one(() => rates.stats().refusals),
    ),
    gauge(
      'sluicegate_throttle_memory_bytes',
      'Size of the table of such keys, as far as it is in use.',
      one(() => rates.stats().memoryBytes),
    ),
  ]
}

function storeMeasures(engine: Engine): Measure[] {
  const shared = (read: (stats: FleetStats) => number): (() => Sample[]) =>
    ofPolicies(engine, (served) => {
      const stats = served.storeStats()
      return stats === undefined ? [] : [{ labels: { policy: served.name }, value: read(stats) }]
    })
  return [
    gauge(
      'sluicegate_store_reachable',
      'Whether the store can be reached; 1 in memory.',
      one(() => (engine.storage.isReachable ? 1 : 0)),
    ),
    counter(
      'sluicegate_store_calls_total',
      'Calls that the store answered.',
      shared((stats) => stats.storeCalls),
    ),
    counter(
      'sluicegate_store_failures_total',
      'Calls to the store that failed or timed out.',
      shared((stats) => stats.storeFailures),
    ),
    counter(
      'sluicegate_store_timeouts_total',
      'Failed calls to the store that timed out.',
      shared((stats) => stats.timeouts),
    ),
    gauge(
      'sluicegate_store_open_circuits',
      'Servers that are not called now, because consecutive calls failed.',
      shared((stats) => stats.openCircuits),
    ),
    counter(
      'sluicegate_store_outages_total',
      'How often the circuit of a server opened.',
      shared((stats) => stats.outages),
    ),
    counter(
      'sluicegate_outage_tokens_total',
      'Tokens given out during outages: the most by which this process can exceed its policies.',
      shared((stats) => stats.outageTokens),
    ),
    counter(
      'sluicegate_outage_tokens_charged_total',
      'Tokens given out during outages that were charged at the store afterwards.',
      shared((stats) => stats.accountedTokens),
    ),
    gauge(
      'sluicegate_leases',
      'Keys with a lease or a cached denial in this process.',
      shared((stats) => stats.leases),
    ),
    counter(
      'sluicegate_late_answers_total',
      'Answers of the store that came after their lease had ended.',
      shared((stats) => stats.lateAnswers),
    ),
    counter(
      'sluicegate_admitted_tokens_total',
      'Tokens that callers received under policies with a store.',
      shared((stats) => stats.admittedTokens),
    ),
    counter(
      'sluicegate_charged_tokens_total',
      'Tokens that the store charged for takes and leases, returned ones included.',
      shared((stats) => stats.chargedTokens),
    ),
  ]
}

/** What callers hold by an id. */
function heldMeasures({ reservations, permits }: Engine): Measure[] {
  return [
    gauge(
      'sluicegate_reservations',
      'Open reservations.',
      one(() => reservations.size),
    ),
    counter(
      'sluicegate_reservations_lapsed_total',
      'Reservations that were neither settled nor cancelled in their time.',
      one(() => reservations.lapsed),
    ),
    gauge(
      'sluicegate_permits',
      'Permits of concurrency that are held over the wire.',
      one(() => permits.size),
    ),
    counter(
      'sluicegate_permits_expired_total',
      'Permits that ended without a release.',
      one(() => permits.expired),
    ),
  ]
}

/** Without a candidate they have no samples. */
function candidateMeasures(engine: Engine, candidate: Candidate | undefined): Measure[] {
  const decisions = (): Sample[] =>
    (candidate?.state(engine, 0).policies ?? []).flatMap(({ policy, same, wouldDeny, wouldAllow, failed }) =>
      Object.entries({ same, would_deny: wouldDeny, would_allow: wouldAllow, failed }).map(([difference, value]) => ({
        labels: { policy, difference },
        value,
      })),
    )
  return [
    counter(
      'sluicegate_candidate_decisions_total',
      'Takes that the candidate decided as well, by difference: same, would_deny, would_allow or failed. From 0 when the candidate is read.',
      decisions,
    ),
    gauge('sluicegate_candidate_failed', 'Whether the files of the candidate cannot be used.', () =>
      candidate === undefined ? [] : [{ labels: {}, value: candidate.state(engine, 0).fault === undefined ? 0 : 1 }],
    ),
  ]
}

/** Of the rate limit quota service. */
function quotaMeasures(quotas: QuotaService | undefined): Measure[] {
  const now = (read: (figures: { readonly buckets: number; readonly assignedPerSecond: number }) => number) => (): Sample[] =>
    Array.from(quotas?.figures() ?? [], (figures) => ({ labels: { policy: figures.policy }, value: read(figures) }))
  const counts = (label: string, read: (counts: PolicyQuotaCounts) => Readonly<Record<string, number>>) => (): Sample[] =>
    Array.from(quotas?.counts.byPolicy ?? [], ([policy, of]) => labelled(label, Object.entries(read(of)), { policy })).flat()
  return [
    gauge('sluicegate_quota_streams', 'Streams of data planes that are open.', () =>
      quotas === undefined ? [] : [{ labels: {}, value: quotas.streams }],
    ),
    gauge('sluicegate_quota_unread_messages', 'Messages that data planes have not received yet.', () =>
      quotas === undefined ? [] : [{ labels: {}, value: quotas.unreadMessages }],
    ),
    counter('sluicegate_quota_reports_total', 'Reports of data planes.', () =>
      quotas === undefined ? [] : [{ labels: {}, value: quotas.counts.reports }],
    ),
    gauge(
      'sluicegate_quota_buckets',
      'Buckets of data planes that have a part of a budget, or had one that is still in force.',
      now(({ buckets }) => buckets),
    ),
    gauge(
      'sluicegate_quota_assigned_tokens_per_second',
      'Rate of the assignments that may be in force.',
      now(({ assignedPerSecond }) => assignedPerSecond),
    ),
    counter(
      'sluicegate_quota_assignments_total',
      'Messages to data planes: tokens, allow, deny or abandon.',
      counts('kind', ({ assignments }) => assignments),
    ),
    counter(
      'sluicegate_quota_reported_requests_total',
      'Requests that data planes report, by what they did with them.',
      counts('outcome', ({ reported }) => reported),
    ),
    counter(
      'sluicegate_quota_returns_total',
      'Parts of budgets that came back: after a broken stream, or an abandoned bucket.',
      counts('reason', ({ returned }) => returned),
    ),
    counter(
      'sluicegate_quota_refusals_total',
      'Reports of buckets that get no assignment: no rule, an id that is not valid, or no room.',
      () => labelled('reason', Object.entries(quotas?.counts.refused ?? {})),
    ),
    counter('sluicegate_quota_streams_cut_total', 'Streams that a bound ended, by the reason.', () =>
      labelled('reason', Object.entries(quotas?.counts.cuts ?? {})),
    ),
  ]
}

function configMeasures(engine: Engine, { reloads, snapshots }: MoreFigures): Measure[] {
  const ofReloads = (read: (state: ReloadState) => Sample[]) => (): Sample[] => (reloads === undefined ? [] : read(reloads.state))
  const ofSnapshots = (read: (state: SnapshotState) => number) => (): Sample[] =>
    snapshots === undefined ? [] : [{ labels: {}, value: read(snapshots.state) }]
  return [
    gauge(
      'sluicegate_policies',
      'Policies in force; limits that requests of Envoy bring along included.',
      one(() => engine.size),
    ),
    counter(
      'sluicegate_config_reloads_total',
      'Attempts to put a changed configuration in force, by result.',
      ofReloads(({ succeeded, failed }) => labelled('result', Object.entries({ success: succeeded, failure: failed }))),
    ),
    gauge(
      'sluicegate_config_reload_failed',
      'Whether the last attempt failed, so that an older configuration is in force.',
      ofReloads(({ fault }) => [{ labels: {}, value: fault === undefined ? 0 : 1 }]),
    ),
    gauge(
      'sluicegate_config_last_success_timestamp_seconds',
      'Unix time at which the configuration in force was read.',
      ofReloads(({ lastSuccessMs }) => [{ labels: {}, value: lastSuccessMs / 1000 }]),
    ),
    gauge(
      'sluicegate_snapshot_failed',
      'Whether the last snapshot could not be written.',
      ofSnapshots(({ hasFailed }) => (hasFailed ? 1 : 0)),
    ),
    gauge(
      'sluicegate_snapshot_last_success_timestamp_seconds',
      'Unix time of the last snapshot; 0 before the first one.',
      ofSnapshots(({ lastSuccessMs }) => (lastSuccessMs ?? 0) / 1000),
    ),
  ]
}

function connectionMeasures(traffic: Traffic): Measure[] {
  const sum = (read: (listener: ListenerTraffic) => number): number => traffic.all().reduce((total, each) => total + read(each), 0)
  return [
    gauge(
      'sluicegate_connections',
      'Connections that are open.',
      one(() => sum(({ open }) => open)),
    ),
    gauge(
      'sluicegate_requests_in_flight',
      'Requests that are being answered: at most one of a connection.',
      one(() => sum(({ inFlight }) => inFlight)),
    ),
    counter('sluicegate_connections_cut_total', 'Connections that a bound closed, by the reason.', () => {
      const reasons = new Set(traffic.all().flatMap(({ cuts }) => Object.keys(cuts)))
      return labelled(
        'reason',
        Array.from(reasons, (reason) => [reason, sum(({ cuts }) => cuts[reason] ?? 0)] as const),
      )
    }),
  ]
}

function counter(name: string, help: string, samples: () => Sample[]): Measure {
  return { type: 'counter', name, help, samples }
}

function gauge(name: string, help: string, samples: () => Sample[]): Measure {
  return { type: 'gauge', name, help, samples }
}

function one(read: () => number): () => Sample[] {
  return () => [{ labels: {}, value: read() }]
}

function ofPolicies(engine: Engine, read: (served: ServedPolicy) => Sample[]): () => Sample[] {
  return () => Array.from(engine.policies, read).flat()
}

function perPolicy(engine: Engine, read: (served: ServedPolicy) => number): () => Sample[] {
  return ofPolicies(engine, (served) => [{ labels: { policy: served.name }, value: read(served) }])
}

function labelled(
  label: string,
  values: Iterable<readonly [name: string, value: number]>,
  others: Readonly<Record<string, string>> = {},
): Sample[] {
  return Array.from(values, ([name, value]) => ({ labels: { ...others, [label]: name }, value }))
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
