import { PolicyError } from '../errors.js'
import type { LimiterOptions } from '../limiter.js'
import { checkInteger, checkOneOf, checkOptions } from '../options/option-checks.js'
import { NAME_UNKNOWN, refusalOf, refusalOfVersion, VERSION } from '../owner/message.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import { type Policy, policiesOf } from '../policy/policy.js'
import { numbersOf } from '../policy/policy-numbers.js'
import { checkedHorizonMs, type SharedOptions } from '../shared/shared-options.js'
import { checkClock } from '../time/clock.js'
import { answerBody, LONGEST_BODY, requestsIn, type SentRequests } from './object-message.js'
import { ObjectPolicy, type ObjectPolicyOptions } from './object-policy.js'
import type { ObjectRequest, ObjectState } from './object-types.js'
import { gated, StoredKeys } from './stored-keys.js'

const DEFAULT_MAX_KEYS = 100
const MOST_KEYS = 100_000
/** Of the memory of an object, which has 128 MB. */
const MOST_BYTES = 64 * 1024 * 1024

/** What {@link limiterObject} takes beside the policies. */
export interface LimiterObjectOptions extends Pick<LimiterOptions, 'onFull' | 'clock'>, Pick<SharedOptions, 'mode' | 'lease'> {
  /** Keys of one object, 1 to 100,000, `100` by default. When all have spent what they may, a new key is denied. */
  readonly maxKeys?: number
}

/** A Durable Object that holds the state of its keys. */
export interface LimiterObject {
  fetch(request: ObjectRequest): Promise<Response>
  alarm(): Promise<void>
}

const OPTIONS: readonly string[] = ['maxKeys', 'onFull', 'mode', 'lease', 'clock'] satisfies (keyof LimiterObjectOptions)[]

/**
 * The class of Durable Objects that hold these policies: export it from the Worker, and bind it as a namespace. What an object answers, it
 * has stored; it deletes what it stored once its keys are full.
 *
 * @throws {PolicyError} on an unknown option or one out of range, and for two policies of one name.
 * @example
 * const perKey = tokenBucket({ limit: 100, window: '1s', name: 'per-key' })
 * export const Limits = limiterObject([perKey])
 */
export function limiterObject(
  policies: readonly Policy[],
  given: LimiterObjectOptions = {},
): new (
  state: ObjectState,
  env?: unknown,
) => LimiterObject {
  const {
    maxKeys = DEFAULT_MAX_KEYS,
    onFull = 'evict',
    mode,
    lease,
    clock,
  } = checkOptions(given, OPTIONS, '{ maxKeys: 100 }', 'limiterObject()')
  checkInteger('maxKeys', maxKeys, 1, MOST_KEYS)
  checkOneOf('onFull', onFull, ['evict', 'deny'])
  checkOneOf('mode', mode, ['leased', 'exact'])
  if (clock !== undefined) checkClock(clock)
  const horizonMs = checkedHorizonMs(lease)
  const options: ObjectPolicyOptions = { maxKeys, onFull, clock, mostHorizonMs: mode === 'exact' ? 0 : horizonMs }
  const byName = new Map<string, Policy>()
  for (const policy of policies) {
    const checked = checkedPolicy(policy, 'policies', 'limiterObject')
    if (byName.has(checked.name)) throw new PolicyError('NAME_INVALID', 'policies', checked.name, 'is the name of two policies')
    checkRoom(checked, maxKeys)
    byName.set(checked.name, checked)
  }
  return class extends PoliciesObject {
    constructor(state: ObjectState) {
      super(state, byName, options)
    }
  }
}

