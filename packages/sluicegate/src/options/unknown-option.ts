import { PolicyError } from '../errors.js'

/** An option that does not exist. */
export interface UnknownOption {
  /** Its name, behind that of the option that it is part of: `slowDown.afer`. */
  readonly option: string
  /** What it was given with. */
  readonly options: object
  readonly known: readonly string[]
  /** The function or object that takes the options, such as `tokenBucket()`. */
  readonly of?: string | undefined
}

const NUMBERS: readonly string[] = ['limit', 'window', 'burst', 'algorithm']
const TO_POLICY = "numbers belong into a policy: tokenBucket({ limit: 100, window: '1m' })"

/** Options of other libraries, and who takes or translates them; `$` is the option. A name may be of several: what stands beside it decides. */
const OTHERS: readonly (readonly [names: readonly string[], mend: string])[] = [
  // @fastify/rate-limit.
  [['timeWindow', 'errorResponseBuilder'], TO_POLICY],
  [
    ['windowMs', 'max', 'standardHeaders', 'legacyHeaders', 'keyGenerator', 'skipFailedRequests', 'skipSuccessfulRequests', 'ipv6Subnet'],
    'options of express-rate-limit, such as $, are taken by rateLimit() of sluicegate/express-rate-limit',
  ],
  [['points', 'duration', 'blockDuration', 'execEvenly'], translated('rate-limiter-flexible')],
  [['minTime', 'maxConcurrent', 'reservoir', 'highWater', 'intervalCap'], translated('Bottleneck and p-queue', 'bottleneck')],
]

/** Names that options had earlier, or have elsewhere. */
const RENAMED: Readonly<Record<string, string>> = {
  maxWaiters: 'maxWaiting',
  maxQueued: 'maxWaiting',
  maxQueuedPerKey: 'maxWaitingPerKey',
  growTo: 'maxKeys',
  horizonMs: 'lease',
  localShare: 'share',
  plans: 'policyFor',
  allowList: 'allow',
  allowlist: 'allow',
  whitelist: 'allow',
  blacklist: 'deny',
  blocklist: 'deny',
  denylist: 'deny',
  max: 'limit',
  windowMs: 'window',
  timeWindow: 'window',
  interval: 'window',
  tokensPerInterval: 'limit',
  bucketSize: 'burst',
  handler: 'onDenied',
  message: 'body',
  statusCode: 'status',
  trustProxy: 'trustedHops',
  delayAfter: 'after',
  delayMs: 'delay',
  maxDelayMs: 'maxDelay',
  retries: 'attempts',
  retryCount: 'attempts',
  maxConcurrent: 'concurrency',
  redis: 'client',
  redisClient: 'client',
  storeClient: 'client',
  keyPrefix: 'prefix',
  nameSpace: 'prefix',
}

/** Options that are easily given to another function: where they belong, as `$`. */
const OWNERS: readonly (readonly [options: readonly string[], owner: string])[] = [
  [['mode', 'lease', 'outage', 'share', 'timeout'], 'createLimiter(policy, { store, $ })'],
  [
    [
      'store',
      'clock',
      'maxKeys',
      'onFull',
      'hotKeys',
      'policyFor',
      'policies',
      'overrides',
      'banAfter',
      'allow',
      'deny',
      'soft',
      'onSoft',
      'ledger',
    ],
    'createLimiter(policy, { $ })',
  ],
  [['concurrency', 'maxWait', 'maxWaitingPerKey', 'overflow'], 'createQueue(limiter, { $ })'],
  [['prefix', 'hashTag'], 'redis(client, { $ })'],
  [['table'], 'postgres(pool, { $ })'],
  [['client'], 'a store, such as redis($)'],
  [['attempts', 'backoff'], 'limitedFetch(fetch, { $ })'],
  [['trustedHops', 'trustedNetworks'], 'the key: address({ $: … })'],
]

/** What to write in place of others. */
const INSTEAD: readonly (readonly [options: readonly string[], mend: string])[] = [
  [['queue'], 'make one with these bounds: createQueue(limiter, { concurrency: 2 })'],
  [['paused'], 'call pause() of the queue'],
  [['limiter'], 'give it in place of the policy'],
  [['problem'], 'the kind of a denial says it; for another one give body a function'],
  [['after', 'delay', 'maxDelay'], "say slowDown: { after: 50, delay: '100ms' } in middleware"],
  [['skipOnError', 'passOnStoreError', 'insuranceLimiter'], "say createLimiter(policy, { store, outage: 'open' }), or 'local' or 'closed'"],
  [
    ['newcomers', 'slotBytes', 'counters', 'freeShare', 'recoverMs', 'random', 'maxDelayedPerKey', 'longestPause'],
    'leave it out, it is automatic',
  ],
]

/** Longer names than any option has are not compared. */
const LONGEST = 40
/** The number of wrong letters in a name that is still recognised. */
const MOST_WRONG = 2

function translated(library: string, page = library): string {
  return `options of ${library}, such as $, are translated in node_modules/sluicegate/docs/moving-from-${page}.md`
}

/** The error for an unknown option, with what to write instead where that is known: it belongs elsewhere, has another name, or a similar one. */
export function unknownOption({ option, options, known, of }: UnknownOption): PolicyError {
  const name = option.slice(option.lastIndexOf('.') + 1)
  const hint = hintFor(name, Object.keys(options), known) ?? meant(nearest(name, known))
  const list = `is not one of ${known.join(', ')}${of === undefined ? '' : `, which are the options of ${of}`}`
  return new PolicyError('OPTION_UNKNOWN', option, options[name as never], hint === undefined ? list : `${list}: ${hint}`)
}

function hintFor(given: string, beside: readonly string[], known: readonly string[]): string | undefined {
  if (given === 'max' && known.includes('most')) return meant('most')
  if (given === 'algorithm' && known.includes('policy')) return 'say { policy }'
  const name = Object.hasOwn(RENAMED, given) ? (RENAMED[given] as string) : given
  if (name !== given && known.includes(name)) return meant(name)
  if (NUMBERS.includes(given) && !known.includes('limit')) return guideFor(beside) ?? TO_POLICY
  if (guideFor([given]) !== undefined) return guideFor(beside)
  const owner = OWNERS.find(([names]) => names.includes(name))?.[1].replace('$', name)
  if (owner === undefined) return INSTEAD.find(([names]) => names.includes(name))?.[1]
  return owner.startsWith('createLimiter') && known.includes('limiter') ? `say { limiter: ${owner} }` : `give it to ${owner}`
}

/** Who takes or translates options of another library; undefined where none of these names is of one. */
export function guideFor(names: readonly string[]): string | undefined {
  for (const [own, mend] of OTHERS) {
    const name = names.find((each) => own.includes(each))
    if (name !== undefined) return mend.replace('$', name)
  }
  return undefined
}

function meant(name: string | undefined): string | undefined {
  return name === undefined ? undefined : `did you mean ${name}?`
}

/** The most similar of several names, with at most two differing letters, and fewer than half of them; undefined if there is none. */
function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined
  const own = name.toLowerCase()
  const ranked = known.map((each) => ({ each, wrong: distance(own, each.toLowerCase()) })).sort((a, b) => a.wrong - b.wrong)
  const [best] = ranked
  return best !== undefined && best.wrong <= Math.min(MOST_WRONG, name.length / 2) ? best.each : undefined
}

/** The number of letters added, dropped, changed, or swapped with their neighbour. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const least = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + (same ? 0 : 1))
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(isSwap ? Math.min(least, (before[j - 2] as number) + 1) : least)
    }
    before = last
    last = row
  }
  return last[b.length] as number
}
