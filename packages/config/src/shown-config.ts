import type { Policy } from 'sluicegate'
import { stringify } from 'yaml'
import type { Config, HomeConfig, PostgresPlace, RedisPlace } from './config.js'
import { listenAddressText } from './listen-address.js'
import type { PolicyConfig } from './policy-config.js'
import type { Priorities } from './priorities.js'
import type { QuotaRule } from './quotas.js'
import { redisUrlText } from './storage.js'
import type { Tiers } from './tiers/tiers.js'
import { timeSpanText } from './time-span.js'

const MASKED = '****'

/** The configuration in force, in the form of a file. Secrets are masked; files of certificates are in memory and appear as such. */
export function shownConfig(config: Config): string {
  return stringify(configObject(config))
}

/** The same as an object for JSON. */
export function configObject({
  listen,
  tls,
  tokens,
  clients,
  stop,
  storage,
  policies,
  domains,
  throttle,
  quotas,
  quotaRules,
  dashboard,
  log,
  snapshot,
  processes,
  threads,
  candidate,
}: Config): object {
  return {
    listen: Object.fromEntries(Object.entries(listen).map(([name, at]) => [name, listenAddressText(at)])),
    ...(tls && { tls: { cert: MASKED, key: MASKED, ...(tls.clientCa !== undefined && { 'client-ca': MASKED }) } }),
    ...(tokens.length > 0 && {
      tokens: tokens.map(({ name, scope, priority }) => ({ name, scope, secret: MASKED, ...(priority !== undefined && { priority }) })),
    }),
    clients: {
      'max-connections': clients.maxConnections,
      'max-connections-per-address': clients.maxConnectionsPerAddress,
      'headers-timeout': timeSpanText(clients.headersMs),
      'request-timeout': timeSpanText(clients.requestMs),
      'read-timeout': timeSpanText(clients.readMs),
      'idle-timeout': timeSpanText(clients.idleMs),
    },
    stop: { drain: timeSpanText(stop.drainMs), finish: timeSpanText(stop.finishMs) },
    ...(storage.kind !== 'memory' && {
      storage: {
        [storage.kind]: {
          ...placeObject(storage),
          ...(storage.prefix !== undefined && { prefix: storage.prefix }),
          ...(storage.mode !== undefined && { mode: storage.mode }),
          outage: storage.outage,
          timeout: timeSpanText(storage.timeoutMs),
          'refused-at-start': storage.refusedAtStart,
        },
        ...(storage.kind === 'redis' && storage.home && { home: homeObject(storage.home) }),
      },
    }),
    policies: Object.fromEntries(policies.map((each) => [each.policy.name, policyObject(each)])),
    ...(domains.length > 0 && { domains: domains.map(({ domain }) => domain) }),
    ...((throttle.maxKeys ?? throttle.growTo) !== undefined && {
      throttle: {
        ...(throttle.maxKeys !== undefined && { 'max-keys': throttle.maxKeys }),
        ...(throttle.growTo !== undefined && { 'grow-to': throttle.growTo }),
      },
    }),
    quotas: quotasObject(quotas, quotaRules),
    dashboard,
    log,
    ...(processes > 1 && { processes }),
    ...(threads > 1 && { threads }),
    ...(snapshot.file !== undefined && { snapshot: { file: snapshot.file, every: timeSpanText(snapshot.everyMs) } }),
    ...(candidate !== undefined && { candidate }),
  }
}

function quotasObject({ ttlSeconds, idleMs }: Config['quotas'], rules: readonly QuotaRule[] | undefined): object {
  return {
    ttl: timeSpanText(ttlSeconds * 1_000),
    idle: timeSpanText(idleMs),
    ...(rules && {
      rules: rules.map(({ policy, domain, match, key, burst }) => ({
        policy,
        ...(domain !== undefined && { domain }),
        ...(match.size > 0 && { match: Object.fromEntries(match) }),
        ...(key && { key }),
        ...(burst !== undefined && { burst }),
      })),
    }),
  }
}

function policyObject({ policy, maxKeys, growTo, onFull, tiers, priorities, maxSettle }: PolicyConfig): object {
  return {
    ...(policy.policies ? { 'all-of': policy.policies.map((part) => ({ name: part.name, ...ruleObject(part) })) } : ruleObject(policy)),
    ...(maxKeys !== undefined && { 'max-keys': maxKeys }),
    ...(growTo !== undefined && { 'grow-to': growTo }),
    'on-full': onFull,
    ...(maxSettle !== undefined && { 'max-settle': maxSettle }),
    ...(tiers && tiersObject(tiers)),
    ...(priorities && prioritiesObject(priorities)),
  }
}

function prioritiesObject({ reserved, default: usual, max }: Priorities): object {
  const shares = Array.from(reserved, ([name, share]) => [name, `${Math.round(share * 10_000) / 100}%`])
  return { priorities: Object.fromEntries(shares), 'default-priority': usual, 'max-priority': max }
}

/** Keys are many: their number is shown. */
function tiersObject({ parts: { named, file }, size }: Tiers): object {
  return {
    tiers: Object.fromEntries(Array.from(named, ([name, policy]) => [name, ruleObject(policy)])),
    ...(file !== undefined && { 'tier-file': file }),
    'keys-and-prefixes': size,
  }
}

function ruleObject({ algorithm, limit, windowMs, burst, calendar, counters, slotBytes }: Policy): object {
  const time = timeSpanText(windowMs)
  const window = calendar === undefined ? { [algorithm === 'concurrency' ? 'ttl' : 'window']: time } : { window: calendar.unit }
  return {
    algorithm,
    limit,
    ...window,
    ...(calendar && { 'time-zone': calendar.timeZone }),
    ...((algorithm === 'token-bucket' || algorithm === 'gcra') && { burst }),
    ...(counters && { counters }),
    ...(slotBytes && { 'slot-bytes': slotBytes }),
  }
}

function placeObject(place: RedisPlace | PostgresPlace): object {
  if (place.kind === 'postgres') return { url: redisUrlText(place.url), table: place.table, connections: place.connections }
  const { urls, isCluster } = place
  return isCluster ? { nodes: urls.map(redisUrlText) } : { url: redisUrlText(urls[0] ?? '') }
}

function homeObject({ place, region, prefix, share, tooSmall, cold, timeoutMs }: HomeConfig): object {
  return {
    ...(place.kind === 'postgres' ? { postgres: placeObject(place) } : placeObject(place)),
    region,
    ...(prefix !== undefined && { prefix }),
    ...(share !== undefined && { share }),
    'too-small': tooSmall,
    cold,
    timeout: timeSpanText(timeoutMs),
  }
}