/** @throws {PolicyError} `RANGE_UNSUPPORTED` where the state of `maxKeys` keys does not fit into memory. */
function checkRoom(policy: Policy, maxKeys: number): void {
  const bytes = policiesOf(policy).reduce((sum, part) => sum + 2 * maxKeys * (16 + numbersOf(part).stride), 0)
  if (bytes <= MOST_BYTES) return
  throw new PolicyError(
    'RANGE_UNSUPPORTED',
    'maxKeys',
    maxKeys,
    `of ${policy.name} may take ${bytes} bytes, and an object has room for ${MOST_BYTES}`,
  )
}

/** The policies of an object, each with its keys, and the alarm by which it forgets what it stored. */
class PoliciesObject implements LimiterObject {
  private readonly state: ObjectState
  private readonly policies: ReadonlyMap<string, Policy>
  private readonly options: ObjectPolicyOptions
  private readonly held = new Map<string, ObjectPolicy>()
  private alarmAtMs: number | null = null
  private entries: ReadonlyMap<string, unknown> = new Map()

  constructor(state: ObjectState, policies: ReadonlyMap<string, Policy>, options: ObjectPolicyOptions) {
    this.state = state
    this.policies = policies
    this.options = options
    void state.blockConcurrencyWhile(async () => {
      ;[this.entries, this.alarmAtMs] = await Promise.all([state.storage.list(), state.storage.getAlarm()])
      for (const entry of this.entries.keys()) {
        const [name = ''] = entry.split('\n', 1)
        if (policies.has(name)) this.heldOf(name)
      }
      this.entries = new Map()
    })
  }

  /** Answers any request; what it answers with status 200 is stored. */
  async fetch(request: ObjectRequest): Promise<Response> {
    try {
      if (Number(request.headers.get('content-length') ?? 0) > 4 * LONGEST_BODY) return new Response('too long', { status: 413 })
      const sent = request.method === 'POST' ? requestsIn(await request.text()) : undefined
      if (sent === undefined) return new Response('not a message of sluicegate', { status: 400 })
      return new Response(answerBody(sent.name, this.answered(sent)), { headers: { 'content-type': 'application/json' } })
    } catch (error) {
      return new Response(String(error), { status: 503 })
    }
  }

  /** Deletes what is stored once all keys are full. */
  async alarm(): Promise<void> {
    this.alarmAtMs = null
    const untilMs = Math.max(0, ...[...this.held.values()].map(({ newAtMs }) => newAtMs))
    const nowMs = Math.max(0, ...[...this.held.values()].map(({ nowUs }) => nowUs() / 1000))
    if (untilMs > nowMs) return this.wakeAt(untilMs)
    for (const { stored } of this.held.values()) stored.forget()
    await this.state.storage.deleteAll()
  }

  private answered({ name, version, requests, sender }: SentRequests): readonly unknown[] {
    if (version !== VERSION) return refusalOfVersion(requests, version)
    if (!this.policies.has(name)) {
      const why = `the object holds no policy ${JSON.stringify(name)}; it holds: ${[...this.policies.keys()].join(', ')}`
      return refusalOf(requests, NAME_UNKNOWN, why)
    }
    const held = this.heldOf(name)
    const answers = held.answers(sender, requests)
    this.save(held)
    return answers
  }

  /**
   * A denial changes nothing, and is not stored. What is given to storage in one step is stored together, and nothing here waits for it: the
   * runtime holds the answer back until then (its output gate), so that requests share a write. If that fails, the answer is an error, and
   * the object begins again with what is stored.
   */
  private save({ stored, newAtMs }: ObjectPolicy): void {
    if (stored.flush() && this.alarmAtMs === null) this.wakeAt(newAtMs)
  }

  private wakeAt(atMs: number): void {
    this.alarmAtMs = atMs
    gated(this.state.storage.setAlarm(atMs))
  }

  private heldOf(name: string): ObjectPolicy {
    const known = this.held.get(name)
    if (known !== undefined) return known
    const stored = new StoredKeys(this.state.storage, name)
    const held = new ObjectPolicy(this.policies.get(name) as Policy, this.options, stored, this.entries)
    this.held.set(name, held)
    return held
  }
}
