import { makeLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import type { Override } from '../layers/override-map.js'
import type { Limiter, LimiterOptions } from '../limiter.js'
import { checkOneOf } from '../options/option-checks.js'
import type { WithOverrides } from '../overrides.js'
import { ANSWER, type Message, MOST_AT_ONCE, overrideChannel, REQUESTS, TERMS, VERSION } from '../owner/message.js'
import { OwnedPolicy, type ServableLimiter } from '../owner/owned-policy.js'
import { type OtherRequests, OwnerSession } from '../owner/owner-session.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { checkedHorizonMs, checkOptionNames, type SharedOptions } from '../shared/shared-options.js'
import { ShownLimiter } from '../shown.js'
import { type PrimaryCluster, receiveFromWorker, type WorkerProcess } from './channel.js'
import { ServedOverrides } from './cluster-overrides.js'

/** What {@link serveLimiter} takes beside the policy. */
export interface ServeOptions
  extends Pick<LimiterOptions, 'maxKeys' | 'onFull' | 'clock' | 'overrides'>,
    Pick<SharedOptions, 'mode' | 'lease'> {
  /**
   * The module `node:cluster`: serves all its workers, present and future.
   *
   * @defaultValue none: serve each child process by `served.serve(child)`
   * @example serveLimiter(policy, { cluster })
   */
  readonly cluster?: PrimaryCluster
}

/** A limiter that this process serves to other processes. */
export interface ServedLimiter {
  /** The policy in force. */
  readonly policy: Policy
  /**
   * The state itself, shared with all workers, for this process's own synchronous use. With `leased` its log is longer by a lease, and what
   * comes back to a bucket leaves room for leased tokens: see docs/cluster.md.
   */
  readonly limiter: Pick<Limiter, 'take' | 'peek' | 'wait' | 'reserve' | 'refund' | 'penalize' | 'block' | 'reset' | 'key' | 'stats'>
  /** Serves a child process that was started with a channel, as by `fork`, until it exits or the returned function is called. */
  serve(worker: WorkerProcess): () => void
  /**
   * Changes the policy for this process and all workers, as {@link Limiter.update} does. The policy keeps its name.
   *
   * @throws {PolicyError} `ALGORITHM_CHANGE`, `RANGE_UNSUPPORTED`; nothing has changed then.
   */
  update(policy: Policy): void
  /** Stops serving: workers decide as in an outage. */
  close(): void
  [Symbol.dispose](): void
}

const OPTIONS: ReadonlySet<string> = new Set([
  'cluster',
  'mode',
  'lease',
  'overrides',
  'maxKeys',
  'onFull',
  'clock',
] satisfies (keyof ServeOptions)[])

/**
 * Keeps a policy's state in this process and serves it to processes that it started: workers of `node:cluster`, or any child with a channel.
 * There, a limiter over {@link primary} of a policy of the same name shares this budget. Give the policy a name of its own.
 *
 * @param limiter a policy, or a limiter in memory, such as a restored one: the options of the table are then its own, and `close()` leaves it open. Where
 * it holds a log, or has layers, each take is a request.
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example
 * import cluster from 'node:cluster'
 * const policy = tokenBucket({ limit: 100, window: '1s', name: 'api' })
 * if (cluster.isPrimary) serveLimiter(policy, { cluster })
 */
export function serveLimiter(
  limiter: Policy | ServableLimiter,
  options: ServeOptions & { readonly overrides: true },
): ServedLimiter & WithOverrides
export function serveLimiter(limiter: Policy | ServableLimiter, options?: ServeOptions): ServedLimiter
export function serveLimiter(limiter: Policy | ServableLimiter, options: ServeOptions = {}): ServedLimiter {
  const own = checkOptionNames(options, OPTIONS, '{ cluster }', undefined, 'serveLimiter()')
  const { cluster, mode, lease, overrides, ...memory } = own
  checkOneOf('mode', mode, ['leased', 'exact'])
  const horizonMs = checkedHorizonMs(lease)
  if (overrides !== undefined && typeof overrides !== 'boolean') {
    throw new PolicyError('OPTION_INVALID', 'overrides', overrides, 'must be true or false')
  }
  if (cluster !== undefined && typeof cluster?.on !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'cluster', cluster, 'must be the module node:cluster')
  }
  const given = isServable(limiter) ? limiter : undefined
  // Accounts of overrides have tables of their own.
  if (given !== undefined && overrides !== true) {
    for (const [option, value] of Object.entries({ maxKeys: memory.maxKeys, onFull: memory.onFull })) {
      if (value !== undefined)
        throw new PolicyError('OPTION_INVALID', option, value, 'is of the limiter that is served: give it to createLimiter')
    }
  }
  const checked = checkedPolicy(given?.policy ?? limiter, 'policy', 'serveLimiter')
  const mostHorizonMs = mode === 'exact' ? 0 : horizonMs
  const served = new Served(checked, checked.name, mostHorizonMs, memory, given)
  if (overrides === true) {
    const make = ({ policy: each, content }: Override): Served =>
      new Served(each, overrideChannel(checked.name, content), mostHorizonMs, memory)
    served.overrides = new ServedOverrides(() => served.policy, make)
  }
  if (cluster !== undefined) served.serveCluster(cluster)
  return served
}

