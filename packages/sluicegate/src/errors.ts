import { onceInProcess } from './once-in-process.js'

/** What a {@link PolicyError} can be about. Each code is explained in `docs/errors.md`. */
export type PolicyErrorCode =
  | 'ALGORITHM_CHANGE'
  | 'BURST_INVALID'
  | 'CLIENT_INVALID'
  | 'CLOCK_INVALID'
  | 'COST_INVALID'
  | 'CROSS_SLOT'
  | 'DURATION_INVALID'
  | 'HANDLE_INVALID'
  | 'KEY_INVALID'
  | 'KEY_MISSING'
  | 'LEASE_UNSUPPORTED'
  | 'LIMIT_INVALID'
  | 'NAME_INVALID'
  | 'OPTION_INVALID'
  | 'OPTION_UNKNOWN'
  | 'POLICY_INVALID'
  | 'RANGE_UNSUPPORTED'
  | 'RUNTIME_UNSUPPORTED'
  | 'SNAPSHOT_INVALID'
  | 'TRUST_INVALID'
  | 'WINDOW_INVALID'

/** What a {@link StoreError} can be about. Each code is explained in `docs/errors.md`. */
export type StoreErrorCode = 'CLOSED' | 'CONTENTION' | 'OUTAGE' | 'TABLE_FULL'

/**
 * Misuse by the caller: a bad option, cost, key or duration. Thrown where the mistake is made, never for a denial.
 *
 * @example
 * try { tokenBucket({ limit: 0, window: '1s' }) } catch (error) { error.code } // 'LIMIT_INVALID'
 */
class PolicyError extends TypeError {
  override readonly name = 'PolicyError'
  readonly code: PolicyErrorCode
  /** The option or argument at fault, for example `limit`. */
  readonly option: string
  readonly #mend: string
  /** Private, so that no log and no JSON shows what the message cuts: it may be a whole key or a client with its password. */
  readonly #value: unknown

  /** @param options `where`: what the option is of, where that is not plain, such as a route. */
  constructor(code: PolicyErrorCode, option: string, value: unknown, mend: string, options: { cause?: unknown; where?: string } = {}) {
    const { where, ...of } = options
    super(`${where === undefined ? '' : `${where}: `}${option}: ${mend} (got ${show(value)})`, of)
    this.#mend = mend
    this.code = code
    this.option = option
    this.#value = value
  }

  /** What is wrong with it, and what to do. Part of the message, which is printed beside the members. */
  get mend(): string {
    return this.#mend
  }

  /** What the option was. Logs and JSON show only what the message says of it. */
  get value(): unknown {
    return this.#value
  }
}

/** Of one identity in both forms of the package, so that `instanceof` agrees. */
const OncePolicyError: typeof PolicyError = /* @__PURE__ */ onceInProcess('PolicyError', () => PolicyError)
type OncePolicyError = PolicyError

export { OncePolicyError as PolicyError }

/** The store could not decide: an outage, which is never the same thing as a denial. */
class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** Of one identity in both forms of the package, so that `instanceof` agrees. */
const OnceStoreError: typeof StoreError = /* @__PURE__ */ onceInProcess('StoreError', () => StoreError)
type OnceStoreError = StoreError

export { OnceStoreError as StoreError }

/** As variables of the environment have numbers. */
const NUMBER = /^-?\d{1,15}(\.\d{1,15})?$/

/** Short and safe for messages: long strings are cut, nothing is ever called on the value. */
function show(value: unknown): string {
  if (typeof value === 'string') {
    if (value.length > 60) return `a string of ${value.length} characters`
    return NUMBER.test(value) ? `the text ${JSON.stringify(value)}` : JSON.stringify(value)
  }
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (value instanceof Uint8Array) return `a Uint8Array of ${value.byteLength} bytes`
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}

/** Whether the backend could not be asked, or nothing came back in time. */
export function isOutage(error: unknown): boolean {
  return error instanceof OnceStoreError && error.code === 'OUTAGE'
}

/** Whether the limiter was closed before the call was answered. */
export function isClosed(error: unknown): boolean {
  return error instanceof OnceStoreError && error.code === 'CLOSED'
}

/** What calls to a closed limiter throw or reject with. */
export function closedError(): StoreError {
  return new OnceStoreError('CLOSED', 'this limiter is closed: create or attach another one')
}

/** What a call that other threads kept from deciding throws, after a bounded wait. */
export function contentionError(keys = 'this key'): StoreError {
  return new OnceStoreError('CONTENTION', `other threads kept changing ${keys}, and the call gave up after a bounded wait: call again`)
}
