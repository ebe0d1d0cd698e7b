import { clientNetwork, fittedKey } from 'sluicegate/keys'
import { UsageError } from '../terminal/usage-error.js'
import type { LogRecord } from './log-reader.js'
import { LineTemplate } from './log-reader.js'

/** Which requests a policy counts, by which key and cost. */
export interface RequestRule {
  readonly key: KeyTemplate
  /** Undefined: all requests. */
  readonly filter: RequestFilter | undefined
}

/** A key made from variables of a line: `$remote_addr`, or `$remote_addr|$request_method`. */
export class KeyTemplate {
  readonly text: string
  readonly names: readonly string[]
  readonly #literals: readonly string[]
  readonly #readers: readonly ((value: string) => string)[]
  readonly #isComposed: boolean

  /**
   * @param ipv6Subnet bits of IPv6 by which addresses are counted.
   * @throws {UsageError} for a text without a variable: everybody would share one key.
   */
  constructor(text: string, ipv6Subnet = 56) {
    const { variables, literals, names } = new LineTemplate('--key', text, '$remote_addr')
    this.text = text
    this.names = names
    this.#literals = literals
    this.#readers = variables.map(({ hop }) => keyPart(hop, ipv6Subnet))
    this.#isComposed = names.length > 1
  }

  /** The key of a request; undefined where a variable is empty or `-`, as a server writes what it does not know. */
  keyOf(record: LogRecord): string | undefined {
    let key = this.#literals[0] as string
    for (let i = 0; i < this.names.length; i++) {
      const value = (this.#readers[i] as (value: string) => string)(record.value(this.names[i] as string))
      if (value === '' || value === '-') return undefined
      key += (this.#isComposed ? escaped(value) : value) + (this.#literals[i + 1] as string)
    }
    return fittedKey(key)
  }
}

/** A value as it counts: an address by its client's network, of a list of them the last or the one that is named; any other as it is. */
function keyPart(hop: number | undefined, ipv6Subnet: number): (value: string) => string {
  const networkOf = clientNetwork({ ipv6Subnet, hop: hop ?? 1 })
  if (hop === undefined) return (value) => networkOf(value) ?? value
  return (value) => networkOf(value) ?? value.split(',').at(-hop)?.trim() ?? ''
}

/** The option `--ipv6-subnet`. @throws {UsageError} */
export function subnetOf(text: string | undefined): number {
  if (text === undefined) return 56
  const bits = /^\d{2,3}$/.test(text) ? Number(text) : 0
  if (bits < 32 || bits > 128) throw new UsageError(`--ipv6-subnet must be an integer from 32 to 128, not "${text}"`)
  return bits
}

/** Requests of one method, of a path or of all paths that begin alike: `POST /login`, `/api/*`, `GET`. */
export class RequestFilter {
  readonly text: string
  readonly names: readonly string[]
  readonly #method: string | undefined
  readonly #path: string | undefined
  readonly #isPrefix: boolean

  constructor(text: string) {
    const [, method, path] = /^(?:([A-Z]+)(?: |$))?(\/\S*)?$/.exec(text) ?? []
    if (method === undefined && path === undefined)
      throw new UsageError(`--match: "${text}" is no method and path, such as "POST /login" or "/api/*"`)
    this.text = text
    this.#method = method
    this.#isPrefix = path?.endsWith('*') ?? false
    this.#path = this.#isPrefix ? path?.slice(0, -1) : path
    this.names = [...(method === undefined ? [] : ['request_method']), ...(path === undefined ? [] : ['uri'])]
  }

  matches(record: LogRecord): boolean {
    if (this.#method !== undefined && record.value('request_method') !== this.#method) return false
    if (this.#path === undefined) return true
    const path = record.value('uri')
    return this.#isPrefix ? path.startsWith(this.#path) : path === this.#path
  }
}

/** So that no value of one variable makes the key of another pair of values. */
function escaped(value: string): string {
  return value.includes('|') || value.includes('\\') ? value.replace(/[|\\]/g, '\\$&') : value
}
