import type { Policy } from 'sluicegate'
import { stringify } from 'yaml'
import { CLIENTS, STOP } from './clients.js'
import type { Config } from './config.js'
import { LISTEN } from './listen.js'
import { shownOf } from './option.js'
import type { PolicyConfig } from './policy-config.js'
import type { Priorities } from './priorities.js'
import { QUOTA_RULE, QUOTAS } from './quotas.js'
import { SNAPSHOT } from './snapshot.js'
import { shownStorage } from './storage.js'
import { TABLE, THROTTLE } from './table-size.js'
import type { Tiers } from './tiers/tiers.js'
import { timeSpanText } from './time-span.js'
import { WEBHOOK } from './webhook.js'

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
  prices,
  dashboard,
  log,
  snapshot,
  processes,
  threads,
  candidate,
  webhook,
}: Config): object {
  return {
    listen: shownOf(LISTEN, listen),
    ...(tls && { tls: { cert: MASKED, key: MASKED, ...(tls.clientCa !== undefined && { 'client-ca': MASKED }) } }),
    ...(tokens.length > 0 && {
      tokens: tokens.map(({ name, scope, priority }) => ({ name, scope, secret: MASKED, ...(priority !== undefined && { priority }) })),
    }),
    clients: shownOf(CLIENTS, clients),
    stop: shownOf(STOP, stop),
    ...(storage.kind !== 'memory' && { storage: shownStorage(storage) }),
    policies: Object.fromEntries(policies.map((each) => [each.policy.name, policyObject(each)])),
    ...(domains.length > 0 && { domains: domains.map(({ domain }) => domain) }),
    ...(throttle.maxKeys !== undefined && { throttle: shownOf(THROTTLE, throttle) }),
    quotas: { ...shownOf(QUOTAS, quotas), ...(quotaRules && { rules: quotaRules.map((rule) => shownOf(QUOTA_RULE, rule)) }) },
    ...(prices && { prices: { file: prices.file, models: Object.keys(prices.table.models).length } }),
    dashboard,
    log,
    ...(processes > 1 && { processes }),
    ...(threads > 1 && { threads }),
    ...(snapshot.file !== undefined && { snapshot: shownOf(SNAPSHOT, snapshot) }),
    ...(candidate !== undefined && { candidate }),
    ...(webhook && { webhook: { ...shownOf(WEBHOOK, webhook), ...(webhook.secret !== undefined && { secret: MASKED }) } }),
  }
}

function policyObject({ policy, tiers, priorities, soft, ...table }: PolicyConfig): object {
  const shown = (part: Policy): object => ({ ...ruleObject(part), ...(soft?.has(part.name) && { soft: soft.get(part.name) }) })
  return {
    ...(policy.policies ? { 'all-of': policy.policies.map((part) => ({ name: part.name, ...shown(part) })) } : shown(policy)),
    ...shownOf(TABLE, table),
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

function ruleObject({ algorithm, limit, windowMs, burst, calendar }: Policy): object {
  const time = timeSpanText(windowMs)
  const window = calendar === undefined ? { [algorithm === 'concurrency' ? 'ttl' : 'window']: time } : { window: calendar.unit }
  return {
    algorithm,
    limit,
    ...window,
    ...(calendar && { 'time-zone': calendar.timeZone }),
    ...((algorithm === 'token-bucket' || algorithm === 'gcra') && { burst }),
  }
}