function isServable(value: Policy | ServableLimiter): value is ServableLimiter {
  return typeof (value as Partial<ServableLimiter> | null | undefined)?.take === 'function'
}

class Served extends ShownLimiter<Policy> implements ServedLimiter {
  declare overrides?: ServedOverrides
  private readonly owned: OwnedPolicy
  /** Whether it has made its limiter. */
  private readonly isOwn: boolean
  /** Its name on the channel. */
  private readonly name: string
  /** Stops serving a worker. */
  private readonly workers = new Map<WorkerProcess, () => void>()
  private readonly sessions = new Set<OwnerSession>()
  private readonly onClose: (() => void)[] = []

  constructor(
    policy: Policy,
    name: string,
    mostHorizonMs: number,
    { clock, ...memory }: Pick<ServeOptions, 'maxKeys' | 'onFull' | 'clock'>,
    limiter?: ServableLimiter,
  ) {
    super()
    this.name = name
    this.isOwn = limiter === undefined
    this.owned = new OwnedPolicy(policy, {
      mostHorizonMs,
      clock,
      limiter,
      make: (kept, own, planFor) => makeLimiter(kept, { clock: own, ...memory }, { planFor }),
    })
  }

  get policy(): Policy {
    return this.owned.policy
  }

  get limiter(): Limiter {
    return this.owned.limiter
  }

  serveCluster(cluster: PrimaryCluster): void {
    const serve = (worker: WorkerProcess): void => void this.serve(worker)
    for (const worker of Object.values(cluster.workers ?? {})) if (worker !== undefined) serve(worker)
    cluster.on('fork', serve)
    this.onClose.push(() => cluster.removeListener('fork', serve))
  }

  serve(worker: WorkerProcess): () => void {
    const before = this.workers.get(worker)
    if (before !== undefined) return before
    const session = new OwnerSession(this.owned, this.othersOf(worker))
    this.sessions.add(session)
    const stop = receiveFromWorker(worker, this.name, {
      receiver: (kind, [requests]) => {
        if (kind !== REQUESTS || !Array.isArray(requests) || requests.length > MOST_AT_ONCE) return
        send(worker, [ANSWER, this.name, VERSION, session.answers(requests)])
      },
      onEnd: () => {
        end()
        session.leave()
      },
    })
    const endOverrides = this.overrides?.serve(worker)
    const end = (): void => {
      this.workers.delete(worker)
      this.sessions.delete(session)
      stop()
      endOverrides?.()
      this.sendTermsToAll()
    }
    this.workers.set(worker, end)
    this.sendTermsToAll()
    return end
  }

  update(policy: Policy): void {
    this.owned.update(checkedPolicy(policy), this.sessions)
    this.sendTermsToAll()
  }

  close(): void {
    for (const end of [...this.workers.values(), ...this.onClose]) end()
    this.owned.holds.close()
    if (this.isOwn) this.limiter.close()
    this.overrides?.close()
  }

  private othersOf(worker: WorkerProcess): OtherRequests {
    const { overrides } = this
    return {
      hello: () => {
        this.sendTerms(worker)
        return []
      },
      update: (policy) => {
        this.update(policy as Policy)
        return []
      },
      ...(overrides?.requests ?? NO_OVERRIDES),
    }
  }

  private sendTermsToAll(): void {
    for (const worker of this.workers.keys()) this.sendTerms(worker)
  }

  private sendTerms(worker: WorkerProcess): void {
    send(worker, [TERMS, this.name, VERSION, this.policy, this.owned.horizonMs, this.workers.size])
  }
}

function noOverrides(): never {
  throw new PolicyError('OPTION_INVALID', 'overrides', undefined, 'are not kept by serveLimiter: give it overrides: true as well')
}

const NO_OVERRIDES: OtherRequests = { overrides: noOverrides, setOverride: noOverrides, deleteOverride: noOverrides }

/** A worker that is gone needs no message. */
function send(worker: WorkerProcess, message: Message): void {
  worker.send?.(message, () => undefined)
}
