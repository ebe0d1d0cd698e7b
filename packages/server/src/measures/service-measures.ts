import type { Candidate } from '../candidate/candidate.js'
import type { CertificateDates } from '../certificate-dates.js'
import type { Engine } from '../engine/engine.js'
import type { HitCounts } from '../envoy/hit-counts.js'
import { logCounts } from '../log.js'
import type { Guard } from '../protocols/guard.js'
import type { ListenerTraffic } from '../protocols/protocol-server.js'
import type { PolicyQuotaCounts } from '../quota/quota-counts.js'
import type { QuotaService } from '../quota/quota-service.js'
import type { ReloadState } from '../reload.js'
import type { SnapshotState } from '../snapshots.js'
import type { Webhook } from '../webhook.js'
import { counter, gauge, labelled, type Measure, one, type Sample } from './measure.js'

/** The connections of all listeners. */
export interface Traffic {
  all(): readonly ListenerTraffic[]
}

/** Workers that were started again: one that ended by itself, or did not answer any more. */
export type WorkerRestarts = Record<'ended' | 'hung', number>

/** Figures of parts of the service that may be missing. */
export interface MoreFigures {
  readonly hits?: HitCounts | undefined
  readonly reloads?: { readonly state: ReloadState } | undefined
  readonly snapshots?: { readonly state: SnapshotState } | undefined
  readonly candidate?: Candidate | undefined
  readonly quotas?: QuotaService | undefined
  readonly webhook?: Webhook | undefined
  readonly certificates?: Pick<CertificateDates, 'validities'> | undefined
  /** By listener. */
  readonly guards?: Readonly<Record<string, Pick<Guard, 'faults'>>> | undefined
  /** In the primary process of several. */
  readonly restarts?: WorkerRestarts
}

/** Without a candidate they have no samples. */
export function candidateMeasures(engine: Engine, candidate: Candidate | undefined): Measure[] {
  const decisions = (): Iterable<Sample> =>
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

/** Of the log, as far as the error output does not take its lines. */
export function logMeasures(): Measure[] {
  return [
    gauge(
      'sluicegate_log_waiting_lines',
      'Lines of the log that the error output did not take yet, as on a full disk: they are tried again.',
      one(() => logCounts().waiting),
    ),
    counter(
      'sluicegate_log_lost_lines_total',
      'Lines of the log for which there was no room to wait either.',
      one(() => logCounts().lost),
    ),
  ]
}

/** Of the announcements of soft limits. */
export function webhookMeasures(webhook: Webhook | undefined): Measure[] {
  const ofWebhook = (read: (webhook: Webhook) => Iterable<Sample>) => (): Iterable<Sample> => (webhook === undefined ? [] : read(webhook))
  return [
    counter(
      'sluicegate_webhook_announcements_total',
      'Soft limits by what became of their announcement: delivered, failed (after all attempts) or dropped (no room to wait, or the end of the service).',
      ofWebhook(({ counts: { delivered, failed, dropped } }) => labelled('result', Object.entries({ delivered, failed, dropped }))),
    ),
    counter(
      'sluicegate_webhook_attempts_failed_total',
      'Attempts to reach the webhook that failed, those that were repeated included.',
      ofWebhook(({ counts }) => [{ labels: {}, value: counts.attemptsFailed }]),
    ),
    gauge(
      'sluicegate_webhook_waiting',
      'Announcements that wait or are tried.',
      ofWebhook(({ size }) => [{ labels: {}, value: size }]),
    ),
  ]
}

/** Of the rate limit quota service. */
export function quotaMeasures(quotas: QuotaService | undefined): Measure[] {
  const now = (read: (figures: { readonly buckets: number; readonly assignedPerSecond: number }) => number) => (): Iterable<Sample> =>
    Array.from(quotas?.figures() ?? [], (figures) => ({ labels: { policy: figures.policy }, value: read(figures) }))
  const counts = (label: string, read: (counts: PolicyQuotaCounts) => Readonly<Record<string, number>>) => (): Iterable<Sample> =>
    Array.from(quotas?.counts.byPolicy ?? [], ([policy, of]) => labelled(label, Object.entries(read(of)), ['policy', policy])).flatMap(
      (each) => [...each],
    )
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
      'Parts of budgets that came back: to the budget after a broken stream or an abandoned bucket, or to a data plane that reconnected.',
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

export function configMeasures(engine: Engine, { reloads, snapshots, restarts, certificates }: MoreFigures): Measure[] {
  const ofReloads = (read: (state: ReloadState) => Iterable<Sample>) => (): Iterable<Sample> =>
    reloads === undefined ? [] : read(reloads.state)
  const ofSnapshots = (read: (state: SnapshotState) => number) => (): Iterable<Sample> =>
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
    counter(
      'sluicegate_config_reload_retries_total',
      'Attempts among them that followed a failure which may have passed, such as a file that was not there yet.',
      ofReloads(({ again }) => [{ labels: {}, value: again }]),
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
      'sluicegate_certificate_end_timestamp_seconds',
      'Unix time at which a certificate ends: cert, of the service; client-ca, of clients, the authority that is valid for longest.',
      () =>
        labelled(
          'certificate',
          (certificates?.validities ?? []).map(({ option, toMs }) => [option, toMs / 1000] as const),
        ),
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
    counter(
      'sluicegate_worker_restarts_total',
      'Worker processes or threads that were started again, by what happened to the one before: ended, or hung and killed.',
      () => labelled('reason', Object.entries(restarts ?? {})),
    ),
  ]
}

export function connectionMeasures(traffic: Traffic, { guards }: MoreFigures): Measure[] {
  const sum = (read: (listener: ListenerTraffic) => number): number => traffic.all().reduce((total, each) => total + read(each), 0)
  return [
    counter(
      'sluicegate_protocol_faults_total',
      'Exceptions in the service that were caught: the call got an internal error, or its stream or connection was closed.',
      () => Object.entries(guards ?? {}).map(([protocol, { faults }]) => ({ labels: { protocol }, value: faults })),
    ),
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
