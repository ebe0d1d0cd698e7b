import type { SharedStats } from 'sluicegate'
import type { CallRates, Engine, HoldCounts } from '../engine/engine.js'
import type { LimiterFigures } from '../engine/engine-limiter.js'
import { LATENCY_BOUNDS_S } from '../engine/outcome.js'
import type { HitCounts } from '../envoy/hit-counts.js'
import {
  counter,
  figuresOf,
  gauge,
  labelled,
  type Measure,
  type MeasureRow,
  measuresOf,
  ofPolicies,
  one,
  perPolicy,
  type Sample,
} from './measure.js'

export function decisionMeasures(engine: Engine): Measure[] {
  return [
    counter(
      'sluicegate_decisions_total',
      'Takes by policy and outcome: allowed, denied, or impossible (a cost that can never pass).',
      ofPolicies(engine, ({ name, counts: { allowed, denied, impossible } }) =>
        labelled('outcome', Object.entries({ allowed, denied, impossible }), ['policy', name]),
      ),
    ),
    counter(
      'sluicegate_part_denials_total',
      'Denials of an all-of, by the part that the decision names.',
      ofPolicies(engine, ({ name, denialsByPart }) => labelled('part', denialsByPart, ['policy', name])),
    ),
    counter(
      'sluicegate_soft_limits_total',
      'Soft limits that keys reached, once a window and key, by threshold; of an all-of by part.',
      ofPolicies(engine, function* ({ name, softReached }) {
        for (const { part, threshold, count } of softReached.values())
          yield { labels: { policy: name, ...(part !== '' && { part }), threshold }, value: count }
      }),
    ),
    counter(
      'sluicegate_peeks_total',
      'Calls that took nothing.',
      perPolicy(engine, ({ counts }) => counts.peeks),
    ),
    counter(
      'sluicegate_decision_errors_total',
      'Takes and peeks without a decision, by the code of the error: outages, never denials.',
      ofPolicies(engine, ({ name, errors }) => labelled('code', errors, ['policy', name])),
    ),
    counter(
      'sluicegate_sources_total',
      'Answers to takes by what decided: memory, lease, store or outage.',
      ofPolicies(engine, ({ name, sources }) => labelled('source', Object.entries(sources), ['policy', name])),
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
export function descriptorMeasures(hits: HitCounts | undefined): Measure[] {
  const help =
    'Hits of descriptors of Envoy by rule and outcome: allowed, denied, over_quota (over a quota, of a request that another quota let pass), shadowed (a rule in shadow mode would deny) or refunded.'
  return [
    counter('sluicegate_descriptor_hits_total', help, function* () {
      for (const [descriptor, counts] of hits?.entries() ?? [])
        yield* labelled('outcome', Object.entries(counts), ['descriptor', descriptor])
    }),
    counter('sluicegate_unknown_domains_total', 'Requests of Envoy for a domain that is not configured.', () =>
      hits === undefined ? [] : [{ labels: {}, value: hits.unknownDomains }],
    ),
  ]
}

export function tableMeasures(engine: Engine): Measure[] {
  return measuresOf<LimiterFigures>(
    figuresOf(engine, (served) => served.stats()),
    [
      [
        'gauge',
        'sluicegate_keys',
        'Keys in the table, full keys that are not yet replaced included; of several policies at once the mean of their tables.',
        'keys',
      ],
      ['counter', 'sluicegate_evictions_total', 'Keys forgotten while they still had debt.', 'evictions'],
      ['counter', 'sluicegate_refusals_total', 'Newcomers denied because there was no room for them.', 'refusals'],
      ['counter', 'sluicegate_overflows_total', 'Newcomers without room that passed on the budget that they share.', 'overflows'],
      ['counter', 'sluicegate_cas_retries_total', 'Swaps that lost a race and were tried again.', 'casRetries'],
      [
        'gauge',
        'sluicegate_memory_bytes',
        'Size of the table of keys, as far as it is in use; it rises in steps when the table grows.',
        'memoryBytes',
      ],
    ],
  )
}

/** Decisions of `CL.THROTTLE`, which belong to no policy. */
export function throttleMeasures(rates: CallRates): Measure[] {
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
    ...measuresOf<LimiterFigures>(
      () => [[{}, rates.stats()]],
      [
        [
          'gauge',
          'sluicegate_throttle_keys',
          'Keys whose rate comes with each call, full keys that are not yet replaced included.',
          'keys',
        ],
        ['counter', 'sluicegate_throttle_evictions_total', 'Such keys evicted while they still had debt.', 'evictions'],
        ['counter', 'sluicegate_throttle_refusals_total', 'Such new keys denied because there was no room for them.', 'refusals'],
        ['gauge', 'sluicegate_throttle_memory_bytes', 'Size of the table of such keys, as far as it is in use.', 'memoryBytes'],
      ],
    ),
  ]
}

export function storeMeasures(engine: Engine): Measure[] {
  const shared = figuresOf(engine, (served) => served.storeStats())
  return [...reachMeasures(engine), ...regionMeasures(engine), ...measuresOf(shared, STORE_ROWS)]
}

const STORE_ROWS: readonly MeasureRow<SharedStats>[] = [
  ['counter', 'sluicegate_store_calls_total', 'Calls that the store answered.', 'storeCalls'],
  ['counter', 'sluicegate_store_failures_total', 'Calls to the store that failed or timed out.', 'storeFailures'],
  ['counter', 'sluicegate_store_timeouts_total', 'Failed calls to the store that timed out.', 'timeouts'],
  ['gauge', 'sluicegate_store_open_circuits', 'Servers that are not called now, because consecutive calls failed.', 'openCircuits'],
  ['counter', 'sluicegate_store_outages_total', 'How often the circuit of a server opened.', 'outages'],
  [
    'gauge',
    'sluicegate_store_nodes',
    'Limiters that share the policy, this one included, as the store counted them; 0 while that is unknown.',
    'nodes',
  ],
  ['gauge', 'sluicegate_outage_share', 'The part of the policy that this process may spend in an outage.', 'share'],
  [
    'counter',
    'sluicegate_outage_tokens_total',
    'Tokens given out during outages: the most by which this process can exceed its policies.',
    'outageTokens',
  ],
  [
    'counter',
    'sluicegate_outage_tokens_charged_total',
    'Tokens given out during outages that were charged at the store afterwards.',
    'accountedTokens',
  ],
  ['gauge', 'sluicegate_leases', 'Keys with a lease or a cached denial in this process.', 'leases'],
  ['counter', 'sluicegate_late_answers_total', 'Answers of the store that came after their lease had ended.', 'lateAnswers'],
  ['counter', 'sluicegate_admitted_tokens_total', 'Tokens that callers received under policies with a store.', 'admittedTokens'],
  [
    'counter',
    'sluicegate_charged_tokens_total',
    'Tokens that the store charged for takes and leases, returned ones included.',
    'chargedTokens',
  ],
]

/** Of policies whose budget has its home in another store. */
function regionMeasures(engine: Engine): Measure[] {
  const regional = figuresOf(
    engine,
    (served) => served.region(),
    (policy, { region, mode }) => ({ policy, region, mode }),
  )
  return measuresOf(regional, [
    ['counter', 'sluicegate_home_calls_total', 'Calls that the home of the budget answered.', 'homeCalls'],
    ['counter', 'sluicegate_home_failures_total', 'Calls to the home that failed or timed out.', 'homeFailures'],
    [
      'gauge',
      'sluicegate_home_out',
      '1 while the home is out: consecutive calls failed, the last in the last half minute; the share of the region decides.',
      'isHomeOut',
    ],
    ['counter', 'sluicegate_region_renewals_total', 'Renewals of tokens of the region by this process.', 'renewals'],
    ['counter', 'sluicegate_region_tokens_total', 'Tokens that renewals by this process brought to the region.', 'renewedTokens'],
    [
      'counter',
      'sluicegate_region_tokens_charged_total',
      'Tokens that the region gave out without the home and this process charged there afterwards.',
      'accountedTokens',
    ],
    ['gauge', 'sluicegate_regions', 'Regions that share the policy, as the home counted them; 0 while that is unknown.', 'regions'],
    ['gauge', 'sluicegate_region_share', 'The part of the policy that the region may spend without the home.', 'share'],
  ])
}

/** Which store there is, and how it can be reached. */
function reachMeasures({ storage }: Engine): Measure[] {
  return [
    gauge(
      'sluicegate_store_reachable',
      'Whether the store could be written at the last look, each second; 1 in memory.',
      one(() => (storage.isReachable ? 1 : 0)),
    ),
    gauge(
      'sluicegate_degraded',
      'Whether the store or the home of the budgets does not decide now; 0 in memory.',
      one(() => (storage.isReachable && storage.isHomeReachable !== false ? 0 : 1)),
    ),
    counter(
      'sluicegate_store_renewals_total',
      'How often connections to the store, or to the home, were replaced because it refused or was silent.',
      () =>
        labelled(
          'to',
          Object.entries(storage.watches ?? {}).flatMap(([to, watch]) => (watch ? [[to, watch.renewals]] : [])),
        ),
    ),
    gauge('sluicegate_store_info', 'Which store holds the keys: memory, redis or postgres; always 1.', () => [
      { labels: { store: storage.name }, value: 1 },
    ]),
    gauge('sluicegate_store_look_seconds', 'How long the last look at PostgreSQL took, once a second; none while it fails.', () => {
      const { lookMs } = storage
      return lookMs === undefined ? [] : [{ labels: {}, value: lookMs / 1000 }]
    }),
    gauge('sluicegate_store_connections', 'Connections to PostgreSQL, busy or idle, and calls that wait for one.', () =>
      labelled('state', Object.entries(storage.connections ?? {})),
    ),
  ]
}

const HOLD_ROWS: readonly MeasureRow<HoldCounts>[] = [
  ['gauge', 'sluicegate_holds', 'Open holds: work whose cost is known only at its end.', 'open'],
  ['gauge', 'sluicegate_held_tokens', 'Tokens that open holds keep free for their work, as of its last call.', 'held'],
  ['counter', 'sluicegate_hold_spent_tokens_total', 'Tokens that work with holds has spent, debt included.', 'spent'],
  ['counter', 'sluicegate_hold_over_tokens_total', 'Those of them that were beyond the policy: debt, which later requests pay.', 'over'],
  ['counter', 'sluicegate_holds_lapsed_total', 'Holds that ended without a call in their time.', 'lapsed'],
  ['counter', 'sluicegate_hold_cuts_total', 'Pieces of such work that were refused.', 'cut'],
]

/** What callers hold by an id. */
export function heldMeasures(engine: Engine): Measure[] {
  const { reservations, permits } = engine
  return [
    ...measuresOf<HoldCounts>(
      figuresOf(engine, ({ holds }) => holds),
      HOLD_ROWS,
    ),
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
