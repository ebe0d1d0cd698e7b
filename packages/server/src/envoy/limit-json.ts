import { UNITS } from 'sluicegate-config/envoy/rule.js'
import type { Entry } from './find-rule.js'
import {
  type Descriptor,
  type DescriptorStatus,
  type LimitOverride,
  type LimitRequest,
  LimitRequestError,
  type LimitResponse,
} from './limit-request.js'

// The JSON form of the messages in proto/envoy/service/ratelimit/v3/rls.proto, as Envoy's ratelimit service reads and writes it.
// Source: https://protobuf.dev/programming-guides/json/

const MAX_UINT32 = 0xffff_ffff
const DIGITS = /^\d{1,20}$/
/** The unit of a number, and the number of a unit's name. */
const UNIT_NAMES: ReadonlyMap<number, string> = new Map([[0, 'UNKNOWN'], ...Object.entries(UNITS).map(numberAndName)])

/**
 * The request in the members of a JSON object. Names are in camel case or as in the protocol, numbers may be texts, null is an absent value.
 *
 * @throws {LimitRequestError} for a value of another type, and for a member that the message does not have.
 */
export function limitRequestOf(members: ReadonlyMap<string, unknown>): LimitRequest {
  const message = new Message('', members, ['domain', 'descriptors', 'hitsAddend'])
  return {
    domain: message.text('domain'),
    descriptors: message.messages('descriptors', ['entries', 'limit', 'hitsAddend', 'isNegativeHits']).map(descriptorOf),
    hitsAddend: message.integer('hitsAddend', MAX_UINT32) ?? 0,
  }
}

function descriptorOf(message: Message): Descriptor {
  return {
    entries: message.messages('entries', ['key', 'value']).map((entry): Entry => ({ key: entry.text('key'), value: entry.text('value') })),
    limit: limitOf(message.message('limit', ['requestsPerUnit', 'unit'])),
    hitsAddend: message.integer('hitsAddend', Number.MAX_SAFE_INTEGER),
    isNegativeHits: message.flag('isNegativeHits'),
  }
}

function limitOf(message: Message | undefined): LimitOverride | undefined {
  return message && { requestsPerUnit: message.integer('requestsPerUnit', MAX_UINT32) ?? 0, unit: message.unit('unit') }
}

/** The response as a JSON object. Values that are the default of the protocol are left out. */
export function limitResponseJson({ over, statuses, headers, metadata }: LimitResponse): string {
  return JSON.stringify({
    overallCode: codeOf(over),
    statuses: statuses.map(statusObject),
    ...(headers.length > 0 && { responseHeadersToAdd: headers.map(([key, value]) => ({ key, value })) }),
    ...(metadata !== undefined && { dynamicMetadata: metadata }),
  })
}

function statusObject({ over, limit, remaining, resetS }: DescriptorStatus): object {
  return {
    code: codeOf(over),
    ...(limit && {
      currentLimit: {
        ...(limit.requestsPerUnit > 0 && { requestsPerUnit: limit.requestsPerUnit }),
        ...(limit.unit > 0 && { unit: UNIT_NAMES.get(limit.unit) }),
        ...(limit.name !== '' && { name: limit.name }),
      },
    }),
    ...(remaining > 0 && { limitRemaining: remaining }),
    ...(limit && { durationUntilReset: `${resetS}s` }),
  }
}

function codeOf(over: boolean): string {
  return over ? 'OVER_LIMIT' : 'OK'
}

/** The members of a message, by their names in camel case. */
class Message {
  readonly #path: string
  readonly #values = new Map<string, unknown>()

  constructor(path: string, members: Iterable<readonly [string, unknown]>, known: readonly string[]) {
    this.#path = path
    for (const [written, value] of members) {
      const name = written.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      if (!known.includes(name)) throw invalid(`${path}${shown(written)} is unknown: there are ${known.join(', ')}`)
      if (this.#values.has(name)) throw invalid(`${path}${name} is given more than once`)
      this.#values.set(name, value)
    }
  }

  text(name: string): string {
    const value = this.#values.get(name) ?? ''
    if (typeof value !== 'string') throw invalid(`${this.#path}${name} must be a string`)
    // As in the protocol's binary form, where half a character cannot be written.
    if (!value.isWellFormed()) throw invalid(`${this.#path}${name} has half of a surrogate pair`)
    return value
  }

  flag(name: string): boolean {
    const value = this.#values.get(name) ?? false
    if (typeof value !== 'boolean') throw invalid(`${this.#path}${name} must be true or false`)
    return value
  }

  integer(name: string, max: number): number | undefined {
    const value = this.#values.get(name) ?? undefined
    if (value === undefined) return undefined
    const number = typeof value === 'string' && DIGITS.test(value) ? Number(value) : value
    if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= max) return number
    throw invalid(`${this.#path}${name} must be an integer from 0 to ${max}`)
  }

  /** The number of a unit, which is given by name or number. */
  unit(name: string): number {
    const value = this.#values.get(name) ?? 0
    for (const [number, unit] of UNIT_NAMES) if (value === number || value === unit) return number
    throw invalid(`${this.#path}${name} must be ${[...UNIT_NAMES.values()].join(', ')}`)
  }

  message(name: string, known: readonly string[]): Message | undefined {
    const value = this.#values.get(name) ?? undefined
    return value === undefined ? undefined : messageOf(`${this.#path}${name}`, value, known)
  }

  messages(name: string, known: readonly string[]): Message[] {
    const value = this.#values.get(name) ?? []
    if (!Array.isArray(value)) throw invalid(`${this.#path}${name} must be a list`)
    return value.map((each, i) => messageOf(`${this.#path}${name}[${i}]`, each, known))
  }
}

function messageOf(path: string, value: unknown, known: readonly string[]): Message {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(`${path} must be an object`)
  return new Message(`${path}.`, Object.entries(value), known)
}

function numberAndName([name, { number }]: [string, { readonly number: number }]): [number, string] {
  return [number, name.toUpperCase()]
}

function invalid(message: string): LimitRequestError {
  return new LimitRequestError('invalid', message)
}

function shown(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}...` : name)
}
